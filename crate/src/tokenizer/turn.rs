//! The token that ends a turn, and the text of ids.

use std::ops::Range;

use serde_json::{Value, json};

use super::messages::fault;
use super::{Conversation, Date, Tokenizer};
use crate::error::Result;

/// Answer with a text that no template writes itself.
const ANSWER: &str = "answer 7351";

#[doc(hidden)]
impl Tokenizer {
    /// Returns the token that ends a turn, special or not: the one that the chat template writes right after an answer, or else the first
    /// special one after it, or, if it writes none there, the one that begins the user's next turn. In a base model the token that ends a turn
    /// may differ from the one that ends its texts. Returns `None` without a template, or if it writes neither.
    pub fn turn_end(&self) -> Option<u32> {
        *self.turn.get_or_init(|| {
            let conversation = self.probe(json!({"role": "assistant", "content": ANSWER}));
            let text = self.render_chat(&conversation, false).ok()?.text;
            let end = text.rfind(ANSWER)? + ANSWER.len();
            let after = self.first_mark(text.get(end..)?).map(|(id, _)| id);
            let next = next_message(&Value::Null);
            let closing = || self.closing(&conversation, &text, &next);
            after.or_else(|| Some(closing()?.0))
        })
    }

    /// Returns true for a special token, and for the one that ends a turn.
    pub(crate) fn is_mark(&self, id: u32) -> bool {
        self.is_special(id) || self.turn_end() == Some(id)
    }

    /// Returns the token that begins the turn of the message `next` after a conversation that renders as `text`, and the text up to
    /// its end, in which only white space precedes it: it ends an answer that has no end of its own.
    pub(crate) fn closing(
        &self,
        conversation: &Conversation,
        text: &str,
        next: &Value,
    ) -> Option<(u32, String)> {
        let mut longer = conversation.clone();
        longer.messages.push(next.clone());
        let rendered = self.render_chat(&longer, false).ok()?.text;
        let rest = rendered.strip_prefix(text)?;
        let (id, range) = self.first_mark(rest)?;
        let closing = rest.get(..range.end)?;
        let is_blank = closing.get(..range.start)?.trim().is_empty();
        is_blank.then(|| (id, closing.to_owned()))
    }

    /// Returns the result of [`Self::closing`] after an answer with this message's tool calls, in the shortest possible conversation: a
    /// template may write an answer differently when another turn follows it.
    pub(crate) fn closing_of(&self, message: &Value, next: &Value) -> Option<(u32, String)> {
        let mut answer = json!({"role": "assistant", "content": ANSWER});
        if let Some(calls) = message.get("tool_calls") {
            answer["tool_calls"] = calls.clone();
        }
        let conversation = self.probe(answer);
        let text = self.render_chat(&conversation, false).ok()?.text;
        self.closing(&conversation, &text, next)
    }

    /// Returns a question with this answer, and with a tool if only conversations with tools have a template. The end of a turn does not
    /// depend on the date.
    fn probe(&self, answer: Value) -> Conversation {
        let messages = vec![json!({"role": "user", "content": "question"}), answer];
        let mut conversation = Conversation {
            date: Date::new(2000, 1, 1),
            ..Conversation::new(messages)
        };
        if self.chat_template().is_none() {
            let parameters = json!({"type": "object", "properties": {}});
            let tool = json!({"type": "function", "function": {"name": "name", "description": "", "parameters": parameters}});
            conversation.names.insert("tools".to_owned(), json!([tool]));
        }
        conversation
    }

    /// Returns the first token of a text that ends or begins a turn, and its byte range: an added token, special or not, that only white space
    /// precedes, or else the first special one, or else the first added one.
    fn first_mark(&self, text: &str) -> Option<(u32, Range<usize>)> {
        let (ids, starts) = self.encode_with_starts(text).ok()?;
        let start = |at: usize| starts.get(at).copied().unwrap_or(text.len());
        let range = |at: usize| start(at)..start(at + 1);
        let is_said = |at: &usize| {
            let said = text.get(range(*at));
            said.is_some_and(|said| !said.trim().is_empty())
        };
        let is_added = |at: &usize| {
            ids.get(*at)
                .is_some_and(|id| self.added_token(*id).is_some())
        };
        let first = (0..ids.len()).find(is_said).filter(is_added);
        let special = ids.iter().position(|&id| self.is_special(id));
        let at = first.into_iter().chain(special).min();
        let at = at.or_else(|| (0..ids.len()).find(|at| is_said(at) && is_added(at)))?;
        Some((*ids.get(at)?, range(at)))
    }

    /// Returns every token that ends a generated text: the ends of a text, and the end of a turn.
    pub fn stops(&self) -> Vec<u32> {
        let mut stops = self.eos().to_vec();
        stops.extend(self.turn_end().filter(|end| !stops.contains(end)));
        stops
    }
}

/// Returns a message that may follow an answer: the result of its first tool call, or else one of the user.
pub(crate) fn next_message(answer: &Value) -> Value {
    let Some(call) = answer["tool_calls"].get(0) else {
        return json!({"role": "user", "content": "question"});
    };
    json!({"role": "tool", "content": "result", "tool_call_id": call["id"], "name": call["function"]["name"]})
}

#[doc(hidden)]
impl Tokenizer {
    /// Returns the text of `ids`, including special tokens. Unlike [`Tokenizer::decode`], which skips them, it refuses ids without a token.
    ///
    /// # Errors
    /// `config.invalid` for an id without a token; otherwise as for [`Tokenizer::decode`].
    pub fn detokenize(&self, ids: &[u32]) -> Result<String> {
        let absent =
            |(_, id): &(usize, &u32)| (**id as usize) < self.vocab_size() && !self.has(**id);
        match ids.iter().enumerate().find(absent) {
            Some((position, id)) => {
                let key = format!("ids[{position}]");
                Err(fault(key, "the id of a token", &json!(id)))
            }
            None => self.decode(ids),
        }
    }
}
