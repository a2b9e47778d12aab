//! Line ends of a text, as Python reads them in text mode.

use std::cell::Cell;
use std::rc::Rc;

use crate::error::{Refusal, word};

/// Tells if a text has line ends other than LF; known when it was read to its end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Newlines {
    found: Rc<Cell<bool>>,
    /// True if the text read so far ends with CR.
    after_return: bool,
}

impl Newlines {
    /// Returns the warning's message if the file `name` has such line ends.
    pub fn warning(&self, name: &str) -> Option<String> {
        self.found
            .get()
            .then(|| Refusal::filled(word!("data.newlines"), [name, "", ""]).to_string())
    }

    /// Replaces them in the next part of a text.
    pub fn replace(&mut self, text: &mut String) {
        if text.is_empty() {
            return;
        }
        if self.after_return && text.starts_with('\n') {
            text.remove(0);
        }
        self.after_return = text.ends_with('\r');
        if text.contains('\r') {
            self.found.set(true);
            *text = text.replace("\r\n", "\n").replace('\r', "\n");
        }
    }
}
