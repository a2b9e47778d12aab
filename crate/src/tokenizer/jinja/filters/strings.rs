//! Filters of texts.

use minijinja::value::Value;

use super::super::representation::printed;
use super::super::text;
use super::super::values::{Arguments, Result, wrong};

/// Maximum width of an indentation and of a centred text.
const WIDTH: i64 = 1 << 10;

/// Replaces characters that have a meaning in HTML by references.
pub(super) fn escaped(value: &Value) -> Value {
    let text = printed(value)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('\'', "&#39;")
        .replace('"', "&#34;");
    Value::from_safe_string(text)
}

pub(super) fn replace(value: &Value, given: &mut Arguments<'_>) -> Result {
    let (old, new) = (printed(&given.need("old")?), printed(&given.need("new")?));
    let most = given.most("count")?;
    Ok(printed(value).replacen(&old, &new, most).into())
}

pub(super) fn indent(value: &Value, given: &mut Arguments<'_>) -> Result {
    let width = given.next("width")?.unwrap_or_else(|| Value::from(4));
    let (first, blank) = (given.flag("first", false)?, given.flag("blank", false)?);
    let indentation = match width.as_str() {
        Some(text) => text.to_owned(),
        None => " ".repeat(limited("indent", i64::try_from(width)?)?),
    };
    let text = printed(value) + "\n";
    let lines = text::lines(&text).enumerate().map(|(index, (line, _))| {
        let indented = match index {
            0 => first,
            _ => blank || !line.is_empty(),
        };
        if indented {
            indentation.clone() + line
        } else {
            line.to_owned()
        }
    });
    Ok(Value::from(lines.collect::<Vec<_>>().join("\n")))
}

/// Checks that a width is not too large.
fn limited(filter: &str, width: i64) -> Result<usize> {
    let width = width.max(0);
    let too_wide = || wrong(format!("{filter}: a width of {width}: at most {WIDTH}"));
    usize::try_from(width)
        .ok()
        .filter(|_| width <= WIDTH)
        .ok_or_else(too_wide)
}

pub(super) fn centred(text: &str, given: &mut Arguments<'_>) -> Result {
    let width = limited("center", given.integer("width")?.unwrap_or(80))?;
    Ok(Value::from(text::centred(text, width, " ")))
}

pub(super) fn truncate(value: &Value, given: &mut Arguments<'_>) -> Result {
    let text = printed(value);
    let count = |number: Option<i64>, otherwise| match number {
        Some(number) => usize::try_from(number).map_err(|_| wrong("truncate: a length below 0")),
        None => Ok(otherwise),
    };
    let length = count(given.integer("length")?, 255)?;
    let killwords = given.flag("killwords", false)?;
    let end = given.text("end")?.unwrap_or_else(|| "...".to_owned());
    let leeway = count(given.integer("leeway")?, 5)?;
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(Value::from(text));
    }
    let kept = length.checked_sub(end.chars().count());
    let kept = kept.ok_or_else(|| wrong("truncate: the length is below that of the end"))?;
    let kept: String = text.chars().take(kept).collect();
    let words = kept
        .rsplit_once(' ')
        .map_or(kept.as_str(), |(words, _)| words);
    let kept = if killwords { &kept } else { words };
    Ok(format!("{kept}{end}").into())
}
