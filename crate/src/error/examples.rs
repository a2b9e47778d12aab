//! Keeps an example of each code that this process raised, in builds with debug assertions: the tests collect from it what people read.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Refusal;

static EXAMPLES: Mutex<BTreeMap<&'static str, Refusal>> = Mutex::new(BTreeMap::new());

/// Keeps the values as the example of their code, unless it has one with as many values.
pub(super) fn keep(values: &Refusal) {
    let count = |values: &Refusal| {
        let filled = [
            &values.subject,
            &values.expected,
            &values.found,
            &values.hint,
        ]
        .into_iter()
        .flatten();
        filled.count() + usize::from(!values.artifact.is_empty())
    };
    let mut examples = EXAMPLES.lock().unwrap_or_else(PoisonError::into_inner);
    match examples.get(values.code) {
        Some(known) if count(known) >= count(values) => {}
        _ => drop(examples.insert(values.code, values.clone())),
    }
}

/// Returns the examples in the order of their codes.
pub fn examples() -> Vec<Refusal> {
    EXAMPLES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .values()
        .cloned()
        .collect()
}
