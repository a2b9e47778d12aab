//! Escapes of characters, and the names of properties.

use super::{Result, unsaid};

const CODE: &str = "the number of a character is expected; write \\x{…}";
const CONTROL: &str = "write the control character as \\x{…}";
const BYTE: &str = "bytes above \\x7F are not read apart; write the character as \\x{…}";

/// Oniguruma's word characters; in a class it does not count the fractions and superscripts of Latin-1 to them.
macro_rules! word {
    ($($sign:literal)?) => {
        concat!("[", $($sign,)? "\\w\u{B2}\u{B3}\u{B9}\u{BC}-\u{BE}--[\\x{200C}\\x{200D}]]")
    };
}
pub(super) use word;

/// The set that matches nothing.
pub(super) const NOTHING: &str = "[^\\x00-\\x{10FFFF}]";

/// Reader of an expression, character by character.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    pub fn rest(&self) -> &'a str {
        self.rest
    }

    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    /// Passes over `count` bytes.
    pub fn pass(&mut self, count: usize) {
        self.rest = &self.rest[count..];
    }

    /// Passes over `text` if it comes next.
    pub fn take(&mut self, text: &str) -> bool {
        self.rest
            .strip_prefix(text)
            .map(|rest| self.rest = rest)
            .is_some()
    }

    /// Reads up to `most` digits; `None` for none, or more than fit.
    pub fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let digits = self
            .rest
            .chars()
            .take(most)
            .take_while(|c| c.is_digit(radix));
        let (digits, rest) = self.rest.split_at(digits.count());
        let value = u32::from_str_radix(digits, radix).ok()?;
        self.rest = rest;
        Some(value)
    }

    /// Reads what follows a backslash and is for one character: `escape` is the character after it, already read.
    pub fn character(&mut self, escape: char) -> Result<char> {
        match escape {
            'n' => Ok('\n'),
            't' => Ok('\t'),
            'r' => Ok('\r'),
            'f' => Ok('\u{C}'),
            'v' => Ok('\u{B}'),
            'a' => Ok('\u{7}'),
            'b' => Ok('\u{8}'),
            'e' => Ok('\u{1B}'),
            'x' | 'o' if self.peek() == Some('{') => {
                let (radix, most) = if escape == 'x' { (16, 8) } else { (8, 11) };
                let before = self.clone();
                self.next();
                let Some(code) = self.digits(radix, most) else {
                    *self = before;
                    return Ok(escape);
                };
                match char::from_u32(code) {
                    Some(char) if self.take("}") => Ok(char),
                    _ => unsaid(format!("\\{escape}{{{code:X}"), CODE),
                }
            }
            // At the end of the expression they stand for themselves.
            'x' if self.peek().is_some() => {
                let first = self.digits(16, 2).unwrap_or(0);
                self.utf8(first, |reader| {
                    reader.take("\\x").then(|| reader.digits(16, 2)).flatten()
                })
            }
            'u' if self.peek().is_some() => {
                let before = self.rest;
                let code = self
                    .digits(16, 4)
                    .filter(|_| before.len() - self.rest.len() == 4);
                code.and_then(char::from_u32)
                    .map_or_else(|| unsaid("\\u", CODE), Ok)
            }
            '0' => {
                let code = self.digits(8, 2).unwrap_or(0);
                self.utf8(code, |_| None)
            }
            '1'..='7' => {
                let code = self.octal_from(escape);
                self.utf8(code, |reader| {
                    reader.take("\\").then(|| reader.digits(8, 3)).flatten()
                })
            }
            'c' => self.control("\\c"),
            'C' if self.take("-") => self.control("\\C-"),
            'C' => unsaid("\\C", CONTROL),
            'M' => unsaid("\\M", BYTE),
            other => Ok(other),
        }
    }

    /// Reads up to two digits of the number that begins with `first`.
    fn octal_from(&mut self, first: char) -> u32 {
        let mut code = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            code = self.digits(8, 1).map_or(code, |digit| code * 8 + digit);
        }
        code
    }

    /// Returns the character whose bytes in UTF-8 are `first` and what `more` reads.
    fn utf8(&mut self, first: u32, mut more: impl FnMut(&mut Self) -> Option<u32>) -> Result<char> {
        let count = match first {
            0..=0x7F => 1,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => return unsaid(format!("\\x{first:02X}"), BYTE),
        };
        let mut bytes = vec![first as u8];
        while bytes.len() < count
            && let Some(byte) = more(self).and_then(|byte| u8::try_from(byte).ok())
        {
            bytes.push(byte);
        }
        let char = std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| text.chars().next());
        char.map_or_else(|| unsaid(format!("\\x{first:02X}"), BYTE), Ok)
    }

    fn control(&mut self, found: &str) -> Result<char> {
        match self.next() {
            Some('?') => Ok('\u{7F}'),
            Some(char) if char.is_ascii() && char != '\\' => Ok(char::from(char as u8 & 0x1F)),
            _ => unsaid(found, CONTROL),
        }
    }

    /// Reads the set that `escape` is for, if it does, as text for the engine.
    pub fn set(&mut self, escape: char, in_class: bool) -> Result<Option<String>> {
        let text = match escape {
            'w' | 'W' => word_set(escape == 'W', in_class),
            'd' => "\\d",
            'D' => "\\D",
            's' => "\\s",
            'S' => "\\S",
            'h' => "[0-9A-Fa-f]",
            'H' => "[^0-9A-Fa-f]",
            'p' | 'P' if self.peek() == Some('{') => {
                let inner = self.rest[1..].split_once('}');
                let is_name = |(name, _): &(&str, &str)| !name.contains(['(', ')', '{', '|']);
                let Some((name, rest)) = inner.filter(is_name) else {
                    return unsaid("\\p{", "the name of a property ends with }");
                };
                self.rest = rest;
                let opposite = name.strip_prefix('^');
                let negated = (escape == 'P') != opposite.is_some();
                return property(opposite.unwrap_or(name), negated, in_class).map(Some);
            }
            _ => return Ok(None),
        };
        Ok(Some(text.to_owned()))
    }
}

/// Returns the property `name` as text for the engine, whose names have other meanings here and there.
fn property(name: &str, negated: bool, in_class: bool) -> Result<String> {
    let plain = name.replace([' ', '-', '_'], "").to_ascii_lowercase();
    Ok(match plain.as_str() {
        "word" => word_set(negated, in_class).to_owned(),
        "posixpunct" => posix("punct", negated).unwrap_or_default(),
        // There are none in a text.
        "cs" | "surrogate" => (if negated { "(?s:.)" } else { NOTHING }).to_owned(),
        _ if plain.chars().any(|c| !c.is_ascii_alphanumeric())
            || plain.is_empty()
            || plain.starts_with("is") =>
        {
            return unsaid(
                format!("\\p{{{name}}}"),
                "no property of this name is known",
            );
        }
        other => {
            let own = || format!("\\{}{{{plain}}}", if negated { 'P' } else { 'p' });
            posix(other, negated)
                .filter(|_| other != "punct")
                .unwrap_or_else(own)
        }
    })
}

/// The set of the word characters, or of all others.
fn word_set(negated: bool, in_class: bool) -> &'static str {
    match (in_class, negated) {
        (true, false) => "[\\w--[\\x{200C}\\x{200D}]]",
        (true, true) => "[^\\w--[\\x{200C}\\x{200D}]]",
        (false, false) => word!(),
        (false, true) => word!("^"),
    }
}

/// Returns the set of a bracket `[:name:]`.
pub(super) fn posix(name: &str, negated: bool) -> Option<String> {
    let inner = match name {
        "alnum" => "\\p{Alphabetic}\\p{Nd}",
        "alpha" => "\\p{Alphabetic}",
        "ascii" => "\\x00-\\x7F",
        "blank" => "\\p{Zs}\\t",
        "cntrl" => "\\p{Cc}",
        "digit" => "\\p{Nd}",
        "lower" => "\\p{Lowercase}",
        "punct" => "\\p{P}\\p{S}",
        "space" => "\\s",
        "upper" => "\\p{Uppercase}",
        "xdigit" => "0-9A-Fa-f",
        "word" => return Some(word_set(negated, true).to_owned()),
        // These are given by the others.
        "graph" => "\\s\\p{Cc}\\p{Cn}",
        "print" => "\\p{Cc}\\p{Cn}\\p{Zl}\\p{Zp}",
        _ => return None,
    };
    let of_others = matches!(name, "graph" | "print");
    Some(format!(
        "[{}{inner}]",
        if negated != of_others { "^" } else { "" }
    ))
}

/// Writes a character that is for itself, in a class or outside.
pub(super) fn pushed(out: &mut String, char: char) {
    match char.is_ascii_alphanumeric() || !char.is_ascii() {
        true => out.push(char),
        false => coded(out, char),
    }
}

/// Writes a character by its number.
pub(super) fn coded(out: &mut String, char: char) {
    out.push_str(&format!("\\x{{{:X}}}", u32::from(char)));
}
