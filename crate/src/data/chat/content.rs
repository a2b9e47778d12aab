//! Content of a row: its meaning by its keys, or by the columns that a person names.

mod alpaca;
mod columns;

use serde_json::{Map, Value};

use self::alpaca::alpaca;
use self::columns::by_columns;
use super::messages::{Chat, chat, from_share, messages_of};
use crate::config::Columns;
use crate::data::read::{pairs, unknown};
use crate::error::{Refusal, Result, shown, word};

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

type Fields = Map<String, Value>;

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
    let (content, used): (RowContent, &[&str]) = if has("messages") {
        (
            RowContent::Chat(chat(row, &messages_of(row, "messages")?, 0)?),
            &["messages", "tools", "documents", "chat_template_kwargs"],
        )
    } else if has("conversations") {
        let messages = from_share(&messages_of(row, "conversations")?, row.get("system"))?;
        (
            RowContent::Chat(chat(row, &messages, 0)?),
            &[
                "conversations",
                "system",
                "tools",
                "documents",
                "chat_template_kwargs",
            ],
        )
    } else if has("chosen") && has("rejected") {
        return Err(pairs(row));
    } else if has("preferred_output") && has("non_preferred_output") {
        let refusal = Refusal::new(word!("data.shape"))
            .expected("one answer")
            .found("preferred_output and non_preferred_output");
        return Err(refusal.hint("preferences are not trained: make rows of messages that end with the preferred answer").into());
    } else if has("prompt") && has("completion") {
        match (&row["prompt"], &row["completion"]) {
            (Value::Array(prompt), Value::Array(completion)) => {
                let messages = [prompt.as_slice(), completion].concat();
                let content = RowContent::Chat(chat(row, &messages, prompt.len())?);
                (
                    content,
                    &[
                        "prompt",
                        "completion",
                        "tools",
                        "documents",
                        "chat_template_kwargs",
                    ],
                )
            }
            (Value::String(prompt), Value::String(completion)) => (
                RowContent::Completion {
                    prompt: prompt.clone(),
                    completion: completion.clone(),
                },
                &["prompt", "completion"],
            ),
            (prompt, completion) => {
                let found = format!("{} and {}", kind(prompt), kind(completion));
                let refusal = Refusal::new(word!("data.shape"))
                    .expected("prompt and completion as two texts or two lists of messages");
                return Err(refusal.found(found).into());
            }
        }
    } else if has("instruction") && has("output") {
        return alpaca(row, with_template);
    } else if has("text") {
        (RowContent::Document(text(row, "text")?), &["text"])
    } else if has("input_ids") {
        (
            tokens(row)?,
            &["input_ids", "labels", "assistant_masks", "attention_mask"],
        )
    } else {
        return Err(unknown(row));
    };
    Ok(ReadRow {
        content,
        used: used.iter().map(|key| (*key).to_owned()).collect(),
        alpaca: false,
    })
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
            Err(Refusal::new(word!("data.shape"))
                .expected(format!("{key}, a text"))
                .found(found)
                .into())
        }
    }
}

/// Reads token ids, with labels or masks if not all are learned.
fn tokens(row: &Fields) -> Result<RowContent> {
    let refuse = |expected: &str, found: String| {
        Refusal::new(word!("data.shape"))
            .expected(expected)
            .found(found)
    };
    let numbers = |key: &str| -> Result<Option<Vec<i64>>> {
        let Some(value) = row.get(key).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        // Masks may be written as true and false.
        let number = |item: &Value| item.as_i64().or(item.as_bool().map(i64::from));
        let numbers = value
            .as_array()
            .and_then(|list| list.iter().map(number).collect::<Option<Vec<i64>>>());
        match numbers {
            Some(numbers) => Ok(Some(numbers)),
            None => Err(refuse(
                &format!("{key} as a list of integers"),
                shown(&value.to_string()),
            )
            .into()),
        }
    };
    let given = numbers("input_ids")?.unwrap_or_default();
    let valid_id = |id: &i64| {
        i32::try_from(*id)
            .ok()
            .and_then(|id| u32::try_from(id).ok())
    };
    let ids: Option<Vec<u32>> = given.iter().map(valid_id).collect();
    let ids =
        ids.ok_or_else(|| refuse("input_ids from 0 to 2^31 - 1", shown(&format!("{given:?}"))))?;
    let beside = |key: &str| -> Result<Option<Vec<i64>>> {
        let list = numbers(key)?;
        match &list {
            Some(list) if list.len() != ids.len() => Err(refuse(
                &format!("as many {key} as input_ids, {}", ids.len()),
                list.len().to_string(),
            )
            .into()),
            _ => Ok(list),
        }
    };
    let (labels, masks, seen) = (
        beside("labels")?,
        beside("assistant_masks")?,
        beside("attention_mask")?,
    );
    for (key, list) in [("assistant_masks", &masks), ("attention_mask", &seen)] {
        if let Some(other) = list
            .iter()
            .flatten()
            .find(|value| !(0..=1).contains(*value))
        {
            return Err(refuse(&format!("{key} of 0 and 1"), other.to_string()).into());
        }
    }
    let other = labels
        .iter()
        .flatten()
        .zip(&ids)
        .find(|(label, id)| **label != -100 && **label != i64::from(**id));
    if let Some((label, id)) = other {
        return Err(refuse(
            "labels that are -100 or the id at their place",
            format!("{label} at the id {id}"),
        )
        .into());
    }
    let labelled = |at: usize| {
        labels
            .as_ref()
            .is_none_or(|labels| labels.get(at) != Some(&-100))
    };
    let in_mask = |at: usize| masks.as_ref().is_none_or(|masks| masks.get(at) == Some(&1));
    // Rows that were padded to one length have an attention mask.
    let is_padding = |at: usize| seen.as_ref().is_some_and(|seen| seen.get(at) == Some(&0));
    let kept: Vec<usize> = (0..ids.len()).filter(|at| !is_padding(*at)).collect();
    let counted = kept.iter().map(|&at| labelled(at) && in_mask(at)).collect();
    let ids = kept.iter().filter_map(|at| ids.get(*at).copied()).collect();
    Ok(RowContent::Tokens { ids, counted })
}
