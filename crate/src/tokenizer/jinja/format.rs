//! Python's `str.format` and its formatting by `%`.

use minijinja::value::{Value, ValueKind};

use super::representation::{printed, represented};
use super::spec::{Spec, number, taken, whole};
use super::values::{Arguments, Result, tuple, wrong};

/// Computes `format % values`, where the values are a tuple, a dictionary, or one value.
pub(super) fn percent(format: &str, values: &Value) -> Result<String> {
    let (mut out, mut rest) = (String::with_capacity(format.len()), format);
    let mut places = tuple(values.clone())?.into_iter();
    while let Some((before, directive)) = rest.split_once('%') {
        out.push_str(before);
        let mut text = directive;
        let mut name = None;
        if let Some(named) = text.strip_prefix('(') {
            let no_end = || wrong("format: a name without its end");
            let (before, after) = named.split_once(')').ok_or_else(no_end)?;
            (name, text) = (Some(before), after);
        }
        let flags = taken(&mut text, |c| "#0- +".contains(c));
        let mut spec = Spec {
            alternate: flags.contains('#'),
            ..Spec::default()
        };
        spec.width = number(taken(&mut text, |c| c.is_ascii_digit()))?.unwrap_or(0);
        if let Some(after) = text.strip_prefix('.') {
            text = after;
            spec.precision = Some(number(taken(&mut text, |c| c.is_ascii_digit()))?.unwrap_or(0));
        }
        let mut characters = text.chars();
        let kind = characters.next();
        let kind = kind.ok_or_else(|| wrong("format: a directive without its end"))?;
        rest = characters.as_str();
        if kind == '%' {
            out.push('%');
            continue;
        }
        let value = match name {
            Some(name) => values
                .get_item(&name.into())
                .ok()
                .filter(|value| !value.is_undefined()),
            None => places.next(),
        };
        let value = value.ok_or_else(|| wrong("format: not enough values"))?;
        let is_number = !"srac".contains(kind);
        let mut signs = ['+', ' '].into_iter();
        spec.sign = signs.find(|sign| is_number && flags.contains(*sign));
        spec.align = Some(if flags.contains('-') { '<' } else { '>' });
        if is_number && flags.contains('0') && !flags.contains('-') {
            (spec.fill, spec.align) = (Some('0'), Some('='));
        }
        out.push_str(&match kind {
            's' => spec.of_text(&printed(&value))?,
            'r' | 'a' => spec.of_text(&represented(&value))?,
            'd' | 'i' | 'u' => {
                spec.kind = Some('d');
                spec.of_integer(truncated(&value)?)?
            }
            'x' | 'X' | 'o' | 'c' => {
                spec.kind = Some(kind);
                match value.as_str() {
                    Some(text) if kind == 'c' => spec.of_text(text)?,
                    _ => spec.of_integer(i128::try_from(value)?)?,
                }
            }
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
                spec.kind = Some(kind);
                spec.of_float(f64::try_from(value)?)?
            }
            other => return Err(wrong(format!("format: there is no directive %{other}"))),
        });
    }
    out.push_str(rest);
    if places.len() > 0 && values.kind() != ValueKind::Map {
        return Err(wrong("format: too many values"));
    }
    Ok(out)
}

/// Computes `format.format(…)`.
pub(super) fn braces(format: &str, given: &mut Arguments<'_>) -> Result<String> {
    let mut out = String::with_capacity(format.len());
    let mut next = 0;
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        out.push_str(before);
        let mut twice = ["{{", "}}"].into_iter();
        if let Some(after) = twice.find_map(|two| brace.strip_prefix(two)) {
            out.push_str(&brace[..1]);
            rest = after;
            continue;
        }
        let field = brace
            .strip_prefix('{')
            .and_then(|field| field.split_once('}'));
        let (field, after) = field.ok_or_else(|| wrong("format: a single brace"))?;
        rest = after;
        let (field, spec) = field.split_once(':').unwrap_or((field, ""));
        let (mut path, conversion) = match field.split_once('!') {
            Some((path, conversion)) => (path, Some(conversion)),
            None => (field, None),
        };
        let name = taken(&mut path, |c| c != '.' && c != '[');
        let mut value = if name.is_empty() {
            next += 1;
            given.at(next - 1)?
        } else {
            match name.parse() {
                Ok(index) => given.at(index)?,
                Err(_) => given.named(name)?,
            }
        };
        while !path.is_empty() {
            value = match path.strip_prefix('[').and_then(|path| path.split_once(']')) {
                Some((key, after)) => {
                    path = after;
                    let index = key.parse::<i64>().map(Value::from);
                    value.get_item(&index.unwrap_or_else(|_| key.into()))?
                }
                None => return Err(wrong("format: fields have no attributes")),
            };
        }
        let spec = Spec::parsed(spec)?;
        out.push_str(&match conversion {
            Some("r" | "a") => spec.of_text(&represented(&value))?,
            Some("s") => spec.of_text(&printed(&value))?,
            Some(other) => return Err(wrong(format!("format: there is no conversion !{other}"))),
            None => spec.of(&value)?,
        });
    }
    out.push_str(rest);
    given.all_used();
    Ok(out)
}

/// Returns the whole part of a number, for `%d`.
fn truncated(value: &Value) -> Result<i128> {
    match value.kind() {
        ValueKind::Number if !value.is_integer() => {
            let whole = whole(f64::try_from(value.clone())?);
            whole.ok_or_else(|| wrong("format: expected a finite number"))
        }
        ValueKind::Number | ValueKind::Bool => i128::try_from(value.clone()),
        other => Err(wrong(format!("format: expected a number, found {other}"))),
    }
}
