//! Patterns over names of modules, as PEFT reads them: regular expressions of Python that linear time matches, and ends of names.

use regex::bytes::{Captures, Regex, RegexBuilder};

use crate::error::{Refusal, Result, word};

/// Longest pattern or name of a module.
const MAX_PATTERN_BYTES: usize = 1_024;

/// Maximum number of patterns or names in a field: more than the largest model has matrices in its blocks.
const MAX_PATTERNS: usize = 4_096;

/// Largest memory of a pattern that is prepared for matching.
const MAX_COMPILED_BYTES: usize = 64 << 10;

/// A regular expression that was checked. It is prepared each time it is used, so that many take no memory.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    /// Where it stands, for a refusal.
    path: String,
    anchored: String,
}

impl Pattern {
    /// A pattern that matches whole names; `path` says where it stands.
    ///
    /// # Errors
    /// `adapter.pattern.length`, `adapter.pattern.invalid`, as for the other kinds.
    pub fn whole(path: &str, text: &str) -> Result<Self> {
        Self::new(path, text, format!("^(?:{text})$"))
    }

    /// A pattern that matches a whole name, or its end after a dot.
    pub fn end(path: &str, text: &str) -> Result<Self> {
        Self::new(path, text, format!(r"^(?:.*\.)?(?:{text})$"))
    }

    /// A pattern that matches a whole name, or a part of it between dots. PEFT keeps factors from what `modules_to_save` matches so. The
    /// text stands in the expression as PEFT puts it there, without brackets.
    pub fn part(path: &str, text: &str) -> Result<Self> {
        Self::new(path, text, format!(r"^(?:(?:^|.*\.){text}(?:$|\..*))"))
    }

    fn new(path: &str, text: &str, anchored: String) -> Result<Self> {
        check_length(path, text)?;
        // By itself first: brackets of the text must not close those around it.
        prepared(path, text, text)?;
        let pattern = Self { text: text.to_string(), path: path.to_string(), anchored };
        pattern.prepared().map(drop)?;
        Ok(pattern)
    }

    /// The pattern as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Says of a name of a module whether the pattern matches it. Letters and digits are those of ASCII.
    ///
    /// # Errors
    /// None, since the pattern was prepared once.
    pub fn prepared(&self) -> Result<impl Fn(&str) -> bool + use<>> {
        let regex = prepared(&self.path, &self.text, &self.anchored)?;
        Ok(move |module: &str| regex.is_match(module.as_bytes()))
    }
}

/// Finds the number of the block that a module stands in: the last number after a part of its name that the pattern matches.
#[derive(Debug)]
pub struct BlockPattern(Regex);

impl BlockPattern {
    /// Numbers after a part that `text` matches, or after any part. The text stands in the expression as PEFT puts it there.
    ///
    /// # Errors
    /// As for [`Pattern`]; `adapter.pattern.invalid` also for a text with groups or with alternatives outside of groups, of which PEFT
    /// cannot read a number.
    pub fn new(path: &str, text: Option<&str>) -> Result<Self> {
        let part = text.unwrap_or("[^.]*");
        check_length(path, part)?;
        prepared(path, part, part)?;
        let regex = prepared(path, part, &format!(r"^.*\.{part}\.(\d+)\."))?;
        if regex.static_captures_len() == Some(2) {
            return Ok(Self(regex));
        }
        let refusal = Refusal::new(word!("adapter.pattern.invalid")).subject(path).found(part);
        Err(refusal.expected("a regular expression without groups that are counted, its alternatives in (?:…)").into())
    }

    /// The number of the block, if the name has one.
    pub fn block_of(&self, module: &str) -> Option<u64> {
        let number = |captures: Captures<'_>| std::str::from_utf8(captures.get(1)?.as_bytes()).ok()?.parse().ok();
        self.0.captures(module.as_bytes()).and_then(number)
    }
}

fn prepared(path: &str, text: &str, anchored: &str) -> Result<Regex> {
    let invalid = |_| {
        let refusal = Refusal::new(word!("adapter.pattern.invalid")).subject(path).found(text);
        refusal.expected("a regular expression without look-around and back references")
    };
    Ok(RegexBuilder::new(anchored).unicode(false).size_limit(MAX_COMPILED_BYTES).build().map_err(invalid)?)
}

/// Refuses a pattern, or the name of a module, that is too long.
///
/// # Errors
/// `adapter.pattern.length`.
pub fn check_length(path: &str, text: &str) -> Result<()> {
    if text.len() > MAX_PATTERN_BYTES {
        let refusal = Refusal::new(word!("adapter.pattern.length")).subject(path);
        return Err(refusal.expected(format!("at most {MAX_PATTERN_BYTES} bytes")).found(text.len()).into());
    }
    Ok(())
}

/// Refuses a field with too many patterns or names.
///
/// # Errors
/// `adapter.pattern.count`.
pub fn check_count(path: &str, found: usize) -> Result<()> {
    let refusal = || Refusal::new(word!("adapter.pattern.count")).subject(path).expected(format!("at most {MAX_PATTERNS}")).found(found);
    if found > MAX_PATTERNS { Err(refusal().into()) } else { Ok(()) }
}

/// A name, and its ends after each of its dots.
pub fn ends(module: &str) -> impl Iterator<Item = &str> {
    std::iter::once(module).chain(module.match_indices('.').map(|(at, _)| &module[at + 1..]))
}

/// The value of the first pattern that matches each of `modules`.
///
/// # Errors
/// None, since the patterns were prepared once.
pub fn first_matches<T: Copy>(table: &[(Pattern, T)], modules: &[&str]) -> Result<Vec<Option<T>>> {
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
