//! Methods of Python's `str`.

use std::ops::Range;

use minijinja::ErrorKind;
use minijinja::value::{Tuple, Value};
use regex::Regex;

use super::expressions::PERCENT;
use super::format;
use super::values::{Arguments, Result, items_of, tuple, wrong};

/// Maximum width of padding.
const WIDTH: usize = 1 << 16;

/// Calls the method `method` on a text.
pub(super) fn method(text: &str, method: &str, given: &mut Arguments<'_>) -> Result {
    Ok(match method {
        "strip" | "lstrip" | "rstrip" => {
            let set = given.text("chars")?;
            let drop = |c: char| match &set {
                Some(set) => set.contains(c),
                None => is_space(c),
            };
            Value::from(match method {
                "strip" => text.trim_matches(drop),
                "lstrip" => text.trim_start_matches(drop),
                _ => text.trim_end_matches(drop),
            })
        }
        "upper" => Value::from(text.to_uppercase()),
        "lower" => Value::from(text.to_lowercase()),
        "casefold" => Value::from(text.to_lowercase().replace('ß', "ss").replace('ς', "σ")),
        "swapcase" => Value::from(text.chars().flat_map(swapped).collect::<String>()),
        "capitalize" => Value::from(capitalized(text)),
        "title" => Value::from(titled(text)),
        "split" | "rsplit" => {
            let (separator, most) = (given.text("sep")?, given.most("maxsplit")?);
            split(text, separator.as_deref(), most, method == "rsplit")?
        }
        "splitlines" => {
            let keep = given.flag("keepends", false)?;
            let lines = lines(text).map(|(line, end)| match keep {
                true => format!("{line}{end}"),
                false => line.to_owned(),
            });
            lines.collect::<Vec<_>>().into()
        }
        "partition" | "rpartition" => {
            let separator = given.need_text("sep")?;
            let (parts, otherwise) = match method {
                "partition" => (text.split_once(&separator), [text, "", ""]),
                _ => (text.rsplit_once(&separator), ["", "", text]),
            };
            let parts = parts.map(|(before, after)| [before, &separator, after]);
            Tuple::from(parts.unwrap_or(otherwise).map(Value::from)).into()
        }
        "replace" => {
            let (old, new) = (given.need_text("old")?, given.need_text("new")?);
            text.replacen(&old, &new, given.most("count")?).into()
        }
        "removeprefix" => {
            let prefix = given.need_text("prefix")?;
            text.strip_prefix(&*prefix).unwrap_or(text).into()
        }
        "removesuffix" => {
            let suffix = given.need_text("suffix")?;
            text.strip_suffix(&*suffix).unwrap_or(text).into()
        }
        "startswith" | "endswith" => {
            let wanted = tuple(given.need("prefix")?)?;
            let no_text = || wrong(format!("{method}: expected a text or a tuple of texts"));
            let wanted = wanted.iter().map(|item| item.as_str().ok_or_else(no_text));
            let wanted = wanted.collect::<Result<Vec<_>>>()?;
            let window = window(text, given)?.and_then(|window| text.get(window));
            let has = |part: &str| match (window, method) {
                (Some(text), "startswith") => text.starts_with(part),
                (Some(text), _) => text.ends_with(part),
                (None, _) => false,
            };
            wanted.into_iter().any(has).into()
        }
        "find" | "rfind" | "index" | "rindex" => {
            let wanted = given.need_text("sub")?;
            let found = window(text, given)?.and_then(|window| {
                let inside = text.get(window.clone())?;
                let at = match method {
                    "rfind" | "rindex" => inside.rfind(&wanted),
                    _ => inside.find(&wanted),
                };
                Some(text[..window.start + at?].chars().count())
            });
            match found {
                Some(at) => Value::from(at),
                None if method.ends_with("find") => Value::from(-1),
                None => return Err(wrong(format!("{method}: the text is not found"))),
            }
        }
        "count" => {
            let wanted = given.need_text("sub")?;
            let inside = window(text, given)?.and_then(|window| text.get(window));
            inside
                .map_or(0, |text| text.matches(&wanted).count())
                .into()
        }
        "join" => {
            let items = items_of(&given.need("iterable")?)?;
            let texts = items.iter().map(|item| {
                let no_text = || wrong(format!("join: expected texts, found {}", item.kind()));
                item.as_str().ok_or_else(no_text)
            });
            texts.collect::<Result<Vec<_>>>()?.join(text).into()
        }
        "ljust" | "rjust" | "center" => padded(text, method, given)?,
        "zfill" => {
            let missing = width(given)?.saturating_sub(text.chars().count());
            let (sign, digits) = text.split_at(text.starts_with(['-', '+']).into());
            Value::from(format!("{sign}{}{digits}", "0".repeat(missing)))
        }
        "format" => Value::from(format::braces(text, given)?),
        PERCENT => Value::from(format::percent(text, &given.need("values")?)?),
        "isdigit" => Value::from(is_match(r"^[\d²³¹⁰⁴-⁹₀-₉]+$", text)),
        "isdecimal" => Value::from(is_match(r"^\d+$", text)),
        "isnumeric" => Value::from(all(text, char::is_numeric)),
        "isalpha" => Value::from(all(text, char::is_alphabetic)),
        "isalnum" => Value::from(all(text, char::is_alphanumeric)),
        "isspace" => Value::from(all(text, is_space)),
        "isascii" => Value::from(text.is_ascii()),
        "isidentifier" => Value::from(is_match(r"^[^\W\d]\w*$", text)),
        "isupper" => Value::from(has(text, char::is_uppercase) && !has(text, char::is_lowercase)),
        "islower" => Value::from(has(text, char::is_lowercase) && !has(text, char::is_uppercase)),
        "istitle" => Value::from(has(text, is_cased) && titled(text) == text),
        _ => return Err(ErrorKind::UnknownMethod.into()),
    })
}

/// Returns true for white space as defined by Python.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

fn is_cased(c: char) -> bool {
    c.is_uppercase() || c.is_lowercase() || ['ǅ', 'ǈ', 'ǋ', 'ǲ'].contains(&c)
}

fn all(text: &str, is: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(is)
}

fn has(text: &str, is: fn(char) -> bool) -> bool {
    text.chars().any(is)
}

fn is_match(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text)) && !text.ends_with('\n')
}

fn swapped(c: char) -> Vec<char> {
    match c.is_uppercase() {
        true => c.to_lowercase().collect(),
        false => c.to_uppercase().collect(),
    }
}

/// Returns the form of a letter at the beginning of a word.
fn title_case(c: char) -> String {
    match c {
        'Ǆ' | 'ǅ' | 'ǆ' => "ǅ".to_owned(),
        'Ǉ' | 'ǈ' | 'ǉ' => "ǈ".to_owned(),
        'Ǌ' | 'ǋ' | 'ǌ' => "ǋ".to_owned(),
        'Ǳ' | 'ǲ' | 'ǳ' => "ǲ".to_owned(),
        c => {
            let mut upper = c.to_uppercase();
            let first = upper.next().into_iter();
            first.chain(upper.flat_map(char::to_lowercase)).collect()
        }
    }
}

pub(super) fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        title_case(first) + &characters.as_str().to_lowercase()
    })
}

/// Writes a letter in title case if no letter precedes it, and in lower case otherwise.
fn titled(text: &str) -> String {
    let mut inside = false;
    let mut result = String::with_capacity(text.len());
    for c in text.chars() {
        if inside {
            result.extend(c.to_lowercase());
        } else {
            result.push_str(&title_case(c));
        }
        inside = is_cased(c);
    }
    result
}

/// Returns an iterator over lines and their ends.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    const ENDS: [char; 10] = [
        '\n', '\r', '\x0b', '\x0c', '\x1c', '\x1d', '\x1e', '\u{85}', '\u{2028}', '\u{2029}',
    ];
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = rest.find(ENDS).unwrap_or(rest.len());
        let (line, end) = rest.split_at(at);
        let length = if end.starts_with("\r\n") {
            2
        } else {
            end.chars().next().map_or(0, char::len_utf8)
        };
        let (end, after) = end.split_at(length);
        rest = after;
        Some((line, end))
    })
}

/// Implements `str.split` and `str.rsplit`: at a separator, or at white space.
fn split(text: &str, separator: Option<&str>, most: usize, from_right: bool) -> Result {
    let Some(separator) = separator else {
        return Ok(split_at_space(text, most, from_right));
    };
    if separator.is_empty() {
        return Err(wrong("split: the separator is empty"));
    }
    let pieces = most.saturating_add(1);
    Ok(if from_right {
        let parts: Vec<&str> = text.rsplitn(pieces, separator).collect();
        parts.into_iter().rev().collect()
    } else {
        text.splitn(pieces, separator).collect()
    })
}

fn split_at_space(text: &str, most: usize, from_right: bool) -> Value {
    let text = text.trim_matches(is_space);
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, space) in text.match_indices(is_space) {
        let end = at + space.len();
        match runs.last_mut().filter(|run| run.end == at) {
            Some(run) => run.end = end,
            None => runs.push(at..end),
        }
    }
    let skipped = if from_right {
        runs.len().saturating_sub(most)
    } else {
        0
    };
    let (mut parts, mut from) = (Vec::new(), 0);
    for run in runs.into_iter().skip(skipped).take(most) {
        parts.push(&text[from..run.start]);
        from = run.end;
    }
    // A text of white space alone has no parts.
    parts.extend(Some(&text[from..]).filter(|last| !last.is_empty()));
    parts.into_iter().collect()
}

/// Reads the arguments `start` and `end` in characters, and returns the range in bytes; `None` if the start is past the end.
fn window(text: &str, given: &mut Arguments<'_>) -> Result<Option<Range<usize>>> {
    let (start, end) = (given.integer("start")?, given.integer("end")?);
    let length = text.chars().count();
    let place = |given: i64| {
        let size = usize::try_from(given.unsigned_abs()).unwrap_or(usize::MAX);
        if given < 0 {
            length.saturating_sub(size)
        } else {
            size
        }
    };
    let (start, end) = (
        place(start.unwrap_or(0)),
        end.map_or(length, place).min(length),
    );
    let byte = |place: usize| {
        text.char_indices()
            .nth(place)
            .map_or(text.len(), |(at, _)| at)
    };
    Ok((start <= end).then(|| byte(start)..byte(end)))
}

fn width(given: &mut Arguments<'_>) -> Result<usize> {
    let width = usize::try_from(i64::try_from(given.need("width")?)?).unwrap_or(0);
    match width {
        0..=WIDTH => Ok(width),
        _ => Err(wrong(format!("a width of {width}: at most {WIDTH}"))),
    }
}

fn padded(text: &str, method: &str, given: &mut Arguments<'_>) -> Result {
    let width = width(given)?;
    let fill = given.text("fillchar")?.unwrap_or_else(|| " ".to_owned());
    if fill.chars().count() != 1 {
        return Err(wrong(format!(
            "{method}: expected one character to fill with"
        )));
    }
    let missing = fill.repeat(width.saturating_sub(text.chars().count()));
    Ok(Value::from(match method {
        "ljust" => format!("{text}{missing}"),
        "rjust" => format!("{missing}{text}"),
        _ => centred(text, width, &fill),
    }))
}

/// Implements `str.center`, which divides an odd number of characters as in CPython.
pub(super) fn centred(text: &str, width: usize, fill: &str) -> String {
    let missing = width.saturating_sub(text.chars().count());
    let left = missing / 2 + (missing & width & 1);
    format!("{}{text}{}", fill.repeat(left), fill.repeat(missing - left))
}
