//! Objects with state: `cycler` and `joiner`, as in Jinja2.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use minijinja::value::{Object, ObjectRepr, Value, from_args};
use minijinja::{ErrorKind, State};

use super::values::{Result, wrong};

#[derive(Debug)]
struct Cycler {
    items: Vec<Value>,
    at: AtomicUsize,
}

impl Cycler {
    fn current(&self) -> Value {
        let item = self.items.get(self.at.load(Ordering::Relaxed));
        item.cloned().unwrap_or_default()
    }
}

impl Object for Cycler {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        (key.as_str() == Some("current")).then(|| self.current())
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        given: &[Value],
    ) -> Result {
        let () = from_args(given)?;
        let at = self.at.load(Ordering::Relaxed);
        let (next, result) = match method {
            "next" => ((at + 1) % self.items.len(), self.current()),
            "reset" => (0, ().into()),
            _ => return Err(ErrorKind::UnknownMethod.into()),
        };
        self.at.store(next, Ordering::Relaxed);
        Ok(result)
    }
}

/// Returns an object whose `next()` returns these items in turn; `current` is the next item, and `reset()` starts again.
pub(super) fn cycler(items: Vec<Value>) -> Result {
    if items.is_empty() {
        return Err(wrong("at least one item has to be provided"));
    }
    Ok(Value::from_object(Cycler {
        items,
        at: AtomicUsize::new(0),
    }))
}

#[derive(Debug)]
struct Joiner {
    separator: Value,
    used: AtomicBool,
}

impl Object for Joiner {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, given: &[Value]) -> Result {
        let () = from_args(given)?;
        Ok(match self.used.swap(true, Ordering::Relaxed) {
            true => self.separator.clone(),
            false => "".into(),
        })
    }
}

/// Returns an object that is called for a separator: an empty text at the first call, `sep` or a comma with a space at later ones.
pub(super) fn joiner(sep: Option<Value>) -> Value {
    Value::from_object(Joiner {
        separator: sep.unwrap_or_else(|| Value::from(", ")),
        used: AtomicBool::new(false),
    })
}
