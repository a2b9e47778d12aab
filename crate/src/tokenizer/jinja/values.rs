//! Values and arguments of templates, read as Python reads them.

use minijinja::value::{Kwargs, Tuple, Value, ValueKind, from_args};
use minijinja::{Error, ErrorKind};

/// Result of what a template computes.
pub(super) type Result<T = Value> = std::result::Result<T, Error>;

/// Returns the error of a template's invalid use of a value.
pub(crate) fn wrong(words: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, words.into())
}

/// Returns true for a value of the function `namespace`, which is not a dictionary, although minijinja makes it one.
pub(super) fn is_namespace(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|object| object.type_name().ends_with("::Namespace"))
}

/// Returns the items of a value, as Python's `iter` does; none for an undefined value.
pub(super) fn items_of(value: &Value) -> Result<Vec<Value>> {
    if value.is_none() {
        return Err(wrong("none is not iterable"));
    }
    Ok(value.try_iter()?.collect())
}

/// The items of a tuple, or any other value alone.
pub(super) fn tuple(value: Value) -> Result<Vec<Value>> {
    match value.is_tuple() {
        true => items_of(&value),
        false => Ok(vec![value]),
    }
}

/// Returns the keys and values of a dictionary.
pub(super) fn pairs_of(value: &Value) -> Result<Vec<(Value, Value)>> {
    if value.kind() != ValueKind::Map {
        return Err(wrong(format!(
            "expected a dictionary, found {}",
            value.kind()
        )));
    }
    let keys = value.try_iter()?;
    keys.map(|key| value.get_item(&key).map(|item| (key, item)))
        .collect()
}

pub(super) fn pair((key, item): (Value, Value)) -> Value {
    Value::from(Tuple::from([key, item]))
}

/// Implements the function `dict`, with pairs or a dictionary, and keyword arguments.
pub(super) fn dict(given: &[Value]) -> Result {
    let (positional, named): (&[Value], Kwargs) = from_args(given)?;
    let mut pairs = match positional {
        [] => Vec::new(),
        [map] if map.kind() == ValueKind::Map => pairs_of(map)?,
        [list] => {
            let pair = |item: &Value| match items_of(item)?.as_slice() {
                [key, value] => Ok((key.clone(), value.clone())),
                other => {
                    let count = other.len();
                    Err(wrong(format!("dict: expected pairs, found {count} items")))
                }
            };
            items_of(list)?.iter().map(pair).collect::<Result<_>>()?
        }
        _ => return Err(ErrorKind::TooManyArguments.into()),
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
    pub fn new(args: &'a [Value]) -> Result<Self> {
        let (positional, named) = from_args(args)?;
        Ok(Self {
            positional,
            named,
            next: 0,
        })
    }

    /// Returns the next argument, or the one with this name.
    pub fn next(&mut self, name: &str) -> Result<Option<Value>> {
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
    pub fn need(&mut self, name: &str) -> Result {
        self.next(name)?.ok_or(ErrorKind::MissingArgument.into())
    }

    /// Returns the next argument, a required text.
    pub fn need_text(&mut self, name: &str) -> Result<String> {
        let value = self.need(name)?;
        let no_text = || wrong(format!("{name}: expected a text, found {}", value.kind()));
        value.as_str().map(str::to_owned).ok_or_else(no_text)
    }

    /// Returns the next argument, a text or none.
    pub fn text(&mut self, name: &str) -> Result<Option<String>> {
        let no_text = || wrong(format!("{name}: expected a text"));
        let text = |value: Value| value.as_str().map(str::to_owned).ok_or_else(no_text);
        self.given(name)?.map(text).transpose()
    }

    /// Returns the next argument; `None` if it is absent or none.
    pub fn given(&mut self, name: &str) -> Result<Option<Value>> {
        Ok(self.next(name)?.filter(|value| !value.is_none()))
    }

    /// Returns the next argument, a maximum; if it is absent or negative there is none.
    pub fn most(&mut self, name: &str) -> Result<usize> {
        let most = self.integer(name)?;
        Ok(most
            .and_then(|most| usize::try_from(most).ok())
            .unwrap_or(usize::MAX))
    }

    /// Returns the next argument, an integer or none.
    pub fn integer(&mut self, name: &str) -> Result<Option<i64>> {
        self.given(name)?.map(i64::try_from).transpose()
    }

    /// Returns the truth value of the next argument, or `otherwise` if it is absent.
    pub fn flag(&mut self, name: &str, otherwise: bool) -> Result<bool> {
        Ok(self.next(name)?.map_or(otherwise, |value| value.is_true()))
    }

    /// Returns the argument at a position, which is required.
    pub fn at(&self, index: usize) -> Result {
        self.positional
            .get(index)
            .cloned()
            .ok_or(ErrorKind::MissingArgument.into())
    }

    /// Returns the argument with a name, which is required.
    pub fn named(&self, name: &str) -> Result {
        if self.named.has(name) {
            return self.named.get(name);
        }
        Err(wrong(format!("{name} is not given")))
    }

    /// Returns all arguments: by name if any is named, else by position.
    pub fn rest(&mut self) -> Result {
        let named = self.named.args();
        let named = named.map(|name| Ok((Value::from(name), self.named.get(name)?)));
        let named = named.collect::<Result<Vec<(Value, Value)>>>()?;
        self.next = self.positional.len();
        Ok(match named.is_empty() {
            true => Tuple::from(self.positional).into(),
            false => Value::from_pairs(named),
        })
    }

    /// Marks the remaining arguments as read.
    pub fn all_used(&mut self) {
        self.next = self.positional.len();
        for name in self.named.args() {
            drop(self.named.get::<Value>(name));
        }
    }

    /// Refuses remaining arguments.
    pub fn end(&self) -> Result<()> {
        if self.positional.len() > self.next {
            Err(ErrorKind::TooManyArguments.into())
        } else {
            self.named.assert_all_used()
        }
    }
}
