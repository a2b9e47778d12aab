//! Which modules an adapter names: by the ends of their names, or by patterns that linear time matches.

use regex::{Regex, RegexBuilder};

use crate::error::{Refusal, Result, word};

/// Longest pattern or name of a module.
const MAX_PATTERN_BYTES: usize = 1_024;

/// Largest memory of a pattern that was prepared for matching.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// A regular expression that was checked.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

impl Pattern {
    /// A pattern that matches whole names; `path` says where it stands.
    pub(super) fn whole(path: &str, text: &str) -> Result<Self> {
        Self::new(path, text, &format!("^(?:{text})$"))
    }

    /// A pattern that matches a whole name, or its end after a dot.
    pub(super) fn end(path: &str, text: &str) -> Result<Self> {
        Self::new(path, text, &format!(r"^(?:.*\.)?(?:{text})$"))
    }

    fn new(path: &str, text: &str, anchored: &str) -> Result<Self> {
        check_length(path, text)?;
        let invalid = |_| {
            let refusal = Refusal::new(word!("adapter.pattern.invalid")).subject(path).found(text);
            refusal.expected("a regular expression without look-around and back references")
        };
        let regex = RegexBuilder::new(anchored).size_limit(MAX_COMPILED_BYTES).build().map_err(invalid)?;
        Ok(Self { text: text.to_string(), regex })
    }

    /// The pattern as the adapter has it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches this name of a module.
    pub fn matches(&self, module: &str) -> bool {
        self.regex.is_match(module)
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
    Names(Vec<String>),
}

impl Targets {
    /// Whether `module`, by its name without `.weight`, is among them.
    pub fn matches(&self, module: &str) -> bool {
        match self {
            Self::AllLinear => !named(module, "lm_head"),
            Self::Pattern(pattern) => pattern.matches(module),
            Self::Names(names) => names.iter().any(|name| named(module, name)),
        }
    }

    /// Those of the targets that match none of `modules`, as the adapter has them.
    pub(super) fn unmatched(&self, modules: &[&str]) -> Vec<&str> {
        let idle = |name: &str| !modules.iter().any(|module| named(module, name));
        match self {
            Self::AllLinear if modules.is_empty() => vec!["all-linear"],
            Self::Pattern(pattern) if !modules.iter().any(|module| pattern.matches(module)) => vec![pattern.text()],
            Self::Names(names) => names.iter().map(String::as_str).filter(|name| idle(name)).collect(),
            _ => Vec::new(),
        }
    }
}

/// Whether `module` is `name`, or ends with it after a dot.
fn named(module: &str, name: &str) -> bool {
    module.strip_suffix(name).is_some_and(|start| start.is_empty() || start.ends_with('.'))
}
