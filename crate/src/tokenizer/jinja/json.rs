//! JSON of values as Python's `json.dumps` writes it, as Hugging Face's filter `tojson` calls it.

use minijinja::value::{Value, ValueKind};
use serde_json::Value as Json;

use super::representation::number;
use super::values::{Arguments, Result, is_namespace, items_of, pairs_of, wrong};

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
pub(super) fn to_json(value: &Value, given: &mut Arguments<'_>) -> Result<String> {
    let ensure_ascii = given.flag("ensure_ascii", false)?;
    let indent = match given.given("indent")? {
        Some(text) if text.as_str().is_some() => Some(text.to_string()),
        Some(width) => Some(" ".repeat(i64::try_from(width)?.clamp(0, INDENT) as usize)),
        None => None,
    };
    let separators = given
        .given("separators")?
        .as_ref()
        .map(items_of)
        .transpose()?;
    let (between_items, after_keys) = match separators.as_deref() {
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
        Some([items, keys]) => (items.to_string(), keys.to_string()),
        Some(_) => return Err(wrong("separators: expected two texts")),
    };
    let style = Style {
        ensure_ascii,
        indent,
        between_items,
        after_keys,
        sort_keys: given.flag("sort_keys", false)?,
    };
    let mut out = String::new();
    style.write(value, 0, &mut out)?;
    Ok(out)
}

impl Style {
    fn write(&self, value: &Value, depth: usize, out: &mut String) -> Result<()> {
        if depth > DEPTH {
            return Err(wrong(format!(
                "tojson: a value with more than {DEPTH} levels"
            )));
        }
        match value.kind() {
            ValueKind::None | ValueKind::Bool => out.push_str(&plain(value)),
            ValueKind::Number => out.push_str(
                &plain(value)
                    .replace("inf", "Infinity")
                    .replace("nan", "NaN"),
            ),
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
                    match key.kind() {
                        ValueKind::String => fields.push((key.to_string(), item)),
                        ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                            fields.push((plain(&key), item))
                        }
                        other => return Err(wrong(format!("tojson: a key of the kind {other}"))),
                    }
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
            other => {
                let reason = format!("tojson: a value of the kind {other} has no JSON");
                return Err(wrong(reason));
            }
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
        for unit in quoted.encode_utf16() {
            match u8::try_from(unit) {
                Ok(byte) if byte.is_ascii() => out.push(char::from(byte)),
                _ => out.push_str(&format!("\\u{unit:04x}")),
            }
        }
    }
}

/// The text of null, a truth value or a number.
fn plain(value: &Value) -> String {
    match value.kind() {
        ValueKind::Number => number(value),
        ValueKind::None => "null".to_owned(),
        _ => value.is_true().to_string(),
    }
}
