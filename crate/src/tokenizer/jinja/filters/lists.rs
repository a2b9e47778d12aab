//! Filters of lists and mappings.

use std::cmp::Ordering;

use minijinja::value::Value;

use super::super::representation::printed;
use super::super::values::{Arguments, Result, items_of, pair, pairs_of, wrong};

/// Implements the filter `join(value, d="", attribute=None)`.
pub(super) fn join(value: &Value, given: &mut Arguments<'_>) -> Result {
    let between = given.next("d")?.as_ref().map_or_else(String::new, printed);
    let path = given.given("attribute")?.as_ref().map(printed);
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

pub(super) fn dictsort(value: &Value, given: &mut Arguments<'_>) -> Result {
    let case_sensitive = given.flag("case_sensitive", false)?;
    let by_value = match given.text("by")?.as_deref() {
        None | Some("key") => false,
        Some("value") => true,
        Some(other) => {
            let reason = format!("dictsort: expected by key or by value, found {other}");
            return Err(wrong(reason));
        }
    };
    let reverse = given.flag("reverse", false)?;
    let mut pairs = pairs_of(value)?;
    let key =
        |(key, item): &(Value, Value)| folded(if by_value { item } else { key }, case_sensitive);
    pairs.sort_by(|a, b| match reverse {
        true => key(b).cmp(&key(a)),
        false => key(a).cmp(&key(b)),
    });
    Ok(Value::from(pairs.into_iter().map(pair).collect::<Vec<_>>()))
}

/// The value by which a sort compares an item: a text in small letters, if case does not count.
fn folded(value: &Value, case_sensitive: bool) -> Value {
    match value.as_str() {
        Some(text) if !case_sensitive => text.to_lowercase().into(),
        _ => value.clone(),
    }
}

/// Returns the first of the smallest items, or of the largest.
pub(super) fn extreme(value: &Value, given: &mut Arguments<'_>, wanted: Ordering) -> Result {
    let case_sensitive = given.flag("case_sensitive", false)?;
    let attribute = given.given("attribute")?;
    let mut best: Option<(Value, Value)> = None;
    for item in items_of(value)? {
        let key = match &attribute {
            Some(attribute) => item.get_item(attribute)?,
            None => item.clone(),
        };
        let key = folded(&key, case_sensitive);
        let is_better = |(other, _): &(Value, Value)| key.cmp(other) == wanted;
        if best.as_ref().is_none_or(is_better) {
            best = Some((key, item));
        }
    }
    Ok(best.map_or(Value::UNDEFINED, |(_, item)| item))
}

pub(super) fn batches(items: Vec<Value>, given: &mut Arguments<'_>) -> Result<Vec<Value>> {
    let size = given
        .integer("linecount")?
        .and_then(|size| usize::try_from(size).ok());
    let size = size.filter(|size| *size > 0);
    let size = size.ok_or_else(|| wrong("batch: expected a number of items above 0"))?;
    let fill = given.given("fill_with")?;
    let filled = |chunk: &[Value]| {
        let missing = fill.iter().cycle().take(size - chunk.len());
        chunk.iter().chain(missing).cloned().collect::<Value>()
    };
    Ok(items.chunks(size).map(filled).collect())
}
