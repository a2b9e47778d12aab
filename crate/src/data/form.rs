//! The form of a data file, found by its bytes; its name is a hint.

use serde_json::Value;

use super::rows::{as_whole, delimiter_of, one_array};
use crate::config::Form;
use crate::error::{Error, Refusal, Result, word};

/// Complete lines that are looked at to tell JSON lines from a text.
const LINES: usize = 20;

/// The form that the end of a name speaks of. A query and the end of a packed file are left out.
pub(super) fn hint_of(name: &str) -> Option<Form> {
    let name = name.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    Some(match name.rsplit_once('.')?.1 {
        "jsonl" | "ndjson" => Form::Jsonl,
        "json" => Form::Json,
        "csv" => Form::Csv,
        "tsv" => Form::Tsv,
        "tokens" => Form::Tokens,
        "txt" | "md" | "text" => Form::Text,
        _ => return None,
    })
}

/// The form of a text. What is broken has the form that its name speaks of.
pub(super) fn form_of(text: &str, hint: Option<Form>) -> Form {
    let start = text.trim_start();
    if start.starts_with('{') {
        return match as_whole(text) {
            Some(whole) if one_array(&whole).is_some() || lines(text).count() > 1 || hint != Some(Form::Jsonl) => Form::Json,
            _ if of_objects(text, hint) => Form::Jsonl,
            _ if hint == Some(Form::Json) => Form::Json,
            _ => Form::Text,
        };
    }
    if let Some(inside) = start.strip_prefix('[') {
        let inside = inside.trim_start();
        let mut first = serde_json::Deserializer::from_str(inside).into_iter::<Value>();
        let is_rows = inside.starts_with('{') && matches!(first.next(), Some(Ok(Value::Object(_))));
        return if is_rows || hint == Some(Form::Json) { Form::Json } else { Form::Text };
    }
    match delimiter_of(text, hint) {
        Some(b'\t') => Form::Tsv,
        Some(_) => Form::Csv,
        None => Form::Text,
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty())
}

/// Tells JSON lines: most of the first lines are objects, so that a faulty one among them is found as such; or, where the name speaks of them,
/// one begins as an object.
fn of_objects(text: &str, hint: Option<Form>) -> bool {
    let is_object = |line: &&str| matches!(serde_json::from_str::<Value>(line), Ok(Value::Object(_)));
    if hint == Some(Form::Jsonl) {
        return lines(text).take(LINES).any(|line| line.trim_start().starts_with('{'));
    }
    2 * lines(text).take(LINES).filter(is_object).count() > lines(text).take(LINES).count()
}

/// The text of a file, or of the `partial` beginning of one: UTF-8 without its mark, or UTF-16 that begins with one.
///
/// # Errors
/// `data.encoding` with the first bad byte; `data.gzip` and `data.parquet` for files that a person has to unpack or convert first.
pub(super) fn decoded(bytes: &[u8], file: &str, partial: bool) -> Result<String> {
    let refuse = |word| Refusal::new(word).of(file);
    match bytes {
        [0x1f, 0x8b, ..] => Err(refuse(word!("data.gzip")).found("a gzip file").hint("unpack it: gunzip").into()),
        [b'P', b'A', b'R', b'1', ..] => {
            let hint = "convert it: python -c \"import pandas; pandas.read_parquet('a.parquet').to_json('a.jsonl', orient='records', lines=True)\"";
            Err(refuse(word!("data.parquet")).found("a Parquet file").expected("text, JSON, CSV or token ids").hint(hint).into())
        }
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes, file, partial),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes, file, partial),
        _ => {
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            match std::str::from_utf8(bytes) {
                Ok(text) => Ok(text.to_owned()),
                // The end may lie within a character.
                Err(error) if partial && error.error_len().is_none() => {
                    Ok(String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default()).into_owned())
                }
                Err(error) => Err(not_utf8(error.valid_up_to(), file)),
            }
        }
    }
}

fn not_utf8(byte_offset: usize, file: &str) -> Error {
    Error::DataEncoding { file: file.to_owned(), byte_offset }
}

fn utf16(bytes: &[u8], unit: impl Fn([u8; 2]) -> u16, file: &str, partial: bool) -> Result<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len());
    let mut offset = 2;
    for decoded in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        let Ok(c) = decoded else {
            let cut = partial && offset + 2 >= bytes.len();
            return if cut { Ok(text) } else { Err(not_utf8(offset, file)) };
        };
        offset += 2 * c.len_utf16();
        text.push(c);
    }
    if rest.is_empty() || partial { Ok(text) } else { Err(not_utf8(offset, file)) }
}
