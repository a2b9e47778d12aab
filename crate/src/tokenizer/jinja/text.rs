//! Methods of Python's `str`.

use std::ops::Range;

use minijinja::value::{Tuple, Value};
use minijinja::{Error as JinjaError, ErrorKind};
use regex::Regex;

use super::expressions::PERCENT;
use super::format;
use super::values::{Arguments, items_of, wrong};

/// Maximum width of padding.
const WIDTH: usize = 1 << 16;

/// Calls the method `method` on a text.
pub(super) fn method(
    text: &str,
    method: &str,
    given: &mut Arguments<'_>,
) -> Result<Value, JinjaError> {
    Ok(match method {
        "strip" | "lstrip" | "rstrip" => {
            let set = given.text("chars")?;
            let drop = |c: char| {
                set.as_ref()
                    .map_or_else(|| is_space(c), |set| set.contains(c))
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
            let (separator, most) = (
                given.text("sep")?,
                given
                    .integer("maxsplit")?
                    .and_then(|most| usize::try_from(most).ok()),
            );
            split(
                text,
                separator.as_deref(),
                most.unwrap_or(usize::MAX),
                method == "rsplit",
            )?
        }
        "splitlines" => {
            let keep = given.flag("keepends", false)?;
            Value::from(
                lines(text)
                    .map(|(line, end)| {
                        if keep {
                            format!("{line}{end}")
                        } else {
                            line.to_owned()
                        }
                    })
                    .collect::<Vec<_>>(),
            )
        }
        "partition" | "rpartition" => {
            let separator = given.need_text("sep")?;
            let parts = if method == "partition" {
                text.split_once(&separator)
            } else {
                text.rsplit_once(&separator)
            };
            let parts = match parts {
                Some((before, after)) => [before, &separator, after],
                None if method == "partition" => [text, "", ""],
                None => ["", "", text],
            };
            Value::from(Tuple::from(parts.map(Value::from)))
        }
        "replace" => {
            let (old, new) = (given.need_text("old")?, given.need_text("new")?);
            let most = given
                .integer("count")?
                .and_then(|most| usize::try_from(most).ok());
            Value::from(most.map_or_else(
                || text.replace(&old, &new),
                |most| text.replacen(&old, &new, most),
            ))
        }
        "removeprefix" => Value::from(
            text.strip_prefix(given.need_text("prefix")?.as_str())
                .unwrap_or(text),
        ),
        "removesuffix" => Value::from(
            text.strip_suffix(given.need_text("suffix")?.as_str())
                .unwrap_or(text),
        ),
        "startswith" | "endswith" => {
            let wanted = given.need("prefix")?;
            let wanted = if wanted.is_tuple() {
                items_of(&wanted)?
            } else {
                vec![wanted]
            };
            let wanted = wanted.iter().map(|item| {
                item.as_str()
                    .ok_or_else(|| wrong(format!("{method}: expected a text or a tuple of texts")))
            });
            let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
            let window = window(text, given)?.and_then(|window| text.get(window));
            let has = |part: &&str| {
                window.is_some_and(|text| {
                    if method == "startswith" {
                        text.starts_with(*part)
                    } else {
                        text.ends_with(*part)
                    }
                })
            };
            Value::from(wanted.iter().any(has))
        }
        "find" | "rfind" | "index" | "rindex" => {
            let wanted = given.need_text("sub")?;
            let found = window(text, given)?.and_then(|window| {
                let inside = text.get(window.clone())?;
                let at = if method.starts_with('r') {
                    inside.rfind(&wanted)
                } else {
                    inside.find(&wanted)
                }?;
                Some(text.get(..window.start + at)?.chars().count())
            });
            match found {
                Some(at) => Value::from(at),
                None if method.ends_with("find") => Value::from(-1),
                None => return Err(wrong(format!("{method}: the text is not found"))),
            }
        }
        "count" => {
            let wanted = given.need_text("sub")?;
            Value::from(
                window(text, given)?
                    .and_then(|window| text.get(window))
                    .map_or(0, |text| text.matches(&wanted).count()),
            )
        }
        "join" => {
            let items = items_of(&given.need("iterable")?)?;
            let texts = items.iter().map(|item| {
                item.as_str()
                    .ok_or_else(|| wrong(format!("join: expected texts, found {}", item.kind())))
            });
            Value::from(texts.collect::<Result<Vec<_>, _>>()?.join(text))
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
        "isupper" => Value::from(
            text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase),
        ),
        "islower" => Value::from(
            text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase),
        ),
        "istitle" => Value::from(text.chars().any(is_cased) && titled(text) == text),
        _ => return Err(JinjaError::from(ErrorKind::UnknownMethod)),
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

fn is_match(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text)) && !text.ends_with('\n')
}

fn swapped(c: char) -> Vec<char> {
    if c.is_uppercase() {
        c.to_lowercase().collect()
    } else {
        c.to_uppercase().collect()
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
            upper
                .next()
                .into_iter()
                .chain(upper.flat_map(char::to_lowercase))
                .collect()
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
fn split(
    text: &str,
    separator: Option<&str>,
    most: usize,
    from_right: bool,
) -> Result<Value, JinjaError> {
    let Some(separator) = separator else {
        return Ok(split_at_space(text, most, from_right));
    };
    if separator.is_empty() {
        return Err(wrong("split: the separator is empty"));
    }
    let pieces = most.saturating_add(1);
    let mut parts: Vec<Value> = Vec::new();
    if from_right {
        parts.extend(text.rsplitn(pieces, separator).map(Value::from));
        parts.reverse();
    } else {
        parts.extend(text.splitn(pieces, separator).map(Value::from));
    }
    Ok(Value::from(parts))
}

fn split_at_space(text: &str, most: usize, from_right: bool) -> Value {
    let mut parts = Vec::new();
    let mut rest = if from_right {
        text.trim_end_matches(is_space)
    } else {
        text.trim_start_matches(is_space)
    };
    while !rest.is_empty() && parts.len() < most {
        let at = if from_right {
            rest.char_indices()
                .rfind(|(_, c)| is_space(*c))
                .map(|(at, c)| at + c.len_utf8())
        } else {
            rest.find(is_space)
        };
        let (before, after) = rest.split_at(at.unwrap_or(if from_right { 0 } else { rest.len() }));
        let (part, left) = if from_right {
            (after, before.trim_end_matches(is_space))
        } else {
            (before, after.trim_start_matches(is_space))
        };
        parts.push(part);
        rest = left;
    }
    if !rest.is_empty() {
        parts.push(if from_right {
            rest.trim_start_matches(is_space)
        } else {
            rest.trim_end_matches(is_space)
        });
    }
    if from_right {
        parts.reverse();
    }
    parts.into_iter().collect()
}

/// Reads the arguments `start` and `end` in characters, and returns the range in bytes; `None` if the start is past the end.
fn window(text: &str, given: &mut Arguments<'_>) -> Result<Option<Range<usize>>, JinjaError> {
    let (start, end) = (given.integer("start")?, given.integer("end")?);
    let length = text.chars().count();
    let place = |given: i64| match usize::try_from(given) {
        Ok(given) => given,
        Err(_) => {
            length.saturating_sub(usize::try_from(given.unsigned_abs()).unwrap_or(usize::MAX))
        }
    };
    let (start, end) = (
        place(start.unwrap_or(0)),
        end.map_or(length, place).min(length),
    );
    if start > end {
        return Ok(None);
    }
    let byte = |place: usize| {
        text.char_indices()
            .nth(place)
            .map_or(text.len(), |(at, _)| at)
    };
    Ok(Some(byte(start)..byte(end)))
}

fn width(given: &mut Arguments<'_>) -> Result<usize, JinjaError> {
    let width = usize::try_from(i64::try_from(given.need("width")?)?).unwrap_or(0);
    if width > WIDTH {
        Err(wrong(format!("a width of {width}: at most {WIDTH}")))
    } else {
        Ok(width)
    }
}

fn padded(text: &str, method: &str, given: &mut Arguments<'_>) -> Result<Value, JinjaError> {
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
