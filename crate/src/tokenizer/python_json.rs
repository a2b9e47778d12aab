//! Values in Python's words: `json.dumps`, as Hugging Face's filter `tojson` calls it, and what `str` prints.

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error as JinjaError, ErrorKind};
use serde_json::Value as Json;

/// Keywords of `json.dumps`.
struct Style {
    ensure_ascii: bool,
    indent: Option<usize>,
    between_items: String,
    after_keys: String,
    sort_keys: bool,
}

/// The filter `tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
pub(super) fn to_json(value: &Value, kwargs: Kwargs) -> Result<String, JinjaError> {
    let indent = kwargs.get::<Option<usize>>("indent")?;
    let separators = kwargs.get::<Option<Vec<String>>>("separators")?;
    let (between_items, after_keys) = match separators.as_deref() {
        None => (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()),
        Some([items, keys]) => (items.clone(), keys.clone()),
        Some(_) => return Err(JinjaError::new(ErrorKind::InvalidOperation, "separators: expected two texts")),
    };
    let style = Style {
        ensure_ascii: kwargs.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort_keys: kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        indent,
        between_items,
        after_keys,
    };
    kwargs.assert_all_used()?;
    let value = serde_json::to_value(value).map_err(|e| JinjaError::new(ErrorKind::BadSerialization, e.to_string()))?;
    let mut out = String::new();
    style.write(&value, 0, &mut out);
    Ok(out)
}

impl Style {
    fn write(&self, value: &Json, depth: usize, out: &mut String) {
        match value {
            Json::Array(items) if !items.is_empty() => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.begin(index, depth + 1, out);
                    self.write(item, depth + 1, out);
                }
                self.line(depth, out);
                out.push(']');
            }
            Json::Object(fields) if !fields.is_empty() => {
                let mut fields: Vec<_> = fields.iter().collect();
                if self.sort_keys {
                    fields.sort_by_key(|(key, _)| *key);
                }
                out.push('{');
                for (index, (key, item)) in fields.into_iter().enumerate() {
                    self.begin(index, depth + 1, out);
                    self.text(key, out);
                    out.push_str(&self.after_keys);
                    self.write(item, depth + 1, out);
                }
                self.line(depth, out);
                out.push('}');
            }
            Json::String(text) => self.text(text, out),
            Json::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
                Some(float) => out.push_str(&float_text(float)),
                None => out.push_str(&number.to_string()),
            },
            plain => out.push_str(&plain.to_string()),
        }
    }

    fn begin(&self, index: usize, depth: usize, out: &mut String) {
        if index > 0 {
            out.push_str(&self.between_items);
        }
        self.line(depth, out);
    }

    fn line(&self, depth: usize, out: &mut String) {
        if let Some(width) = self.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', width * depth));
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

/// `repr` of a float: the shortest digits that give it back, without an exponent from 1e-4 to below 1e16.
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

/// `str(value)`; nothing for what is not defined.
pub(super) fn printed(value: &Value) -> String {
    match value.kind() {
        ValueKind::Undefined => String::new(),
        ValueKind::String => value.to_string(),
        _ => represented(value),
    }
}

/// `repr(value)`.
fn represented(value: &Value) -> String {
    let listed = |value: &Value| value.try_iter().map(|items| items.map(|item| represented(&item)).collect::<Vec<_>>().join(", "));
    match value.kind() {
        ValueKind::None => "None".to_owned(),
        ValueKind::Bool => if value.is_true() { "True" } else { "False" }.to_owned(),
        ValueKind::Number if !value.is_integer() => f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float_text),
        ValueKind::String => quoted(&value.to_string()),
        ValueKind::Seq => listed(value).map_or_else(|_| value.to_string(), |items| format!("[{items}]")),
        ValueKind::Map => match value.try_iter() {
            Ok(keys) => {
                let pair = |key: Value| {
                    format!("{}: {}", represented(&key), value.get_item(&key).map_or_else(|_| String::new(), |v| represented(&v)))
                };
                format!("{{{}}}", keys.map(pair).collect::<Vec<_>>().join(", "))
            }
            Err(_) => value.to_string(),
        },
        _ => value.to_string(),
    }
}

/// Single quotes, unless there are such in the text and no double ones.
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
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}
