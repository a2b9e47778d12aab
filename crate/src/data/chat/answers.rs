//! Finds the tokens of a conversation that are learned: the assistant's answers, each to the token that ends its turn.

use std::collections::BTreeSet;
use std::ops::Range;

use super::answer_span::{Answer, answer, role, said, unusable};
use super::example::Example;
use super::header::{is_written_alike, writes_nothing, written};
use super::messages::Chat;
use super::positions::Tokens;
use crate::config::LossOn;
use crate::data::read::refused;
use crate::error::{Error, Result, shown, word};
use crate::tokenizer::{Conversation, Findings, Rendered, Tokenizer};

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
    fn whole(
        conversation: &Conversation,
        tokens: &Tokens<'_>,
        spans: &[Range<usize>],
        rule: Rule,
        tokenizer: &Tokenizer,
    ) -> Result<Self> {
        let crosses = rule != Rule::Whole && tokens.crosses(spans);
        let findings = tokenizer.chat_findings(conversation, tokens.text, &tokens.ids)?;
        Ok(Self {
            examples: vec![tokens.example(spans)],
            rule,
            crosses,
            findings,
        })
    }
}

/// Turns a conversation into examples. If its template marks what the model generates, that is learned. Otherwise each answer is learned
/// from the end of the generation prompt to the end of its turn, if the whole text contains it as the text up to it does. If the template
/// rewrites earlier turns, each answer becomes an example of its own, whose conversation ends with it, as the model sees it when it is
/// used. Refuses a conversation that gives nothing to learn because its template writes nothing of it.
pub(super) fn conversation(chat: Chat, loss_on: LossOn, tokenizer: &Tokenizer) -> Result<Taught> {
    let chat = Chat {
        conversation: tokenizer.as_read(&chat.conversation),
        ..chat
    };
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
    let (messages, conversation) = (0..chat.learned.len(), &chat.conversation);
    let is_answer = |at: &usize| role(conversation, *at) == "assistant";
    let rendered = || written(tokenizer.render_chat(conversation, false)?);
    if loss_on == LossOn::All {
        let text = rendered()?.text;
        let last = chat.learned.len().checked_sub(1).filter(is_answer);
        let last = last.and_then(|at| answer(conversation, at, tokenizer).ok());
        let text = ended(text, last.as_ref());
        let whole = Tokens::of(&text, tokenizer)?;
        let learned = all_but(chat, &whole, tokenizer)?;
        return Taught::whole(conversation, &whole, &learned, Rule::Whole, tokenizer);
    }
    let answers: Vec<usize> = messages.clone().filter(is_answer).collect();
    let mut learned: Vec<usize> = messages.filter(|&at| chat.learned[at]).collect();
    let Some(last) = learned.last().copied() else {
        return Err(match answers.as_slice() {
            [] => without_assistant(conversation),
            _ => unusable("no answer that is to be learned"),
        });
    };
    if loss_on == LossOn::Last {
        learned = vec![last];
    }
    let Rendered { text, generated } = rendered()?;
    if !generated.is_empty() {
        // The marks are those of answers.
        let (answered, others): (Vec<usize>, Vec<usize>) =
            learned.iter().copied().partition(|at| answers.contains(at));
        let mut spans = marked(generated, &answers, &answered)?;
        for at in others {
            spans.push(said(conversation, at, tokenizer)?.span);
        }
        let whole = Tokens::of(&text, tokenizer)?;
        return Taught::whole(conversation, &whole, &spans, Rule::Marks, tokenizer);
    }
    let found = learned
        .iter()
        .map(|&at| answer(conversation, at, tokenizer));
    let found = found.collect::<Result<Vec<Answer>>>()?;
    let text = ended(text, found.last());
    let whole = Tokens::of(&text, tokenizer)?;
    let spans = found
        .iter()
        .map(|answer| answer.in_whole(&whole, tokenizer));
    if let Some(spans) = spans.collect::<Option<Vec<Range<usize>>>>() {
        return Taught::whole(conversation, &whole, &spans, Rule::Prefix, tokenizer);
    }
    let findings = tokenizer.chat_findings(conversation, &text, &whole.ids)?;
    let mut taught = Taught {
        examples: Vec::new(),
        rule: Rule::PerAnswer,
        crosses: false,
        findings,
    };
    for answer in &found {
        let alone = Tokens::of(&answer.text, tokenizer)?;
        let end = alone.turn_end(&answer.span).unwrap_or(answer.span.end);
        let learned = answer.span.start..end;
        let learned = std::slice::from_ref(&learned);
        taught.examples.push(alone.example(learned));
        taught.crosses |= alone.crosses(learned);
    }
    Ok(taught)
}

/// Returns the spans of the text except for the answers that are read but not learned.
fn all_but(chat: &Chat, whole: &Tokens<'_>, tokenizer: &Tokenizer) -> Result<Vec<Range<usize>>> {
    let (mut spans, mut from) = (Vec::new(), 0);
    let read_alone =
        |at: &usize| role(&chat.conversation, *at) == "assistant" && !chat.learned[*at];
    let unlike = || {
        let expected = "answers that the template writes alike alone and in the whole";
        refused(
            word!("data.row"),
            expected,
            "one of weight 0 that it does not",
        )
        .hint("leave loss_on out, or learn all answers")
    };
    for at in (0..chat.learned.len()).filter(read_alone) {
        let answer = answer(&chat.conversation, at, tokenizer)?;
        let span = answer.in_whole(whole, tokenizer).ok_or_else(unlike)?;
        spans.push(from..span.start);
        from = span.end;
    }
    spans.push(from..whole.text.len());
    Ok(spans)
}

/// Returns the text of a conversation, extended by the end of its last answer that the template leaves to the next turn.
fn ended(text: String, last: Option<&Answer>) -> String {
    last.filter(|last| last.text.starts_with(&text))
        .map_or(text, |last| last.text.clone())
}

fn without_assistant(conversation: &Conversation) -> Error {
    let roles = (0..conversation.messages.len()).map(|at| role(conversation, at));
    let roles: BTreeSet<&str> = roles.collect();
    if roles.is_empty() {
        return unusable("an empty list of messages");
    }
    let roles = roles.into_iter().map(shown).collect::<Vec<_>>().join(", ");
    unusable(format!("no message with the role assistant, but {roles}"))
}

/// Returns the marked spans of the learned answers; all marked spans if all answers are learned.
fn marked(
    generated: Vec<Range<usize>>,
    answers: &[usize],
    learned: &[usize],
) -> Result<Vec<Range<usize>>> {
    if answers.len() == learned.len() {
        return Ok(generated);
    }
    if generated.len() != answers.len() {
        return Err(unusable(format!(
            "a chat template that marks {} answers of {}, so that the learned ones cannot be distinguished",
            generated.len(),
            answers.len()
        )));
    }
    let of_answers = generated.into_iter().zip(answers);
    let of_learned = of_answers.filter(|(_, at)| learned.contains(at));
    Ok(of_learned.map(|(range, _)| range).collect())
}
