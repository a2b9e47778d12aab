//! Methods of Python's values that chat templates call.

use minijinja::value::{Tuple, Value, ValueKind};
use minijinja::{ErrorKind, State};

use super::expressions::SLICE;
use super::objects::{View, is_lazy};
use super::text;
use super::values::{Arguments, Result, items_of, pair, pairs_of, wrong};

/// Calls the method `method` on `value`.
pub(crate) fn method(_state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result {
    let mut given = Arguments::new(args)?;
    let result = match value.kind() {
        _ if method == SLICE => slice(value, &mut given)?,
        ValueKind::String => text::method(value.as_str().unwrap_or_default(), method, &mut given)?,
        ValueKind::Map => of_dictionary(value, method, &mut given)?,
        ValueKind::Seq => of_list(value, method, &mut given)?,
        ValueKind::Number if method == "is_integer" => {
            Value::from(f64::try_from(value.clone())?.fract() == 0.0)
        }
        _ => return Err(ErrorKind::UnknownMethod.into()),
    };
    given.end()?;
    Ok(result)
}

fn of_dictionary(value: &Value, method: &str, given: &mut Arguments<'_>) -> Result {
    Ok(match method {
        "items" => View::of("dict_items", pairs_of(value)?.into_iter().map(pair)),
        "keys" => View::of(
            "dict_keys",
            pairs_of(value)?.into_iter().map(|(key, _)| key),
        ),
        "values" => View::of(
            "dict_values",
            pairs_of(value)?.into_iter().map(|(_, item)| item),
        ),
        "copy" => Value::from_pairs(pairs_of(value)?),
        "get" => {
            let found = value.get_item(&given.need("key")?)?;
            let otherwise = given.next("default")?;
            match found.is_undefined() {
                true => otherwise.unwrap_or(().into()),
                false => found,
            }
        }
        _ => return Err(ErrorKind::UnknownMethod.into()),
    })
}

fn of_list(value: &Value, method: &str, given: &mut Arguments<'_>) -> Result {
    Ok(match method {
        "copy" => Value::from(items_of(value)?),
        "count" => {
            let wanted = given.need("value")?;
            let items = items_of(value)?;
            items.iter().filter(|item| **item == wanted).count().into()
        }
        "index" => {
            let wanted = given.need("value")?;
            let found = items_of(value)?.iter().position(|item| *item == wanted);
            found
                .ok_or_else(|| wrong("list.index: the value is not in the list"))?
                .into()
        }
        _ => return Err(ErrorKind::UnknownMethod.into()),
    })
}

/// Returns `value[start:stop:step]`.
fn slice(value: &Value, given: &mut Arguments<'_>) -> Result {
    let (start, stop) = (given.integer("start")?, given.integer("stop")?);
    let step = given.integer("step")?.unwrap_or(1);
    let indices = |length: usize| indices(length, start, stop, step);
    if let Some(text) = value.as_str() {
        let characters: Vec<char> = text.chars().collect();
        let sliced = indices(characters.len())?.filter_map(|index| characters.get(index));
        return Ok(sliced.collect::<String>().into());
    }
    let kind = value.kind();
    if is_lazy(value) || !matches!(kind, ValueKind::Seq | ValueKind::Iterable) {
        return Err(wrong(format!("a value of the kind {kind} has no slices")));
    }
    let items = items_of(value)?;
    let sliced = indices(items.len())?.filter_map(|index| items.get(index).cloned());
    let sliced: Vec<Value> = sliced.collect();
    Ok(match value.is_tuple() {
        true => Tuple::from(sliced).into(),
        false => sliced.into(),
    })
}

/// Returns the indices of a slice of `length` items, by the rules of Python's `slice.indices`.
fn indices(
    length: usize,
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
) -> Result<impl Iterator<Item = usize>> {
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
    let (first, last) = if step > 0 {
        (lowest, highest)
    } else {
        (highest, lowest)
    };
    let (start, stop) = (bound(start, first), bound(stop, last));
    let before = move |at: &i64| if step > 0 { *at < stop } else { *at > stop };
    let next = move |at: &i64| at.checked_add(step);
    Ok(std::iter::successors(Some(start), next)
        .take_while(before)
        .filter_map(|at| usize::try_from(at).ok()))
}
