//! Text of files as it may be shown: on a page, in a terminal, in a message.

/// Characters of a file's text that a message shows.
const SHOWN: usize = 64;

/// Characters that a terminal or a page would act on instead of showing.
pub(crate) fn unusual(c: char) -> bool {
    c.is_control() || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Text with its acting characters escaped, uncut: for words of our own that may hold a little of a file's.
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

/// Text of a file: at most 64 characters, acting characters escaped.
pub fn shown(text: &str) -> String {
    let mut kept = text.char_indices();
    match kept.nth(SHOWN) {
        Some((end, _)) => escaped(&text[..end]) + "…",
        None => escaped(text),
    }
}
