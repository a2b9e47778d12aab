//! Fields of a `config.json` changed in place: every other byte of the document stays.

use std::ops::Range;

use crate::error::{Error, Refusal, Result, word};

const DTYPES: [&str; 2] = ["torch_dtype", "dtype"];

/// The document with the dtype word of the weights as they are written, and the rows of their table as `vocab_size`. The dtype goes where
/// the document has one (`torch_dtype`, `dtype` or both), else to a new `torch_dtype` in front.
pub fn edited_config(document: &[u8], dtype: &str, vocab_size: usize) -> Result<Vec<u8>> {
    let broken = || Error::from(Refusal::new(word!("bundle.config.json")).of("config.json").expected("a JSON object"));
    let text = std::str::from_utf8(document).map_err(|_| broken())?;
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).map_err(|_| broken())?;
    let fields = fields(text).ok_or_else(broken)?;
    let word = format!("\"{dtype}\"");
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let has_dtype = fields.iter().any(|(key, _)| DTYPES.contains(&key.as_str()));
    for (key, value) in fields {
        let new = match key.as_str() {
            key if DTYPES.contains(&key) => word.clone(),
            "vocab_size" => vocab_size.to_string(),
            _ => continue,
        };
        edits.push((value, new));
    }
    if !has_dtype {
        let open = text.find('{').ok_or_else(broken)? + 1;
        let rest = &text[open..];
        let space = &rest[..rest.len() - rest.trim_start().len()];
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        edits.insert(0, (open..open, format!("{space}\"torch_dtype\": {word}{comma}")));
    }
    let mut out = String::with_capacity(text.len() + 32);
    let mut from = 0;
    for (range, new) in edits {
        out.push_str(&text[from..range.start]);
        out.push_str(&new);
        from = range.end;
    }
    out.push_str(&text[from..]);
    Ok(out.into_bytes())
}

/// Keys of the outermost object of a valid JSON text, and the byte ranges of their values.
fn fields(text: &str) -> Option<Vec<(String, Range<usize>)>> {
    let bytes = text.as_bytes();
    let space = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        at
    };
    let mut out = Vec::new();
    let mut at = space(0) + 1;
    loop {
        at = space(at);
        if bytes.get(at)? == &b'}' {
            return Some(out);
        }
        let key = at..text_end(bytes, at)?;
        let value = space(space(key.end) + 1);
        let end = value_end(bytes, value)?;
        out.push((serde_json::from_str(text.get(key)?).ok()?, value..end));
        at = space(end);
        at += usize::from(bytes.get(at)? == &b',');
    }
}

/// The end of the text that begins at `at`.
fn text_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The end of the value that begins at `at`.
fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    let (mut depth, mut at) = (0usize, at);
    loop {
        match bytes.get(at)? {
            b'"' => at = text_end(bytes, at)?,
            b'{' | b'[' => (depth, at) = (depth + 1, at + 1),
            b'}' | b']' if depth > 0 => (depth, at) = (depth - 1, at + 1),
            byte if depth > 0 || !(byte.is_ascii_whitespace() || matches!(byte, b',' | b'}')) => {
                at += 1;
                let plain = |byte: &u8| !(byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']'));
                while depth == 0 && bytes.get(at).is_some_and(plain) {
                    at += 1;
                }
            }
            _ => return None,
        }
        if depth == 0 {
            return Some(at);
        }
    }
}
