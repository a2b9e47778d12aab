//! Line ends of a text, as Python reads them in text mode.

use super::seen::Seen;

/// Replaces line ends other than LF.
#[derive(Default)]
pub(super) struct Newlines {
    /// True if there were such line ends.
    pub found: Seen,
    /// True if the text read so far ends with CR.
    after_return: bool,
}

impl Newlines {
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
            self.found.mark();
            *text = text.replace("\r\n", "\n").replace('\r', "\n");
        }
    }
}
