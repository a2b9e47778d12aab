//! Methods of Python's values that chat templates call.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error as JinjaError, ErrorKind, State};

use super::expressions::SLICE;
use super::objects::{Generator, View};
use super::text;
use super::values::{Arguments, items_of, pair, pairs_of, wrong};

/// Calls the method `method` on `value`.
pub(crate) fn method(
    _state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, JinjaError> {
    let mut given = Arguments::new(args)?;
    let result = match value.kind() {
        _ if method == SLICE => slice(value, &mut given)?,
        ValueKind::String => text::method(value.as_str().unwrap_or_default(), method, &mut given)?,
        ValueKind::Map => of_dictionary(value, method, &mut given)?,
        ValueKind::Seq => of_list(value, method, &mut given)?,
        ValueKind::Number if method == "is_integer" => {
            Value::from(f64::try_from(value.clone())?.fract() == 0.0)
        }
        _ => return Err(JinjaError::from(ErrorKind::UnknownMethod)),
    };
    given.end()?;
    Ok(result)
}

fn of_dictionary(
    value: &Value,
    method: &str,
    given: &mut Arguments<'_>,
) -> Result<Value, JinjaError> {
    Ok(match method {
        "items" => View::of(
            "dict_items",
            pairs_of(value)?.into_iter().map(pair).collect(),
        ),
        "keys" => View::of(
            "dict_keys",
            pairs_of(value)?.into_iter().map(|(key, _)| key).collect(),
        ),
        "values" => View::of(
            "dict_values",
            pairs_of(value)?.into_iter().map(|(_, item)| item).collect(),
        ),
        "copy" => Value::from_pairs(pairs_of(value)?),
        "get" => {
            let found = value.get_item(&given.need("key")?)?;
            let otherwise = given.next("default")?;
            if found.is_undefined() {
                otherwise.unwrap_or(Value::from(()))
            } else {
                found
            }
        }
        _ => return Err(JinjaError::from(ErrorKind::UnknownMethod)),
    })
}

fn of_list(value: &Value, method: &str, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    Ok(match method {
        "copy" => Value::from(items_of(value)?),
        "count" => {
            let wanted = given.need("value")?;
            Value::from(
                items_of(value)?
                    .iter()
                    .filter(|item| **item == wanted)
                    .count(),
            )
        }
        "index" => {
            let wanted = given.need("value")?;
            let found = items_of(value)?.iter().position(|item| *item == wanted);
            Value::from(found.ok_or_else(|| wrong("list.index: the value is not in the list"))?)
        }
        _ => return Err(JinjaError::from(ErrorKind::UnknownMethod)),
    })
}

/// Returns `value[start:stop:step]`.
fn slice(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let (start, stop) = (given.integer("start")?, given.integer("stop")?);
    let step = given.integer("step")?.unwrap_or(1);
    let indices = |length: usize| indices(length, start, stop, step);
    if let Some(text) = value.as_str() {
        let characters: Vec<char> = text.chars().collect();
        return Ok(Value::from(
            indices(characters.len())?
                .filter_map(|index| characters.get(index))
                .collect::<String>(),
        ));
    }
    let lazy = value.downcast_object_ref::<Generator>().is_some()
        || value.downcast_object_ref::<View>().is_some();
    if lazy || !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(wrong(format!(
            "a value of the kind {} has no slices",
            value.kind()
        )));
    }
    let items = items_of(value)?;
    let sliced: Vec<Value> = indices(items.len())?
        .filter_map(|index| items.get(index))
        .cloned()
        .collect();
    Ok(if value.is_tuple() {
        Value::from(minijinja::value::Tuple::from(sliced))
    } else {
        Value::from(sliced)
    })
}

/// Returns the indices of a slice of `length` items, by the rules of Python's `slice.indices`.
fn indices(
    length: usize,
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
) -> Result<impl Iterator<Item = usize>, JinjaError> {
    if step == 0 {
        return Err(wrong("the step of a slice is 0"));
    }
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let (lowest, highest) = if step > 0 {
        (0, length)
    } else {
        (-1, length - 1)
    };
    let bound = |given: Option<i64>, otherwise| {
        let from_end = |given: i64| {
            if given < 0 {
                given.saturating_add(length)
            } else {
                given
            }
        };
        given.map_or(otherwise, |given| from_end(given).clamp(lowest, highest))
    };
    let (start, stop) = if step > 0 {
        (bound(start, lowest), bound(stop, highest))
    } else {
        (bound(start, highest), bound(stop, lowest))
    };
    let before = move |at: &i64| if step > 0 { *at < stop } else { *at > stop };
    let next = move |at: &i64| at.checked_add(step);
    Ok(std::iter::successors(Some(start), next)
        .take_while(before)
        .filter_map(|at| usize::try_from(at).ok()))
}
