//! Rows whose columns a person names.

use serde_json::Value;

use super::super::messages::{Chat, chat, from_share, messages_of};
use super::{Fields, ReadRow, RowContent, kind};
use crate::config::Columns;
use crate::data::read::listed;
use crate::error::{Refusal, Result, shown, word};

/// Reads a row by the columns that are named for it.
pub(super) fn by_columns(row: &Fields, columns: &Columns, with_template: bool) -> Result<ReadRow> {
    if let Some(both) = lists_of(row, columns)? {
        return Ok(both);
    }
    let mut used = Vec::new();
    let mut get = |column: &Option<String>| {
        column
            .as_ref()
            .map(|pattern| filled(pattern, row, &mut used))
            .transpose()
    };
    let content = if let Some(name) = &columns.messages {
        used.extend([
            name.clone(),
            "tools".into(),
            "documents".into(),
            "chat_template_kwargs".into(),
        ]);
        RowContent::Chat(chat(row, &from_share(&messages_of(row, name)?, None)?, 0)?)
    } else if let Some(text) = get(&columns.text)? {
        RowContent::Document(text)
    } else {
        let (prompt, completion) = (
            get(&columns.prompt)?.unwrap_or_default(),
            get(&columns.completion)?.unwrap_or_default(),
        );
        // An empty cell of a table is no system message.
        match get(&columns.system)?.filter(|system| !system.is_empty() || !with_template) {
            None if with_template && columns.system.is_some() => RowContent::Chat(Chat::of_texts(
                [("user", prompt), ("assistant", completion)].into_iter(),
            )),
            None => RowContent::Completion { prompt, completion },
            Some(system) if with_template => RowContent::Chat(Chat::of_texts(
                [
                    ("system", system),
                    ("user", prompt),
                    ("assistant", completion),
                ]
                .into_iter(),
            )),
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
    let list = |column: &Option<String>| {
        column
            .as_ref()
            .and_then(|key| Some((key.clone(), row.get(key)?.as_array()?)))
    };
    let (Some((prompt, asked)), Some((completion, said))) =
        (list(&columns.prompt), list(&columns.completion))
    else {
        return Ok(None);
    };
    let content = RowContent::Chat(chat(row, &[asked.as_slice(), said].concat(), asked.len())?);
    let used = [
        prompt,
        completion,
        "tools".into(),
        "documents".into(),
        "chat_template_kwargs".into(),
    ]
    .to_vec();
    Ok(Some(ReadRow {
        content,
        used,
        alpaca: false,
    }))
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
                Err(Refusal::new(word!("data.columns"))
                    .expected(format!("a text by the key {}", shown(key)))
                    .found(found)
                    .into())
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
        if let Some(after) = brace.strip_prefix("{{") {
            text.push('{');
            rest = after;
        } else if let Some(after) = brace.strip_prefix("}}") {
            text.push('}');
            rest = after;
        } else if let Some((key, after)) = brace
            .strip_prefix('{')
            .and_then(|inside| inside.split_once('}'))
        {
            text.push_str(&value(key)?);
            rest = after;
        } else {
            let refusal = Refusal::new(word!("data.columns"))
                .expected("a pattern with names in braces, {{ and }} for braces");
            return Err(refusal.found(shown(pattern)).into());
        }
    }
    Ok(text + rest)
}
