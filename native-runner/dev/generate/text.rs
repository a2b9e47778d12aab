//! Texts of generated files.

use serde_json::Value;
use tabtune_border::camel;

/// Returns the text of a file.
pub fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns a text as TypeScript writes it.
pub fn quoted(text: &str) -> String {
    if text.contains('\'') {
        json(&Value::from(text))
    } else {
        format!("'{text}'")
    }
}

/// Returns a word of a setting, which may be a text or a boolean, as TypeScript writes it.
pub fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| json(value), quoted)
}

/// Returns a value as JavaScript's `JSON.stringify` does.
pub fn json(value: &Value) -> String {
    match value.as_f64().filter(|_| value.is_f64()) {
        Some(number) if number == 0.0 || (1e-6..1e21).contains(&number.abs()) => number.to_string(),
        Some(number) => format!("{number:e}"),
        None => value.to_string(),
    }
}

/// Returns a default as the documentation in TypeScript shows it.
pub fn shown(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if number != 0.0 && number.abs() < 1e-3 => format!("{number:e}"),
        _ => word(value),
    }
}

/// Leaves out links to examples, which are in Rust.
pub fn without_examples(text: &str) -> String {
    let mut parts = text.split(" ([example](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |made, part| {
        made + part.split_once("))").map_or("", |(_, rest)| rest)
    })
}

/// Returns Rust's documentation in one line, without links.
pub fn joined(text: &str) -> String {
    without_examples(text)
        .replace('\n', " ")
        .replace("[`", "`")
        .replace("`]", "`")
}

/// Returns Rust's documentation for TypeScript: names in camelCase, except for quoted ones, which are data; lines joined, no links.
pub fn documentation(text: &str) -> String {
    let text = joined(text);
    let mut made = String::new();
    let mut rest = text.as_str();
    let in_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    while let Some(letter) = rest.chars().next() {
        let end = if in_word(letter) {
            rest.find(|letter| !in_word(letter)).unwrap_or(rest.len())
        } else {
            letter.len_utf8()
        };
        let (word, after) = rest.split_at(end);
        let is_name = word.split('_').all(|part| !part.is_empty())
            && !word.contains(|letter: char| letter.is_ascii_uppercase());
        if is_name && in_word(letter) && !made.ends_with('"') {
            made.push_str(&camel(word));
        } else {
            made.push_str(word);
        }
        rest = after;
    }
    made
}

/// Returns a row of a table of a document.
pub fn row(cells: &[&str]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// Returns text for a cell of a table.
pub fn in_table(text: &str) -> String {
    let text = text.replace('\n', " ").replace('|', "\\|");
    text.strip_suffix('.').unwrap_or(&text).to_owned()
}
