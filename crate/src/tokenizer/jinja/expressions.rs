//! Rewrites expressions: slices, formats, tuples, continued strings and the unary plus.

use super::tokens::{Tokens, bracket_end, is_word, word_at};

/// Keywords after which no operand has ended.
const KEYWORDS: [&str; 8] = ["and", "or", "not", "in", "is", "if", "else", "elif"];

/// Name of the method that [`super::methods::method`] calls for a slice.
pub(super) const SLICE: &str = "slice__";

/// Name of the method that [`super::text::method`] calls for `%` after a text.
pub(super) const PERCENT: &str = "percent__";

/// Filter that makes a value a text.
const TEXT: &str = "|string";

/// Rewrites the inside of `{{ … }}`.
pub(super) fn output(inner: &str) -> String {
    let mut tokens = Tokens(inner);
    let Written { parts, tuple } = expression(&mut tokens, None);
    let written = parts.join(":");
    match tuple {
        true => format!(" ({written})"),
        false => written,
    }
}

/// Rewrites a whole expression.
fn whole(text: &str) -> String {
    expression(&mut Tokens(text), None).parts.join(":")
}

/// Rewrites the inside of `{% … %}`.
pub(super) fn statement(inner: &str) -> String {
    let is_loop = inner.split_whitespace().next() == Some("for");
    let Some(at) = word_at(inner, "in").filter(|_| is_loop) else {
        return whole(inner);
    };
    let (targets, rest) = inner.split_at(at + 2);
    let ends = ["if", "recursive"]
        .iter()
        .filter_map(|word| word_at(rest, word));
    let (iterable, condition) = rest.split_at(ends.min().unwrap_or(rest.len()));
    let [iterable, condition] = [iterable, condition].map(whole);
    match iterable.trim() {
        "" => inner.to_owned(),
        _ => format!("{targets} ({iterable})|iterated {condition}"),
    }
}

/// An expression up to its closing bracket: its parts between colons, and true if it contains commas.
struct Written {
    parts: Vec<String>,
    tuple: bool,
}

fn expression(tokens: &mut Tokens<'_>, closing: Option<&str>) -> Written {
    let (mut parts, mut part, mut tuple, mut operand) = (Vec::new(), String::new(), false, false);
    while let Some(token) = tokens.next().filter(|token| Some(*token) != closing) {
        match token {
            "[" if operand => {
                let inner = expression(tokens, Some("]")).parts;
                match inner.as_slice() {
                    [index] => part.extend(["[", index, "]"]),
                    bounds => {
                        let bounds = bounds.iter().map(|bound| match bound.trim() {
                            "" => "none",
                            _ => bound.as_str(),
                        });
                        let bounds = bounds.collect::<Vec<_>>().join(",");
                        part.extend([".", SLICE, "(", &bounds, ")"]);
                    }
                }
            }
            "(" | "[" | "{" => {
                let close = match token {
                    "(" => ")",
                    "[" => "]",
                    _ => "}",
                };
                let inner = expression(tokens, Some(close)).parts.join(":");
                part.extend([token, &inner, close]);
                operand = true;
            }
            ":" => {
                parts.push(std::mem::take(&mut part));
                operand = false;
            }
            "+" if !operand => {}
            "~" => {
                concatenated(&mut part, tokens, operand);
                operand = true;
            }
            token if token.trim().is_empty() => part.push_str(token),
            token if token.starts_with(['"', '\'']) => {
                part.push_str(&without_continued_lines(token));
                operand = true;
                let mut after = Tokens(tokens.0.trim_start());
                if after.next() == Some("%") {
                    let values = operand_of(&mut after);
                    part.extend([".", PERCENT, "(", &values, ")"]);
                    *tokens = after;
                }
            }
            token => {
                part.push_str(token);
                operand = token.starts_with(is_word) && !KEYWORDS.contains(&token);
                tuple |= token == ",";
            }
        }
    }
    parts.push(part);
    Written { parts, tuple }
}

/// Writes `~` between operands that become texts as in Python: the engine writes floats otherwise. Factors of a product are left as they are.
fn concatenated(part: &mut String, tokens: &mut Tokens<'_>, operand: bool) {
    let left = part.trim_end();
    let is_text = |operand: &str| operand.ends_with(['"', '\'']) || operand.ends_with(TEXT);
    let last = left
        .trim_end_matches(|c: char| is_word(c) || ".()[]{}\"'".contains(c))
        .trim_end();
    if operand && !is_text(left) && !last.ends_with(['*', '/', '%', '-']) {
        part.push_str(TEXT);
    }
    part.push('~');
    let mut after = Tokens(tokens.0);
    let mut right = operand_of(&mut after);
    if right.trim().is_empty() {
        return;
    }
    while let Some(rest) = after.0.trim_start().strip_prefix('|') {
        after.0 = rest;
        right.extend(["|", &operand_of(&mut after)]);
    }
    let factor = after.0.trim_start().starts_with(['*', '/', '%']);
    part.push_str(&right);
    part.push_str(if factor || is_text(&right) { "" } else { TEXT });
    *tokens = after;
}

/// Reads the operand at the beginning of a text: a word, a string or a bracket, with the attributes, calls and indices after it.
fn operand_of(tokens: &mut Tokens<'_>) -> String {
    let text = tokens.0.trim_start();
    let mut length = 0;
    loop {
        let rest = &text[length..];
        let Some(token) = Tokens(rest).next() else {
            break;
        };
        let postfix = length > 0;
        length += match token {
            "(" | "[" | "{" if !postfix || token != "{" => bracket_end(rest),
            "." | "-" if postfix == (token == ".") => {
                1 + Tokens(&rest[1..]).next().map_or(0, str::len)
            }
            token if !postfix && token.starts_with(|c| is_word(c) || c == '"' || c == '\'') => {
                token.len()
            }
            _ => break,
        };
    }
    let (operand, rest) = text.split_at(length);
    tokens.0 = rest;
    whole(operand)
}

/// Returns a string without the line ends that follow a backslash.
fn without_continued_lines(token: &str) -> String {
    let (mut result, mut characters) = (String::with_capacity(token.len()), token.chars());
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some('\n') => {}
                next => result.extend(std::iter::once('\\').chain(next)),
            },
            _ => result.push(c),
        }
    }
    result
}
