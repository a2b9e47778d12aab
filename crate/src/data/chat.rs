//! JSONL lines as examples: which tokens the model reads, and which of them it learns to produce.

use serde_json::{Map, Value};

use super::answers::{Chat, conversation};
use crate::error::{Error, Result};
use crate::tokenizer::{Conversation, Tokenizer};

/// A tokenized conversation or prompt with its completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Example {
    pub(super) ids: Vec<u32>,
    /// For each id, whether its prediction counts.
    pub(super) counted: Vec<bool>,
}

impl Example {
    /// Whether one of the first `seq_len` targets counts.
    pub(super) fn teaches(&self, seq_len: usize) -> bool {
        self.counted.iter().skip(1).take(seq_len).any(|&counts| counts)
    }
}

/// Every line that is not blank gives an example, or one for each answer of its conversation; an invalid line is refused with its number.
pub(super) fn read_examples(text: &str, tokenizer: &Tokenizer) -> Result<Vec<Example>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut examples = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let refuse = |reason: String| Error::DataLine { line: index + 1, reason };
        let row: Value = serde_json::from_str(line).map_err(|e| refuse(format!("not JSON: {e}")))?;
        let of_row = match (row.get("messages"), row.get("prompt"), row.get("completion")) {
            (Some(Value::Array(messages)), None, None) => chat(&row, messages, 0).and_then(|chat| conversation(&chat, tokenizer)),
            (None, Some(Value::Array(prompt)), Some(Value::Array(completion))) => {
                chat(&row, &[&prompt[..], completion].concat(), prompt.len()).and_then(|chat| conversation(&chat, tokenizer))
            }
            (None, Some(Value::String(prompt)), Some(Value::String(completion))) => {
                completed(prompt, completion, tokenizer).map(|example| vec![example])
            }
            _ => {
                let shapes = "{\"messages\": […]}, or {\"prompt\": …, \"completion\": …} of two texts or two lists of messages";
                return Err(refuse(format!("expected {shapes}")));
            }
        };
        examples.extend(of_row.map_err(|e| match e {
            Error::DataLine { reason, .. } => refuse(reason),
            other => refuse(other.to_string()),
        })?);
    }
    Ok(examples)
}

/// The messages of a row, and what else in it a template reads. Answers before the message `from` are read and not learned.
fn chat(row: &Value, messages: &[Value], from: usize) -> Result<Chat> {
    let (mut read, mut learned) = (Vec::new(), Vec::new());
    for (index, message) in messages.iter().enumerate() {
        let refuse = |reason: &str| unusable(format!("message {index}: {reason}"));
        let mut fields = message.as_object().ok_or_else(|| refuse("expected an object"))?.clone();
        // A table has a null where a row has no such key.
        fields.retain(|_, value| !value.is_null());
        let role = fields.get("role").and_then(Value::as_str).ok_or_else(|| refuse("expected a role, which is a text"))?;
        let answers = role == "assistant";
        let counts = match (fields.remove("train"), fields.remove("weight")) {
            (None | Some(Value::Bool(true)), None) => true,
            (Some(Value::Bool(false)), None) => false,
            (None, Some(weight)) if weight.as_f64() == Some(1.0) => true,
            (None, Some(weight)) if weight.as_f64() == Some(0.0) => false,
            _ => return Err(refuse("expected train: true or false, or a weight of 0 or 1")),
        };
        learned.push(answers && counts && index >= from);
        check_parts(&fields).map_err(|reason| refuse(&reason))?;
        read.push(Value::Object(fields));
    }
    let mut names = Map::new();
    for (key, value) in row.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        match (key.as_str(), value) {
            ("tools" | "documents", value) => drop(names.insert(key.clone(), value.clone())),
            ("chat_template_kwargs", Value::Object(given)) => {
                if let Some(name) = given.keys().find(|name| ["messages", "add_generation_prompt"].contains(&name.as_str())) {
                    return Err(unusable(format!("chat_template_kwargs: expected names of the template's own, found {name}")));
                }
                names.extend(given.clone());
            }
            ("chat_template_kwargs", _) => return Err(unusable("chat_template_kwargs: expected an object")),
            _ => {}
        }
    }
    Ok(Chat { conversation: Conversation { messages: read, names, ..Conversation::default() }, learned })
}

/// Refuses what is no text in a content of parts.
fn check_parts(message: &Map<String, Value>) -> std::result::Result<(), String> {
    match message.get("content") {
        None | Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => match parts.iter().find(|part| !is_text(part)) {
            None => Ok(()),
            Some(part) => Err(format!("expected parts of the type text, found {}", part.get("type").unwrap_or(part))),
        },
        Some(other) => Err(format!("content: expected a text or a list of parts, found {other}")),
    }
}

fn is_text(part: &Value) -> bool {
    part.get("type").is_none_or(|kind| kind == "text") && part.get("text").is_some_and(Value::is_string)
}

/// The completion counts as a target, including the token that ends it.
fn completed(prompt: &str, completion: &str, tokenizer: &Tokenizer) -> Result<Example> {
    let mut ids = tokenizer.prompt_prefix().to_vec();
    ids.extend(tokenizer.encode(prompt)?);
    let unlearned = ids.len();
    ids.extend(tokenizer.encode(completion)?);
    // Never a second one where it is written.
    if ids.get(unlearned..).and_then(<[u32]>::last).is_none_or(|last| !tokenizer.eos().contains(last)) {
        ids.extend(tokenizer.eos().first());
    }
    if ids.len() == unlearned {
        return Err(unusable("the completion is empty"));
    }
    let counted = (0..ids.len()).map(|index| index >= unlearned).collect();
    Ok(Example { ids, counted })
}

/// The caller fills in the line number.
pub(super) fn unusable(reason: impl Into<String>) -> Error {
    Error::DataLine { line: 0, reason: reason.into() }
}
