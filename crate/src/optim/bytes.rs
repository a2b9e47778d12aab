//! The memory of an optimizer.

use super::{Optim, Slot};
use crate::parameters::whole_name;

impl Optim {
    /// The number of bytes of all state, which is saved, once every trained parameter has had a gradient.
    #[doc(hidden)]
    pub fn state_bytes(&self) -> u64 {
        self.trained().map(|slot| slot.layout.bytes()).sum()
    }

    /// The number of bytes on the device that the rules keep in addition to the state and do not save.
    pub(crate) fn side_bytes(&self) -> u64 {
        self.trained()
            .map(|slot| slot.rule.side_bytes(&slot.info))
            .sum()
    }

    /// The maximum number of bytes that the step of one parameter takes for its duration.
    pub(crate) fn work_bytes(&self) -> u64 {
        self.trained().map(Slot::work_bytes).max().unwrap_or(0)
    }

    /// The names of the trained parameters that APOLLO leaves to AdamW: embeddings and head unless it projects them too, tensors without
    /// two dimensions, and matrices whose shorter side is at most the rank.
    #[doc(hidden)]
    pub fn fallbacks(&self) -> Vec<&str> {
        let trained = self.slots.values().filter(|slot| !slot.frozen);
        let mut names: Vec<&str> = trained
            .filter(|slot| slot.fallback.is_some())
            .map(|slot| whole_name(&slot.info.name))
            .collect();
        names.dedup();
        names
    }
}
