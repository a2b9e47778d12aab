//! Which modules an adapter names: by the ends of their names, or by patterns that linear time matches.

use std::collections::BTreeSet;

use regex::bytes::{Regex, RegexBuilder};

use crate::error::{Refusal, Result, word};

/// Longest pattern or name of a module.
const MAX_PATTERN_BYTES: usize = 1_024;

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
    pub(super) fn whole(path: &str, text: &str) -> Result<Self> {
        Self::new(path, text, format!("^(?:{text})$"))
    }

    /// A pattern that matches a whole name, or its end after a dot.
    pub(super) fn end(path: &str, text: &str) -> Result<Self> {
        Self::new(path, text, format!(r"^(?:.*\.)?(?:{text})$"))
    }

    fn new(path: &str, text: &str, anchored: String) -> Result<Self> {
        check_length(path, text)?;
        let pattern = Self { text: text.to_string(), path: path.to_string(), anchored };
        pattern.prepared().map(drop)?;
        Ok(pattern)
    }

    /// The pattern as the adapter has it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Says of a name of a module whether the pattern matches it. Letters and digits are those of ASCII.
    pub(super) fn prepared(&self) -> Result<impl Fn(&str) -> bool> {
        let invalid = |_| {
            let refusal = Refusal::new(word!("adapter.pattern.invalid")).subject(&self.path).found(&self.text);
            refusal.expected("a regular expression without look-around and back references")
        };
        let regex: Regex = RegexBuilder::new(&self.anchored).unicode(false).size_limit(MAX_COMPILED_BYTES).build().map_err(invalid)?;
        Ok(move |module: &str| regex.is_match(module.as_bytes()))
    }
}

/// Refuses a pattern, or the name of a module, that is too long.
pub(super) fn check_length(path: &str, text: &str) -> Result<()> {
    if text.len() > MAX_PATTERN_BYTES {
        let refusal = Refusal::new(word!("adapter.pattern.length")).subject(path);
        return Err(refusal.expected(format!("at most {MAX_PATTERN_BYTES} bytes")).found(text.len()).into());
    }
    Ok(())
}

/// `target_modules`: the modules that have a pair.
#[derive(Debug, Clone)]
pub enum Targets {
    /// `all-linear`: every matrix but the head.
    AllLinear,
    /// Modules whose whole name a pattern matches.
    Pattern(Pattern),
    /// Modules with one of these names, or whose name ends with one after a dot.
    Names(BTreeSet<String>),
}

impl Targets {
    /// Those of `modules`, by their names without `.weight`, that are no targets.
    pub(super) fn others<'a>(&self, modules: &[&'a str]) -> Result<Vec<&'a str>> {
        let without = |matches: &dyn Fn(&str) -> bool| modules.iter().copied().filter(|module| !matches(module)).collect();
        Ok(match self {
            Self::AllLinear => without(&|module| ends(module).all(|end| end != "lm_head")),
            Self::Pattern(pattern) => without(&pattern.prepared()?),
            Self::Names(names) => without(&|module| ends(module).any(|end| names.contains(end))),
        })
    }

    /// Those of the targets that match none of `modules`, as the adapter has them.
    pub(super) fn unmatched(&self, modules: &[&str]) -> Result<Vec<&str>> {
        Ok(match self {
            Self::AllLinear if modules.is_empty() => vec!["all-linear"],
            Self::AllLinear => Vec::new(),
            Self::Pattern(pattern) => {
                let matches = pattern.prepared()?;
                if modules.iter().any(|module| matches(module)) { Vec::new() } else { vec![pattern.text()] }
            }
            Self::Names(names) => {
                let found: BTreeSet<&str> = modules.iter().copied().flat_map(ends).collect();
                names.iter().map(String::as_str).filter(|name| !found.contains(name)).collect()
            }
        })
    }

    /// Whether a list has the whole name of `module`.
    pub(super) fn has_whole(&self, module: &str) -> bool {
        matches!(self, Self::Names(names) if names.contains(module))
    }
}

/// A name, and its ends after each of its dots.
fn ends(module: &str) -> impl Iterator<Item = &str> {
    std::iter::once(module).chain(module.match_indices('.').map(|(at, _)| &module[at + 1..]))
}
