//! Describes exactly what was refused: a key of a configuration, or a file.

use std::fmt;

use super::escaped;

/// One broken rule of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Path of the key, for example `optimizer.beta1`.
    pub key: String,
    /// Rule that the key must satisfy.
    pub rule: String,
    /// Value that was given.
    pub value: String,
}

impl Fault {
    /// Creates a fault of `key`: it must satisfy `rule`, but `value` was given.
    pub fn new(key: impl Into<String>, rule: impl Into<String>, value: impl fmt::Display) -> Self {
        Self { key: key.into(), rule: rule.into(), value: value.to_string() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", escaped(&self.key), escaped(&self.rule), escaped(&self.value))
    }
}

/// Reason for which a file was refused (crate/FORMATS.md, "Refusals").
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Refusal {
    /// Stable dotted code, for example `safetensors.offset.overlap`.
    pub code: &'static str,
    /// Stage that the file reached: `open`, `bind` or `read`.
    pub stage: &'static str,
    /// Name of the file, escaped.
    pub artifact: String,
    /// Tensor, key or shard, escaped and shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Expected value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Value that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// Suggestion for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Offset in the file, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_offset: Option<u64>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.artifact.is_empty() {
            write!(f, "{}: ", self.artifact)?;
        }
        f.write_str(self.code)?;
        if let Some(subject) = &self.subject {
            write!(f, " \"{subject}\"")?;
        }
        if let Some(expected) = &self.expected {
            write!(f, ", expected {expected}")?;
        }
        if let Some(found) = &self.found {
            write!(f, ", found {found}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

/// Joins the first refusals of a list, which may have one for each row of a file.
pub(super) fn first_of(refusals: &[Refusal]) -> String {
    const SHOWN: usize = 20;
    let first = super::listed(refusals.get(..SHOWN).unwrap_or(refusals));
    if refusals.len() > SHOWN { format!("{first}; and {} more", refusals.len() - SHOWN) } else { first }
}
