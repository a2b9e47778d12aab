//! The messages of a row, and the other values in it that a chat template reads.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::data::read::{Fields, is_python, refused};
use crate::error::{Refusal, Result, Word, shown, word};
use crate::tokenizer::{
    Conversation, MessageFault, REASONING, is_reserved, read_message, read_tools,
};

/// The conversation of a row.
#[derive(Clone)]
pub(super) struct Chat {
    pub conversation: Conversation,
    /// True for each message that is learned.
    pub learned: Vec<bool>,
    /// Keys of each message, as the row has them.
    pub keys: Vec<Vec<String>>,
}

impl Chat {
    /// Creates a chat from pairs of role and text; every answer is learned.
    pub fn of_texts(messages: impl Iterator<Item = (&'static str, String)>) -> Self {
        let messages: Vec<Value> = messages
            .map(|(role, content)| json!({ "role": role, "content": content }))
            .collect();
        let learned = messages
            .iter()
            .map(|message| message["role"] == "assistant");
        Self {
            learned: learned.collect(),
            keys: vec![vec!["role".to_owned(), "content".to_owned()]; messages.len()],
            conversation: Conversation::new(messages),
        }
    }

    /// Returns true if a learned answer has neither text nor anything else to say.
    pub fn has_empty_answer(&self) -> bool {
        let says = |message: &Value| match message.get("content") {
            Some(Value::String(text)) => !text.trim().is_empty(),
            content => content.is_some(),
        };
        let others = ["tool_calls"].into_iter().chain(REASONING);
        let silent = |message: &Value| {
            !says(message) && others.clone().all(|key| message.get(key).is_none())
        };
        let mut messages = self.conversation.messages.iter().zip(&self.learned);
        messages.any(|(message, learned)| *learned && silent(message))
    }
}

/// The refusal of the message `index`.
fn wrong(index: usize, code: Word, expected: &str, found: &str) -> Refusal {
    refused(code, expected, found).subject(&format!("message {index}"))
}

/// Returns the list of messages at a key, or in the JSON text at it: some programs store lists only as texts.
pub(super) fn messages_of<'a>(row: &'a Fields, key: &str) -> Result<Cow<'a, [Value]>> {
    let found = row.get(key);
    match (found, found.and_then(list_in)) {
        (Some(Value::Array(messages)), _) => Ok(messages.into()),
        (_, Some(messages)) => Ok(messages.into()),
        (other, None) => {
            let found =
                other.map_or_else(|| "nothing".to_owned(), |value| shown(&value.to_string()));
            let expected = format!("{key}, a list of messages");
            let mut refusal = refused(word!("data.shape"), expected, found);
            if other.and_then(Value::as_str).is_some_and(is_python) {
                refusal = refusal.hint("this is Python's notation: json.dumps writes it as JSON");
            }
            Err(refusal.into())
        }
    }
}

/// The list in a JSON text.
fn list_in(text: &Value) -> Option<Vec<Value>> {
    serde_json::from_str(text.as_str()?).ok()
}

/// Converts ShareGPT's messages `{"from", "value"}` to the roles that templates know; other messages are unchanged.
pub(super) fn from_share(messages: &[Value], system: Option<&Value>) -> Result<Vec<Value>> {
    let mut read = Vec::with_capacity(messages.len() + 1);
    if let Some(Value::String(text)) = system
        && !text.is_empty()
    {
        read.push(json!({"role": "system", "content": text}));
    }
    for (index, message) in messages.iter().enumerate() {
        let mut fields = message.as_object().cloned().unwrap_or_default();
        let Some(from) = fields.shift_remove("from") else {
            read.push(message.clone());
            continue;
        };
        let role = match from.as_str().unwrap_or_default() {
            "human" | "user" => "user",
            "gpt" | "assistant" | "chatgpt" | "function_call" => "assistant",
            "system" => "system",
            "tool" | "observation" => "tool",
            _ => {
                let expected = "from: human, gpt, system, tool, observation or function_call";
                let found = shown(&from.to_string());
                return Err(wrong(index, word!("data.shape"), expected, &found).into());
            }
        };
        let content = fields.shift_remove("value").unwrap_or_default();
        // A table has null for a key that a row lacks.
        let other = fields.shift_remove("content");
        if let Some(other) = other.filter(|other| !other.is_null()) {
            let expected = "from and value, or role and content";
            let found = format!("value and content: {}", shown(&other.to_string()));
            return Err(wrong(index, word!("data.shape"), expected, &found).into());
        }
        let mut named = Map::from_iter([
            ("role".to_owned(), Value::from(role)),
            ("content".to_owned(), content),
        ]);
        named.extend(fields);
        read.push(Value::Object(named));
    }
    Ok(read)
}

/// Reads the messages of a row, and the other values that a template reads. Answers from the message `from` on are learned, and messages that
/// say so themselves.
pub(super) fn chat(row: &Fields, messages: &[Value], from: usize) -> Result<Chat> {
    let (mut read, mut learned, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for (index, message) in messages.iter().enumerate() {
        let no_object = || {
            let found = shown(&message.to_string());
            wrong(index, word!("data.shape"), "an object", &found)
        };
        let mut fields = message.as_object().ok_or_else(no_object)?.clone();
        // A table has null for a key that a row lacks.
        fields.retain(|_, value| !value.is_null());
        let (train, weight) = (fields.shift_remove("train"), fields.shift_remove("weight"));
        let given = fields.keys().cloned().collect();
        let fields = read_message(&fields).map_err(|fault| of_message(index, fault))?;
        let answers = index >= from && fields.get("role").is_some_and(|role| role == "assistant");
        learned.push(match (train, weight) {
            (Some(Value::Bool(train)), None) => train,
            (None, None) => answers,
            (None, Some(weight)) if weight.as_f64() == Some(1.0) => answers,
            (None, Some(weight)) if weight.as_f64() == Some(0.0) => false,
            (train, weight) => {
                let given = [("train", train), ("weight", weight)].into_iter();
                let given = given.filter_map(|(key, value)| Some(format!("{key}: {}", value?)));
                let found = shown(&given.collect::<Vec<_>>().join(", "));
                let expected = "train: true or false, or a weight of 0 or 1";
                return Err(wrong(index, word!("data.message.weight"), expected, &found).into());
            }
        });
        keys.push(given);
        read.push(Value::Object(fields));
    }
    Ok(Chat {
        conversation: Conversation {
            messages: read,
            names: names(row)?,
            ..Conversation::default()
        },
        learned,
        keys,
    })
}

/// Returns the refusal of a part of the message `index`.
fn of_message(index: usize, fault: MessageFault) -> Refusal {
    let (code, place) = match fault.key.as_str() {
        _ if fault.of_content => (word!("data.message.part"), None),
        // The role says which messages are learned.
        "role" => (word!("data.shape"), None),
        _ => (word!("data.row"), fault.place()),
    };
    let mut refusal = wrong(index, code, fault.expected, &fault.found);
    if let Some(key) = place {
        refusal = refusal.subject(&format!("message {index}, {key}"));
    }
    if fault.of_content && fault.key != "content" {
        refusal = refusal
            .hint("only texts are trained: write what the part shows as text, or leave it out");
    }
    refusal
}

/// Collects tools, documents and arguments of the template.
fn names(row: &Fields) -> Result<Fields> {
    let mut names = Map::new();
    for (key, value) in row.iter().filter(|(_, value)| !value.is_null()) {
        match (key.as_str(), value) {
            ("tools", tools) => {
                let refuse = |fault: MessageFault| {
                    let refusal = refused(word!("data.row"), fault.expected, &fault.found);
                    match fault.place() {
                        Some(key) => refusal.subject(key),
                        None => refusal,
                    }
                };
                names.insert(key.clone(), read_tools(tools).map_err(refuse)?);
            }
            // A list is often stored as JSON text.
            ("documents", list @ Value::Array(_)) => drop(names.insert(key.clone(), list.clone())),
            ("documents", other) => {
                let expected = "documents: a list, or its JSON";
                let refuse = || refused(word!("data.row"), expected, shown(&other.to_string()));
                names.insert(key.clone(), list_in(other).ok_or_else(refuse)?.into());
            }
            ("chat_template_kwargs", Value::Object(given)) => {
                if let Some(name) = given.keys().find(|name| is_reserved(name)) {
                    let expected = "chat_template_kwargs: names of the template's own";
                    return Err(refused(word!("data.row"), expected, name).into());
                }
                names.extend(given.clone());
            }
            ("chat_template_kwargs", other) => {
                let expected = "chat_template_kwargs: an object";
                return Err(refused(word!("data.row"), expected, shown(&other.to_string())).into());
            }
            _ => {}
        }
    }
    Ok(names)
}
