//! Facts about a file that are known when it was read to its end.

use std::cell::Cell;
use std::rc::Rc;

use super::report::DataWarning;
use crate::error::Word;

/// Tells if something was seen in a file that is allowed but unusual. Clones share the fact.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(Rc<Cell<bool>>);

impl Seen {
    pub fn mark(&self) {
        self.0.set(true);
    }

    /// The warning `word` about the file `name`, if it was seen there.
    pub fn warning(&self, word: Word, name: &str) -> Option<DataWarning> {
        let warning = || DataWarning::once(word, [name, "", ""]);
        self.0.get().then(warning)
    }
}
