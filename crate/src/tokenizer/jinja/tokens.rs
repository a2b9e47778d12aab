//! Splits the inside of a template's tags into tokens.

/// Iterator over words, numbers, strings, white space, and all other characters one by one.
pub(super) struct Tokens<'a>(pub(super) &'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let first = self.0.chars().next()?;
        let run = |of: fn(char) -> bool| self.0.find(|c| !of(c)).unwrap_or(self.0.len());
        let length = match first {
            '"' | '\'' => string_length(self.0, first),
            c if c.is_whitespace() => run(char::is_whitespace),
            c if is_word(c) => run(is_word),
            c => c.len_utf8(),
        };
        let (token, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(token)
    }
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length of the string at the beginning of a text, or of the whole text if the string does not end.
fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the position of `closing` outside strings and brackets.
pub(super) fn expression_end(text: &str, closing: &str) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    for token in Tokens(text) {
        if depth == 0 && text.get(at..)?.starts_with(closing) {
            return Some(at);
        }
        match token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += token.len();
    }
    None
}

/// Returns the position of a word outside strings and brackets.
pub(super) fn word_at(text: &str, word: &str) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    for token in Tokens(text) {
        match token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            token if depth == 0 && token == word => return Some(at),
            _ => {}
        }
        at += token.len();
    }
    None
}

/// Returns the length of the bracket expression at the beginning of a text.
pub(super) fn bracket_end(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    for token in Tokens(text) {
        at += token.len();
        match token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    at
}
