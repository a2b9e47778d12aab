//! Filters of lists and mappings.

use std::cmp::Ordering;

use minijinja::Error as JinjaError;
use minijinja::value::Value;

use super::super::representation::printed;
use super::super::values::{Arguments, items_of, pair, pairs_of, wrong};

/// Implements the filter `join(value, d="", attribute=None)`.
pub(super) fn join(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let between = given
        .next("d")?
        .map_or_else(String::new, |between| printed(&between));
    let path = given
        .next("attribute")?
        .filter(|path| !path.is_none())
        .map(|path| printed(&path));
    let inner = |item: Value, key: &str| match key.parse::<usize>() {
        Ok(index) => item.get_item(&Value::from(index)),
        Err(_) => item.get_attr(key),
    };
    let mut texts = Vec::new();
    for item in items_of(value)? {
        texts.push(match &path {
            None => printed(&item),
            Some(path) => printed(&path.split('.').try_fold(item, inner)?),
        });
    }
    Ok(Value::from(texts.join(&between)))
}

pub(super) fn dictsort(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let case_sensitive = given.flag("case_sensitive", false)?;
    let by_value = match given.text("by")?.as_deref() {
        None | Some("key") => false,
        Some("value") => true,
        Some(other) => {
            return Err(wrong(format!(
                "dictsort: expected by key or by value, found {other}"
            )));
        }
    };
    let reverse = given.flag("reverse", false)?;
    let mut pairs = pairs_of(value)?;
    let key =
        |(key, item): &(Value, Value)| folded(if by_value { item } else { key }, case_sensitive);
    pairs.sort_by(|a, b| {
        if reverse {
            key(b).cmp(&key(a))
        } else {
            key(a).cmp(&key(b))
        }
    });
    Ok(Value::from(pairs.into_iter().map(pair).collect::<Vec<_>>()))
}

/// The value by which a sort compares an item: a text in small letters, if case does not count.
fn folded(value: &Value, case_sensitive: bool) -> Value {
    value
        .as_str()
        .filter(|_| !case_sensitive)
        .map_or_else(|| value.clone(), |text| Value::from(text.to_lowercase()))
}

/// Returns the first of the smallest items, or of the largest.
pub(super) fn extreme(
    value: &Value,
    given: &mut Arguments<'_>,
    wanted: Ordering,
) -> Result<Value, JinjaError> {
    let case_sensitive = given.flag("case_sensitive", false)?;
    let attribute = given
        .next("attribute")?
        .filter(|attribute| !attribute.is_none());
    let mut best: Option<(Value, Value)> = None;
    for item in items_of(value)? {
        let key = attribute
            .as_ref()
            .map_or_else(|| Ok(item.clone()), |attribute| item.get_item(attribute))?;
        let key = folded(&key, case_sensitive);
        if best
            .as_ref()
            .is_none_or(|(other, _)| key.cmp(other) == wanted)
        {
            best = Some((key, item));
        }
    }
    Ok(best.map_or(Value::UNDEFINED, |(_, item)| item))
}

pub(super) fn batches(
    items: Vec<Value>,
    given: &mut Arguments<'_>,
) -> Result<Vec<Value>, JinjaError> {
    let size = given
        .integer("linecount")?
        .and_then(|size| usize::try_from(size).ok())
        .filter(|size| *size > 0);
    let size = size.ok_or_else(|| wrong("batch: expected a number of items above 0"))?;
    let fill = given.next("fill_with")?.filter(|fill| !fill.is_none());
    let filled = |chunk: &[Value]| {
        let missing = fill
            .as_ref()
            .map_or(0, |_| size.min(items.len().max(size)) - chunk.len());
        chunk
            .iter()
            .cloned()
            .chain(fill.iter().cycle().take(missing).cloned())
            .collect::<Vec<_>>()
    };
    Ok(items
        .chunks(size)
        .map(|chunk| Value::from(filled(chunk)))
        .collect())
}
