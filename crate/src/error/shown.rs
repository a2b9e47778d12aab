//! Makes text from files safe to show on a page, in a terminal and in messages.

/// Maximum number of characters of a file's text in a message.
const SHOWN: usize = 64;

/// Noncharacters before a code, before each of its values, and after the last one. Text of a file has none of them.
pub(super) const MARKS: [char; 3] = ['\u{fdd0}', '\u{fdd1}', '\u{fdd2}'];

/// Returns whether a terminal or a page would act on a character instead of showing it.
pub(crate) fn unusual(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Escapes the characters of a text that a terminal or page would act on, without shortening it: for our own messages, which may contain
/// text of a file.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if unusual(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Shortens text of a file to at most 64 characters and escapes those that a terminal or page would act on.
pub fn shown(text: &str) -> String {
    let mut kept = text.char_indices();
    let unmarked = |text: &str| escaped(&text.replace(MARKS, "\u{fffd}"));
    match kept.nth(SHOWN) {
        Some((end, _)) => unmarked(&text[..end]) + "…",
        None => unmarked(text),
    }
}
