//! Scans a document, and walks a document that was scanned before.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::value::{Json, JsonFault};

/// Scans the document; containers may nest `max_depth` deep, the outermost counting 1.
pub(crate) fn parse(text: &str, max_depth: usize) -> Result<Json<'_>, JsonFault> {
    let mut scan = Scan {
        max_depth: Some(max_depth),
        ..Scan::of(text)
    };
    scan.space();
    let value = scan.value(0)?;
    scan.space();
    if scan.at == text.len() {
        Ok(value)
    } else {
        Err(scan.syntax())
    }
}

/// Resolves the escapes of a text between quotes.
pub(crate) fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    plain.extend(Characters(Scan::of(text)));
    Cow::Owned(plain)
}

/// Compares two keys with their escapes resolved.
fn order(a: &str, b: &str) -> Ordering {
    if a.contains('\\') || b.contains('\\') {
        Characters(Scan::of(a)).cmp(Characters(Scan::of(b)))
    } else {
        a.cmp(b)
    }
}

/// The characters of a scanned text.
struct Characters<'a>(Scan<'a>);

impl Iterator for Characters<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        if self.0.take(b'\\') {
            return self.0.escape().ok();
        }
        let next = self.0.text[self.0.at..].chars().next()?;
        self.0.at += next.len_utf8();
        Some(next)
    }
}

/// Position and state of a scan or a walk.
#[derive(Clone)]
pub(crate) struct Scan<'a> {
    text: &'a str,
    at: usize,
    /// Maximum nesting depth; `None` when walking a text that was scanned before.
    max_depth: Option<usize>,
    /// Begin and end of the keys of the enclosing objects; those of the innermost object come last.
    keys: Vec<(usize, usize)>,
}

impl<'a> Scan<'a> {
    /// Walks a text that was scanned before.
    fn of(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            max_depth: None,
            keys: Vec::new(),
        }
    }

    /// Walks the text between the brackets of a container.
    pub(crate) fn inside(text: &'a str) -> Self {
        Self::of(
            text.get(1..text.len().saturating_sub(1))
                .unwrap_or_default(),
        )
    }

    fn syntax(&self) -> JsonFault {
        JsonFault::Syntax { at: self.at }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let hit = self.peek() == Some(byte);
        self.at += usize::from(hit);
        hit
    }

    fn need(&mut self, byte: u8) -> Result<(), JsonFault> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.syntax())
        }
    }

    pub(crate) fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, JsonFault> {
        for byte in word.bytes() {
            self.need(byte)?;
        }
        Ok(value)
    }

    pub(crate) fn value(&mut self, depth: usize) -> Result<Json<'a>, JsonFault> {
        let start = self.at;
        match self.peek() {
            Some(b'{') => {
                self.container(depth + 1, Self::entries)?;
                Ok(Json::Object(&self.text[start..self.at]))
            }
            Some(b'[') => {
                self.container(depth + 1, Self::items)?;
                Ok(Json::List(&self.text[start..self.at]))
            }
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.syntax()),
        }
    }

    fn container(
        &mut self,
        depth: usize,
        inside: fn(&mut Self, usize) -> Result<(), JsonFault>,
    ) -> Result<(), JsonFault> {
        let Some(max_depth) = self.max_depth else {
            return self.skip();
        };
        if depth > max_depth {
            return Err(JsonFault::Depth { at: self.at });
        }
        self.at += 1;
        self.space();
        inside(self, depth)
    }

    /// Skips a container that was scanned before.
    fn skip(&mut self) -> Result<(), JsonFault> {
        let mut open = 0usize;
        loop {
            match self.peek() {
                Some(b'"') => drop(self.string()?),
                Some(byte) => {
                    open += usize::from(matches!(byte, b'[' | b'{'));
                    self.at += 1;
                    if matches!(byte, b']' | b'}') {
                        open = open.saturating_sub(1);
                        if open == 0 {
                            return Ok(());
                        }
                    }
                }
                None => return Err(self.syntax()),
            }
        }
    }

    fn items(&mut self, depth: usize) -> Result<(), JsonFault> {
        let mut more = !self.take(b']');
        while more {
            self.space();
            self.value(depth)?;
            more = self.more(b']')?;
        }
        Ok(())
    }

    fn entries(&mut self, depth: usize) -> Result<(), JsonFault> {
        let first = self.keys.len();
        let end = self.entries_from(depth);
        // A fault that ended the scan lies behind the keys of this object.
        match self.twice(first) {
            Some((at, key)) => Err(JsonFault::Duplicate {
                at,
                path: unescaped(key).into_owned(),
            }),
            None => end,
        }
    }

    fn entries_from(&mut self, depth: usize) -> Result<(), JsonFault> {
        let mut more = !self.take(b'}');
        while more {
            self.space();
            let at = self.at + 1;
            let key = self.string()?;
            self.keys.push((at, at + key.len()));
            self.colon()?;
            self.value(depth)
                .map_err(|fault| fault.under(&unescaped(key)))?;
            more = self.more(b'}')?;
        }
        Ok(())
    }

    /// Removes the keys from `first` on and returns the first one among them that repeats an earlier one, with its position.
    fn twice(&mut self, first: usize) -> Option<(usize, &'a str)> {
        let text = self.text;
        let keys = &mut self.keys[first..];
        keys.sort_unstable_by(|a, b| order(&text[a.0..a.1], &text[b.0..b.1]).then(a.cmp(b)));
        let same = |pair: &&[(usize, usize)]| {
            order(&text[pair[0].0..pair[0].1], &text[pair[1].0..pair[1].1]).is_eq()
        };
        let second = keys.windows(2).filter(same).map(|pair| pair[1]).min();
        self.keys.truncate(first);
        second.map(|(begin, end)| (begin - 1, &text[begin..end]))
    }

    /// Takes the comma before another item, or `close` at the end of the container; true if an item follows.
    fn more(&mut self, close: u8) -> Result<bool, JsonFault> {
        self.space();
        if self.take(b',') {
            return Ok(true);
        }
        self.need(close).map(|()| false)
    }

    pub(crate) fn colon(&mut self) -> Result<(), JsonFault> {
        self.space();
        self.need(b':')?;
        self.space();
        Ok(())
    }

    fn number(&mut self) -> Result<Json<'a>, JsonFault> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(Json::Number(&self.text[start..self.at]))
    }

    fn digits(&mut self) -> Result<(), JsonFault> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start {
            Ok(())
        } else {
            Err(self.syntax())
        }
    }

    pub(crate) fn string(&mut self) -> Result<&'a str, JsonFault> {
        self.need(b'"')?;
        let start = self.at;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(&self.text[start..self.at - 1]);
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                Some(0x20..) => self.at += 1,
                _ => return Err(self.syntax()),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonFault> {
        let plain = match self.peek() {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                let high = self.hex4()?;
                let code = if (0xd800..0xdc00).contains(&high) {
                    self.need(b'\\')?;
                    self.need(b'u')?;
                    let low = self.hex4()?;
                    if !(0xdc00..0xe000).contains(&low) {
                        return Err(self.syntax());
                    }
                    0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
                } else {
                    high
                };
                return char::from_u32(code).ok_or_else(|| self.syntax());
            }
            _ => return Err(self.syntax()),
        };
        self.at += 1;
        Ok(plain)
    }

    fn hex4(&mut self) -> Result<u32, JsonFault> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self
                .peek()
                .and_then(|b| char::from(b).to_digit(16))
                .ok_or_else(|| self.syntax())?;
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}
