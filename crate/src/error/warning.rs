//! Warnings about files, and limits on the length of lists of warnings and refusals.

use std::borrow::Cow;

use super::{Error, Refusal, Word, shown, word};

/// Something worth knowing about a file that was not refused ([example](crate)).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warning {
    /// Stable dotted word.
    pub code: &'static str,
    /// Tensor, key or shard, escaped and shortened.
    pub subject: String,
    /// Message of the error for which a part of the model was refused, if the model opened without it.
    #[serde(skip)]
    refused: Option<Box<str>>,
    /// Sentence that says how the model is used without the refused part.
    #[serde(skip)]
    consequence: Cow<'static, str>,
    /// Thing that was found in the place of a document, and what to do about it.
    #[serde(skip)]
    found: Option<Box<(String, &'static str)>>,
}

impl Warning {
    /// Creates a warning about `subject`, text of a file.
    #[doc(hidden)]
    pub fn new(code: Word, subject: &str) -> Self {
        let warning = Self {
            code: code.text(),
            subject: shown(subject),
            refused: None,
            consequence: "".into(),
            found: None,
        };
        warning.sentence().keep();
        warning
    }

    /// Creates a warning from the refusal of `part`, without which the model opened; `consequence` is a sentence.
    pub(crate) fn of_error(error: &Error, part: &str, consequence: &'static str) -> Self {
        let subject = if let Error::Refused(list) = error {
            list.first().and_then(|first| first.subject.clone())
        } else {
            None
        };
        let subject = subject.unwrap_or_else(|| part.to_string());
        Self {
            code: error.code(),
            subject,
            refused: Some(error.to_string().into()),
            consequence: consequence.into(),
            found: None,
        }
    }

    /// Creates a warning about `subject`, in whose place `found` was found, with what to do about it.
    pub(crate) fn of_found(code: Word, subject: &str, found: &str, hint: &'static str) -> Self {
        let warning = Self {
            found: Some(Box::new((found.to_string(), hint))),
            ..Self::new(code, subject)
        };
        warning.sentence().keep();
        warning
    }

    /// Replaces the sentence that says how the model is used, if this warning is about a part that was refused.
    pub(crate) fn set_consequence(&mut self, consequence: &str) {
        if self.refused.is_some() {
            self.consequence = consequence.to_string().into();
        }
    }

    /// Returns the warning as a sentence.
    pub fn message(&self) -> String {
        self.refused.as_ref().map_or_else(
            || self.sentence().to_string(),
            |refused| format!("{refused} {}", self.consequence),
        )
    }

    /// Returns the values of its sentence.
    fn sentence(&self) -> Refusal {
        let filled = |found| Refusal {
            code: self.code,
            ..Refusal::filled(word!("bundle.unused"), [&self.subject, "", found])
        };
        self.found
            .as_ref()
            .map_or_else(|| filled(""), |found| filled(&found.0).hint(found.1))
    }
}

/// Maximum number of warnings and of faults that are listed for one file: a file may cause millions.
pub(crate) const MAX_LISTED: usize = 10_000;

/// Adds a warning of a file; the warnings beyond the 10,000th are replaced by one whose subject is `…`.
pub(crate) fn add_warning(warnings: &mut Vec<Warning>, code: Word, subject: &str) {
    if warnings.len() <= MAX_LISTED {
        warnings.push(Warning::new(
            code,
            if warnings.len() < MAX_LISTED {
                subject
            } else {
                "…"
            },
        ));
    }
}

/// Adds a fault of a file; those beyond the 10,000th are left out, and the last one's hint says so.
pub(crate) fn add_refusal(list: &mut Vec<Refusal>, refusal: Refusal) {
    if list.len() < MAX_LISTED {
        list.push(refusal);
    } else if let Some(last) = list.last_mut().filter(|last| last.hint.is_none()) {
        last.hint = Some("there are more of them".to_string());
    }
}
