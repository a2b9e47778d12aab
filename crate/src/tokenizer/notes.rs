//! Unusual but allowed properties of a tokenizer's files.

use super::{TEMPLATE_FILE, Tokenizer};
use crate::error::{Warning, Word, word};

/// Maximum number of things that one warning lists.
const MAX_LISTED: usize = 8;

impl Tokenizer {
    /// Returns warnings about the special tokens and the templates.
    pub(crate) fn notes(&self) -> Vec<Warning> {
        let told = |code: Word, subjects: &[String]| {
            (!subjects.is_empty()).then(|| Warning::new(code, &listed_briefly(subjects)))
        };
        let unlisted = self.unusual.unlisted.iter();
        let in_use = unlisted.filter(|(id, _)| (**id as usize) < self.vocab_size);
        let absent: Vec<String> = in_use.map(|(id, text)| format!("{text} {id}")).collect();
        let conflict = || Warning::new(word!("tokenizer.template.conflict"), TEMPLATE_FILE);
        let notes = [
            told(word!("tokenizer.special.absent"), &absent),
            told(word!("tokenizer.id.other"), &self.unusual.moved),
            told(word!("tokenizer.code"), &self.unusual.code),
            told(word!("tokenizer.template.empty"), &self.templates.empty),
            self.templates.conflict.then(conflict),
        ];
        notes.into_iter().flatten().collect()
    }
}

/// Lists names, the first eight of many.
pub(crate) fn listed_briefly(names: &[String]) -> String {
    let (first, rest) = names.split_at(names.len().min(MAX_LISTED));
    let first = first.join(", ");
    match rest.len() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
