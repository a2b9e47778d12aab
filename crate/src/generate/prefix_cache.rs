//! The prefix that the last answer computed, kept for the next turn of its conversation.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::Prefix;

/// The [`Prefix`] of the last answer of one set of weights. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct PrefixCache(Rc<Entry>);

#[derive(Debug, Default)]
struct Entry {
    prefix: RefCell<Prefix>,
    /// Incremented whenever what was computed before is of no use any more.
    age: Cell<u64>,
}

/// The right to give a prefix back, unless the cache was cleared in between.
#[derive(Debug)]
pub struct Loan {
    cache: PrefixCache,
    age: u64,
}

impl PrefixCache {
    /// Takes what is kept, so that an answer can go on from it in place.
    pub fn take(&self) -> (Prefix, Loan) {
        (self.0.prefix.take(), Loan { cache: self.clone(), age: self.0.age.get() })
    }

    /// Frees what is kept; what answers compute that began before is not kept either. To be called before the weights change, and where their
    /// memory is needed.
    pub fn clear(&self) {
        self.0.age.set(self.0.age.get().wrapping_add(1));
        self.0.prefix.take();
    }

    /// Number of tokens that are kept.
    pub fn len(&self) -> usize {
        self.0.prefix.borrow().len()
    }

    /// Tells if nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Loan {
    /// Keeps `prefix` for the next answer.
    pub fn give_back(self, prefix: Prefix) {
        if self.cache.0.age.get() == self.age {
            self.cache.0.prefix.replace(prefix);
        }
    }
}
