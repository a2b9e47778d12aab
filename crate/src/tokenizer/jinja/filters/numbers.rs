//! Filters that make numbers, as Python reads and rounds them.

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error as JinjaError, filters as builtin};

use super::super::text;
use super::super::values::{Arguments, wrong};

pub(super) fn round(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let value = if value.kind() == ValueKind::Bool {
        Value::from(i64::from(value.is_true()))
    } else {
        value.clone()
    };
    let precision = given
        .integer("precision")?
        .map(|precision| precision.clamp(-400, 400));
    let precision = precision.and_then(|precision| i32::try_from(precision).ok());
    builtin::round(
        value,
        precision,
        given.text("method")?.as_deref(),
        Kwargs::from_iter([] as [(String, Value); 0]),
    )
}

/// Parses a decimal number as Python's `float` does.
fn parsed_float(text: &str) -> Option<f64> {
    let text = text.trim_matches(text::is_space);
    let digits = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let fits = text.match_indices('_').all(|(at, _)| {
        let (before, after) = (
            text.get(..at).unwrap_or_default(),
            text.get(at + 1..).unwrap_or_default(),
        );
        digits(before.chars().next_back()) && digits(after.chars().next())
    });
    text.replace('_', "").parse().ok().filter(|_| fits)
}

pub(super) fn float(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let otherwise = given.next("default")?.unwrap_or_else(|| Value::from(0.0));
    Ok(match value.kind() {
        ValueKind::Undefined => return Err(wrong("an undefined value is no number")),
        ValueKind::Number | ValueKind::Bool => Value::from(f64::try_from(value.clone())?),
        _ => value
            .as_str()
            .and_then(parsed_float)
            .map_or(otherwise, Value::from),
    })
}

pub(super) fn int(value: &Value, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
    let otherwise = given.next("default")?.unwrap_or_else(|| Value::from(0));
    let base = given.integer("base")?.unwrap_or(10);
    let whole = |float: f64| {
        if float.is_finite() {
            format!("{:.0}", float.trunc()).parse::<i128>().ok()
        } else {
            None
        }
    };
    let found = match value.kind() {
        ValueKind::Undefined => return Err(wrong("an undefined value is no number")),
        ValueKind::Number if !value.is_integer() => whole(f64::try_from(value.clone())?),
        ValueKind::Number | ValueKind::Bool => Some(i128::try_from(value.clone())?),
        _ => value
            .as_str()
            .and_then(|text| parsed_int(text, base).or_else(|| parsed_float(text).and_then(whole))),
    };
    Ok(match found {
        None => otherwise,
        Some(found) => i64::try_from(found).map_or_else(|_| Value::from(found), Value::from),
    })
}

/// Parses an integer as Python's `int` does.
fn parsed_int(text: &str, base: i64) -> Option<i128> {
    let text = text.trim_matches(text::is_space).to_lowercase();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let is_prefixed =
        |(prefix, of): &(&str, i64)| digits.starts_with(prefix) && [0, *of].contains(&base);
    let (digits, base) = match [("0x", 16), ("0o", 8), ("0b", 2)]
        .into_iter()
        .find(is_prefixed)
    {
        Some((_, of)) => (digits.get(2..).unwrap_or_default(), of),
        None => (digits, if base == 0 { 10 } else { base }),
    };
    let base = u32::try_from(base)
        .ok()
        .filter(|base| (2..=36).contains(base))?;
    if digits.split('_').any(str::is_empty) || digits.starts_with(['-', '+']) {
        return None;
    }
    let size = i128::from_str_radix(&digits.replace('_', ""), base).ok()?;
    Some(if negative { -size } else { size })
}
