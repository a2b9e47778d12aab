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
    /// Takes the byte at `at`. Returns the end of the element if it is known now.
    pub fn take(&mut self, byte: u8, at: usize) -> Option<End> {
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
                self.token = if byte == b'\n' {
                    Token::None
                } else {
                    Token::Line
                };
                None
            }
            Token::Block(star) => {
                self.token = if star && byte == b'/' {
                    Token::None
                } else {
                    Token::Block(byte == b'*')
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
                self.token = if byte == b'#' {
                    Token::Line
                } else {
                    Token::Slash
                };
                self.last_token = at;
            }
            (b'"' | b'\'', Expected::Value | Expected::Key) => {
                self.token = Token::String(byte);
                self.last_token = at;
            }
            (b'{' | b'[', Expected::Value) => {
                self.brackets.push(byte);
                self.expected = if byte == b'{' {
                    Expected::Key
                } else {
                    Expected::Value
                };
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
            (b',', Expected::Comma) => {
                self.expected = if self.brackets.last() == Some(&b'{') {
                    Expected::Key
                } else {
                    Expected::Value
                }
            }
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

    /// Ends a string or a bare token.
    fn value_ends(&mut self, at: usize) -> Option<End> {
        self.token = Token::None;
        self.expected = if self.expected == Expected::Key {
            Expected::Colon
        } else {
            Expected::Comma
        };
        self.brackets.is_empty().then_some(End::Whole(at))
    }
}
