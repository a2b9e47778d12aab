//! Rows whose columns a person names.

use serde_json::Value;

use super::super::messages::{Chat, chat, from_share, messages_of};
use super::{ReadRow, RowContent, kind};
use crate::config::Columns;
use crate::data::read::{Fields, listed, refused};
use crate::error::{Result, shown, word};

/// Reads a row by the columns that are named for it.
pub(super) fn by_columns(row: &Fields, columns: &Columns, with_template: bool) -> Result<ReadRow> {
    if let Some(both) = lists_of(row, columns)? {
        return Ok(both);
    }
    if let Some(name) = &columns.messages {
        let messages = from_share(&messages_of(row, name)?, None)?;
        return Ok(ReadRow::of_chat(chat(row, &messages, 0)?, &[name]));
    }
    let mut used = Vec::new();
    let mut get = |column: &Option<String>| {
        let pattern = column.as_ref();
        pattern
            .map(|pattern| filled(pattern, row, &mut used))
            .transpose()
    };
    let content = if let Some(text) = get(&columns.text)? {
        RowContent::Document(text)
    } else {
        let (prompt, completion) = (
            get(&columns.prompt)?.unwrap_or_default(),
            get(&columns.completion)?.unwrap_or_default(),
        );
        // An empty cell of a table is no system message.
        match get(&columns.system)? {
            Some(system) if with_template => {
                let system = Some(("system", system)).filter(|(_, text)| !text.is_empty());
                let turn = [("user", prompt), ("assistant", completion)];
                RowContent::Chat(Chat::of_texts(system.into_iter().chain(turn)))
            }
            None => RowContent::Completion { prompt, completion },
            Some(system) => RowContent::Completion {
                prompt: format!("{system}\n\n{prompt}"),
                completion,
            },
        }
    };
    Ok(ReadRow {
        content,
        used,
        alpaca: false,
    })
}

/// Reads prompt and completion as lists of messages by their columns, if they are lists.
fn lists_of(row: &Fields, columns: &Columns) -> Result<Option<ReadRow>> {
    let (Some(prompt), Some(completion)) = (&columns.prompt, &columns.completion) else {
        return Ok(None);
    };
    let (Some(Value::Array(asked)), Some(Value::Array(said))) =
        (row.get(prompt), row.get(completion))
    else {
        return Ok(None);
    };
    let chat = chat(row, &[asked.as_slice(), said].concat(), asked.len())?;
    Ok(Some(ReadRow::of_chat(chat, &[prompt, completion])))
}

/// Returns the value of a column: that of a key, or a pattern filled with the values of its keys.
fn filled(pattern: &str, row: &Fields, used: &mut Vec<String>) -> Result<String> {
    let mut value = |key: &str| -> Result<String> {
        used.push(key.to_owned());
        match row.get(key) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(number @ (Value::Number(_) | Value::Bool(_))) => Ok(number.to_string()),
            other => {
                let found =
                    other.map_or_else(|| listed(row), |value| format!("{} there", kind(value)));
                let expected = format!("a text by the key {}", shown(key));
                Err(refused(word!("data.columns"), expected, found).into())
            }
        }
    };
    if !pattern.contains(['{', '}']) || row.contains_key(pattern) {
        return value(pattern);
    }
    let (mut text, mut rest) = (String::new(), pattern);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        text.push_str(before);
        let twice = ["{{", "}}"]
            .into_iter()
            .find_map(|two| brace.strip_prefix(two));
        let inside = brace
            .strip_prefix('{')
            .and_then(|inside| inside.split_once('}'));
        rest = if let Some(after) = twice {
            text.push_str(&brace[..1]);
            after
        } else if let Some((key, after)) = inside {
            text.push_str(&value(key)?);
            after
        } else {
            let expected = "a pattern with names in braces, {{ and }} for braces";
            return Err(refused(word!("data.columns"), expected, shown(pattern)).into());
        };
    }
    Ok(text + rest)
}
