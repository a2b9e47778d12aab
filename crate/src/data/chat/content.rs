//! Content of a row: its meaning by its keys, or by the columns that a person names.

mod alpaca;
mod columns;

use std::fmt;

use serde_json::Value;

use self::alpaca::alpaca;
use self::columns::by_columns;
use super::messages::{Chat, chat, from_share, messages_of};
use crate::config::Columns;
use crate::data::read::{Fields, pairs, refused, unknown};
use crate::error::{Error, Result, shown, word};

/// Content of a row as it is learned.
pub(super) enum RowContent {
    Chat(Chat),
    /// A prompt and a completion, of which only the latter is learned by default.
    Completion {
        prompt: String,
        completion: String,
    },
    /// A text, all of which is learned.
    Document(String),
    /// Token ids, with a mark for each that is true if its prediction counts.
    Tokens {
        ids: Vec<u32>,
        counted: Vec<bool>,
    },
}

impl RowContent {
    /// Returns the name used in a report.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Chat(_) => "chat",
            Self::Completion { .. } => "completion",
            Self::Document(_) => "text",
            Self::Tokens { .. } => "tokens",
        }
    }
}

/// The content of a row, and the keys that it was made from.
pub(super) struct ReadRow {
    pub content: RowContent,
    pub used: Vec<String>,
    /// True if the row is written in the layout of Alpaca, as instruction, input and response, because the model has no chat template.
    pub alpaca: bool,
}

impl ReadRow {
    fn new(content: RowContent, used: &[&str]) -> Self {
        Self {
            content,
            used: used.iter().map(|key| (*key).to_owned()).collect(),
            alpaca: false,
        }
    }

    /// A chat made from these keys, and the keys next to them that its template reads.
    fn of_chat(chat: Chat, used: &[&str]) -> Self {
        let beside = ["tools", "documents", "chat_template_kwargs"];
        Self::new(RowContent::Chat(chat), &[used, &beside].concat())
    }
}

/// Reads a row. For a model `with_template` an instruction becomes a chat.
pub(super) fn read_row(
    row: &Fields,
    columns: Option<&Columns>,
    with_template: bool,
) -> Result<ReadRow> {
    if let Some(columns) = columns {
        return by_columns(row, columns, with_template);
    }
    let has = |key: &str| row.get(key).is_some_and(|value| !value.is_null());
    if has("messages") {
        let chat = chat(row, &messages_of(row, "messages")?, 0)?;
        return Ok(ReadRow::of_chat(chat, &["messages"]));
    }
    if has("conversations") {
        let messages = from_share(&messages_of(row, "conversations")?, row.get("system"))?;
        let used = ["conversations", "system"];
        return Ok(ReadRow::of_chat(chat(row, &messages, 0)?, &used));
    }
    if has("chosen") && has("rejected") {
        return Err(pairs(row).into());
    }
    if has("preferred_output") && has("non_preferred_output") {
        let found = "preferred_output and non_preferred_output";
        let refusal = refused(word!("data.shape"), "one answer", found);
        return Err(refusal.hint("preferences are not trained: make rows of messages that end with the preferred answer").into());
    }
    if has("prompt") && has("completion") {
        let used = ["prompt", "completion"];
        return match (&row["prompt"], &row["completion"]) {
            (Value::Array(prompt), Value::Array(completion)) => {
                let messages = [prompt.as_slice(), completion].concat();
                let chat = chat(row, &messages, prompt.len())?;
                Ok(ReadRow::of_chat(chat, &used))
            }
            (Value::String(prompt), Value::String(completion)) => {
                let (prompt, completion) = (prompt.clone(), completion.clone());
                let content = RowContent::Completion { prompt, completion };
                Ok(ReadRow::new(content, &used))
            }
            (prompt, completion) => {
                let expected = "prompt and completion as two texts or two lists of messages";
                let found = format!("{} and {}", kind(prompt), kind(completion));
                Err(refused(word!("data.shape"), expected, found).into())
            }
        };
    }
    if has("instruction") && has("output") {
        return alpaca(row, with_template);
    }
    if has("text") {
        let content = RowContent::Document(text(row, "text")?);
        return Ok(ReadRow::new(content, &["text"]));
    }
    if has("input_ids") {
        let used = ["input_ids", "labels", "assistant_masks", "attention_mask"];
        return Ok(ReadRow::new(tokens(row)?, &used));
    }
    Err(unknown(row).into())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The text at a key; anything else there is refused.
fn text(row: &Fields, key: &str) -> Result<String> {
    match row.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        other => {
            let found = other.map_or("nothing", kind);
            Err(refused(word!("data.shape"), format!("{key}, a text"), found).into())
        }
    }
}

/// Reads token ids, with labels or masks if not all are learned.
fn tokens(row: &Fields) -> Result<RowContent> {
    let refuse = |expected: &str, found: &dyn fmt::Display| {
        Error::from(refused(word!("data.shape"), expected, found))
    };
    let numbers = |key: &str| -> Result<Option<Vec<i64>>> {
        let Some(value) = row.get(key).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        // Masks may be written as true and false.
        let number = |item: &Value| item.as_i64().or(item.as_bool().map(i64::from));
        let list = value.as_array();
        let numbers = list.and_then(|list| list.iter().map(number).collect::<Option<_>>());
        let expected = format!("{key} as a list of integers");
        let wrong = || refuse(&expected, &shown(&value.to_string()));
        numbers.ok_or_else(wrong).map(Some)
    };
    let given = numbers("input_ids")?.unwrap_or_default();
    let valid_id = |id: &i64| i32::try_from(*id).ok()?.try_into().ok();
    let ids: Option<Vec<u32>> = given.iter().map(valid_id).collect();
    let beyond = || {
        refuse(
            "input_ids from 0 to 2^31 - 1",
            &shown(&format!("{given:?}")),
        )
    };
    let ids = ids.ok_or_else(beyond)?;
    let beside = |key: &str| match numbers(key)? {
        Some(list) if list.len() != ids.len() => Err(refuse(
            &format!("as many {key} as input_ids, {}", ids.len()),
            &list.len(),
        )),
        list => Ok(list),
    };
    let (labels, masks, seen) = (
        beside("labels")?,
        beside("assistant_masks")?,
        beside("attention_mask")?,
    );
    for (key, list) in [("assistant_masks", &masks), ("attention_mask", &seen)] {
        let mut values = list.iter().flatten();
        if let Some(other) = values.find(|value| !(0..=1).contains(*value)) {
            return Err(refuse(&format!("{key} of 0 and 1"), other));
        }
    }
    let mut labelled = labels.iter().flatten().zip(&ids);
    let other = labelled.find(|(label, id)| **label != -100 && **label != i64::from(**id));
    if let Some((label, id)) = other {
        let expected = "labels that are -100 or the id at their place";
        return Err(refuse(expected, &format!("{label} at the id {id}")));
    }
    let has = |list: &Option<Vec<i64>>, at: usize, value: i64| {
        let list = list.as_ref();
        list.and_then(|list| list.get(at))
            .is_some_and(|found| *found == value)
    };
    let in_mask = |at: usize| masks.is_none() || has(&masks, at, 1);
    // Rows that were padded to one length have an attention mask.
    let kept = (0..ids.len()).filter(|at| !has(&seen, *at, 0));
    let marked = kept.map(|at| (ids[at], !has(&labels, at, -100) && in_mask(at)));
    let (ids, counted) = marked.unzip();
    Ok(RowContent::Tokens { ids, counted })
}
