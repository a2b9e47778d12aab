//! Keys of chats that a template does not read.

use std::collections::BTreeMap;

use super::chat::{Chat, REASONING, as_read};
use crate::tokenizer::{Conversation, Tokenizer};

/// The keys of messages, and the other values of a chat, as far as a template was found to read them.
#[derive(Default)]
pub(super) struct TemplateKeys {
    read: BTreeMap<String, bool>,
}

impl TemplateKeys {
    /// Returns the keys of a chat that its template does not read, as they are named in a report.
    pub fn unread(&mut self, chat: &Chat, tokenizer: &Tokenizer) -> Vec<String> {
        let of_messages = chat.keys.iter().filter(|key| !["role", "content"].contains(&key.as_str()));
        let mut unread: Vec<String> = of_messages
            .map(|key| (key, format!("messages[].{key}")))
            .filter(|(key, name)| {
                let names: &[&str] = if REASONING.contains(&key.as_str()) { &REASONING } else { &[key] };
                let without = |other: &mut Conversation| {
                    for message in other.messages.iter_mut().filter_map(|message| message.as_object_mut()) {
                        message.retain(|key, _| !names.contains(&key.as_str()));
                    }
                };
                !self.is_read(name, names, chat, tokenizer, without)
            })
            .map(|(_, name)| name)
            .collect();
        for key in chat.conversation.names.keys() {
            let own = ["tools", "documents"].contains(&key.as_str());
            let name = if own { key.clone() } else { format!("chat_template_kwargs.{key}") };
            let without = |other: &mut Conversation| drop(other.names.shift_remove(key));
            if !self.is_read(&name, &[key], chat, tokenizer, without) {
                unread.push(name);
            }
        }
        unread
    }

    /// Returns true if a template has one of the `keys`. If it has not, it may still write whole objects: then the text without the key is
    /// another.
    fn is_read(&mut self, name: &str, keys: &[&str], chat: &Chat, tokenizer: &Tokenizer, without: impl FnOnce(&mut Conversation)) -> bool {
        if let Some(known) = self.read.get(name) {
            return *known;
        }
        let read = keys.iter().any(|key| tokenizer.templates_name(key)) || {
            let whole = as_read(&chat.conversation, tokenizer);
            let mut other = whole.clone();
            without(&mut other);
            let [whole, other] = [whole, other].map(|conversation| tokenizer.render_chat(&conversation, false).ok());
            whole.is_none() || whole != other
        };
        self.read.insert(name.to_owned(), read);
        read
    }
}
