//! Text of values as in Python: `json.dumps`, as Hugging Face's filter `tojson` calls it, and the output of `str`.

use minijinja::Error as JinjaError;
use minijinja::value::{Value, ValueKind};
use serde_json::Value as Json;

use super::values::{Arguments, is_namespace, items_of, pairs_of, wrong};

/// Maximum width of an indentation.
const INDENT: i64 = 64;
/// Maximum depth of a value in JSON.
const DEPTH: usize = 128;

/// Keyword arguments of `json.dumps`.
struct Style {
    ensure_ascii: bool,
    indent: Option<String>,
    between_items: String,
    after_keys: String,
    sort_keys: bool,
}

/// Implements the filter `tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
pub(super) fn to_json(value: &Value, given: &mut Arguments<'_>) -> Result<String, JinjaError> {
    let ensure_ascii = given.flag("ensure_ascii", false)?;
    let indent = match given.next("indent")?.filter(|indent| !indent.is_none()) {
        Some(text) if text.as_str().is_some() => Some(text.to_string()),
        Some(width) => Some(" ".repeat(usize::try_from(i64::try_from(width)?.clamp(0, INDENT)).unwrap_or(0))),
        None => None,
    };
    let separators =
        given.next("separators")?.filter(|separators| !separators.is_none()).map(|separators| items_of(&separators)).transpose()?;
    let (between_items, after_keys) = match separators.as_deref() {
        None => (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()),
        Some([items, keys]) => (items.to_string(), keys.to_string()),
        Some(_) => return Err(wrong("separators: expected two texts")),
    };
    let style = Style { ensure_ascii, indent, between_items, after_keys, sort_keys: given.flag("sort_keys", false)? };
    let mut out = String::new();
    style.write(value, 0, &mut out)?;
    Ok(out)
}

impl Style {
    fn write(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), JinjaError> {
        if depth > DEPTH {
            return Err(wrong(format!("tojson: a value with more than {DEPTH} levels")));
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&number(value).replace("inf", "Infinity").replace("nan", "NaN")),
            ValueKind::String => self.text(value.as_str().unwrap_or_default(), out),
            ValueKind::Seq => {
                let items = items_of(value)?;
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.begin(index, depth + 1, out);
                    self.write(item, depth + 1, out)?;
                }
                self.end(items.is_empty(), depth, out);
                out.push(']');
            }
            ValueKind::Map if !is_namespace(value) => {
                let mut fields = Vec::new();
                for (key, item) in pairs_of(value)? {
                    let name = match key.kind() {
                        ValueKind::String => key.to_string(),
                        ValueKind::None => "null".to_owned(),
                        ValueKind::Bool => if key.is_true() { "true" } else { "false" }.to_owned(),
                        ValueKind::Number => number(&key),
                        other => return Err(wrong(format!("tojson: a key of the kind {other}"))),
                    };
                    fields.push((name, item));
                }
                if self.sort_keys {
                    fields.sort_by(|a, b| a.0.cmp(&b.0));
                }
                out.push('{');
                for (index, (key, item)) in fields.iter().enumerate() {
                    self.begin(index, depth + 1, out);
                    self.text(key, out);
                    out.push_str(&self.after_keys);
                    self.write(item, depth + 1, out)?;
                }
                self.end(fields.is_empty(), depth, out);
                out.push('}');
            }
            other => return Err(wrong(format!("tojson: a value of the kind {other} has no JSON"))),
        }
        Ok(())
    }

    fn begin(&self, index: usize, depth: usize, out: &mut String) {
        if index > 0 {
            out.push_str(&self.between_items);
        }
        self.line(depth, out);
    }

    fn end(&self, empty: bool, depth: usize, out: &mut String) {
        if !empty {
            self.line(depth, out);
        }
    }

    fn line(&self, depth: usize, out: &mut String) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(indent.as_str(), depth));
        }
    }

    fn text(&self, text: &str, out: &mut String) {
        let quoted = Json::from(text).to_string();
        if !self.ensure_ascii {
            return out.push_str(&quoted);
        }
        let mut units = [0; 2];
        for c in quoted.chars() {
            if c.is_ascii() {
                out.push(c);
            } else {
                c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
        }
    }
}

/// Returns the `repr` of a float: the shortest digits that reproduce it, without an exponent from 1e-4 to below 1e16.
pub(super) fn float_text(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        -4..16 => {
            let plain = value.to_string();
            if plain.contains('.') { plain } else { format!("{plain}.0") }
        }
        exponent => format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()),
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
fn number(value: &Value) -> String {
    if value.is_integer() { value.to_string() } else { f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float_text) }
}

/// Returns `repr(value)`.
pub(super) fn represented(value: &Value) -> String {
    let listed = |value: &Value| items_of(value).map(|items| items.iter().map(represented).collect::<Vec<_>>());
    match value.kind() {
        ValueKind::Undefined => "Undefined".to_owned(),
        ValueKind::None => "None".to_owned(),
        ValueKind::Bool => if value.is_true() { "True" } else { "False" }.to_owned(),
        ValueKind::Number => number(value),
        ValueKind::String => quoted(&value.to_string()),
        ValueKind::Seq => match listed(value) {
            Ok(items) if value.is_tuple() && items.len() == 1 => format!("({},)", items.concat()),
            Ok(items) if value.is_tuple() => format!("({})", items.join(", ")),
            Ok(items) => format!("[{}]", items.join(", ")),
            Err(_) => value.to_string(),
        },
        ValueKind::Map => match pairs_of(value) {
            Ok(pairs) => {
                let pairs = pairs.iter().map(|(key, item)| format!("{}: {}", represented(key), represented(item)));
                let text = format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "));
                if is_namespace(value) { format!("<Namespace {text}>") } else { text }
            }
            Err(_) => value.to_string(),
        },
        _ => value.to_string(),
    }
}

/// Quotes a text: in single quotes, unless it contains these and no double ones.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
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
