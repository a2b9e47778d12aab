//! Scores a text: the probability that a model gives to each of its tokens.

use serde::Serialize;

use super::{TopToken, check_finite, likeliest};
use crate::config::settings;
use crate::error::{Error, Result};
use crate::gpu::read_f32;
use crate::interrupt::Interrupt;
use crate::model::{Model, Span};
use crate::tokenizer::{TextWarning, Tokenizer};

/// Maximum number of alternatives per token.
const MAX_TOP: usize = 20;
/// Maximum size of the logits that are read at once, in bytes.
const MAX_LOGITS_BYTES: usize = 16 << 20;

settings! {
    /// Settings of how a text is scored. Unknown keys are refused.
    #[derive(Eq)]
    pub struct ScoreConfig {
        /// Number of likeliest tokens to report for each position, at most 20.
        top: usize = 0,
    }
}

/// One token of a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScoredToken {
    /// Token id.
    pub id: u32,
    /// Text that the token adds in the middle of a text.
    pub text: String,
    /// Natural logarithm of its probability after the tokens before it; absent for the first token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprob: Option<f64>,
    /// Rank among all tokens by probability, from 1; absent for the first token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// Likeliest tokens of this position, likeliest first.
    pub top: Vec<TopToken>,
}

/// Tokens of a text with their probabilities.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Score {
    /// All tokens.
    pub tokens: Vec<ScoredToken>,
    /// Mean of −logprob over the tokens after the first, in nats; absent for a text of one token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Warnings about the text or the conversation.
    pub warnings: Vec<TextWarning>,
}

/// Scores the tokens `ids` as one text, with pauses.
///
/// # Errors
/// `config.invalid` for an empty list of tokens or more than 20 alternatives, `model.token-range` for an id outside the
/// vocabulary, `model.context` for a text longer than the context, `train.non-finite` for weights that give no number.
pub async fn score(
    model: &Model,
    tokenizer: &Tokenizer,
    ids: &[u32],
    config: &ScoreConfig,
    interrupt: &Interrupt,
) -> Result<Score> {
    let Some((&first, after)) = ids.split_first() else {
        return Err(Error::invalid("text", "at least one token", "none"));
    };
    if config.top > MAX_TOP {
        return Err(Error::invalid("top", format!("0 to {MAX_TOP}"), config.top));
    }
    let words: Vec<i32> = ids.iter().map(|&id| id as i32).collect();
    model.check_tokens(&words)?;
    let mut tokens = vec![ScoredToken {
        id: first,
        text: tokenizer.token_text(first)?,
        logprob: None,
        rank: None,
        top: Vec::new(),
    }];
    if after.is_empty() {
        return Ok(Score {
            tokens,
            loss: None,
            warnings: Vec::new(),
        });
    }
    let span = Span::whole(1, after.len());
    model.check_span(span)?;
    let x = model.embed(model.token_tensor(&words[..after.len()])?, span);
    let x = model.blocks(0..model.config().num_hidden_layers, x, span);
    let width = model.config().vocab_size;
    let absent: Vec<usize> = (0..width).filter(|&id| !tokenizer.has(id as u32)).collect();
    let rows = (MAX_LOGITS_BYTES / 4 / width).max(1);
    let mut sum = 0.0;
    for (run, ids) in after.chunks(rows).enumerate() {
        interrupt.pause().await?;
        let logits = read_f32(model.head(x.clone().narrow(0, run * rows, ids.len()))).await?;
        for (&id, logits) in ids.iter().zip(logits.chunks(width)) {
            let token = scored(tokenizer, id, logits, &absent, config.top, tokens.len())?;
            sum -= token.logprob.unwrap_or_default();
            tokens.push(token);
        }
    }
    Ok(Score {
        tokens,
        loss: Some(sum / after.len() as f64),
        warnings: Vec::new(),
    })
}

/// Scores the token `id` at `position` of a text, from the V logits after the tokens before it.
fn scored(
    tokenizer: &Tokenizer,
    id: u32,
    logits: &[f32],
    absent: &[usize],
    top: usize,
    position: usize,
) -> Result<ScoredToken> {
    check_finite(logits, position)?;
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: f64 = logits
        .iter()
        .map(|&value| f64::from(value - max).exp())
        .sum();
    let logprob_of = |value: f32| f64::from(value - max) - powers.ln();
    let own = logits[id as usize];
    // An id that no token has occurs in no text.
    let mut present = logits.to_vec();
    absent
        .iter()
        .filter(|&&other| other != id as usize)
        .for_each(|&other| present[other] = f32::NEG_INFINITY);
    let before =
        |&(other, value): &(usize, &f32)| *value > own || (*value == own && other < id as usize);
    let rank = 1 + present.iter().enumerate().filter(before).count();
    let mut alternatives = Vec::new();
    for other in likeliest(&present, top) {
        let prob = logprob_of(logits[other as usize]).exp();
        alternatives.push(TopToken {
            id: other,
            text: tokenizer.token_text(other)?,
            prob,
        });
    }
    let text = tokenizer.token_text(id)?;
    Ok(ScoredToken {
        id,
        text,
        logprob: Some(logprob_of(own)),
        rank: Some(rank),
        top: alternatives,
    })
}
