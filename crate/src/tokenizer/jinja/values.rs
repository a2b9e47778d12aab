//! Values and arguments of templates, read as Python reads them.

use minijinja::value::{Kwargs, Tuple, Value, ValueKind, from_args};
use minijinja::{Error as JinjaError, ErrorKind};

/// Returns the error of a template's invalid use of a value.
pub(super) fn wrong(words: impl Into<String>) -> JinjaError {
    JinjaError::new(ErrorKind::InvalidOperation, words.into())
}

/// Returns true for a value of the function `namespace`, which is not a dictionary, although minijinja makes it one.
pub(super) fn is_namespace(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|object| object.type_name().ends_with("::Namespace"))
}

/// Returns the items of a value, as Python's `iter` does; none for an undefined value.
pub(super) fn items_of(value: &Value) -> Result<Vec<Value>, JinjaError> {
    if value.is_none() {
        return Err(wrong("none is not iterable"));
    }
    Ok(value.try_iter()?.collect())
}

/// Returns the keys and values of a dictionary.
pub(super) fn pairs_of(value: &Value) -> Result<Vec<(Value, Value)>, JinjaError> {
    if value.kind() != ValueKind::Map {
        return Err(wrong(format!(
            "expected a dictionary, found {}",
            value.kind()
        )));
    }
    value
        .try_iter()?
        .map(|key| value.get_item(&key).map(|item| (key, item)))
        .collect()
}

pub(super) fn pair((key, item): (Value, Value)) -> Value {
    Value::from(Tuple::from([key, item]))
}

/// Implements the function `dict`, with pairs or a dictionary, and keyword arguments.
pub(super) fn dict(given: &[Value]) -> Result<Value, JinjaError> {
    let (positional, named): (&[Value], Kwargs) = from_args(given)?;
    let mut pairs = match positional {
        [] => Vec::new(),
        [map] if map.kind() == ValueKind::Map => pairs_of(map)?,
        [list] => items_of(list)?
            .iter()
            .map(|item| match items_of(item)?.as_slice() {
                [key, value] => Ok((key.clone(), value.clone())),
                other => Err(wrong(format!(
                    "dict: expected pairs, found {} items",
                    other.len()
                ))),
            })
            .collect::<Result<_, _>>()?,
        _ => return Err(JinjaError::from(ErrorKind::TooManyArguments)),
    };
    for name in named.args() {
        pairs.push((Value::from(name), named.get(name)?));
    }
    Ok(Value::from_pairs(pairs))
}

/// Arguments of a Python function, by position or by name.
pub(crate) struct Arguments<'a> {
    positional: &'a [Value],
    named: Kwargs,
    next: usize,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(args: &'a [Value]) -> Result<Self, JinjaError> {
        let (positional, named) = from_args(args)?;
        Ok(Self {
            positional,
            named,
            next: 0,
        })
    }

    /// Returns the next argument, or the one with this name.
    pub(super) fn next(&mut self, name: &str) -> Result<Option<Value>, JinjaError> {
        let found = self.positional.get(self.next).cloned();
        self.next += 1;
        match found {
            Some(found) if !self.named.has(name) => Ok(Some(found)),
            Some(_) => Err(wrong(format!("{name} is given twice"))),
            None if self.named.has(name) => self.named.get(name).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the next argument, which is required.
    pub(super) fn need(&mut self, name: &str) -> Result<Value, JinjaError> {
        self.next(name)?
            .ok_or_else(|| JinjaError::from(ErrorKind::MissingArgument))
    }

    /// Returns the next argument, a required text.
    pub(crate) fn need_text(&mut self, name: &str) -> Result<String, JinjaError> {
        let value = self.need(name)?;
        value
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| wrong(format!("{name}: expected a text, found {}", value.kind())))
    }

    /// Returns the next argument, a text or none.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, JinjaError> {
        match self.next(name)?.filter(|value| !value.is_none()) {
            Some(value) => value
                .as_str()
                .map(|text| Some(text.to_owned()))
                .ok_or_else(|| wrong(format!("{name}: expected a text"))),
            None => Ok(None),
        }
    }

    /// Returns the next argument, an integer or none.
    pub(super) fn integer(&mut self, name: &str) -> Result<Option<i64>, JinjaError> {
        self.next(name)?
            .filter(|value| !value.is_none())
            .map(i64::try_from)
            .transpose()
    }

    /// Returns the truth value of the next argument, or `otherwise` if it is absent.
    pub(super) fn flag(&mut self, name: &str, otherwise: bool) -> Result<bool, JinjaError> {
        Ok(self.next(name)?.map_or(otherwise, |value| value.is_true()))
    }

    /// Returns the argument at a position, which is required.
    pub(super) fn at(&self, index: usize) -> Result<Value, JinjaError> {
        self.positional
            .get(index)
            .cloned()
            .ok_or_else(|| JinjaError::from(ErrorKind::MissingArgument))
    }

    /// Returns the argument with a name, which is required.
    pub(super) fn named(&self, name: &str) -> Result<Value, JinjaError> {
        if self.named.has(name) {
            return self.named.get(name);
        }
        Err(wrong(format!("{name} is not given")))
    }

    /// Returns all arguments: by name if any is named, else by position.
    pub(super) fn rest(&mut self) -> Result<Value, JinjaError> {
        let names: Vec<(Value, Value)> = self
            .named
            .args()
            .map(|name| Ok((Value::from(name), self.named.get(name)?)))
            .collect::<Result<_, JinjaError>>()?;
        self.next = self.positional.len();
        Ok(if names.is_empty() {
            Value::from(Tuple::from(self.positional))
        } else {
            Value::from_pairs(names)
        })
    }

    /// Marks the remaining arguments as read.
    pub(super) fn all_used(&mut self) {
        self.next = self.positional.len();
        self.named
            .args()
            .for_each(|name| drop(self.named.get::<Value>(name)));
    }

    /// Refuses remaining arguments.
    pub(crate) fn end(&self) -> Result<(), JinjaError> {
        if self.positional.len() > self.next {
            Err(JinjaError::from(ErrorKind::TooManyArguments))
        } else {
            self.named.assert_all_used()
        }
    }
}
