//! Values of Python that minijinja lacks: generators, and the views that a dictionary's methods return.

use std::fmt;
use std::sync::{Arc, Mutex};

use minijinja::value::{Enumerator, Object, ObjectRepr, Value};

use super::representation::represented;

/// The items of a filter such as `select`: true even if empty, and consumed once they were read.
#[derive(Debug)]
pub(super) struct Generator(Mutex<Vec<Value>>);

impl Generator {
    pub(super) fn of(items: Vec<Value>) -> Value {
        Value::from_object(Self(Mutex::new(items)))
    }
}

impl Object for Generator {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(
            self.0
                .lock()
                .map(|mut items| std::mem::take(&mut *items))
                .unwrap_or_default(),
        )
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        None
    }

    fn is_true(self: &Arc<Self>) -> bool {
        true
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<generator object>")
    }
}

/// The items of `dict.keys()`, `dict.values()` or `dict.items()`, which cannot be accessed by index.
#[derive(Debug)]
pub(super) struct View {
    name: &'static str,
    items: Vec<Value>,
}

impl View {
    pub(super) fn of(name: &'static str, items: Vec<Value>) -> Value {
        Value::from_object(Self { name, items })
    }
}

impl Object for View {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.items.clone())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}([{}])",
            self.name,
            self.items
                .iter()
                .map(represented)
                .collect::<Vec<_>>()
                .join(", ")
        )
    }
}
