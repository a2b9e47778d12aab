//! Warnings about files, and limits on the length of lists of warnings and refusals.

use super::mark::Flaw;
use crate::error::{Error, Refusal, Word, shown, word};

/// Something worth knowing about a file that was not refused.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Warning {
    /// Stable dotted word.
    pub code: &'static str,
    /// Tensor, key or shard, escaped and shortened.
    pub subject: String,
    /// Message of the error for which a part of the model was refused, if the model opened without it.
    #[serde(skip)]
    refused: Option<Box<str>>,
    /// Name of the file that is used instead of the refused part.
    #[serde(skip)]
    served_by: Option<&'static str>,
    /// Thing that was found in the place of a document.
    #[serde(skip)]
    flaw: Option<Box<Flaw>>,
}

impl Warning {
    /// Creates a warning about `subject`, text of a file.
    #[doc(hidden)]
    pub fn new(code: Word, subject: &str) -> Self {
        let warning = Self { code: code.text(), subject: shown(subject), refused: None, served_by: None, flaw: None };
        warning.told().keep();
        warning
    }

    /// Creates a warning from the refusal of `part`, without which the model opened.
    pub(crate) fn of_error(error: &Error, part: &str) -> Self {
        let subject = if let Error::Refused(list) = error { list.first().and_then(|first| first.subject.clone()) } else { None };
        let subject = subject.unwrap_or_else(|| part.to_string());
        Self { code: error.code(), subject, refused: Some(error.to_string().into()), served_by: None, flaw: None }
    }

    /// Creates a warning about the document `name`, in whose place there is something else that is not passed on.
    pub(crate) fn not_carried(name: &str, flaw: &Flaw) -> Self {
        let warning = Self { flaw: Some(Box::new(flaw.clone())), ..Self::new(word!("tokenizer.file.other"), name) };
        warning.told().keep();
        warning
    }

    /// Records that the file `name` is used instead, if this warning is about a part that was refused.
    pub(crate) fn serve(&mut self, name: &'static str) {
        self.served_by = self.refused.as_ref().map(|_| name);
    }

    /// Returns the warning as a sentence.
    pub fn message(&self) -> String {
        if let Some(refused) = &self.refused {
            return match self.served_by {
                Some(name) => format!("{refused} The tokenizer of {name} is used instead."),
                None => format!("{refused} The model is used without a tokenizer."),
            };
        }
        self.told().to_string()
    }

    /// Returns the values of its sentence.
    fn told(&self) -> Refusal {
        let told = |found| Refusal { code: self.code, ..Refusal::told(word!("bundle.unused"), [&self.subject, "", found]) };
        self.flaw.as_ref().map_or_else(|| told(""), |flaw| told(&flaw.found).hint(flaw.hint))
    }
}

/// Maximum number of warnings and of faults that are listed for one file: a file may cause millions.
pub(crate) const MAX_LISTED: usize = 10_000;

/// Adds a warning of a file; the warnings beyond the 10,000th are replaced by one whose subject is `…`.
pub(crate) fn add_warning(warnings: &mut Vec<Warning>, code: Word, subject: &str) {
    if warnings.len() <= MAX_LISTED {
        warnings.push(Warning::new(code, if warnings.len() < MAX_LISTED { subject } else { "…" }));
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
