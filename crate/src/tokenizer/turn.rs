//! Conversations in requests: their messages, and the token that ends a turn.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::{Conversation, Date, Tokenizer};
use crate::error::{Error, Fault, Result, shown};

/// Answer with a text that no template writes itself.
const ANSWER: &str = "answer 7351";

#[doc(hidden)]
impl Tokenizer {
    /// Returns the special token that ends a turn: the first one that the chat template writes after an answer, or, if it writes none
    /// there, the one that begins the user's next turn. In a base model the token that ends a turn may differ from the one that ends its
    /// texts. Returns `None` without a template, or if it writes neither.
    pub fn turn_end(&self) -> Option<u32> {
        self.has_chat_template().then_some(())?;
        let conversation = probe(json!({"role": "assistant", "content": ANSWER}));
        let text = self.render_chat(&conversation, false).ok()?.text;
        let end = text.rfind(ANSWER)? + ANSWER.len();
        let after = self.first_special(text.get(end..)?).map(|(id, _)| id);
        after.or_else(|| self.closing(&conversation, &text, &next_message(&Value::Null)).map(|(id, _)| id))
    }

    /// Returns the special token that begins the turn of the message `next` after a conversation that renders as `text`, and the text up to
    /// its end, in which only white space precedes it: it ends an answer that has no end of its own.
    pub(crate) fn closing(&self, conversation: &Conversation, text: &str, next: &Value) -> Option<(u32, String)> {
        let mut longer = conversation.clone();
        longer.messages.push(next.clone());
        let rendered = self.render_chat(&longer, false).ok()?.text;
        let rest = rendered.strip_prefix(text)?;
        let (id, range) = self.first_special(rest)?;
        let blank = rest.get(..range.start)?.trim().is_empty();
        blank.then(|| rest.get(..range.end).map(|closing| (id, closing.to_owned()))).flatten()
    }

    /// Returns the result of [`Self::closing`] after an answer with this message's tool calls, in the shortest possible conversation: a
    /// template may write an answer differently when another turn follows it.
    pub(crate) fn closing_of(&self, message: &Value, next: &Value) -> Option<(u32, String)> {
        let mut answer = json!({"role": "assistant", "content": ANSWER});
        if let Some(calls) = message.get("tool_calls") {
            answer["tool_calls"] = calls.clone();
        }
        let conversation = probe(answer);
        let text = self.render_chat(&conversation, false).ok()?.text;
        self.closing(&conversation, &text, next)
    }

    /// Returns the first special token of a text, and its byte range.
    fn first_special(&self, text: &str) -> Option<(u32, Range<usize>)> {
        let (ids, starts) = self.encode_with_starts(text).ok()?;
        let at = ids.iter().position(|&id| self.is_special(id))?;
        Some((*ids.get(at)?, *starts.get(at)?..starts.get(at + 1).copied().unwrap_or(text.len())))
    }

    /// Returns every token that ends a generated text: the ends of a text, and the end of a turn.
    pub fn stops(&self) -> Vec<u32> {
        let mut stops = self.eos().to_vec();
        stops.extend(self.turn_end().filter(|end| !stops.contains(end)));
        stops
    }
}

/// Returns a question with this answer. The end of a turn does not depend on the date.
fn probe(answer: Value) -> Conversation {
    let messages = vec![json!({"role": "user", "content": "question"}), answer];
    Conversation { date: Date::new(2000, 1, 1), ..Conversation::new(messages) }
}

/// Returns a message that may follow an answer: the result of its first tool call, or else one of the user.
pub(crate) fn next_message(answer: &Value) -> Value {
    let Some(call) = answer["tool_calls"].get(0) else { return json!({"role": "user", "content": "question"}) };
    json!({"role": "tool", "content": "result", "tool_call_id": call["id"], "name": call["function"]["name"]})
}

fn fault(key: String, rule: &str, found: &Value) -> Error {
    Error::InvalidConfig(vec![Fault::new(key, rule, shown(&found.to_string()))])
}

impl Conversation {
    /// Reads a list of messages, or an object with `messages` and with `tools`, `documents` and `chat_template_kwargs` as in rows of
    /// training data. Nulls are left out, and contents that are lists of texts are joined.
    ///
    /// # Errors
    /// `config.invalid` with the path of a value that is not a message, a text or a variable of a template.
    pub fn from_json(value: &Value) -> Result<Self> {
        let Value::Object(given) = value else { return Ok(Self::new(messages(value)?)) };
        let mut conversation = Self::new(messages(given.get("messages").unwrap_or(&Value::Null))?);
        for (key, value) in given.iter().filter(|(key, value)| *key != "messages" && !value.is_null()) {
            match (key.as_str(), value) {
                ("tools" | "documents", Value::Array(_)) => drop(conversation.names.insert(key.clone(), value.clone())),
                ("tools" | "documents", _) => return Err(fault(key.clone(), "a list", value)),
                ("chat_template_kwargs", Value::Object(names)) => {
                    if let Some(own) = names.keys().find(|name| matches!(name.as_str(), "messages" | "add_generation_prompt")) {
                        return Err(fault(format!("{key}.{own}"), "names of the template's own", &json!(own)));
                    }
                    conversation.names.extend(names.clone());
                }
                ("chat_template_kwargs", _) => return Err(fault(key.clone(), "an object", value)),
                _ => return Err(fault(shown(key), "messages, tools, documents or chat_template_kwargs", &json!(key))),
            }
        }
        Ok(conversation)
    }
}

fn messages(value: &Value) -> Result<Vec<Value>> {
    let list = value.as_array().filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| fault("messages".into(), "a list of at least one message", value))?;
    list.iter().enumerate().map(|(index, message)| read_message(message, &format!("messages[{index}]"))).collect()
}

fn read_message(message: &Value, path: &str) -> Result<Value> {
    let fields = message.as_object().ok_or_else(|| fault(path.to_owned(), "an object with role and content", message))?;
    let mut fields: Map<String, Value> = fields.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
    let role = fields.get("role").unwrap_or(&Value::Null);
    if !role.is_string() {
        return Err(fault(format!("{path}.role"), "a text", role));
    }
    let rule = "a text, or a list of parts that are texts";
    let joined = match fields.get("content") {
        None | Some(Value::String(_)) => None,
        Some(Value::Array(parts)) => {
            let text = |part: &Value| match part.get("type").is_none_or(|kind| kind == "text") {
                true => part.get("text").and_then(Value::as_str).map(str::to_owned),
                false => None,
            };
            let other = |(index, part): (usize, &Value)| fault(format!("{path}.content[{index}]"), "a part of the type text", part);
            Some(parts.iter().enumerate().map(|part| text(part.1).ok_or_else(|| other(part))).collect::<Result<String>>()?)
        }
        Some(content) => return Err(fault(format!("{path}.content"), rule, content)),
    };
    if let Some(joined) = joined {
        fields.insert("content".to_owned(), Value::from(joined));
    }
    Ok(Value::Object(fields))
}

#[doc(hidden)]
impl Tokenizer {
    /// Returns the text of `ids`, including special tokens. Unlike [`Tokenizer::decode`], which skips them, it refuses ids without a token.
    ///
    /// # Errors
    /// `config.invalid` for an id without a token; otherwise as for [`Tokenizer::decode`].
    pub fn detokenize(&self, ids: &[u32]) -> Result<String> {
        let absent = |(_, id): &(usize, &u32)| (**id as usize) < self.vocab_size() && !self.has(**id);
        match ids.iter().enumerate().find(absent) {
            Some((position, id)) => Err(fault(format!("ids[{position}]"), "the id of a token", &json!(id))),
            None => self.decode(ids),
        }
    }
}
