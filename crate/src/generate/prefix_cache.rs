//! Keeps the prefix that the last answer computed, for the next turn of its conversation.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::Prefix;

/// The [`Prefix`] of the last answer of one set of weights. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct PrefixCache(Rc<Entry>);

#[derive(Debug, Default)]
struct Entry {
    prefix: RefCell<Prefix>,
    /// Incremented whenever earlier computations become useless.
    age: Cell<u64>,
}

/// Permission to give a prefix back, unless the cache was cleared in between.
#[derive(Debug)]
pub struct Loan {
    cache: PrefixCache,
    age: u64,
}

impl PrefixCache {
    /// Takes the kept prefix, so that an answer can continue from it in place.
    pub fn take(&self) -> (Prefix, Loan) {
        (
            self.0.prefix.take(),
            Loan {
                cache: self.clone(),
                age: self.0.age.get(),
            },
        )
    }

    /// Frees the kept prefix and ignores those of answers that have already begun. Call it before the weights change, and when the memory
    /// is needed.
    pub fn clear(&self) {
        self.0.age.set(self.0.age.get().wrapping_add(1));
        self.0.prefix.take();
    }

    /// Returns the number of tokens that are kept.
    pub fn len(&self) -> usize {
        self.0.prefix.borrow().len()
    }

    /// Returns whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Loan {
    /// Keeps `prefix` for the next answer, unless the cache was cleared in between.
    pub fn give_back(self, prefix: Prefix) {
        if self.cache.0.age.get() == self.age {
            self.cache.0.prefix.replace(prefix);
        }
    }
}
