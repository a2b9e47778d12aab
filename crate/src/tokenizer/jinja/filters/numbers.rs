//! Filters that make numbers, as Python reads and rounds them.

use minijinja::filters as builtin;
use minijinja::value::{Kwargs, Value, ValueKind};

use super::super::spec::whole;
use super::super::text;
use super::super::values::{Arguments, Result, wrong};

pub(super) fn round(value: &Value, given: &mut Arguments<'_>) -> Result {
    let value = match value.kind() {
        ValueKind::Bool => i64::from(value.is_true()).into(),
        _ => value.clone(),
    };
    let precision = given.integer("precision")?;
    let precision = precision.map(|precision| precision.clamp(-400, 400) as i32);
    let none = Kwargs::from_iter([] as [(String, Value); 0]);
    builtin::round(value, precision, given.text("method")?.as_deref(), none)
}

/// Parses a decimal number as Python's `float` does.
fn parsed_float(text: &str) -> Option<f64> {
    let text = text.trim_matches(text::is_space);
    let digits = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let fits = text.match_indices('_').all(|(at, _)| {
        digits(text[..at].chars().next_back()) && digits(text[at + 1..].chars().next())
    });
    text.replace('_', "").parse().ok().filter(|_| fits)
}

pub(super) fn float(value: &Value, given: &mut Arguments<'_>) -> Result {
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

pub(super) fn int(value: &Value, given: &mut Arguments<'_>) -> Result {
    let otherwise = given.next("default")?.unwrap_or_else(|| Value::from(0));
    let base = given.integer("base")?.unwrap_or(10);
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
    let negative = text.starts_with('-');
    let digits = text.strip_prefix(['-', '+']).unwrap_or(&text);
    let is_prefixed =
        |(prefix, of): &(&str, i64)| digits.starts_with(prefix) && [0, *of].contains(&base);
    let mut prefixes = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter();
    let (digits, base) = match prefixes.find(is_prefixed) {
        Some((_, of)) => (&digits[2..], of),
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
