//! Describes exactly what was refused: a key of a configuration, or a file.

use std::fmt;

use super::{Word, escaped, shown};

/// One broken rule of a configuration ([example](crate)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Path of the key, for example `optimizer.beta1`.
    pub key: String,
    /// Rule that the key must satisfy.
    pub rule: String,
    /// Value that was given.
    pub value: String,
}

#[doc(hidden)]
impl Fault {
    /// Creates a fault of `key`: it must satisfy `rule`, but `value` was given.
    pub fn new(key: impl Into<String>, rule: impl Into<String>, value: impl fmt::Display) -> Self {
        Self {
            key: key.into(),
            rule: rule.into(),
            value: value.to_string(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: expected {}, found {}",
            escaped(&self.key),
            escaped(&self.rule),
            escaped(&self.value)
        )
    }
}

/// Reason for which a file was refused (crate/FORMATS.md, "Refusals") ([example](crate)).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refusal {
    /// Stable dotted code, for example `safetensors.offset.overlap`.
    pub code: &'static str,
    /// Stage that the file reached: `open`, `bind` or `read`.
    #[doc(hidden)]
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
    #[doc(hidden)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_offset: Option<u64>,
}

#[doc(hidden)]
impl Refusal {
    /// Creates a refusal at stage `open`, which does not name the file yet.
    pub fn new(code: Word) -> Self {
        Self {
            code: code.text(),
            stage: "open",
            artifact: String::new(),
            subject: None,
            expected: None,
            found: None,
            hint: None,
            byte_offset: None,
        }
    }

    /// Creates the values of a message whose texts are shown as they are: subject, expected and found; an empty one is absent.
    pub fn filled(code: Word, [subject, expected, found]: [&str; 3]) -> Self {
        let value = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Self {
            subject: value(subject),
            expected: value(expected),
            found: value(found),
            ..Self::new(code)
        }
    }

    /// Names the file.
    #[must_use]
    pub fn of(mut self, artifact: &str) -> Self {
        self.artifact = shown(base_name(artifact));
        self.keep();
        self
    }

    /// Sets how far the file got.
    #[must_use]
    pub fn stage(mut self, stage: &'static str) -> Self {
        self.stage = stage;
        self
    }

    /// Names the tensor, key or shard; the text is escaped and cut.
    #[must_use]
    pub fn subject(mut self, subject: &str) -> Self {
        self.subject = Some(shown(subject));
        self.keep();
        self
    }

    /// Sets what was expected.
    #[must_use]
    pub fn expected(mut self, expected: impl fmt::Display) -> Self {
        self.expected = Some(shown(&expected.to_string()));
        self.keep();
        self
    }

    /// Sets what was found; the text is escaped and cut.
    #[must_use]
    pub fn found(mut self, found: impl fmt::Display) -> Self {
        self.found = Some(shown(&found.to_string()));
        self.keep();
        self
    }

    /// Sets what was found by a sentence, in which text of a file is escaped and cut already.
    #[must_use]
    pub(crate) fn found_whole(mut self, found: String) -> Self {
        self.found = Some(found);
        self.keep();
        self
    }

    /// Sets what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(escaped(&hint.into()));
        self.keep();
        self
    }

    /// Sets another message as what to know about it, which has no unescaped text of a file.
    #[must_use]
    pub fn because(mut self, message: String) -> Self {
        self.hint = Some(message);
        self
    }

    /// Sets the offset in the file.
    #[must_use]
    pub fn at(mut self, byte_offset: u64) -> Self {
        self.byte_offset = Some(byte_offset);
        self
    }
}

/// Returns the last part of a name that may have folders before it.
pub(crate) fn base_name(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}
