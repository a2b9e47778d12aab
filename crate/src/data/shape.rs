//! Interprets a row by its keys, or by the columns that a person names.

use serde_json::{Map, Value};

use super::chat::{Chat, chat, from_share, messages_of};
use super::suggest::{listed, pairs, unknown};
use crate::config::Columns;
use crate::error::{Refusal, Result, shown, word};

/// A row as it is learned.
pub(super) enum Record {
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

impl Record {
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

/// A record, and the keys of its row that it was made from.
pub(super) struct Read {
    pub record: Record,
    pub used: Vec<String>,
    /// True if the row is written in the layout of Alpaca, as instruction, input and response, because the model has no chat template.
    pub alpaca: bool,
}

type Fields = Map<String, Value>;

/// Reads a row. For a model `with_template` an instruction becomes a chat.
pub(super) fn read_row(row: &Fields, columns: Option<&Columns>, with_template: bool) -> Result<Read> {
    if let Some(columns) = columns {
        return by_columns(row, columns, with_template);
    }
    let has = |key: &str| row.get(key).is_some_and(|value| !value.is_null());
    let (record, used): (Record, &[&str]) = if has("messages") {
        (Record::Chat(chat(row, &messages_of(row, "messages")?, 0)?), &["messages", "tools", "documents", "chat_template_kwargs"])
    } else if has("conversations") {
        let messages = from_share(&messages_of(row, "conversations")?, row.get("system"))?;
        (Record::Chat(chat(row, &messages, 0)?), &["conversations", "system", "tools", "documents", "chat_template_kwargs"])
    } else if has("chosen") && has("rejected") {
        return Err(pairs(row));
    } else if has("preferred_output") && has("non_preferred_output") {
        let refusal = Refusal::new(word!("data.shape")).expected("one answer").found("preferred_output and non_preferred_output");
        return Err(refusal.hint("preferences are not trained: make rows of messages that end with the preferred answer").into());
    } else if has("prompt") && has("completion") {
        match (&row["prompt"], &row["completion"]) {
            (Value::Array(prompt), Value::Array(completion)) => {
                let messages = [prompt.as_slice(), completion].concat();
                let record = Record::Chat(chat(row, &messages, prompt.len())?);
                (record, &["prompt", "completion", "tools", "documents", "chat_template_kwargs"])
            }
            (Value::String(prompt), Value::String(completion)) => {
                (Record::Completion { prompt: prompt.clone(), completion: completion.clone() }, &["prompt", "completion"])
            }
            (prompt, completion) => {
                let found = format!("{} and {}", kind(prompt), kind(completion));
                let refusal = Refusal::new(word!("data.shape")).expected("prompt and completion as two texts or two lists of messages");
                return Err(refusal.found(found).into());
            }
        }
    } else if has("instruction") && has("output") {
        return alpaca(row, with_template);
    } else if has("text") {
        (Record::Document(text(row, "text")?), &["text"])
    } else if has("input_ids") {
        (tokens(row)?, &["input_ids", "labels", "assistant_masks", "attention_mask"])
    } else {
        return Err(unknown(row));
    };
    Ok(Read { record, used: used.iter().map(|key| (*key).to_owned()).collect(), alpaca: false })
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

/// Returns the text at a key.
fn text(row: &Fields, key: &str) -> Result<String> {
    match row.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        other => {
            let found = other.map_or("nothing", kind);
            Err(Refusal::new(word!("data.shape")).expected(format!("{key}, a text")).found(found).into())
        }
    }
}

/// Reads instruction, input and output, with the history of earlier turns.
fn alpaca(row: &Fields, with_template: bool) -> Result<Read> {
    let optional = |key: &str| match row.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(_) => text(row, key),
    };
    let (instruction, input, output, system) = (text(row, "instruction")?, optional("input")?, text(row, "output")?, optional("system")?);
    let no_history =
        |found: &Value| Refusal::new(word!("data.shape")).expected("history as a list of pairs of texts").found(shown(&found.to_string()));
    let turns = match row.get("history") {
        None | Some(Value::Null) => &[],
        Some(Value::String(nothing)) if nothing.is_empty() => &[],
        Some(Value::Array(turns)) => turns.as_slice(),
        Some(other) => return Err(no_history(other).into()),
    };
    let mut history = Vec::new();
    for turn in turns {
        match turn.as_array().map(Vec::as_slice) {
            Some([Value::String(said), Value::String(answer)]) => history.push((said.clone(), answer.clone())),
            _ => return Err(no_history(turn).into()),
        }
    }
    let used = ["instruction", "input", "output", "system", "history"].map(str::to_owned).to_vec();
    let record = if with_template {
        let asked = if input.is_empty() { instruction } else { format!("{instruction}\n\n{input}") };
        let turns = history.into_iter().chain([(asked, output)]);
        let said = turns.flat_map(|(said, answer)| [("user", said), ("assistant", answer)]);
        Record::Chat(Chat::of_texts((!system.is_empty()).then_some(("system", system)).into_iter().chain(said)))
    } else {
        // The system message comes before everything else.
        let of_turn = |turn: usize| if turn == 0 { system.as_str() } else { "" };
        let before = history.iter().enumerate().map(|(turn, (said, answer))| layout(of_turn(turn), said, "") + answer + "\n\n");
        let prompt = before.collect::<String>() + &layout(of_turn(history.len()), &instruction, &input);
        Record::Completion { prompt, completion: output }
    };
    Ok(Read { record, used, alpaca: !with_template })
}

/// Returns a prompt with the headings of Stanford's Alpaca (github.com/tatsu-lab/stanford_alpaca), after the system message or its authors'
/// text.
fn layout(system: &str, instruction: &str, input: &str) -> String {
    let task = "Below is an instruction that describes a task";
    let write = "Write a response that appropriately completes the request.";
    let before = match (system.is_empty(), input.is_empty()) {
        (false, _) => system.to_owned(),
        (true, true) => format!("{task}. {write}"),
        (true, false) => format!("{task}, paired with an input that provides further context. {write}"),
    };
    let input = if input.is_empty() { String::new() } else { format!("### Input:\n{input}\n\n") };
    format!("{before}\n\n### Instruction:\n{instruction}\n\n{input}### Response:\n")
}

/// Reads token ids, with labels or masks if not all are learned.
fn tokens(row: &Fields) -> Result<Record> {
    let refuse = |expected: &str, found: String| Refusal::new(word!("data.shape")).expected(expected).found(found);
    let numbers = |key: &str| -> Result<Option<Vec<i64>>> {
        let Some(value) = row.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
        let list = value.as_array().map(|list| list.iter().map(|item| item.as_i64().or(item.as_bool().map(i64::from))).collect());
        let numbers: Option<Vec<i64>> = list.unwrap_or(None);
        Ok(Some(numbers.ok_or_else(|| refuse(&format!("{key} as a list of integers"), shown(&value.to_string())))?))
    };
    let given = numbers("input_ids")?.unwrap_or_default();
    let ids: Option<Vec<u32>> = given.iter().map(|&id| i32::try_from(id).ok().and_then(|id| u32::try_from(id).ok())).collect();
    let ids = ids.ok_or_else(|| refuse("input_ids from 0 to 2^31 - 1", shown(&format!("{given:?}"))))?;
    let beside = |key: &str| -> Result<Option<Vec<i64>>> {
        let list = numbers(key)?;
        match &list {
            Some(list) if list.len() != ids.len() => {
                Err(refuse(&format!("as many {key} as input_ids, {}", ids.len()), list.len().to_string()).into())
            }
            _ => Ok(list),
        }
    };
    let (labels, masks, seen) = (beside("labels")?, beside("assistant_masks")?, beside("attention_mask")?);
    for (key, list) in [("assistant_masks", &masks), ("attention_mask", &seen)] {
        if let Some(other) = list.iter().flatten().find(|value| !(0..=1).contains(*value)) {
            return Err(refuse(&format!("{key} of 0 and 1"), other.to_string()).into());
        }
    }
    let other = labels.iter().flatten().zip(&ids).find(|(label, id)| **label != -100 && **label != i64::from(**id));
    if let Some((label, id)) = other {
        return Err(refuse("labels that are -100 or the id at their place", format!("{label} at the id {id}")).into());
    }
    let learned =
        |at: usize| labels.as_ref().is_none_or(|l| l.get(at) != Some(&-100)) && masks.as_ref().is_none_or(|m| m.get(at) == Some(&1));
    // Rows that were padded to one length have an attention mask.
    let kept: Vec<usize> = (0..ids.len()).filter(|at| seen.as_ref().is_none_or(|seen| seen.get(*at) != Some(&0))).collect();
    let counted = kept.iter().map(|&at| learned(at)).collect();
    Ok(Record::Tokens { ids: kept.iter().filter_map(|at| ids.get(*at).copied()).collect(), counted })
}

fn by_columns(row: &Fields, columns: &Columns, with_template: bool) -> Result<Read> {
    if let Some(both) = lists_of(row, columns)? {
        return Ok(both);
    }
    let mut used = Vec::new();
    let mut get = |column: &Option<String>| column.as_ref().map(|pattern| filled(pattern, row, &mut used)).transpose();
    let record = if let Some(name) = &columns.messages {
        used.extend([name.clone(), "tools".into(), "documents".into(), "chat_template_kwargs".into()]);
        Record::Chat(chat(row, &from_share(&messages_of(row, name)?, None)?, 0)?)
    } else if let Some(text) = get(&columns.text)? {
        Record::Document(text)
    } else {
        let (prompt, completion) = (get(&columns.prompt)?.unwrap_or_default(), get(&columns.completion)?.unwrap_or_default());
        // An empty cell of a table is no system message.
        match get(&columns.system)?.filter(|system| !system.is_empty() || !with_template) {
            None if with_template && columns.system.is_some() => {
                Record::Chat(Chat::of_texts([("user", prompt), ("assistant", completion)].into_iter()))
            }
            None => Record::Completion { prompt, completion },
            Some(system) if with_template => {
                Record::Chat(Chat::of_texts([("system", system), ("user", prompt), ("assistant", completion)].into_iter()))
            }
            Some(system) => Record::Completion { prompt: format!("{system}\n\n{prompt}"), completion },
        }
    };
    Ok(Read { record, used, alpaca: false })
}

/// Reads prompt and completion as lists of messages by their columns, if they are lists.
fn lists_of(row: &Fields, columns: &Columns) -> Result<Option<Read>> {
    let list = |column: &Option<String>| column.as_ref().and_then(|key| Some((key.clone(), row.get(key)?.as_array()?)));
    let (Some((prompt, asked)), Some((completion, said))) = (list(&columns.prompt), list(&columns.completion)) else { return Ok(None) };
    let record = Record::Chat(chat(row, &[asked.as_slice(), said].concat(), asked.len())?);
    let used = [prompt, completion, "tools".into(), "documents".into(), "chat_template_kwargs".into()].to_vec();
    Ok(Some(Read { record, used, alpaca: false }))
}

/// Returns the value of a column: that of a key, or a pattern filled with the values of its keys.
fn filled(pattern: &str, row: &Fields, used: &mut Vec<String>) -> Result<String> {
    let mut value = |key: &str| -> Result<String> {
        used.push(key.to_owned());
        match row.get(key) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(number @ (Value::Number(_) | Value::Bool(_))) => Ok(number.to_string()),
            other => {
                let found = other.map_or_else(|| listed(row), |value| format!("{} there", kind(value)));
                Err(Refusal::new(word!("data.columns")).expected(format!("a text by the key {}", shown(key))).found(found).into())
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
        } else if let Some((key, after)) = brace.strip_prefix('{').and_then(|inside| inside.split_once('}')) {
            text.push_str(&value(key)?);
            rest = after;
        } else {
            let refusal = Refusal::new(word!("data.columns")).expected("a pattern with names in braces, {{ and }} for braces");
            return Err(refusal.found(shown(pattern)).into());
        }
    }
    Ok(text + rest)
}
