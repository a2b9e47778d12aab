//! Changes fields of a JSON document in place: every other byte of the document stays.

use std::ops::Range;

use super::FAMILIES;
use crate::error::{Error, Refusal, Result, word};

const CONFIG: &str = "config.json";
const DTYPES: [&str; 2] = ["torch_dtype", "dtype"];
/// Key of the place where the document's maker had the model that this one was made from: often a path of a stranger, never this model.
const PLACE: &str = "_name_or_path";

/// Returns the document with the dtype word of the weights as they are written, the rows of their table as `vocab_size`, and with its head as
/// `tied` states. The dtype goes where the document has one (`torch_dtype`, `dtype` or both), else into a new `torch_dtype` in front. If the
/// document does not state whether the head is tied, and a reader would assume the opposite, that is added too. `_name_or_path` is left out.
///
/// # Errors
/// `bundle.config.json` if the document is no JSON object.
pub fn edited_config(
    document: &[u8],
    dtype: &str,
    vocab_size: usize,
    tied: bool,
) -> Result<Vec<u8>> {
    let word = format!("\"{dtype}\"");
    let (mut has_dtype, mut has_tied, mut ties_unsaid) = (false, false, false);
    let given = object(document, CONFIG)?;
    let edits = |key: &str| match key {
        "vocab_size" => Some(vocab_size.to_string()),
        "tie_word_embeddings" => Some(tied.to_string()),
        key => DTYPES.contains(&key).then(|| word.clone()),
    };
    for (key, value) in &given {
        has_dtype |= DTYPES.contains(&key.as_str());
        has_tied |= key == "tie_word_embeddings";
        ties_unsaid |= key == "model_type"
            && FAMILIES
                .iter()
                .any(|family| family.tied && family.model_types.iter().any(|word| value == word));
    }
    let mut added = Vec::new();
    if !has_dtype {
        added.push(("torch_dtype", word.clone()));
    }
    if !has_tied && tied != ties_unsaid {
        added.push(("tie_word_embeddings", tied.to_string()));
    }
    edited(document, CONFIG, &edits, &added, &[PLACE])
}

/// Returns the fields of a document that is a JSON object.
pub(crate) fn object(
    document: &[u8],
    name: &str,
) -> Result<serde_json::Map<String, serde_json::Value>> {
    serde_json::from_slice(document).map_err(|_| broken(name))
}

fn broken(name: &str) -> Error {
    Refusal::new(word!("bundle.config.json"))
        .of(name)
        .expected("a JSON object")
        .into()
}

/// Returns the document with the values that `edits` gives for its keys, with `added` in front, and without the keys in `dropped`. Every other
/// byte stays.
pub(crate) fn edited(
    document: &[u8],
    name: &str,
    edits: &dyn Fn(&str) -> Option<String>,
    added: &[(&str, String)],
    dropped: &[&str],
) -> Result<Vec<u8>> {
    object(document, name)?;
    let text = std::str::from_utf8(document).map_err(|_| broken(name))?;
    let fields = fields(text).ok_or_else(|| broken(name))?;
    let is_dropped = |field: &Field| dropped.contains(&field.key.as_str());
    let empty = fields.iter().all(is_dropped);
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    if !added.is_empty() {
        let open = text.find('{').ok_or_else(|| broken(name))? + 1;
        let rest = &text[open..];
        let space = &rest[..rest.len() - rest.trim_start().len()];
        let pairs: Vec<String> = added
            .iter()
            .map(|(key, value)| format!("{space}\"{key}\": {value}"))
            .collect();
        changes.push((open..open, pairs.join(",") + if empty { "" } else { "," }));
    }
    changes.extend(
        cuts(&fields, &is_dropped)
            .into_iter()
            .map(|cut| (cut, String::new())),
    );
    let kept = fields.iter().filter(|field| !is_dropped(field));
    changes.extend(kept.filter_map(|field| Some((field.value.clone(), edits(&field.key)?))));
    changes.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len() + 64);
    let mut from = 0;
    for (range, new) in changes {
        out.push_str(&text[from..range.start]);
        out.push_str(&new);
        from = range.end;
    }
    out.push_str(&text[from..]);
    Ok(out.into_bytes())
}

/// Returns the byte ranges without which a document lacks the dropped fields, and one comma for each of them unless it has no other field.
fn cuts(fields: &[Field], is_dropped: &dyn Fn(&Field) -> bool) -> Vec<Range<usize>> {
    let last = fields.iter().rposition(|field| !is_dropped(field));
    let (inner, after) = fields.split_at(last.map_or(0, |last| last + 1));
    // Before another field that stays, the comma follows; behind the last one that stays, it precedes.
    let mut cuts: Vec<Range<usize>> = inner
        .windows(2)
        .filter(|pair| is_dropped(&pair[0]))
        .map(|pair| pair[0].begin..pair[1].begin)
        .collect();
    if let (Some(first), Some(end)) = (after.first(), after.last()) {
        cuts.push(inner.last().map_or(first.begin, |kept| kept.value.end)..end.value.end);
    }
    cuts
}

/// A field of an object in a JSON text.
struct Field {
    key: String,
    /// Position of the key.
    begin: usize,
    /// Byte range of the value.
    value: Range<usize>,
}

/// Returns the fields of the outermost object of a valid JSON text.
fn fields(text: &str) -> Option<Vec<Field>> {
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
        out.push(Field {
            begin: key.start,
            key: serde_json::from_str(text.get(key)?).ok()?,
            value: value..end,
        });
        at = space(end);
        at += usize::from(bytes.get(at)? == &b',');
    }
}

/// Returns the end of the text that begins at `at`.
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

/// Returns the end of the value that begins at `at`.
fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    let (mut depth, mut at) = (0usize, at);
    loop {
        match bytes.get(at)? {
            b'"' => at = text_end(bytes, at)?,
            b'{' | b'[' => (depth, at) = (depth + 1, at + 1),
            b'}' | b']' if depth > 0 => (depth, at) = (depth - 1, at + 1),
            byte if depth > 0 || !(byte.is_ascii_whitespace() || matches!(byte, b',' | b'}')) => {
                at += 1;
                let plain =
                    |byte: &u8| !(byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']'));
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
