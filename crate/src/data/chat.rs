//! JSONL lines as examples: which tokens the model reads, and which of them it learns to produce.

use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::tokenizer::{Message, Tokenizer};

/// A tokenized conversation or prompt with its completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Example {
    pub(super) ids: Vec<u32>,
    /// For each id, whether its prediction counts.
    pub(super) counted: Vec<bool>,
}

impl Example {
    /// Whether one of the first `seq_len` targets counts.
    pub(super) fn teaches(&self, seq_len: usize) -> bool {
        self.counted.iter().skip(1).take(seq_len).any(|&counts| counts)
    }
}

/// Every line that is not blank is one example; an invalid line is refused with its number.
pub(super) fn read_examples(text: &str, tokenizer: &Tokenizer) -> Result<Vec<Example>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut examples = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let refuse = |reason: String| Error::DataLine { line: index + 1, reason };
        let value: Value = serde_json::from_str(line).map_err(|e| refuse(format!("not JSON: {e}")))?;
        let example = match (value.get("messages"), value.get("prompt"), value.get("completion")) {
            (Some(messages), None, None) => {
                let messages = Vec::<Message>::deserialize(messages).map_err(|e| refuse(format!("messages: {e}")))?;
                conversation(&messages, tokenizer)
            }
            (None, Some(Value::String(prompt)), Some(Value::String(completion))) => completed(prompt, completion, tokenizer),
            _ => return Err(refuse("expected {\"messages\": […]} or {\"prompt\": text, \"completion\": text}".to_owned())),
        };
        examples.push(example.map_err(|e| match e {
            Error::DataLine { reason, .. } => refuse(reason),
            other => refuse(other.to_string()),
        })?);
    }
    Ok(examples)
}

/// The completion counts as a target, including the token that ends it.
fn completed(prompt: &str, completion: &str, tokenizer: &Tokenizer) -> Result<Example> {
    let mut ids = tokenizer.prompt_prefix().to_vec();
    ids.extend(tokenizer.encode(prompt)?);
    let unlearned = ids.len();
    ids.extend(tokenizer.encode(completion)?);
    ids.extend(tokenizer.eos().first());
    if ids.len() == unlearned {
        return Err(unusable("the completion is empty"));
    }
    let counted = (0..ids.len()).map(|index| index >= unlearned).collect();
    Ok(Example { ids, counted })
}

/// The assistant's turns count as targets, from the end of the generation prompt to the token that ends the turn.
fn conversation(messages: &[Message], tokenizer: &Tokenizer) -> Result<Example> {
    let text = tokenizer.render_chat(messages, false)?;
    let mut spans = Vec::new();
    for (index, _) in messages.iter().enumerate().filter(|(_, message)| message.role == "assistant") {
        let opened = tokenizer.render_chat(messages.get(..index).unwrap_or_default(), true)?;
        let closed = tokenizer.render_chat(messages.get(..=index).unwrap_or_default(), false)?;
        if !closed.starts_with(&opened) || !text.starts_with(&closed) {
            let reason =
                format!("the chat template writes message {index} differently when others follow, so its tokens cannot be told apart");
            return Err(unusable(reason));
        }
        spans.push(opened.len()..closed.len());
    }
    if spans.is_empty() {
        return Err(unusable("no message has the role assistant"));
    }
    let (ids, starts) = tokenizer.encode_with_starts(&text)?;
    let mut counted = vec![false; ids.len()];
    for span in spans {
        let inside: Vec<usize> = (0..ids.len()).filter(|&at| starts.get(at).is_some_and(|start| span.contains(start))).collect();
        // What the template writes after the end of the turn, often a line end, is never generated.
        let is_end = |at: &usize| ids.get(*at).is_some_and(|id| tokenizer.eos().contains(id));
        let last = inside.iter().rposition(is_end).map_or(inside.len(), |position| position + 1);
        for at in inside.into_iter().take(last) {
            if let Some(mark) = counted.get_mut(at) {
                *mark = true;
            }
        }
    }
    Ok(Example { ids, counted })
}

/// The caller fills in the line number.
fn unusable(reason: impl Into<String>) -> Error {
    Error::DataLine { line: 0, reason: reason.into() }
}
