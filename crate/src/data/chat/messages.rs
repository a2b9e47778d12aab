//! The messages of a row, and the other values in it that a chat template reads.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::data::read::is_python;
use crate::error::{Refusal, Result, shown, word};
use crate::tokenizer::{Conversation, MessageFault, REASONING, read_message, read_tools};

type Fields = Map<String, Value>;

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
            .map(|message| message["role"] == "assistant")
            .collect();
        let keys = vec![vec!["role".to_owned(), "content".to_owned()]; messages.len()];
        Self {
            conversation: Conversation::new(messages),
            learned,
            keys,
        }
    }

    /// Returns true if a learned answer has neither text nor anything else to say.
    pub fn has_empty_answer(&self) -> bool {
        let says = |message: &Value| match message.get("content") {
            Some(Value::String(text)) => !text.trim().is_empty(),
            content => content.is_some(),
        };
        let silent = |message: &Value| {
            !says(message)
                && ["tool_calls"]
                    .iter()
                    .chain(&REASONING)
                    .all(|key| message.get(key).is_none())
        };
        self.conversation
            .messages
            .iter()
            .zip(&self.learned)
            .any(|(message, learned)| *learned && silent(message))
    }
}

fn refuse(message: usize, word: crate::error::Word) -> Refusal {
    Refusal::new(word).subject(&format!("message {message}"))
}

/// Returns the list of messages at a key, or in the JSON text at it: some programs store lists only as texts.
pub(super) fn messages_of<'a>(row: &'a Fields, key: &str) -> Result<Cow<'a, [Value]>> {
    let found = row.get(key);
    let written = found
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str::<Vec<Value>>(text).ok());
    match (found, written) {
        (Some(Value::Array(messages)), _) => Ok(messages.into()),
        (_, Some(messages)) => Ok(messages.into()),
        (other, None) => {
            let found =
                other.map_or_else(|| "nothing".to_owned(), |value| shown(&value.to_string()));
            let refusal = Refusal::new(word!("data.shape"))
                .expected(format!("{key}, a list of messages"))
                .found(found);
            let python = other.and_then(Value::as_str).is_some_and(is_python);
            Err(if python {
                refusal.hint("this is Python's notation: json.dumps writes it as JSON")
            } else {
                refusal
            }
            .into())
        }
    }
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
        let Some(fields) = message
            .as_object()
            .filter(|fields| fields.contains_key("from"))
        else {
            read.push(message.clone());
            continue;
        };
        let mut fields = fields.clone();
        let from = fields.shift_remove("from").unwrap_or_default();
        let role = match from.as_str().unwrap_or_default() {
            "human" | "user" => "user",
            "gpt" | "assistant" | "chatgpt" | "function_call" => "assistant",
            "system" => "system",
            "tool" | "observation" => "tool",
            _ => {
                let expected = "from: human, gpt, system, tool, observation or function_call";
                return Err(refuse(index, word!("data.shape"))
                    .expected(expected)
                    .found(shown(&from.to_string()))
                    .into());
            }
        };
        let content = fields.shift_remove("value").unwrap_or_default();
        // A table has null for a key that a row lacks.
        if let Some(other) = fields
            .shift_remove("content")
            .filter(|other| !other.is_null())
        {
            let found = format!("value and content: {}", shown(&other.to_string()));
            return Err(refuse(index, word!("data.shape"))
                .expected("from and value, or role and content")
                .found(found)
                .into());
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
        let wrong = |expected: &str, found: &Value| {
            refuse(index, word!("data.shape"))
                .expected(expected)
                .found(shown(&found.to_string()))
        };
        let mut fields = message
            .as_object()
            .ok_or_else(|| wrong("an object", message))?
            .clone();
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
                let found = [("train", train), ("weight", weight)];
                let found: Vec<String> = found
                    .into_iter()
                    .filter_map(|(key, value)| Some(format!("{key}: {}", value?)))
                    .collect();
                let refusal = refuse(index, word!("data.message.weight"))
                    .expected("train: true or false, or a weight of 0 or 1");
                return Err(refusal.found(shown(&found.join(", "))).into());
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
    let refusal = match fault.key.as_str() {
        _ if fault.of_content => refuse(index, word!("data.message.part")),
        // The role says which messages are learned.
        "role" => refuse(index, word!("data.shape")),
        _ => {
            let place = fault
                .place()
                .map_or_else(String::new, |key| format!(", {key}"));
            Refusal::new(word!("data.row")).subject(&format!("message {index}{place}"))
        }
    };
    let refusal = refusal.expected(fault.expected).found(fault.found);
    let is_part = fault.of_content && fault.key != "content";
    if is_part {
        refusal.hint("only texts are trained: write what the part shows as text, or leave it out")
    } else {
        refusal
    }
}

/// Collects tools, documents and arguments of the template.
fn names(row: &Fields) -> Result<Fields> {
    let mut names = Map::new();
    for (key, value) in row.iter().filter(|(_, value)| !value.is_null()) {
        match (key.as_str(), value) {
            ("tools", tools) => {
                let refuse = |fault: MessageFault| {
                    let refusal = Refusal::new(word!("data.row"));
                    let refusal = if let Some(key) = fault.place() {
                        refusal.subject(key)
                    } else {
                        refusal
                    };
                    refusal.expected(fault.expected).found(fault.found)
                };
                names.insert(key.clone(), read_tools(tools).map_err(refuse)?);
            }
            // A list is often stored as JSON text.
            ("documents", list @ Value::Array(_)) => drop(names.insert(key.clone(), list.clone())),
            ("documents", other) => {
                let list = other
                    .as_str()
                    .and_then(|text| serde_json::from_str::<Vec<Value>>(text).ok());
                let refuse = || {
                    Refusal::new(word!("data.row"))
                        .expected("documents: a list, or its JSON")
                        .found(shown(&other.to_string()))
                };
                names.insert(key.clone(), list.ok_or_else(refuse)?.into());
            }
            ("chat_template_kwargs", Value::Object(given)) => {
                if let Some(name) = given
                    .keys()
                    .find(|name| ["messages", "add_generation_prompt"].contains(&name.as_str()))
                {
                    let refusal = Refusal::new(word!("data.row"))
                        .expected("chat_template_kwargs: names of the template's own");
                    return Err(refusal.found(name).into());
                }
                names.extend(given.clone());
            }
            ("chat_template_kwargs", other) => {
                let refusal =
                    Refusal::new(word!("data.row")).expected("chat_template_kwargs: an object");
                return Err(refusal.found(shown(&other.to_string())).into());
            }
            _ => {}
        }
    }
    Ok(names)
}
