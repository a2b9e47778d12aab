//! Every dotted word that Rust raises. An unlisted one does not compile: [`word!`](crate::word) looks it up while compiling.

use super::word_list::WORDS;

/// A dotted word of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word(&'static str);

/// A word of the list; any other text does not compile.
#[macro_export]
macro_rules! word {
    ($text:literal) => {{
        const WORD: $crate::error::Word = $crate::error::Word::listed($text);
        WORD
    }};
}
pub use crate::word;

impl Word {
    /// The word `text` of the list.
    ///
    /// # Panics
    /// If the list lacks it, or no class covers it.
    pub const fn listed(text: &'static str) -> Self {
        assert!(is_listed(text), "not a word of crate/src/error/word_list.rs");
        assert!(!class(text).is_empty(), "no class covers this word");
        Self(text)
    }

    /// The text.
    pub const fn text(self) -> &'static str {
        self.0
    }
}

const fn is_listed(text: &str) -> bool {
    let mut at = 0;
    while at < WORDS.len() {
        if WORDS[at].len() == text.len() && starts(text.as_bytes(), WORDS[at].as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

const fn starts(text: &[u8], start: &[u8]) -> bool {
    let mut at = 0;
    while at < start.len() {
        if at >= text.len() || text[at] != start[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The upper-case class of a word: that of the longest row of the table that begins it, at a dot. Empty if there is none.
pub const fn class(word: &str) -> &'static str {
    let (mut at, mut best, mut found) = (0, 0, "");
    while at < CLASSES.len() {
        let (start, class) = CLASSES[at];
        let whole = word.len() == start.len() || word.len() > start.len() && word.as_bytes()[start.len()] == b'.';
        if start.len() > best && whole && starts(word.as_bytes(), start.as_bytes()) {
            best = start.len();
            found = class;
        }
        at += 1;
    }
    found
}

/// Beginnings of words, and the class of those that have no longer beginning here.
pub const CLASSES: &[(&str, &str)] = &[
    ("adapter", "BAD_MODEL_FILE"),
    ("bundle", "BAD_MODEL_FILE"),
    ("call.aborted", "ABORTED"),
    ("checkpoint", "CHECKPOINT_CORRUPT"),
    ("checkpoint.version", "CHECKPOINT_VERSION"),
    ("cli", "BAD_OPTION"),
    ("config", "BAD_OPTION"),
    ("data", "BAD_OPTION"),
    ("device.limit", "LIMIT_EXCEEDED"),
    ("device.lost", "DEVICE_LOST"),
    ("device.no-adapter", "NO_ADAPTER"),
    ("digest", "INTEGRITY"),
    ("export", "BAD_OPTION"),
    ("format", "BAD_MODEL_FILE"),
    ("gguf", "BAD_MODEL_FILE"),
    ("gguf.tensor.type-unknown", "UNSUPPORTED_QUANT"),
    ("gguf.tensor.type-unsupported", "UNSUPPORTED_QUANT"),
    ("index", "BAD_MODEL_FILE"),
    ("integrity", "INTEGRITY"),
    ("json", "BAD_MODEL_FILE"),
    ("kernel", "SHADER_FAILED"),
    ("model.arch", "UNSUPPORTED_ARCH"),
    ("model.config", "UNSUPPORTED_ARCH"),
    ("model.config.type", "BAD_MODEL_FILE"),
    ("model.context", "BAD_OPTION"),
    ("model.non-finite", "NON_FINITE"),
    ("model.tensor", "BAD_MODEL_FILE"),
    ("model.tied", "BAD_MODEL_FILE"),
    ("model.token-range", "BAD_OPTION"),
    ("model.vocab", "BAD_MODEL_FILE"),
    ("optim.groups", "BAD_OPTION"),
    ("optim.resume-mismatch", "CHECKPOINT_MISMATCH"),
    ("optim.state-dropped", "CHECKPOINT_MISMATCH"),
    ("optim.state-mismatch", "CHECKPOINT_MISMATCH"),
    ("safetensors", "BAD_MODEL_FILE"),
    ("session.busy", "BUSY"),
    ("sink", "STORAGE_FAILED"),
    ("source", "BAD_MODEL_FILE"),
    ("source.too-large", "LIMIT_EXCEEDED"),
    ("template", "BAD_MODEL_FILE"),
    ("tensor.non-finite", "BAD_MODEL_FILE"),
    ("tokenizer", "BAD_MODEL_FILE"),
    ("tokenizer.text", "BAD_OPTION"),
    ("train.non-finite", "NON_FINITE"),
];
