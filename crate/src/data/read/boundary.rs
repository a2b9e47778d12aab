//! Finds the row after a faulty element of a JSON array, whose quotes or brackets do not show its end.

use serde_json::{Map, Value};

use super::element::{Element, End};
use super::json::ROW_BYTES;
use super::lookahead::Lookahead;
use super::row::is_message;
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
        lookahead: &mut Lookahead<'_>,
        from: usize,
        any: bool,
        inside: bool,
    ) -> Result<Option<usize>> {
        let (mut from, mut room, column) = (from, READ, lookahead.indentation(0));
        loop {
            let rest = lookahead.rest();
            let Some(at) = rest
                .get(from..)
                .and_then(|rest| rest.find('{'))
                .map(|at| from + at)
            else {
                from = rest.len();
                if from > ROW_BYTES {
                    lookahead.take(from);
                    from = 0;
                }
                if !lookahead.more()? {
                    return Ok(None);
                }
                continue;
            };
            let object = rest.get(at + 1..).unwrap_or_default();
            if object.len() < KEY && lookahead.more()? {
                continue;
            }
            let aligned = at > 0
                && column.is_some()
                && lookahead.indentation(at) == column
                && !is_nested(lookahead.rest(), at);
            if aligned || self.is_row(lookahead, at, any, inside, &mut room)? {
                return Ok(Some(at));
            }
            from = at + 1;
        }
    }

    /// Returns true if a row begins with the bracket at `at`.
    fn is_row(
        &self,
        lookahead: &mut Lookahead<'_>,
        at: usize,
        any: bool,
        inside: bool,
        room: &mut usize,
    ) -> Result<bool> {
        let (before, rest) = lookahead.rest().split_at_checked(at).unwrap_or_default();
        let (passed, before) = (before, before_comments(before));
        let separated = before.ends_with([',', '}', ']', '['])
            || passed
                .get(before.len()..)
                .is_some_and(|passed| passed.contains('\n'));
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
            let bytes = lookahead
                .rest()
                .as_bytes()
                .get(end..)
                .unwrap_or_default()
                .iter()
                .take(*room);
            let (count, found) = (
                bytes.len(),
                bytes
                    .zip(end..)
                    .find_map(|(byte, at)| element.take(*byte, at)),
            );
            end += count;
            *room -= count;
            if let Some(found) = found {
                let End::Whole(end) = found else {
                    return Ok(false);
                };
                let (text, after) = lookahead
                    .rest()
                    .get(at..)
                    .and_then(|rest| rest.split_at_checked(end - at))
                    .unwrap_or_default();
                // The last object of a list inside a row is followed by the ends of both.
                let after: String = after
                    .chars()
                    .filter(|c| !c.is_whitespace())
                    .take(3)
                    .collect();
                if after.starts_with("]}") && after != "]}"
                    || after.starts_with("],\"") && !inside
                    || after.starts_with('}')
                {
                    return Ok(false);
                }
                return Ok(serde_json::from_str::<Map<String, Value>>(text)
                    .is_ok_and(|row| !is_message(&Value::Object(row))));
            }
            if *room == 0 || !lookahead.more()? {
                return Ok(false);
            }
        }
    }
}

/// Returns the text without the white space and the comments at its end.
fn before_comments(text: &str) -> &str {
    let mut rest = text;
    loop {
        let kept = rest.trim_end();
        let ends_line = rest
            .get(kept.len()..)
            .is_some_and(|blank| blank.contains('\n'));
        let start = match kept.strip_suffix("*/") {
            Some(comment) => {
                let marks = comment
                    .as_bytes()
                    .windows(2)
                    .rposition(|two| two == b"/*" || two == b"*/");
                marks.filter(|at| {
                    comment
                        .get(*at..)
                        .is_some_and(|from| from.starts_with("/*"))
                })
            }
            None if ends_line && !kept.ends_with([',', '}', ']', '[']) => line_comment(kept),
            None => None,
        };
        match start.and_then(|start| kept.get(..start)) {
            Some(before) => rest = before,
            None => return kept,
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
