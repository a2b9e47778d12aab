//! Values of Python that minijinja lacks: generators, and the views that a dictionary's methods return.

use std::fmt;
use std::sync::{Arc, Mutex};

use minijinja::value::{Enumerator, Object, ObjectRepr, Value};

use super::representation::listed;

/// The items of a filter such as `select`: true even if empty, and consumed once they were read.
#[derive(Debug)]
pub(super) struct Generator(Mutex<Vec<Value>>);

impl Generator {
    pub fn of(items: Vec<Value>) -> Value {
        Value::from_object(Self(Mutex::new(items)))
    }
}

impl Object for Generator {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let items = self.0.lock().map(|mut items| std::mem::take(&mut *items));
        Enumerator::Values(items.unwrap_or_default())
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

/// Returns true for items that have no index.
pub(super) fn is_lazy(value: &Value) -> bool {
    value.downcast_object_ref::<Generator>().is_some()
        || value.downcast_object_ref::<View>().is_some()
}

/// The items of `dict.keys()`, `dict.values()` or `dict.items()`, which cannot be accessed by index.
#[derive(Debug)]
pub(super) struct View {
    name: &'static str,
    items: Vec<Value>,
}

impl View {
    pub fn of(name: &'static str, items: impl Iterator<Item = Value>) -> Value {
        let items = items.collect();
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
        write!(f, "{}([{}])", self.name, listed(&self.items))
    }
}
