//! JSON of untrusted files: one left-to-right scan that refuses a key given twice, deep nesting and every departure from RFC 8259.
//! Numbers stay text, so that nothing is rounded before it is judged.

use std::borrow::Cow;
use std::collections::HashSet;

/// A parsed value; text is borrowed from the document unless it contains escapes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    /// A list that [`parse_values`] keeps as text: what is between its brackets, and its number of items.
    Long(&'a str, u64),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// Why a document was refused, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonFault {
    Syntax { at: usize },
    Depth { at: usize },
    Duplicate { at: usize, path: String },
}

impl<'a> Json<'a> {
    pub(crate) fn text(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn list(&self) -> Option<&[Json<'a>]> {
        if let Json::List(items) = self { Some(items) } else { None }
    }

    pub(crate) fn object(&self) -> Option<&[(Cow<'a, str>, Json<'a>)]> {
        if let Json::Object(entries) = self { Some(entries) } else { None }
    }

    /// The value of `key`, in an object that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Json<'a>> {
        self.object()?.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// A count written `0|[1-9][0-9]*` that fits 64 bits.
    pub(crate) fn count(&self) -> Option<u64> {
        match self {
            Json::Number(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok(),
            _ => None,
        }
    }
}

/// Items of a list that [`parse_header`] keeps: more than any list of a header may have.
const HEADER_ITEMS: usize = 9;

/// Parses the document; containers may nest `max_depth` deep, the outermost counting 1.
pub(crate) fn parse(text: &str, max_depth: usize) -> Result<Json<'_>, JsonFault> {
    parsed(text, max_depth, usize::MAX, false)
}

/// Parses the document as [`parse`] does and keeps the first nine items of each list. An item takes 16 times the memory of its shortest
/// text, so that a header of nothing but lists would need far more than its own size.
pub(crate) fn parse_header(text: &str, max_depth: usize) -> Result<Json<'_>, JsonFault> {
    parsed(text, max_depth, HEADER_ITEMS, false)
}

/// Parses the document as [`parse`] does; a list of more than nine items stays text, so that millions of values take no memory.
pub(crate) fn parse_values(text: &str, max_depth: usize) -> Result<Json<'_>, JsonFault> {
    parsed(text, max_depth, HEADER_ITEMS, true)
}

fn parsed(text: &str, max_depth: usize, most_items: usize, long: bool) -> Result<Json<'_>, JsonFault> {
    let mut scan = Scan { text, bytes: text.as_bytes(), at: 0, max_depth, most_items, long, path: Vec::new() };
    scan.space();
    let value = scan.value(0)?;
    scan.space();
    if scan.at == scan.bytes.len() { Ok(value) } else { Err(scan.syntax()) }
}

struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    max_depth: usize,
    most_items: usize,
    long: bool,
    path: Vec<Cow<'a, str>>,
}

impl<'a> Scan<'a> {
    fn syntax(&self) -> JsonFault {
        JsonFault::Syntax { at: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let hit = self.peek() == Some(byte);
        self.at += usize::from(hit);
        hit
    }

    fn need(&mut self, byte: u8) -> Result<(), JsonFault> {
        if self.take(byte) { Ok(()) } else { Err(self.syntax()) }
    }

    fn space(&mut self) {
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

    fn value(&mut self, depth: usize) -> Result<Json<'a>, JsonFault> {
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.list(depth + 1),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.syntax()),
        }
    }

    fn deeper(&mut self, depth: usize) -> Result<(), JsonFault> {
        if depth > self.max_depth {
            return Err(JsonFault::Depth { at: self.at });
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    fn list(&mut self, depth: usize) -> Result<Json<'a>, JsonFault> {
        self.deeper(depth)?;
        let (start, mut count, mut items) = (self.at, 0, Vec::new());
        if self.take(b']') {
            return Ok(Json::List(items));
        }
        loop {
            self.space();
            let item = self.value(depth)?;
            count += 1;
            if items.len() < self.most_items {
                items.push(item);
            }
            self.space();
            if !self.take(b',') {
                let inside = &self.text[start..self.at];
                self.need(b']')?;
                return Ok(if self.long && count > self.most_items as u64 { Json::Long(inside, count) } else { Json::List(items) });
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, JsonFault> {
        self.deeper(depth)?;
        let mut entries: Vec<(Cow<'a, str>, Json<'a>)> = Vec::new();
        // Most objects have a few keys; the set is for those with thousands.
        let mut seen: HashSet<Cow<'a, str>> = HashSet::new();
        if self.take(b'}') {
            return Ok(Json::Object(entries));
        }
        loop {
            self.space();
            let at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.syntax());
            }
            let key = self.string()?;
            let twice = if entries.len() < 16 {
                entries.iter().any(|(name, _)| *name == key)
            } else {
                if entries.len() == 16 {
                    seen.extend(entries.iter().map(|(name, _)| name.clone()));
                }
                !seen.insert(key.clone())
            };
            self.path.push(key.clone());
            if twice {
                return Err(JsonFault::Duplicate { at, path: self.path.join("/") });
            }
            self.space();
            self.need(b':')?;
            self.space();
            let value = self.value(depth)?;
            self.path.pop();
            entries.push((key, value));
            self.space();
            if !self.take(b',') {
                self.need(b'}')?;
                return Ok(Json::Object(entries));
            }
        }
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
        if self.at > start { Ok(()) } else { Err(self.syntax()) }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonFault> {
        self.need(b'"')?;
        let mut start = self.at;
        let mut owned: Option<String> = None;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let tail = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(match owned {
                        Some(text) => Cow::Owned(text + tail),
                        None => Cow::Borrowed(tail),
                    });
                }
                Some(b'\\') => {
                    let text = owned.get_or_insert_default();
                    text.push_str(&self.text[start..self.at]);
                    self.at += 1;
                    let c = self.escape()?;
                    owned.get_or_insert_default().push(c);
                    start = self.at;
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
            let digit = self.peek().and_then(|b| char::from(b).to_digit(16)).ok_or_else(|| self.syntax())?;
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}
