//! Finds the end of an element of a JSON array, also of one that is not JSON.

/// Things that may follow in an element.
#[derive(Clone, Copy, Default, PartialEq)]
enum Expected {
    #[default]
    Value,
    Key,
    Colon,
    Comma,
}

/// A token that is not complete.
#[derive(Clone, Copy, Default, PartialEq)]
enum Token {
    #[default]
    None,
    /// A string that ends with this quote.
    String(u8),
    /// A number, a word, or anything else without brackets and quotes.
    Bare,
    /// After `/`.
    Slash,
    /// A comment up to the end of its line.
    Line,
    /// A comment up to `*/`, and true after its `*`.
    Block(bool),
}

/// End of an element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum End {
    /// It ends before this byte, and its brackets and quotes fit.
    Whole(usize),
    /// There is something at the byte where it cannot be: a quote or bracket is missing, or one is too many.
    Broken(usize),
    /// As before, and the byte is the bracket of the next element: the one that closes this one is missing.
    Next(usize),
}

/// Reads an element, byte by byte. Words such as NaN, single quotes, comments and commas too many do not hide its end.
#[derive(Default)]
pub(super) struct Element {
    brackets: Vec<u8>,
    expected: Expected,
    token: Token,
    escaped: bool,
    /// Where the last string or comment began.
    pub last_token: usize,
}

impl Element {
    /// Takes bytes, the first of which is at `at`, up to the end of the element if it is among them.
    pub fn take_all(&mut self, bytes: &[u8], at: usize) -> Option<End> {
        let mut places = bytes.iter().zip(at..);
        places.find_map(|(byte, at)| self.take(*byte, at))
    }

    /// Takes the byte at `at`, after which the end of the element may be known.
    fn take(&mut self, byte: u8, at: usize) -> Option<End> {
        match self.token {
            Token::String(quote) => {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    _ if byte == quote => return self.value_ends(at + 1),
                    _ => {}
                }
                None
            }
            Token::Line => {
                if byte == b'\n' {
                    self.token = Token::None;
                }
                None
            }
            Token::Block(star) => {
                self.token = match byte {
                    b'/' if star => Token::None,
                    _ => Token::Block(byte == b'*'),
                };
                None
            }
            Token::Slash => {
                self.token = match byte {
                    b'/' => Token::Line,
                    b'*' => Token::Block(false),
                    _ => return Some(End::Broken(at)),
                };
                None
            }
            Token::Bare if !byte.is_ascii_whitespace() && !b",:[]{}\"'/".contains(&byte) => None,
            Token::Bare => self.value_ends(at).or_else(|| self.structure(byte, at)),
            Token::None => self.structure(byte, at),
        }
    }

    fn structure(&mut self, byte: u8, at: usize) -> Option<End> {
        let broken = Some(End::Broken(at));
        match (byte, self.expected) {
            _ if byte.is_ascii_whitespace() => {}
            (b'/' | b'#', _) => {
                self.token = match byte {
                    b'#' => Token::Line,
                    _ => Token::Slash,
                };
                self.last_token = at;
            }
            (b'"' | b'\'', Expected::Value | Expected::Key) => {
                self.token = Token::String(byte);
                self.last_token = at;
            }
            (b'{' | b'[', Expected::Value) => {
                self.brackets.push(byte);
                self.expect_item();
            }
            (b'}' | b']', Expected::Value | Expected::Key | Expected::Comma) => {
                let opening = if byte == b'}' { b'{' } else { b'[' };
                if self.brackets.pop() != Some(opening) {
                    return broken;
                }
                self.expected = Expected::Comma;
                return self.brackets.is_empty().then_some(End::Whole(at + 1));
            }
            (b',', Expected::Value | Expected::Key) if !self.brackets.is_empty() => {}
            (b',', Expected::Comma) => self.expect_item(),
            (b':', Expected::Colon) => self.expected = Expected::Value,
            (b'{', Expected::Key | Expected::Comma) if self.brackets == [b'{'] => {
                return Some(End::Next(at));
            }
            (b'"' | b'\'' | b'{' | b'[' | b'}' | b']' | b',' | b':', _)
            | (_, Expected::Colon | Expected::Comma) => return broken,
            (_, Expected::Value | Expected::Key) => self.token = Token::Bare,
        }
        None
    }

    /// Expects what the innermost bracket holds.
    fn expect_item(&mut self) {
        self.expected = match self.brackets.last() {
            Some(b'{') => Expected::Key,
            _ => Expected::Value,
        };
    }

    /// Ends a string or a bare token.
    fn value_ends(&mut self, at: usize) -> Option<End> {
        self.token = Token::None;
        self.expected = match self.expected {
            Expected::Key => Expected::Colon,
            _ => Expected::Comma,
        };
        self.brackets.is_empty().then_some(End::Whole(at))
    }
}
