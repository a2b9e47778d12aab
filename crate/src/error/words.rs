//! Checks dotted error codes at compile time: [`word!`](crate::word) looks a code up in the table, and one that the table lacks does not
//! compile.

use super::{CODES, Class, Raiser};

/// A dotted error code of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word(&'static str);

/// Returns an error code of the table as a [`Word`](crate::error::Word); any other text does not compile.
#[doc(hidden)]
#[macro_export]
macro_rules! word {
    ($text:literal) => {{
        const WORD: $crate::error::Word = $crate::error::Word::listed($text);
        WORD
    }};
}
pub use crate::word;

impl Word {
    /// Returns the code `text` of the table.
    ///
    /// # Panics
    /// Panics if the table lacks it, or says that only TypeScript raises it.
    pub const fn listed(text: &'static str) -> Self {
        let index = index_of(text);
        assert!(
            index < CODES.len(),
            "not a word of crate/src/error/codes.rs"
        );
        assert!(
            !matches!(CODES[index].raiser, Raiser::Page),
            "crate/src/error/codes.rs says that only the page raises this word"
        );
        Self(text)
    }

    /// Returns the text of the code.
    pub const fn text(self) -> &'static str {
        self.0
    }
}

/// Returns the class of a code; `None` if the table lacks it.
pub fn class(word: &str) -> Option<Class> {
    CODES.get(index_of(word)).map(|code| code.class)
}

/// Returns the sentence of a code, and what to do; `None` if the table lacks it.
#[cfg(not(target_family = "wasm"))]
pub(super) fn sentence(word: &str) -> Option<(&'static str, &'static str)> {
    super::SENTENCES.get(index_of(word)).copied()
}

/// Returns the index of a code in the table, or the length of the table if the code is not in it.
const fn index_of(word: &str) -> usize {
    let mut at = 0;
    while at < CODES.len() {
        if equal(CODES[at].word.as_bytes(), word.as_bytes()) {
            return at;
        }
        at += 1;
    }
    at
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}
