//! The token that ends a turn, found by rendering one.

use serde_json::json;

use super::{Conversation, Tokenizer};

/// An answer whose text no template writes by itself.
const ANSWER: &str = "answer 7351";

impl Tokenizer {
    /// The special token that the chat template writes first after an answer: a base model's turns may end with one that does not end its
    /// texts. `None` without a template, or where it writes none there.
    pub fn turn_end(&self) -> Option<u32> {
        self.has_chat_template().then_some(())?;
        let messages = vec![json!({"role": "user", "content": "question"}), json!({"role": "assistant", "content": ANSWER})];
        let text = self.render_chat(&Conversation::new(messages), false).ok()?.text;
        let end = text.rfind(ANSWER)? + ANSWER.len();
        let (ids, starts) = self.encode_with_starts(&text).ok()?;
        ids.into_iter().zip(starts).find(|&(id, start)| start >= end && self.is_special(id)).map(|(id, _)| id)
    }

    /// Every token that ends a generated text: the ends of a text, and the end of a turn.
    pub fn stops(&self) -> Vec<u32> {
        let mut stops = self.eos().to_vec();
        stops.extend(self.turn_end().filter(|end| !stops.contains(end)));
        stops
    }
}
