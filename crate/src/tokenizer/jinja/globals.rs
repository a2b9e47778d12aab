//! Objects with state: `cycler` and `joiner`, as in Jinja2.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use minijinja::value::{Object, ObjectRepr, Value, from_args};
use minijinja::{Error as JinjaError, ErrorKind, State};

use super::values::wrong;

#[derive(Debug)]
struct Cycler {
    items: Vec<Value>,
    at: AtomicUsize,
}

impl Cycler {
    fn current(&self) -> Value {
        self.items
            .get(self.at.load(Ordering::Relaxed))
            .cloned()
            .unwrap_or_default()
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
    ) -> Result<Value, JinjaError> {
        let () = from_args(given)?;
        let current = self.current();
        match method {
            "next" => self.at.store(
                (self.at.load(Ordering::Relaxed) + 1) % self.items.len(),
                Ordering::Relaxed,
            ),
            "reset" => self.at.store(0, Ordering::Relaxed),
            _ => return Err(ErrorKind::UnknownMethod.into()),
        }
        Ok(if method == "next" {
            current
        } else {
            Value::from(())
        })
    }
}

/// Returns an object whose `next()` returns these items in turn; `current` is the next item, and `reset()` starts again.
pub(super) fn cycler(items: Vec<Value>) -> Result<Value, JinjaError> {
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

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, given: &[Value]) -> Result<Value, JinjaError> {
        let () = from_args(given)?;
        Ok(if self.used.swap(true, Ordering::Relaxed) {
            self.separator.clone()
        } else {
            Value::from("")
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
