//! Patterns over module names as in PEFT: those of Python's regular expressions that can be matched in linear time, and ends of names.

use regex::bytes::{Captures, Regex, RegexBuilder};

use crate::error::{Refusal, Result, word};

/// Maximum length of a pattern or module name in bytes.
const MAX_PATTERN_BYTES: usize = 1_024;

/// Maximum number of patterns or names in a field: more than the largest model has matrices in its blocks.
const MAX_PATTERNS: usize = 4_096;

/// Maximum memory of a compiled pattern in bytes.
const MAX_COMPILED_BYTES: usize = 64 << 10;

/// A checked regular expression. It is compiled for each use, so that many patterns take little memory.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    /// Key of the setting, for a refusal.
    path: String,
    anchored: String,
}

impl Pattern {
    /// Creates a pattern that matches whole names; `path` is the key of the setting, for refusals.
    ///
    /// # Errors
    /// `adapter.pattern.length`, `adapter.pattern.invalid`.
    pub fn whole(path: &str, text: &str) -> Result<Self> {
        Self::new(path, text, format!("^(?:{text})$"))
    }

    /// Creates a pattern that matches a whole name, or its end after a dot.
    ///
    /// # Errors
    /// As for [`Pattern::whole`].
    pub fn end(path: &str, text: &str) -> Result<Self> {
        Self::new(path, text, format!(r"^(?:.*\.)?(?:{text})$"))
    }

    /// Creates a pattern that matches a whole name, or a part of it between dots: PEFT keeps factors away from modules that
    /// `modules_to_save` matches in this way. The text is inserted into the expression as PEFT does, without brackets.
    ///
    /// # Errors
    /// As for [`Pattern::whole`].
    pub fn part(path: &str, text: &str) -> Result<Self> {
        Self::new(path, text, format!(r"^(?:(?:^|.*\.){text}(?:$|\..*))"))
    }

    fn new(path: &str, text: &str, anchored: String) -> Result<Self> {
        check_length(path, text)?;
        // Compiled alone first: brackets of the text must not close those around it.
        prepared(path, text, text)?;
        let pattern = Self {
            text: text.to_string(),
            path: path.to_string(),
            anchored,
        };
        pattern.prepared().map(drop)?;
        Ok(pattern)
    }

    /// Returns the pattern as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Compiles the pattern to a test of module names. Classes of letters and digits are those of ASCII.
    ///
    /// # Errors
    /// None in practice, since the pattern was compiled when it was created.
    pub(crate) fn prepared(&self) -> Result<impl Fn(&str) -> bool + use<>> {
        let regex = prepared(&self.path, &self.text, &self.anchored)?;
        Ok(move |module: &str| regex.is_match(module.as_bytes()))
    }
}

/// Finds the number of the block that contains a module: the last number after a part of its name that the pattern matches.
#[derive(Debug)]
pub struct BlockPattern(Regex);

impl BlockPattern {
    /// Creates a pattern for numbers after a part that `text` matches, or after any part. The text is inserted into the expression as in
    /// PEFT.
    ///
    /// # Errors
    /// As for [`Pattern`]; `adapter.pattern.invalid` also for a text with groups or with alternatives outside groups, since PEFT cannot
    /// read a number from these.
    pub fn new(path: &str, text: Option<&str>) -> Result<Self> {
        let part = text.unwrap_or("[^.]*");
        check_length(path, part)?;
        prepared(path, part, part)?;
        let regex = prepared(path, part, &format!(r"^.*\.{part}\.(\d+)\."))?;
        if regex.static_captures_len() == Some(2) {
            return Ok(Self(regex));
        }
        let refusal = Refusal::new(word!("adapter.pattern.invalid"))
            .subject(path)
            .found(part);
        Err(refusal
            .expected(
                "a regular expression without groups that are counted, its alternatives in (?:…)",
            )
            .into())
    }

    /// Returns the number of the block, if the name has one.
    pub fn block_of(&self, module: &str) -> Option<u64> {
        let number = |captures: Captures<'_>| {
            std::str::from_utf8(captures.get(1)?.as_bytes())
                .ok()?
                .parse()
                .ok()
        };
        self.0.captures(module.as_bytes()).and_then(number)
    }
}

fn prepared(path: &str, text: &str, anchored: &str) -> Result<Regex> {
    let invalid = |_| {
        let refusal = Refusal::new(word!("adapter.pattern.invalid"))
            .subject(path)
            .found(text);
        refusal.expected("a regular expression without look-around and back references")
    };
    Ok(RegexBuilder::new(anchored)
        .unicode(false)
        .size_limit(MAX_COMPILED_BYTES)
        .build()
        .map_err(invalid)?)
}

/// Checks the length of a pattern or module name.
///
/// # Errors
/// `adapter.pattern.length` if it is too long.
pub(crate) fn check_length(path: &str, text: &str) -> Result<()> {
    if text.len() > MAX_PATTERN_BYTES {
        let refusal = Refusal::new(word!("adapter.pattern.length")).subject(path);
        return Err(refusal
            .expected(format!("at most {MAX_PATTERN_BYTES} bytes"))
            .found(text.len())
            .into());
    }
    Ok(())
}

/// Checks the number of patterns or names in a field.
///
/// # Errors
/// `adapter.pattern.count` if there are too many.
pub(crate) fn check_count(path: &str, found: usize) -> Result<()> {
    let refusal = || {
        Refusal::new(word!("adapter.pattern.count"))
            .subject(path)
            .expected(format!("at most {MAX_PATTERNS}"))
            .found(found)
    };
    if found > MAX_PATTERNS {
        Err(refusal().into())
    } else {
        Ok(())
    }
}

/// Returns the name, and its ends after each of its dots.
pub fn ends(module: &str) -> impl Iterator<Item = &str> {
    std::iter::once(module).chain(module.match_indices('.').map(|(at, _)| &module[at + 1..]))
}

/// Returns for each of `modules` the value of the first pattern that matches it.
///
/// # Errors
/// None in practice, since the patterns were compiled when they were created.
pub(crate) fn first_matches<T: Copy>(
    table: &[(Pattern, T)],
    modules: &[&str],
) -> Result<Vec<Option<T>>> {
    let mut found = vec![None; modules.len()];
    for (pattern, value) in table {
        let matches = pattern.prepared()?;
        for (found, module) in found.iter_mut().zip(modules) {
            if found.is_none() && matches(module) {
                *found = Some(*value);
            }
        }
    }
    Ok(found)
}
