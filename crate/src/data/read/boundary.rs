//! Finds the row after a faulty element of a JSON array, whose quotes or brackets do not show its end.

use serde_json::Value;

use super::element::{Element, End};
use super::row::{Fields, ROW_BYTES, is_message};
use super::text::TextReader;
use crate::error::Result;

/// Maximum number of first keys of rows that are remembered.
const KEYS: usize = 64;
/// Maximum length in bytes of a key that is looked for.
const KEY: usize = 256;

/// Number of bytes that are read to find objects that are JSON, after one faulty element.
const READ: usize = 1 << 20;

/// First keys of the rows, by which the next one is recognized.
#[derive(Default)]
pub(super) struct Keys(Vec<String>);

impl Keys {
    /// Adds a key.
    pub fn learn(&mut self, key: Option<String>) {
        let new = key.filter(|key| self.0.len() < KEYS && !self.0.contains(key));
        self.0.extend(new);
    }

    /// Finds the beginning of a row from the byte `from` on: an object whose first key is that of another row, which begins its line as far
    /// to the right as the faulty element does, or which is JSON and comes after another object; after a comma `any` object, as in words
    /// between rows. What is skipped is kept, unless it is longer than a row may be.
    pub fn find(
        &self,
        reader: &mut TextReader<'_>,
        from: usize,
        any: bool,
        inside: bool,
    ) -> Result<Option<usize>> {
        let (mut from, mut room, column) = (from, READ, reader.indentation(0));
        loop {
            let Some(at) = reader.after(from).find('{').map(|at| from + at) else {
                from = reader.rest().len();
                if from > ROW_BYTES {
                    reader.take(from);
                    from = 0;
                }
                if !reader.more()? {
                    return Ok(None);
                }
                continue;
            };
            if reader.after(at + 1).len() < KEY && reader.more()? {
                continue;
            }
            let aligned = at > 0
                && column.is_some()
                && reader.indentation(at) == column
                && !is_nested(reader.rest(), at);
            if aligned || self.is_row(reader, at, any, inside, &mut room)? {
                return Ok(Some(at));
            }
            from = at + 1;
        }
    }

    /// Returns true if a row begins with the bracket at `at`.
    fn is_row(
        &self,
        reader: &mut TextReader<'_>,
        at: usize,
        any: bool,
        inside: bool,
        room: &mut usize,
    ) -> Result<bool> {
        let (before, rest) = reader.rest().split_at_checked(at).unwrap_or_default();
        let (before, passed) = split_at_comments(before);
        let separated = before.ends_with([',', '}', ']', '[']) || passed.contains('\n');
        if separated && (any || first_key(rest).is_some_and(|key| self.0.contains(&key))) {
            return Ok(true);
        }
        let object =
            before.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']'));
        let brackets = before.get(object.len()..).unwrap_or_default();
        if !object.ends_with('}') || brackets.contains('[') && !brackets.contains(']') {
            return Ok(false);
        }
        let (mut element, mut end) = (Element::default(), at);
        loop {
            let bytes = reader.after(end).as_bytes();
            let bytes = bytes.get(..*room).unwrap_or(bytes);
            let found = element.take_all(bytes, end);
            end += bytes.len();
            *room -= bytes.len();
            if let Some(found) = found {
                let End::Whole(end) = found else {
                    return Ok(false);
                };
                let object = reader.after(at).split_at_checked(end - at);
                let (text, after) = object.unwrap_or_default();
                // The last object of a list inside a row is followed by the ends of both.
                let after = after.chars().filter(|c| !c.is_whitespace());
                let after: String = after.take(3).collect();
                if after.starts_with("]}") && after != "]}"
                    || after.starts_with("],\"") && !inside
                    || after.starts_with('}')
                {
                    return Ok(false);
                }
                return Ok(serde_json::from_str::<Fields>(text)
                    .is_ok_and(|row| !is_message(&Value::Object(row))));
            }
            if *room == 0 || !reader.more()? {
                return Ok(false);
            }
        }
    }
}

/// Divides a text into what is before the white space and the comments at its end, and these.
fn split_at_comments(text: &str) -> (&str, &str) {
    let mut rest = text;
    loop {
        let kept = rest.trim_end();
        let ends_line = rest[kept.len()..].contains('\n');
        let before = match kept.strip_suffix("*/") {
            Some(comment) => {
                let bytes = comment.as_bytes();
                let mark = bytes
                    .windows(2)
                    .rposition(|two| two == b"/*" || two == b"*/");
                mark.map(|at| comment.split_at(at))
                    .filter(|(_, comment)| comment.starts_with("/*"))
                    .map(|(before, _)| before)
            }
            None if ends_line && !kept.ends_with([',', '}', ']', '[']) => {
                line_comment(kept).and_then(|start| kept.get(..start))
            }
            None => None,
        };
        match before {
            Some(before) => rest = before,
            None => return text.split_at(kept.len()),
        }
    }
}

/// Returns the byte at which a comment up to the end of the last line begins: in a line of its own, or after a row or its comma.
fn line_comment(text: &str) -> Option<usize> {
    let line = text.rfind('\n').map_or(0, |at| at + 1);
    let begins = |at: &usize| {
        text.get(*at..)
            .is_some_and(|from| from.starts_with('#') || from.starts_with("//"))
    };
    let follows = |at: &usize| {
        let before = text.get(line..*at).map(str::trim_end);
        before.is_some_and(|before| before.is_empty() || before.ends_with([',', '}', ']', '[']))
    };
    (line..text.len()).find(|at| begins(at) && follows(at))
}

/// Returns true if the object at `at` is the value of a key, the first of a list, or a message.
fn is_nested(text: &str, at: usize) -> bool {
    let (before, object) = text.split_at_checked(at).unwrap_or_default();
    before.trim_end().ends_with(['[', ':'])
        || first_key(object).is_some_and(|key| matches!(&*key, "role" | "from"))
}

/// Returns the first key of an object, up to the first byte that is no letter, digit, `_`, `-` or `.` if it has no end.
pub(super) fn first_key(text: &str) -> Option<String> {
    let inside = text.strip_prefix('{')?.trim_start();
    let quote = inside.chars().next().filter(|c| matches!(c, '"' | '\''));
    let inside = inside.get(quote.map_or(0, char::len_utf8)..)?;
    let quoted = quote
        .and_then(|quote| inside.split_once(quote))
        .filter(|(_, after)| after.trim_start().starts_with(':'));
    let bare = || {
        inside
            .split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.'))
            .next()
    };
    let key = quoted.map(|(key, _)| key).or_else(bare)?;
    (!key.is_empty() && key.len() <= KEY).then(|| key.to_owned())
}
