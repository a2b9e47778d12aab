//! Locates an answer in the text of its conversation, to the token that ends its turn.

use std::fmt::Display;
use std::ops::Range;

use serde_json::Value;

use super::header::{Header, common, common_end, with_content, with_other_content};
use super::positions::Tokens;
use crate::data::read::refused;
use crate::error::{Error, Result, word};
use crate::tokenizer::{Conversation, Tokenizer, next_message};

/// An answer: the text of the conversation that ends with it, and the bytes of the answer in this text.
pub(super) struct Answer {
    pub text: String,
    pub span: Range<usize>,
}

pub(super) fn role(conversation: &Conversation, at: usize) -> &str {
    let message = conversation.messages.get(at).unwrap_or(&Value::Null);
    message["role"].as_str().unwrap_or_default()
}

/// Refuses a conversation without an answer that can be learned.
pub(super) fn unusable(found: impl Display) -> Error {
    refused(word!("data.row"), "an answer to learn", found).into()
}

/// Renders the conversation up to the message `at`, and locates this message in the text.
pub(super) fn answer(
    conversation: &Conversation,
    at: usize,
    tokenizer: &Tokenizer,
) -> Result<Answer> {
    if role(conversation, at) != "assistant" {
        return said(conversation, at, tokenizer);
    }
    let text = match tokenizer.render_chat(&conversation.first(at + 1), false) {
        Ok(rendered) => rendered.text,
        // A template may require a user message, which comes later.
        Err(refused) => return in_longer(conversation, at, tokenizer)?.ok_or(refused),
    };
    let before = |prompt: bool| {
        let rendered = tokenizer.render_chat(&conversation.first(at), prompt);
        rendered.map(|rendered| rendered.text)
    };
    let opened = before(true);
    let start = if let Ok(opened) = &opened
        && text.starts_with(opened)
    {
        opened.len()
    } else if at > 0
        && let (Ok(opened), Ok(before)) = (&opened, before(false))
    {
        let header = Header {
            text: &text,
            opened,
            before: &before,
        };
        let said = conversation.first(at + 1);
        // After a tool's result a turn may continue, so that its end in the text before is not its end here.
        if !(text.starts_with(&before) && opened.starts_with(&before))
            && role(conversation, at - 1) == "user"
            && let Some((text, start)) = header.asked(&said, at, tokenizer)?
        {
            return with_end(text, start, conversation, at, tokenizer);
        }
        header.after_previous(header.end(tokenizer)?, &said, at, tokenizer)?
    } else if let Some(other) = with_other_content(&conversation.first(at + 1), at) {
        // A template may refuse a conversation that ends before the answer: the answer begins where another one would differ.
        common(&text, &tokenizer.render_chat(&other, false)?.text)
    } else {
        common(&text, &opened?)
    };
    with_end(text, start, conversation, at, tokenizer)
}

/// Locates the content of a message that is no answer in the conversation's text, with the token that ends its turn right after it.
pub(super) fn said(
    conversation: &Conversation,
    at: usize,
    tokenizer: &Tokenizer,
) -> Result<Answer> {
    let unwritten = || {
        unusable(format!(
            "message {at}, which is to be learned and whose content the template does not write as a text"
        ))
    };
    let message = conversation.messages.get(at).unwrap_or(&Value::Null);
    let content = message["content"].as_str().ok_or_else(unwritten)?.trim();
    // Another content, which neither begins nor ends like this one.
    let mut others = ["x", "y", "z"].into_iter();
    let other = others.find(|other| !content.starts_with(other) && !content.ends_with(other));
    let other = other.and_then(|other| with_content(conversation, at, other));
    let other = other.ok_or_else(unwritten)?;
    let mut text = tokenizer.render_chat(conversation, false)?.text;
    let other = tokenizer.render_chat(&other, false)?.text;
    let (start, end) = (
        common(&text, &other),
        text.len() - common_end(&text, &other),
    );
    let after = Tokens::of(text.get(end..).unwrap_or_default(), tokenizer)?;
    if start >= end {
        return Err(unwritten());
    }
    let mark = after.ids.iter().position(|id| tokenizer.is_mark(*id));
    let is_next = |at: &usize| {
        let between = after.text.get(..after.starts[*at]);
        between.is_some_and(|between| between.trim().is_empty())
    };
    let end = end + mark.filter(is_next).map_or(0, |at| after.end(at));
    text.truncate(end);
    Ok(Answer {
        span: start..end,
        text,
    })
}

/// Returns the answer from `start` of a text. If it has no token that ends a turn, the token that begins the next turn is appended: without
/// one the model does not learn to stop.
fn with_end(
    mut text: String,
    start: usize,
    conversation: &Conversation,
    at: usize,
    tokenizer: &Tokenizer,
) -> Result<Answer> {
    let message = conversation.messages.get(at).unwrap_or(&Value::Null);
    let next = conversation.messages.get(at + 1).cloned();
    let next = next.unwrap_or_else(|| next_message(message));
    let said = text.get(start..).unwrap_or_default();
    let has_end = || {
        Ok::<_, Error>(
            Tokens::of(said, tokenizer)?
                .turn_end(&(0..said.len()))
                .is_some(),
        )
    };
    if next["role"] != "assistant" && !has_end()? {
        let closing = tokenizer
            .closing(&conversation.first(at + 1), &text, &next)
            .or_else(|| tokenizer.closing_of(message, &next));
        text.extend(closing.map(|(_, closing)| closing));
    }
    Ok(Answer {
        span: start..text.len(),
        text,
    })
}

/// Finds the answer `at` in the whole conversation's text, from where another answer would differ to the end of its turn.
fn in_longer(
    conversation: &Conversation,
    at: usize,
    tokenizer: &Tokenizer,
) -> Result<Option<Answer>> {
    let Some(other) = with_other_content(conversation, at) else {
        return Ok(None);
    };
    let text = tokenizer.render_chat(conversation, false)?.text;
    let other = tokenizer.render_chat(&other, false)?.text;
    let (start, said) = (
        common(&text, &other),
        text.len() - common_end(&text, &other),
    );
    let whole = Tokens::of(&text, tokenizer)?;
    let ends = |at: &usize| whole.starts[*at] >= said && tokenizer.eos().contains(&whole.ids[*at]);
    let end = (0..whole.starts.len()).find(ends).map(|at| whole.end(at));
    let up_to = |end: usize| {
        let (text, span) = (text.get(..end)?.to_owned(), start..end);
        Some(Answer { text, span })
    };
    Ok(end.and_then(up_to))
}

impl Answer {
    /// Finds the answer in the whole text, to the end of its turn; `None` if the template writes it differently there.
    pub fn in_whole(&self, whole: &Tokens<'_>, tokenizer: &Tokenizer) -> Option<Range<usize>> {
        let same = common(whole.text, &self.text);
        if same < self.span.start || !self.is_said_before(same, tokenizer) {
            return None;
        }
        match whole.turn_end(&(self.span.start..same)) {
            Some(end) => Some(self.span.start..end),
            None => (same == self.text.len()).then(|| self.span.clone()),
        }
    }

    /// Returns true if the answer has ended before the byte `at` of its text, or has only tokens of turns and white space from there on.
    fn is_said_before(&self, at: usize, tokenizer: &Tokenizer) -> bool {
        if at >= self.text.len() {
            return true;
        }
        let Ok(alone) = Tokens::of(&self.text, tokenizer) else {
            return false;
        };
        if alone.turn_end(&self.span).is_some_and(|end| end <= at) {
            return true;
        }
        let from = alone.special_around(at).unwrap_or(at);
        let is_blank = |index: usize| {
            let text = self
                .text
                .get(alone.starts[index].max(from)..alone.end(index));
            text.is_none_or(|text| text.trim().is_empty()) || tokenizer.is_mark(alone.ids[index])
        };
        let mut rest = (0..alone.starts.len()).filter(|index| alone.end(*index) > from);
        rest.all(is_blank)
    }
}
