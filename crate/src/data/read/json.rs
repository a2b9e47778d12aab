//! Reads JSON values from a stream of text, one at a time, so that no tree of the whole is made.

use serde::de::IgnoredAny;

use super::row::{Fields, ROW_BYTES, is_plain_message};
use super::text::TextReader;
use crate::error::Result;

/// Keys of rows: an object with one of them is a row, not a collection of rows.
const ROW_KEYS: [&str; 8] = [
    "messages",
    "conversations",
    "prompt",
    "completion",
    "instruction",
    "text",
    "input_ids",
    "chosen",
];
/// Further keys of rows, if their values are texts.
const TEXT_KEYS: [&str; 5] = ["question", "query", "answer", "response", "output"];

/// State of a scan for the end of a value's brackets and quotes.
#[derive(Default)]
struct Nesting {
    /// Brackets that are open. One that closes another kind is skipped, or closes what is inside of its own kind.
    open: Vec<u8>,
    in_string: bool,
    escaped: bool,
}

impl Nesting {
    /// Takes a byte of the value. Returns true if the value ends with it.
    fn ends_with(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return self.open.is_empty() && !self.in_string;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.open.push(byte),
            b'}' if self.open.last() == Some(&b'{') => drop(self.open.pop()),
            b']' => {
                let own = self.open.iter().rposition(|open| *open == b'[');
                self.open.truncate(own.unwrap_or(self.open.len()));
            }
            _ => {}
        }
        self.open.is_empty() && !self.in_string
    }
}

/// Scans the value that begins here and passes its parts to `take`. Returns true if it ends before the text does.
fn walk(reader: &mut TextReader<'_>, take: &mut dyn FnMut(&str)) -> Result<bool> {
    let mut nesting = Nesting::default();
    let Some(first) = reader.fill()?.bytes().next() else {
        return Ok(false);
    };
    let nested = matches!(first, b'{' | b'[' | b'"');
    loop {
        let text = reader.fill()?;
        if text.is_empty() {
            return Ok(!nested);
        }
        let end = if nested {
            text.bytes()
                .position(|byte| nesting.ends_with(byte))
                .map(|at| at + 1)
        } else {
            // A number or a keyword.
            text.find(|c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}'))
        };
        let part = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
        take(part);
        let length = part.len();
        reader.take(length);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// Reads the text of the value that begins here; `None` if the file ends within it, or it is longer than [`ROW_BYTES`].
pub(super) fn value(reader: &mut TextReader<'_>) -> Result<Option<String>> {
    let (mut text, mut too_long) = (String::new(), false);
    let whole = walk(reader, &mut |part| {
        too_long |= text.len() + part.len() > ROW_BYTES;
        if !too_long {
            text.push_str(part);
        }
    })?;
    Ok((whole && !too_long).then_some(text))
}

/// Location of the rows in a file that is one object.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outline {
    /// The object itself is the row.
    Row,
    /// The rows are in one of its arrays, whose bracket is at the byte `at` of the text. The `other` keys of the object are no rows. The
    /// object is `whole` if its end was found.
    Array {
        at: u64,
        other: Vec<String>,
        whole: bool,
    },
}

/// Locates the rows in a text that is one object; `None` if it is not an object. Its rows may be faulty, so that its end is not found.
pub(super) fn outline(reader: &mut TextReader<'_>) -> Result<Option<Outline>> {
    if reader.skip_blank()? != Some(b'{') {
        return Ok(None);
    }
    reader.take(1);
    let (mut arrays, mut other, mut is_row) = (Vec::new(), Vec::new(), false);
    let whole = members(reader, &mut arrays, &mut other, &mut is_row)?;
    Ok(match arrays.as_slice() {
        [at] if !is_row => Some(Outline::Array {
            at: *at,
            other,
            whole,
        }),
        _ => whole.then_some(Outline::Row),
    })
}

/// Scans the members of an object. Returns true if it ends, and nothing follows.
fn members(
    reader: &mut TextReader<'_>,
    arrays: &mut Vec<u64>,
    other: &mut Vec<String>,
    is_row: &mut bool,
) -> Result<bool> {
    if reader.skip_blank()? != Some(b'}') {
        loop {
            match member(reader, is_row)? {
                Some(Member::Rows { at, whole }) => {
                    arrays.push(at);
                    if !whole {
                        return Ok(false);
                    }
                }
                Some(Member::Other(key)) => other.push(key),
                None => return Ok(false),
            }
            match reader.skip_blank()? {
                Some(b',') => reader.take(1),
                Some(b'}') => break,
                _ => return Ok(false),
            }
        }
    }
    reader.take(1);
    Ok(reader.skip_blank()?.is_none())
}

/// Returns true if the first item is a message of a conversation, which is not a row.
fn begins_with_message(items: &str) -> bool {
    let mut items = serde_json::Deserializer::from_str(items).into_iter::<Fields>();
    matches!(items.next(), Some(Ok(first)) if is_plain_message(&first))
}

/// A key of an object and its value.
enum Member {
    /// An array of objects, whose bracket is at this byte; `whole` if it ends before the text does.
    Rows { at: u64, whole: bool },
    /// Another value, by its key.
    Other(String),
}

/// Scans a key and its value; `None` if there is none.
fn member(reader: &mut TextReader<'_>, is_row: &mut bool) -> Result<Option<Member>> {
    /// Number of characters of an array from which the kind of its first value is determined.
    const BEGINNING: usize = 64 << 10;
    if reader.skip_blank()? != Some(b'"') {
        return Ok(None);
    }
    let key = value(reader)?.and_then(|key| serde_json::from_str::<String>(&key).ok());
    let Some(key) = key else {
        return Ok(None);
    };
    *is_row |= ROW_KEYS.contains(&key.as_str());
    if reader.skip_blank()? != Some(b':') {
        return Ok(None);
    }
    reader.take(1);
    let begins = reader.skip_blank()?;
    *is_row |= begins == Some(b'"') && TEXT_KEYS.contains(&key.as_str());
    Ok(match begins {
        Some(b'[') => {
            let (at, mut beginning) = (reader.position, String::new());
            let whole = walk(reader, &mut |part| {
                let room = BEGINNING.saturating_sub(beginning.len());
                beginning.extend(part.chars().take(room));
            })?;
            let inside = beginning.get(1..).unwrap_or_default();
            let after_comma = |part: &str| {
                part.trim_start()
                    .strip_prefix('{')
                    .is_some_and(|key| key.trim_start().starts_with(['"', '\'']))
            };
            let rows =
                inside.trim_start().starts_with('{') || inside.split(',').skip(1).any(after_comma);
            *is_row |= begins_with_message(inside);
            match (rows, whole) {
                (true, _) => Some(Member::Rows { at, whole }),
                (false, true) => Some(Member::Other(key)),
                (false, false) => None,
            }
        }
        Some(b'{') => walk(reader, &mut |_| {})?.then_some(Member::Other(key)),
        Some(_) => value(reader)?
            .filter(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
            .map(|_| Member::Other(key)),
        None => None,
    })
}
