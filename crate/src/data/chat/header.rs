//! Finds where an answer begins in a text that does not begin with its generation prompt, such as one that opens a block of thoughts.

use std::ops::Range;

use serde_json::{Value, json};

use super::positions::Tokens;
use crate::data::read::refused;
use crate::error::{Error, Result, word};
use crate::tokenizer::{Conversation, Rendered, Tokenizer};

/// The text of a conversation that ends with an answer, and the text before the answer.
pub(super) struct Header<'a> {
    pub text: &'a str,
    /// The text before the answer, with the generation prompt.
    pub opened: &'a str,
    /// The same without the generation prompt.
    pub before: &'a str,
}

impl Header<'_> {
    /// Returns the byte of the text at which the answer begins: after the last line end or special token in which text and prompt agree. A
    /// header of plain text between that and the answer is learned with it, as by the marks of transformers' templates for training.
    pub fn end(&self, tokenizer: &Tokenizer) -> Result<usize> {
        let agreed = common(self.text, self.opened);
        let line = self.text[..agreed].rfind('\n').map_or(0, |at| at + 1);
        let special = Tokens::of(self.text, tokenizer)?.special_before(agreed);
        let before = common(self.text, self.before);
        Ok(line.max(special).max(before).min(agreed))
    }

    /// Returns the answer after the prompt as the model sees it, and the byte at which it begins, since a template may write the turn
    /// before the answer differently when it is the last one. The answer begins where the text before its content ends like the prompt, or
    /// like the prompt without what it opens at its end.
    pub fn asked(
        &self,
        conversation: &Conversation,
        at: usize,
        tokenizer: &Tokenizer,
    ) -> Result<Option<(String, usize)>> {
        let Some(other) = with_other_content(conversation, at) else {
            return Ok(None);
        };
        let content = common(self.text, &tokenizer.render_chat(&other, false)?.text);
        Ok(self.most_alike(0..content + 1).and_then(|(prompt, end)| {
            let (prompt, answer) = (self.opened.get(..prompt)?, self.text.get(end..)?);
            Some((format!("{prompt}{answer}"), prompt.len()))
        }))
    }

    /// Returns the byte at which the answer begins if `start` is within an earlier message, which the text does not write as the prompt does:
    /// then it is where the text between this message and the content of the answer ends like the prompt.
    pub fn after_previous(
        &self,
        start: usize,
        conversation: &Conversation,
        at: usize,
        tokenizer: &Tokenizer,
    ) -> Result<usize> {
        let other_text = |at: usize| match with_other_content(conversation, at) {
            Some(other) => tokenizer
                .render_chat(&other, false)
                .map(|rendered| Some(rendered.text)),
            None => Ok(None),
        };
        let Some(other) = at.checked_sub(1).map(other_text).transpose()?.flatten() else {
            return Ok(start);
        };
        let previous = self.text.len() - common_end(self.text, &other);
        if start >= previous || other == self.text {
            return Ok(start);
        }
        let content = other_text(at)?.map_or(self.text.len(), |other| common(self.text, &other));
        Ok(self
            .most_alike(previous..content + 1)
            .map_or(content.max(previous), |(_, end)| end))
    }

    /// Returns the end of the prompt, or of the prompt without what it opens at its end, and the byte among `ends` of the text before which
    /// the text agrees with it in most bytes; `None` if it agrees nowhere.
    fn most_alike(&self, ends: Range<usize>) -> Option<(usize, usize)> {
        let (text, opened) = (self.text, self.opened);
        let same = |prompt: usize, end: usize| {
            let (said, asked) = (text[..end].bytes().rev(), opened[..prompt].bytes().rev());
            said.zip(asked).take_while(|(a, b)| a == b).count()
        };
        let shortest = match opened.starts_with(self.before) {
            true => self.before.len(),
            false => opened.len(),
        };
        let prompts = (shortest..=opened.len()).filter(|end| opened.is_char_boundary(*end));
        let ends = || ends.clone().filter(|end| text.is_char_boundary(*end));
        let pairs = prompts.flat_map(|prompt| ends().map(move |end| (prompt, end)));
        let best = pairs.max_by_key(|(prompt, end)| (same(*prompt, *end), *prompt, *end));
        best.filter(|(prompt, end)| same(*prompt, *end) > 0)
    }
}

/// Returns the conversation with another content in the message `at`, whose first character differs; `None` if the content is not a text.
pub(super) fn with_other_content(conversation: &Conversation, at: usize) -> Option<Conversation> {
    let content = conversation.messages.get(at)?["content"].as_str()?;
    let begins_same = content.trim_start().starts_with('x');
    with_content(conversation, at, if begins_same { "y" } else { "x" })
}

/// Returns the conversation with this content in the message `at`.
pub(super) fn with_content(
    conversation: &Conversation,
    at: usize,
    content: &str,
) -> Option<Conversation> {
    let mut other = conversation.clone();
    let fields = other.messages.get_mut(at)?.as_object_mut()?;
    fields.insert("content".to_owned(), content.into());
    Some(other)
}

/// Returns the length in bytes of the common beginning of two texts.
pub(super) fn common(a: &str, b: &str) -> usize {
    common_length(a.chars(), b.chars())
}

/// Returns the length in bytes of the common end of two texts.
pub(super) fn common_end(a: &str, b: &str) -> usize {
    common_length(a.chars().rev(), b.chars().rev())
}

fn common_length(a: impl Iterator<Item = char>, b: impl Iterator<Item = char>) -> usize {
    let same = a.zip(b).take_while(|(a, b)| a == b);
    same.map(|(c, _)| c.len_utf8()).sum()
}

/// Returns true if the template writes the same text for other messages of the same roles.
pub(super) fn is_written_alike(conversation: &Conversation, tokenizer: &Tokenizer) -> bool {
    const OTHERS: [&str; 2] = ["content 7351", "content 1537"];
    let other = |message: &Value| {
        let content = &message["content"];
        let [first, second] = OTHERS;
        let has_first = content.to_string().contains(first);
        let text = if has_first { second } else { first };
        let content = match content {
            Value::Array(_) => json!([{"type": "text", "text": text}]),
            _ => json!(text),
        };
        json!({"role": message["role"], "content": content})
    };
    let others = Conversation {
        messages: conversation.messages.iter().map(other).collect(),
        ..conversation.clone()
    };
    let [own, others] =
        [conversation, &others].map(|conversation| tokenizer.render_chat(conversation, false).ok());
    own.is_some() && own == others
}

/// Refuses the text of a template that writes nothing of a conversation.
pub(super) fn written(rendered: Rendered) -> Result<Rendered> {
    match rendered.text.trim() {
        "" => Err(writes_nothing()),
        _ => Ok(rendered),
    }
}

pub(super) fn writes_nothing() -> Error {
    let found = "a chat template that writes nothing of this conversation";
    refused(word!("data.template"), "a text", found).into()
}
