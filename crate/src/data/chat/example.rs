//! Examples: the ids of a row, and a mark for each that the model learns to predict.

use crate::config::LossOn;
use crate::data::read::refused;
use crate::error::{Result, word};
use crate::tokenizer::{Findings, Tokenizer};

/// A tokenized conversation, completion or document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Example {
    pub ids: Vec<u32>,
    /// True for each id whose prediction counts.
    pub counted: Vec<bool>,
    /// True for a document, which may be divided into several sequences.
    pub document: bool,
}

impl Example {
    pub fn new(ids: Vec<u32>, counted: Vec<bool>) -> Self {
        Self {
            ids,
            counted,
            document: false,
        }
    }

    /// Returns true if the token at a position is learned.
    pub fn counts(&self, at: usize) -> bool {
        self.counted.get(at) == Some(&true)
    }

    /// Returns true if the token at a position ends a turn or a text, or is another special one that may end them.
    pub fn is_end(&self, at: usize, tokenizer: &Tokenizer) -> bool {
        self.ids.get(at).is_some_and(|id| tokenizer.may_end(*id))
    }

    /// Returns the position of the last learned token, or that of the end before it if only white space is learned after the end, as where
    /// a template marks the line end after a turn.
    pub fn last_learned(&self, tokenizer: &Tokenizer) -> Option<usize> {
        let last = self.counted.iter().rposition(|counted| *counted)?;
        let is_blank = |at: usize| {
            let text = self.ids.get(at).map(|id| tokenizer.token_text(*id));
            self.counts(at) && matches!(text, Some(Ok(text)) if text.trim().is_empty())
        };
        let mut at = last;
        while at > 0 && !self.is_end(at, tokenizer) && is_blank(at) {
            at -= 1;
        }
        let ends = self.counts(at) && self.is_end(at, tokenizer);
        Some(if ends { at } else { last })
    }
}

/// An example made from a text, with notes on its beginning, its end and the boundary of its parts.
pub(super) struct Encoded {
    pub example: Example,
    /// True if the text already has the beginning-of-text token.
    pub begin_written: bool,
    /// True if the text already has an end token.
    pub end_written: bool,
    /// True if one token contains the end of the prompt and the beginning of the completion: it is not learned.
    pub crosses: bool,
    /// Findings about the text.
    pub findings: Findings,
}

/// Encodes a prompt and its completion as one text: the completion counts as a target, including the token that ends it.
pub(super) fn completion(
    prompt: &str,
    completion: &str,
    loss_on: LossOn,
    tokenizer: &Tokenizer,
) -> Result<Encoded> {
    let text = [prompt, completion].concat();
    let (mut ids, starts) = tokenizer.encode_with_starts(&text)?;
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let mut spans = starts.iter().zip(ends);
    let crosses = spans.any(|(&start, end)| start < prompt.len() && end > prompt.len());
    let all = loss_on == LossOn::All;
    let learned = |start: &usize| all || *start >= prompt.len();
    let mut counted: Vec<bool> = starts.iter().map(learned).collect();
    let end_written =
        ids.last().is_some_and(|id| tokenizer.eos().contains(id)) && counted.last() == Some(&true);
    let prefix = tokenizer.prompt_prefix();
    let begin_written = !prefix.is_empty() && ids.starts_with(prefix);
    // A beginning and an end that are written have codes of their own.
    let inner = if begin_written { prefix.len() } else { 0 }..ids.len() - usize::from(end_written);
    let findings = tokenizer.findings(&text, ids.get(inner).unwrap_or_default())?;
    if !end_written {
        let suffix = tokenizer.prompt_suffix();
        let ended = suffix.last().is_some_and(|id| tokenizer.eos().contains(id));
        let more = suffix
            .iter()
            .chain(tokenizer.eos().first().filter(|_| !ended));
        ids.extend(more);
        counted.resize(ids.len(), true);
    }
    if !begin_written {
        ids.splice(0..0, prefix.iter().copied());
        counted.splice(0..0, prefix.iter().map(|_| all));
    }
    if !counted.contains(&true) {
        return Err(refused(word!("data.row"), "a completion", "an empty text").into());
    }
    Ok(Encoded {
        example: Example::new(ids, counted),
        begin_written,
        end_written,
        crosses,
        findings,
    })
}

/// Encodes a document, all of which is learned, and the token that ends it.
pub(super) fn document(text: &str, tokenizer: &Tokenizer) -> Result<Encoded> {
    if text.is_empty() {
        return Err(refused(word!("data.row"), "a text", "an empty one").into());
    }
    let mut encoded = completion("", text, LossOn::All, tokenizer)?;
    encoded.example.document = true;
    Ok(encoded)
}
