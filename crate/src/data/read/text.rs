//! Decodes the text of a data file piece by piece.

use std::io::Read;

use super::gzip::Contents;
use super::kinds::{other_encoding, other_kind};
use super::newlines::Newlines;
use super::refused::refused;
use super::seen::Seen;
use super::source::{DataSource, unreadable};
use crate::error::{Error, Refusal, Result, word};

/// Number of bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// Number of bytes from which on text that was taken is dropped.
const TAKEN: usize = 1 << 20;

#[derive(Debug, Clone, Copy)]
enum Encoding {
    Utf8,
    /// UTF-16, with the function that reads its units.
    Utf16(fn([u8; 2]) -> u16),
}

/// Reads a file of UTF-8, without its byte order mark, or of UTF-16 that begins with one.
pub(crate) struct TextReader<'a> {
    inner: Contents<'a>,
    encoding: Encoding,
    /// Bytes that are not decoded yet.
    raw: Vec<u8>,
    /// Number of bytes of the file before `raw`.
    offset: usize,
    ended: bool,
    text: String,
    /// Number of bytes of `text` that were taken.
    taken: usize,
    /// Number of bytes of the decoded text that were taken.
    pub position: u64,
    /// Line of the next byte, counted from 1.
    pub line: usize,
    newlines: Option<Newlines>,
}

impl<'a> TextReader<'a> {
    /// Opens a file.
    ///
    /// # Errors
    /// `data.empty`, `data.kind`, and `data.parquet` for files that have to be converted first; during reading, `data.gzip`,
    /// `data.encoding` with the first bad byte, and those of the file.
    pub fn open(source: &'a dyn DataSource, partial: bool) -> Result<Self> {
        let mut reader = Self::new(Contents::open(source, partial)?);
        reader.read_more()?;
        reader.begin()?;
        Ok(reader)
    }

    /// Reads a decoded text.
    pub fn of_text(text: String) -> Self {
        Self {
            text,
            ended: true,
            ..Self::new(Contents::empty())
        }
    }

    fn new(inner: Contents<'a>) -> Self {
        Self {
            inner,
            encoding: Encoding::Utf8,
            raw: Vec::new(),
            offset: 0,
            ended: false,
            text: String::new(),
            taken: 0,
            position: 0,
            line: 1,
            newlines: None,
        }
    }

    /// Reads line ends as Python does in text mode: CR LF and CR are LF. Returns what tells, at the end of the file, if there are any.
    pub fn with_newlines(mut self) -> (Self, Seen) {
        let newlines = self.newlines.insert(Newlines::default());
        let found = newlines.found.clone();
        (self, found)
    }

    fn begin(&mut self) -> Result<()> {
        if let Some(refusal) = other_kind(&self.raw, self.inner.name) {
            return Err(refusal.into());
        }
        let mark = match self.raw.as_slice() {
            [0x1f, 0x8b, ..] => {
                return Err(Refusal::new(word!("data.gzip"))
                    .of(self.inner.name)
                    .found("a gzip file in a gzip file")
                    .hint("unpack it: gunzip")
                    .into());
            }
            [b'P', b'A', b'R', b'1', ..] => {
                let hint = "convert it: python -c \"import pandas; pandas.read_parquet('a.parquet').to_json('a.jsonl', orient='records', lines=True)\"";
                let expected = "text, JSON, CSV or token ids";
                return Err(refused(word!("data.parquet"), expected, "a Parquet file")
                    .of(self.inner.name)
                    .hint(hint)
                    .into());
            }
            [] => {
                let refusal = refused(word!("data.empty"), "text or rows", "an empty file");
                return Err(refusal.of(self.inner.name).into());
            }
            [0xef, 0xbb, 0xbf, ..] => 3,
            [0xff, 0xfe, 0, 0, ..] => return Err(self.bad_byte(2, 2)),
            [0xff, 0xfe, ..] => {
                self.encoding = Encoding::Utf16(u16::from_le_bytes);
                2
            }
            [0xfe, 0xff, ..] => {
                self.encoding = Encoding::Utf16(u16::from_be_bytes);
                2
            }
            // UTF-16 without its byte order mark, UTF-32, or not a text at all.
            bytes => match bytes.iter().take(4).position(|byte| *byte == 0) {
                Some(at) => return Err(self.bad_byte(at, at)),
                None => 0,
            },
        };
        self.raw.drain(..mark);
        self.offset = mark;
        Ok(())
    }

    /// Returns the error of a byte that is not of the encoding, by its position in the file and in `raw`.
    fn bad_byte(&self, byte_offset: usize, at: usize) -> Error {
        let byte = self.raw.get(at).copied().unwrap_or_default();
        let looks_like = self.raw.get(at..).and_then(other_encoding);
        Error::DataEncoding {
            file: self.inner.name.to_owned(),
            byte_offset,
            byte,
            looks_like,
        }
    }

    /// Reads more bytes, and detects the end of the file.
    fn read_more(&mut self) -> Result<()> {
        let more = (&mut self.inner)
            .take(READ_BYTES as u64)
            .read_to_end(&mut self.raw);
        self.ended = more.map_err(|error| unreadable(error, self.inner.name))? == 0;
        Ok(())
    }

    /// The decoded text that was not taken yet; empty at the end of the file.
    pub fn fill(&mut self) -> Result<&str> {
        if self.taken == self.text.len() {
            self.text.clear();
            self.taken = 0;
            self.more()?;
        }
        Ok(self.rest())
    }

    /// The decoded text that was not taken yet; empty if more has to be read.
    pub fn rest(&self) -> &str {
        self.text.get(self.taken..).unwrap_or_default()
    }

    /// The part of [`Self::rest`] from the byte `at` on.
    pub fn after(&self, at: usize) -> &str {
        self.rest().get(at..).unwrap_or_default()
    }

    /// Decodes more text, also while there is a rest. Returns false at the end of the file.
    pub fn more(&mut self) -> Result<bool> {
        if self.taken > TAKEN {
            self.text.drain(..self.taken);
            self.taken = 0;
        }
        let before = self.text.len();
        while self.text.len() == before && !(self.ended && self.raw.is_empty()) {
            self.decode()?;
            if !self.ended {
                self.read_more()?;
            }
        }
        Ok(self.text.len() > before)
    }

    /// Moves the text that was not taken yet to the end of `text`, and returns its length in bytes; 0 at the end of the file.
    pub fn move_to(&mut self, text: &mut String) -> Result<usize> {
        let piece = self.fill()?;
        let length = piece.len();
        text.push_str(piece);
        self.take(length);
        Ok(length)
    }

    /// The number of blanks between the beginning of its line and the byte `at` of the rest; `None` if there is anything else.
    pub fn indentation(&self, at: usize) -> Option<usize> {
        let before = self.text.get(..self.taken + at)?;
        let line = before.trim_end_matches([' ', '\t']);
        line.ends_with('\n').then_some(before.len() - line.len())
    }

    /// Decodes the complete characters of `raw`.
    fn decode(&mut self) -> Result<()> {
        let decoded = match self.encoding {
            Encoding::Utf8 => utf8(&self.raw, &mut self.text),
            Encoding::Utf16(unit) => utf16(&self.raw, unit, &mut self.text),
        };
        let done = match decoded {
            Decoded::All => self.raw.len(),
            // The rest of the character follows in the next bytes.
            Decoded::Cut(at) if !self.ended => at,
            Decoded::Cut(_) if self.inner.partial => self.raw.len(),
            Decoded::Cut(at) | Decoded::Bad(at) => {
                return Err(self.bad_byte(self.offset + at, at));
            }
        };
        self.raw.drain(..done);
        self.offset += done;
        if let Some(newlines) = &mut self.newlines {
            newlines.replace(&mut self.text);
        }
        Ok(())
    }

    /// Marks `count` bytes of the rest as taken.
    pub fn take(&mut self, count: usize) {
        let taken = self.rest().bytes().take(count);
        self.line += taken.filter(|byte| *byte == b'\n').count();
        self.position += count as u64;
        self.taken += count;
    }

    /// Skips white space, and returns the byte after it; `None` at the end.
    pub fn skip_blank(&mut self) -> Result<Option<u8>> {
        loop {
            let text = self.fill()?;
            let (length, next) = (text.len(), text.trim_start().bytes().next());
            self.take(length - self.rest().trim_start().len());
            if next.is_some() || length == 0 {
                return Ok(next);
            }
        }
    }

    /// The first character from the byte `at` of the rest on that is no white space; `None` at the end.
    pub fn next_after(&mut self, at: usize) -> Result<Option<char>> {
        loop {
            let next = self.after(at).trim_start().chars().next();
            if next.is_some() || !self.more()? {
                return Ok(next);
            }
        }
    }

    /// Takes everything up to the byte `position` of the decoded text.
    pub fn skip_to(&mut self, position: u64) -> Result<()> {
        while self.position < position {
            let ahead = usize::try_from(position - self.position).unwrap_or(usize::MAX);
            let count = self.fill()?.len().min(ahead);
            if count == 0 {
                break;
            }
            self.take(count);
        }
        Ok(())
    }

    /// Appends the next line without its end to `line`; if it is longer than `most` bytes, only its beginning. Returns its length; `None`
    /// at the end of the file.
    pub fn read_line(&mut self, line: &mut String, most: usize) -> Result<Option<usize>> {
        let (mut length, mut any) = (0, false);
        loop {
            let text = self.fill()?;
            if text.is_empty() {
                break;
            }
            any = true;
            let (part, taken) = text
                .split_once('\n')
                .map_or((text, text.len()), |(part, _)| (part, part.len() + 1));
            if length <= most {
                line.push_str(part);
            }
            length += part.len();
            let ends = taken > part.len();
            self.take(taken);
            if ends {
                break;
            }
        }
        if line.ends_with('\r') {
            line.pop();
        }
        Ok(any.then_some(length))
    }

    /// Tells, after the end of the file, if other bytes follow it.
    pub fn trailing(&self) -> Seen {
        self.inner.trailing.clone()
    }
}

/// Extent to which bytes were decoded.
enum Decoded {
    All,
    /// A character is incomplete from this byte on.
    Cut(usize),
    /// The bytes from here on are not a text.
    Bad(usize),
}

fn utf8(bytes: &[u8], text: &mut String) -> Decoded {
    let error = match std::str::from_utf8(bytes) {
        Ok(all) => {
            text.push_str(all);
            return Decoded::All;
        }
        Err(error) => error,
    };
    let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
    text.push_str(std::str::from_utf8(valid).unwrap_or_default());
    if error.error_len().is_none() {
        Decoded::Cut(valid.len())
    } else {
        Decoded::Bad(valid.len())
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16, text: &mut String) -> Decoded {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut at = 0;
    for decoded in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        let Ok(c) = decoded else {
            return if at + 2 >= 2 * pairs.len() {
                Decoded::Cut(at)
            } else {
                Decoded::Bad(at)
            };
        };
        at += 2 * c.len_utf16();
        text.push(c);
    }
    if rest.is_empty() {
        Decoded::All
    } else {
        Decoded::Cut(at)
    }
}
