//! Selects the modules that an adapter names: by the ends of their names, or by patterns that are matched in linear time.

use std::collections::BTreeSet;

use crate::config::{Names, Pattern, ends};
use crate::error::Result;

/// Value of `target_modules`: the modules that have a pair.
#[derive(Debug, Clone)]
pub enum Targets {
    /// `all-linear`: every matrix but the head.
    AllLinear,
    /// Modules whose whole name matches a pattern.
    Pattern(Pattern),
    /// Modules with one of these names, or whose name ends with one after a dot.
    Names(BTreeSet<String>),
}

impl Targets {
    /// Returns the `modules`, named without `.weight`, that are no targets.
    pub(crate) fn others<'a>(&self, modules: &[&'a str]) -> Result<Vec<&'a str>> {
        let without = |matches: &dyn Fn(&str) -> bool| {
            modules
                .iter()
                .copied()
                .filter(|module| !matches(module))
                .collect()
        };
        Ok(match self {
            Self::AllLinear => without(&|module| ends(module).all(|end| end != "lm_head")),
            Self::Pattern(pattern) => without(&pattern.prepared()?),
            Self::Names(names) => without(&|module| ends(module).any(|end| names.contains(end))),
        })
    }

    /// Returns the targets that match none of `modules`, as the adapter names them.
    pub(crate) fn unmatched(&self, modules: &[&str]) -> Result<Vec<&str>> {
        Ok(match self {
            Self::AllLinear if modules.is_empty() => vec!["all-linear"],
            Self::AllLinear => Vec::new(),
            Self::Pattern(pattern) => {
                let matches = pattern.prepared()?;
                if modules.iter().any(|module| matches(module)) {
                    Vec::new()
                } else {
                    vec![pattern.text()]
                }
            }
            Self::Names(names) => {
                let found: BTreeSet<&str> = modules.iter().copied().flat_map(ends).collect();
                names
                    .iter()
                    .map(String::as_str)
                    .filter(|name| !found.contains(name))
                    .collect()
            }
        })
    }

    /// Returns the targets as a setting.
    pub(crate) fn names(&self) -> Names {
        match self {
            Self::AllLinear => Names::One("all-linear".to_string()),
            Self::Pattern(pattern) => Names::One(pattern.text().to_string()),
            Self::Names(names) => Names::Many(names.iter().cloned().collect()),
        }
    }

    /// Returns whether a list contains the whole name of `module`.
    pub(crate) fn has_whole(&self, module: &str) -> bool {
        matches!(self, Self::Names(names) if names.contains(module))
    }
}
