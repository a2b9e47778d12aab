//! Text of values as in Python: the output of `str` and of `repr`.

use minijinja::value::{Value, ValueKind};

use super::values::{is_namespace, items_of, pairs_of};

/// Returns the `repr` of a float: the shortest digits that reproduce it, without an exponent from 1e-4 to below 1e16.
pub(super) fn float_text(value: f64) -> String {
    if !value.is_finite() {
        let text = if value > 0.0 { "inf" } else { "-inf" };
        return if value.is_nan() { "nan" } else { text }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        -4..16 => format!("{value:?}"),
        exponent => format!("{digits}e{exponent:+03}"),
    }
}

/// Returns `str(value)`; an empty text for an undefined value.
pub(crate) fn printed(value: &Value) -> String {
    match value.kind() {
        ValueKind::Undefined => String::new(),
        ValueKind::String => value.to_string(),
        _ => represented(value),
    }
}

/// Returns the `repr` of a number.
pub(super) fn number(value: &Value) -> String {
    if value.is_integer() {
        value.to_string()
    } else {
        f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float_text)
    }
}

/// Returns `repr(value)`.
pub(super) fn represented(value: &Value) -> String {
    match value.kind() {
        ValueKind::Undefined => "Undefined".to_owned(),
        ValueKind::None => "None".to_owned(),
        ValueKind::Bool => if value.is_true() { "True" } else { "False" }.to_owned(),
        ValueKind::Number => number(value),
        ValueKind::String => quoted(&value.to_string()),
        ValueKind::Seq => match items_of(value) {
            Ok(items) if value.is_tuple() && items.len() == 1 => format!("({},)", listed(&items)),
            Ok(items) if value.is_tuple() => format!("({})", listed(&items)),
            Ok(items) => format!("[{}]", listed(&items)),
            Err(_) => value.to_string(),
        },
        ValueKind::Map => match pairs_of(value) {
            Ok(pairs) => {
                let pairs = pairs
                    .iter()
                    .map(|(key, item)| format!("{}: {}", represented(key), represented(item)));
                let text = format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "));
                match is_namespace(value) {
                    true => format!("<Namespace {text}>"),
                    false => text,
                }
            }
            Err(_) => value.to_string(),
        },
        _ => value.to_string(),
    }
}

/// The `repr` of each item, with commas between them.
pub(super) fn listed(items: &[Value]) -> String {
    items.iter().map(represented).collect::<Vec<_>>().join(", ")
}

/// Quotes a text: in single quotes, unless it contains these and no double ones.
fn quoted(text: &str) -> String {
    let has_single = text.contains('\'') && !text.contains('"');
    let quote = if has_single { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                out.push_str(&match code {
                    0..=0xff => format!("\\x{code:02x}"),
                    0x100..=0xffff => format!("\\u{code:04x}"),
                    _ => format!("\\U{code:08x}"),
                });
            }
        }
    }
    out.push(quote);
    out
}

/// Returns true for characters that `repr` writes unchanged: all except controls, formats, private ones and white space other than the
/// space.
fn is_printable(c: char) -> bool {
    let format = matches!(u32::from(c), 0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x8e2 | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f
        | 0xe000..=0xf8ff | 0xfeff | 0xfff9..=0xfffb | 0xe0001..=0xe007f | 0xf0000..);
    c == ' ' || !(format || c.is_control() || c.is_whitespace())
}
