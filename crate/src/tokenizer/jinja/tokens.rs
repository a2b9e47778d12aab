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

/// The tokens of a text, each with its position, and the number of brackets around what comes before it.
fn nested(text: &str) -> impl Iterator<Item = (&str, usize, usize)> {
    let (mut depth, mut at) = (0_usize, 0);
    Tokens(text).map(move |token| {
        let before = (token, at, depth);
        at += token.len();
        match token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        before
    })
}

/// The position of `closing` outside strings and brackets.
pub(super) fn expression_end(text: &str, closing: &str) -> Option<usize> {
    let mut outside = nested(text)
        .filter(|(_, _, depth)| *depth == 0)
        .map(|(_, at, _)| at);
    outside.find(|at| text[*at..].starts_with(closing))
}

/// The position of a word outside strings and brackets.
pub(super) fn word_at(text: &str, word: &str) -> Option<usize> {
    let found = nested(text).find(|(token, _, depth)| *depth == 0 && *token == word);
    found.map(|(_, at, _)| at)
}

/// The length of the bracket expression at the beginning of a text.
pub(super) fn bracket_end(text: &str) -> usize {
    let after = nested(text).skip(1).find(|(_, _, depth)| *depth == 0);
    after.map_or(text.len(), |(_, at, _)| at)
}
