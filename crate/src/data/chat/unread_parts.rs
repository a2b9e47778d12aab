//! Parts of chats that a template does not write.

use std::collections::BTreeMap;

use serde_json::Value;

use super::answer_span::role;
use super::messages::Chat;
use crate::tokenizer::{Conversation, REASONING, Tokenizer};

/// Maximum number of kinds of messages that are tried; those beyond it are taken as read.
const KINDS: usize = 256;

/// The parts of each kind of message, and the other values of a chat, that a template was found to leave out. A part is tried by rendering a
/// conversation without it.
#[derive(Default)]
pub(super) struct UnreadParts {
    kinds: BTreeMap<String, Vec<String>>,
}

impl UnreadParts {
    /// Returns the parts of a chat that its template leaves out, as they are named in a report.
    pub fn of(&mut self, chat: &Chat, tokenizer: &Tokenizer) -> Vec<String> {
        let mut unread: Vec<String> = Vec::new();
        for at in 0..chat.conversation.messages.len() {
            for name in self.of_kind(&kind_of(chat, at), || in_message(chat, at, tokenizer)) {
                if !unread.contains(name) {
                    unread.push(name.clone());
                }
            }
        }
        for key in chat.conversation.names.keys() {
            let name = match key.as_str() {
                "tools" | "documents" => key.clone(),
                _ => format!("chat_template_kwargs.{key}"),
            };
            let tried = || {
                let whole = tokenizer.as_read(&chat.conversation);
                let mut other = whole.clone();
                other.names.shift_remove(key);
                // A value may be read where others of the conversation have it so.
                let read = tokenizer.templates_name(key) || differ(&whole, &other, tokenizer);
                if read { Vec::new() } else { vec![name.clone()] }
            };
            unread.extend(self.of_kind(&name, tried).iter().cloned());
        }
        unread
    }

    fn of_kind(&mut self, kind: &str, tried: impl FnOnce() -> Vec<String>) -> &[String] {
        if !self.kinds.contains_key(kind) {
            if self.kinds.len() >= KINDS {
                return &[];
            }
            self.kinds.insert(kind.to_owned(), tried());
        }
        self.kinds.get(kind).map_or(&[], Vec::as_slice)
    }
}

/// Describes what a template's use of a message may depend on: its role, its keys and which of them are empty, the kind of its content, that
/// it is the first one, and the role of the next one.
fn kind_of(chat: &Chat, at: usize) -> String {
    let message = chat.conversation.messages.get(at).unwrap_or(&Value::Null);
    let content = match &message["content"] {
        Value::String(text) if text.trim().is_empty() => "blank",
        Value::String(_) => "text",
        Value::Array(_) => "parts",
        _ => "none",
    };
    let keys = chat.keys.get(at).into_iter().flatten();
    let keys = keys.map(|key| match says_nothing(message, key) {
        true => format!("{key} empty"),
        false => key.clone(),
    });
    format!(
        "{}\n{}\n{}\n{content}\n{}",
        role(&chat.conversation, at),
        at == 0,
        role(&chat.conversation, at + 1),
        keys.collect::<Vec<_>>().join("\n")
    )
}

/// Returns true if the value at a key is empty, so that nothing is lost where it is not read.
fn says_nothing(message: &Value, key: &str) -> bool {
    match message.get(key) {
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty(),
        _ => false,
    }
}

/// Returns the keys of a message that neither the text of the conversation up to it nor that of the whole depends on: a template may write a
/// message at a later one, and may leave out of the whole what it writes while the message is the last one.
fn in_message(chat: &Chat, at: usize, tokenizer: &Tokenizer) -> Vec<String> {
    let to_here = tokenizer.as_read(&chat.conversation.first(at + 1));
    let whole = tokenizer.as_read(&chat.conversation);
    let role = role(&whole, at);
    let is_read_in = |conversation: &Conversation, key: &str| {
        let mut other = conversation.clone();
        let Some(message) = other.messages.get_mut(at).and_then(Value::as_object_mut) else {
            return true;
        };
        match (key, message.get("content")) {
            ("content", Some(Value::String(text))) if !text.trim().is_empty() => {
                let other = if text.trim() == "x" { "y" } else { "x" };
                message.insert(key.to_owned(), other.into());
            }
            ("role" | "content", _) => return true,
            // Reasoning is handed over by several names.
            _ => message.retain(|name, _| {
                name != key && !(REASONING.contains(&key) && REASONING.contains(&name.as_str()))
            }),
        }
        differ(conversation, &other, tokenizer)
    };
    let message = whole.messages.get(at).unwrap_or(&Value::Null);
    let is_read = |key: &str| {
        says_nothing(message, key) || is_read_in(&to_here, key) || is_read_in(&whole, key)
    };
    let keys = chat.keys.get(at).into_iter().flatten();
    let unread = keys.filter(|key| !is_read(key));
    unread
        .map(|key| format!("messages[].{key} of the role {role}"))
        .collect()
}

/// Returns true if a template writes two conversations differently; a conversation that it refuses is not compared.
fn differ(whole: &Conversation, other: &Conversation, tokenizer: &Tokenizer) -> bool {
    let [whole, other] =
        [whole, other].map(|conversation| tokenizer.render_chat(conversation, false).ok());
    whole.is_none() || whole != other
}
