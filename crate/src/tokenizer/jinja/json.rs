//! JSON of values as Python's `json.dumps` writes it, as Hugging Face's filter `tojson` calls it.

use minijinja::Error as JinjaError;
use minijinja::value::{Value, ValueKind};
use serde_json::Value as Json;

use super::representation::number;
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
        Some(width) => {
            Some(" ".repeat(usize::try_from(i64::try_from(width)?.clamp(0, INDENT)).unwrap_or(0)))
        }
        None => None,
    };
    let separators = given
        .next("separators")?
        .filter(|separators| !separators.is_none())
        .map(|separators| items_of(&separators))
        .transpose()?;
    let (between_items, after_keys) = match separators.as_deref() {
        None => (
            if indent.is_some() { "," } else { ", " }.to_owned(),
            ": ".to_owned(),
        ),
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
    fn write(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), JinjaError> {
        if depth > DEPTH {
            return Err(wrong(format!(
                "tojson: a value with more than {DEPTH} levels"
            )));
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(
                &number(value)
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
            other => {
                return Err(wrong(format!(
                    "tojson: a value of the kind {other} has no JSON"
                )));
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
        let mut units = [0; 2];
        for c in quoted.chars() {
            if c.is_ascii() {
                out.push(c);
            } else {
                c.encode_utf16(&mut units)
                    .iter()
                    .for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
        }
    }
}
