//! Finds the tokens of a conversation that are learned: the assistant's answers, each to the token that ends its turn.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use super::chat::Chat;
use super::example::Example;
use super::header::{Header, common, common_end, is_written_alike, with_content, with_other_content, writes_nothing, written};
use super::positions::Tokens;
use crate::config::LossOn;
use crate::error::{Error, Refusal, Result, shown, word};
use crate::tokenizer::{Conversation, Findings, Rendered, Tokenizer, next_message};

/// An answer: the text of the conversation that ends with it, and the bytes of the answer in this text.
struct Answer {
    text: String,
    span: Range<usize>,
}

/// The method by which the learned tokens of a conversation were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The template marks the parts that the model generates.
    Marks,
    /// The text up to each answer is the beginning of the whole text.
    Prefix,
    /// The template rewrites earlier turns, so each answer is an example of its own.
    PerAnswer,
    /// The whole text is learned.
    Whole,
}

impl Rule {
    /// Returns the name used in a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Marks => "generation",
            Self::Prefix => "prefix",
            Self::PerAnswer => "per-answer",
            Self::Whole => "all",
        }
    }
}

/// The examples of a conversation.
pub(super) struct Taught {
    pub examples: Vec<Example>,
    pub rule: Rule,
    /// True if one token has the end of a prompt and the beginning of its answer: it is not learned.
    pub crosses: bool,
    /// Findings about the text of the whole conversation.
    pub findings: Findings,
}

impl Taught {
    /// Creates the only example of a conversation, which learns the spans of its text.
    fn whole(conversation: &Conversation, tokens: &Tokens<'_>, spans: &[Range<usize>], rule: Rule, tokenizer: &Tokenizer) -> Result<Self> {
        let crosses = rule != Rule::Whole && tokens.crosses(spans);
        let findings = tokenizer.chat_findings(conversation, tokens.text, &tokens.ids)?;
        Ok(Self { examples: vec![tokens.example(spans)], rule, crosses, findings })
    }
}

/// Turns a conversation into examples. If its template marks what the model generates, that is learned. Otherwise each answer is learned
/// from the end of the generation prompt to the end of its turn, if the whole text contains it as the text up to it does. If the template
/// rewrites earlier turns, each answer becomes an example of its own, whose conversation ends with it, as the model sees it when it is
/// used. Refuses a conversation that gives nothing to learn because its template writes nothing of it.
pub(super) fn conversation(chat: &Chat, loss_on: LossOn, tokenizer: &Tokenizer) -> Result<Taught> {
    let chat = Chat { conversation: tokenizer.as_read(&chat.conversation), learned: chat.learned.clone(), keys: Vec::new() };
    let taught = taught(&chat, loss_on, tokenizer)?;
    // The first token of an example is never predicted.
    let learns = |example: &Example| example.counted.iter().skip(1).any(|counted| *counted);
    if !taught.examples.iter().any(learns) && is_written_alike(&chat.conversation, tokenizer) {
        return Err(writes_nothing());
    }
    Ok(taught)
}

/// Makes the examples of a conversation that is in the form that its template reads.
fn taught(chat: &Chat, loss_on: LossOn, tokenizer: &Tokenizer) -> Result<Taught> {
    if loss_on == LossOn::All {
        let text = written(tokenizer.render_chat(&chat.conversation, false)?)?.text;
        let last = chat.learned.len().checked_sub(1).filter(|&at| role(&chat.conversation, at) == "assistant");
        let last = last.and_then(|at| answer(&chat.conversation, at, tokenizer).ok());
        let text = ended(text, last.as_ref());
        let whole = Tokens::of(&text, tokenizer)?;
        let learned = all_but(chat, &whole, tokenizer)?;
        return Taught::whole(&chat.conversation, &whole, &learned, Rule::Whole, tokenizer);
    }
    let answers: Vec<usize> = (0..chat.learned.len()).filter(|&at| role(&chat.conversation, at) == "assistant").collect();
    let mut learned: Vec<usize> = (0..chat.learned.len()).filter(|&at| chat.learned[at]).collect();
    if learned.is_empty() {
        return Err(if answers.is_empty() { without_assistant(&chat.conversation) } else { unusable("no answer that is to be learned") });
    }
    if loss_on == LossOn::Last {
        learned = learned.split_off(learned.len() - 1);
    }
    let Rendered { text, generated } = written(tokenizer.render_chat(&chat.conversation, false)?)?;
    if !generated.is_empty() {
        // The marks are those of answers.
        let (answered, others): (Vec<usize>, Vec<usize>) = learned.iter().copied().partition(|at| answers.contains(at));
        let mut spans = marked(generated, &answers, &answered)?;
        for at in others {
            spans.push(said(&chat.conversation, at, tokenizer)?.span);
        }
        return Taught::whole(&chat.conversation, &Tokens::of(&text, tokenizer)?, &spans, Rule::Marks, tokenizer);
    }
    let found = learned.iter().map(|&at| answer(&chat.conversation, at, tokenizer)).collect::<Result<Vec<Answer>>>()?;
    let text = ended(text, found.last());
    let whole = Tokens::of(&text, tokenizer)?;
    let spans: Option<Vec<Range<usize>>> = found.iter().map(|answer| answer.in_whole(&whole, tokenizer)).collect();
    if let Some(spans) = spans {
        return Taught::whole(&chat.conversation, &whole, &spans, Rule::Prefix, tokenizer);
    }
    let findings = tokenizer.chat_findings(&chat.conversation, &text, &whole.ids)?;
    let mut taught = Taught { examples: Vec::new(), rule: Rule::PerAnswer, crosses: false, findings };
    for answer in &found {
        let alone = Tokens::of(&answer.text, tokenizer)?;
        let end = alone.turn_end(&answer.span, tokenizer).unwrap_or(answer.span.end);
        let learned = answer.span.start..end;
        taught.examples.push(alone.example(std::slice::from_ref(&learned)));
        taught.crosses |= alone.crosses(std::slice::from_ref(&learned));
    }
    Ok(taught)
}

/// Returns the spans of the text except for the answers that are read but not learned.
fn all_but(chat: &Chat, whole: &Tokens<'_>, tokenizer: &Tokenizer) -> Result<Vec<Range<usize>>> {
    let (mut spans, mut from) = (Vec::new(), 0);
    let read_alone = |at: &usize| role(&chat.conversation, *at) == "assistant" && !chat.learned[*at];
    for at in (0..chat.learned.len()).filter(read_alone) {
        let refuse = || {
            let refusal = Refusal::new(word!("data.row")).expected("answers that the template writes alike alone and in the whole");
            Error::from(refusal.found("one of weight 0 that it does not").hint("leave loss_on out, or learn all answers"))
        };
        let span = answer(&chat.conversation, at, tokenizer)?.in_whole(whole, tokenizer).ok_or_else(refuse)?;
        spans.push(from..span.start);
        from = span.end;
    }
    spans.push(from..whole.text.len());
    Ok(spans)
}

/// Returns the text of a conversation, extended by the end of its last answer that the template leaves to the next turn.
fn ended(text: String, last: Option<&Answer>) -> String {
    last.filter(|last| last.text.starts_with(&text)).map_or(text, |last| last.text.clone())
}

fn unusable(found: impl Into<String>) -> Error {
    Refusal::new(word!("data.row")).expected("an answer to learn").found(found.into()).into()
}

fn without_assistant(conversation: &Conversation) -> Error {
    let roles: BTreeSet<&str> = (0..conversation.messages.len()).map(|at| role(conversation, at)).collect();
    if roles.is_empty() {
        return unusable("an empty list of messages");
    }
    let roles: Vec<String> = roles.into_iter().map(shown).collect();
    unusable(format!("no message with the role assistant, but {}", roles.join(", ")))
}

fn role(conversation: &Conversation, at: usize) -> &str {
    conversation.messages.get(at).and_then(|message| message["role"].as_str()).unwrap_or_default()
}

/// Returns the marked spans of the learned answers; all marked spans if all answers are learned.
fn marked(generated: Vec<Range<usize>>, answers: &[usize], learned: &[usize]) -> Result<Vec<Range<usize>>> {
    if answers.len() == learned.len() {
        return Ok(generated);
    }
    if generated.len() != answers.len() {
        let found = format!(
            "a chat template that marks {} answers of {}, so that the learned ones cannot be told apart",
            generated.len(),
            answers.len()
        );
        return Err(unusable(found));
    }
    Ok(generated.into_iter().zip(answers).filter(|(_, at)| learned.contains(at)).map(|(range, _)| range).collect())
}

/// Renders the conversation up to the message `at`, and locates this message in the text.
fn answer(conversation: &Conversation, at: usize, tokenizer: &Tokenizer) -> Result<Answer> {
    if role(conversation, at) != "assistant" {
        return said(conversation, at, tokenizer);
    }
    let text = match tokenizer.render_chat(&conversation.first(at + 1), false) {
        Ok(rendered) => rendered.text,
        // A template may require a user message, which comes later.
        Err(refused) => return in_longer(conversation, at, tokenizer)?.ok_or(refused),
    };
    let before = |prompt: bool| tokenizer.render_chat(&conversation.first(at), prompt).map(|before| before.text);
    let opened = before(true);
    let start = if let Ok(opened) = &opened
        && text.starts_with(opened)
    {
        opened.len()
    } else if at > 0
        && let (Ok(opened), Ok(before)) = (&opened, before(false))
    {
        let (header, said) = (Header { text: &text, opened, before: &before }, conversation.first(at + 1));
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
fn said(conversation: &Conversation, at: usize, tokenizer: &Tokenizer) -> Result<Answer> {
    let unwritten = || unusable(format!("message {at}, which is to be learned and whose content the template does not write as a text"));
    let content = conversation.messages.get(at).and_then(|message| message["content"].as_str()).map(str::trim).ok_or_else(unwritten)?;
    // Another content, which neither begins nor ends like this one.
    let other = ["x", "y", "z"].iter().find(|other| !content.starts_with(**other) && !content.ends_with(**other));
    let other = other.and_then(|other| with_content(conversation, at, other)).ok_or_else(unwritten)?;
    let (mut text, other) = (tokenizer.render_chat(conversation, false)?.text, tokenizer.render_chat(&other, false)?.text);
    let (start, end) = (common(&text, &other), text.len() - common_end(&text, &other));
    let after = Tokens::of(text.get(end..).unwrap_or_default(), tokenizer)?;
    if start >= end {
        return Err(unwritten());
    }
    let closed = (0..after.ids.len()).find(|&at| after.ids.get(at).is_some_and(|id| tokenizer.is_mark(*id)));
    let closed = closed.filter(|&at| after.text.get(..after.starts[at]).is_some_and(|between| between.trim().is_empty()));
    let end = end + closed.map_or(0, |at| after.end(at));
    text.truncate(end);
    Ok(Answer { span: start..end, text })
}

/// Returns the answer from `start` of a text. If it has no token that ends a turn, the token that begins the next turn is appended: without
/// one the model does not learn to stop.
fn with_end(mut text: String, start: usize, conversation: &Conversation, at: usize, tokenizer: &Tokenizer) -> Result<Answer> {
    let message = conversation.messages.get(at).unwrap_or(&Value::Null);
    let next = conversation.messages.get(at + 1).cloned().unwrap_or_else(|| next_message(message));
    let said = text.get(start..).unwrap_or_default();
    if next["role"] != "assistant" && Tokens::of(said, tokenizer)?.turn_end(&(0..said.len()), tokenizer).is_none() {
        let closing = tokenizer.closing(&conversation.first(at + 1), &text, &next).or_else(|| tokenizer.closing_of(message, &next));
        text.extend(closing.map(|(_, closing)| closing));
    }
    Ok(Answer { span: start..text.len(), text })
}

/// Finds the answer `at` in the whole conversation's text, from where another answer would differ to the end of its turn.
fn in_longer(conversation: &Conversation, at: usize, tokenizer: &Tokenizer) -> Result<Option<Answer>> {
    let Some(other) = with_other_content(conversation, at) else { return Ok(None) };
    let (text, other) = (tokenizer.render_chat(conversation, false)?.text, tokenizer.render_chat(&other, false)?.text);
    let (start, said) = (common(&text, &other), text.len() - common_end(&text, &other));
    let whole = Tokens::of(&text, tokenizer)?;
    let ends = |at: &usize| whole.starts[*at] >= said && whole.ids.get(*at).is_some_and(|id| tokenizer.eos().contains(id));
    let end = (0..whole.starts.len()).find(ends).map(|at| whole.end(at));
    Ok(end.and_then(|end| Some(Answer { text: text.get(..end)?.to_owned(), span: start..end })))
}

impl Answer {
    /// Finds the answer in the whole text, to the end of its turn; `None` if the template writes it differently there.
    fn in_whole(&self, whole: &Tokens<'_>, tokenizer: &Tokenizer) -> Option<Range<usize>> {
        let same = common(whole.text, &self.text);
        if same < self.span.start || !self.is_said_before(same, tokenizer) {
            return None;
        }
        match whole.turn_end(&(self.span.start..same), tokenizer) {
            Some(end) => Some(self.span.start..end),
            None => (same == self.text.len()).then(|| self.span.clone()),
        }
    }
    /// Returns true if the answer has ended before the byte `at` of its text, or has only tokens of turns and white space from there on.
    fn is_said_before(&self, at: usize, tokenizer: &Tokenizer) -> bool {
        if at >= self.text.len() {
            return true;
        }
        let Ok(alone) = Tokens::of(&self.text, tokenizer) else { return false };
        if alone.turn_end(&self.span, tokenizer).is_some_and(|end| end <= at) {
            return true;
        }
        let from = alone.special_around(at, tokenizer).unwrap_or(at);
        let is_blank = |(index, start): (usize, &usize)| {
            let text = self.text.get(*start.max(&from)..alone.end(index)).unwrap_or_default();
            text.trim().is_empty() || alone.ids.get(index).is_some_and(|id| tokenizer.is_mark(*id))
        };
        alone.starts.iter().enumerate().filter(|(index, _)| alone.end(*index) > from).all(is_blank)
    }
}
