//! Text from a model, one token at a time, with cached keys and values.

mod prefix;
mod prefix_cache;
pub mod score;

use serde::{Deserialize, Serialize};

use crate::config::seed_fault;
use crate::error::{Error, Fault, Result};
use crate::gpu::read_f32;
use crate::model::{Model, Span};
use crate::random;
use crate::tokenizer::{Conversation, Tokenizer};

pub use prefix::Prefix;
pub use prefix_cache::{Loan, PrefixCache};

/// How tokens are chosen. Unknown keys are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct GenerateConfig {
    /// Maximum number of tokens to add.
    pub max_tokens: usize,
    /// Spread of the choice; 0 is greedy: always the likeliest token.
    pub temperature: f64,
    /// Only the k likeliest tokens; 0 is all. The cut by `top_p` comes after it.
    pub top_k: usize,
    /// Only the likeliest tokens whose probabilities, of those that `top_k` leaves, add up to this; 1 is all.
    pub top_p: f64,
    /// Seed of the choices, at most 2^53 − 1.
    pub seed: u64,
    /// Report this many of the likeliest tokens with each token.
    pub top_logprobs: usize,
}

/// A small model repeats itself when it is greedy, so tokens are drawn by default.
impl Default for GenerateConfig {
    fn default() -> Self {
        Self { max_tokens: 100, temperature: 0.8, top_k: 0, top_p: 1.0, seed: 0, top_logprobs: 0 }
    }
}

impl GenerateConfig {
    /// Refuses values that cannot work; every fault is listed.
    pub fn validate(&self) -> Result<()> {
        let mut faults = Vec::new();
        if !(self.temperature.is_finite() && self.temperature >= 0.0) {
            faults.push(Fault::new("temperature", "finite and ≥ 0", self.temperature));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            faults.push(Fault::new("top_p", "0 < p ≤ 1", self.top_p));
        }
        faults.extend(seed_fault(self.seed));
        if faults.is_empty() { Ok(()) } else { Err(Error::InvalidConfig(faults)) }
    }
}

/// One of the likeliest tokens of a position.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TopToken {
    /// Token id.
    pub id: u32,
    /// Its text.
    pub text: String,
    /// Its probability under the model, before temperature and cuts.
    pub prob: f64,
}

/// One generated token.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratedToken {
    /// Token id.
    pub id: u32,
    /// The text it adds.
    pub text: String,
    /// ln of its probability under the model, before temperature and cuts.
    pub logprob: f64,
    /// The likeliest tokens, likeliest first.
    pub top: Vec<TopToken>,
}

/// Why a text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// A stop token was drawn.
    Stop,
    /// `max_tokens` were made.
    Length,
    /// The model's context is full.
    Context,
}

impl End {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Context => "context",
        }
    }
}

/// Generates after a prompt until a stop token, the token limit or the model's context ends it.
pub struct Generator {
    config: GenerateConfig,
    prefix: Prefix,
    pending: Vec<u32>,
    /// The prompt and what was generated after it.
    ids: Vec<u32>,
    /// The text of `ids` so far; that of the prompt is known from the first token on.
    shown: Option<String>,
    stop: Vec<u32>,
    generated: usize,
    key: [u32; 2],
    ended: Option<End>,
    /// The ids that no token has, as rows that a table is padded with; known from the first token on.
    absent: Option<Vec<u32>>,
}

impl Generator {
    /// Starts after `prompt`, with the beginning-of-text before it where the tokenizer's files ask for one; any of [`Tokenizer::stops`] ends
    /// the text. Refuses a prompt without tokens and one longer than the context.
    pub fn new(model: &Model, tokenizer: &Tokenizer, prompt: &str, config: GenerateConfig) -> Result<Self> {
        let ids = tokenizer.encode_beginning(prompt)?;
        Self::from_ids(model, tokenizer.stops(), &ids, config)
    }

    /// Starts the answer to `conversation`, as the chat template writes it and with nothing before it; any of [`Tokenizer::stops`] ends the
    /// answer. What it begins with as `prefix` does is not computed again: [`Self::into_prefix`] of the answer before, or nothing.
    pub fn answer(
        model: &Model,
        tokenizer: &Tokenizer,
        conversation: &Conversation,
        config: GenerateConfig,
        prefix: Prefix,
    ) -> Result<Self> {
        let ids = tokenizer.encode(&tokenizer.render_chat(conversation, true)?.text)?;
        Self::after(model, tokenizer.stops(), &ids, config, prefix)
    }

    /// Starts after the tokens `prompt`; any of `stop` ends the text.
    pub fn from_ids(model: &Model, stop: Vec<u32>, prompt: &[u32], config: GenerateConfig) -> Result<Self> {
        Self::after(model, stop, prompt, config, Prefix::default())
    }

    fn after(model: &Model, stop: Vec<u32>, prompt: &[u32], config: GenerateConfig, prefix: Prefix) -> Result<Self> {
        config.validate()?;
        if prompt.is_empty() {
            return Err(Error::InvalidConfig(vec![Fault::new("prompt", "at least one token", "none")]));
        }
        model.check_span(Span::whole(1, prompt.len()))?;
        let key = random::key("sample:", config.seed, "");
        let prefix = prefix.shared_with(prompt);
        let pending = prompt.iter().skip(prefix.len()).copied().collect();
        let ids = prompt.to_vec();
        Ok(Self { config, prefix, pending, ids, shown: None, stop, generated: 0, key, ended: None, absent: None })
    }

    /// Number of tokens that are computed, and number of those that are computed by the next token.
    pub fn progress(&self) -> (usize, usize) {
        (self.prefix.len(), self.pending.len())
    }

    /// The tokens that are computed, for a text that begins with them.
    pub fn into_prefix(self) -> Prefix {
        self.prefix
    }

    /// Why the text ended, once [`Self::next`] gave `None`.
    pub fn ended(&self) -> Option<End> {
        self.ended
    }

    /// The next token, or `None` after a stop token, `max_tokens`, or the model's context. An id that no token has is never drawn. Logits that are not finite are
    /// [`Error::NonFinite`] with the number of tokens so far as its step; the pending tokens are in the cache then, so the text cannot go on.
    pub async fn next(&mut self, model: &Model, tokenizer: &Tokenizer) -> Result<Option<GeneratedToken>> {
        let context = model.config().max_position_embeddings;
        if self.generated == self.config.max_tokens {
            self.ended.get_or_insert(End::Length);
        } else if self.prefix.len() + self.pending.len() > context {
            self.ended.get_or_insert(End::Context);
        }
        if self.ended.is_some() {
            return Ok(None);
        }
        let mut logits = read_f32(self.prefix.extend(model, &self.pending)?).await?;
        if let Some(value) = logits.iter().find(|value| !value.is_finite()) {
            return Err(Error::NonFinite { step: self.generated as u64, tensor: "logits".into(), value: f64::from(*value) });
        }
        let probabilities = softmax(&logits, 1.0);
        let absent = self.absent.get_or_insert_with(|| (0..logits.len() as u32).filter(|id| !tokenizer.has(*id)).collect());
        absent.iter().for_each(|&id| logits[id as usize] = f32::NEG_INFINITY);
        let id = self.choose(&logits)?;
        self.generated += 1;
        if self.stop.contains(&id) {
            self.ended = Some(End::Stop);
            return Ok(None);
        }
        self.pending = vec![id];
        self.ids.push(id);
        let mut top = Vec::new();
        for id in likeliest(&logits, self.config.top_logprobs) {
            top.push(TopToken { id, text: tokenizer.token_text(id)?, prob: probabilities[id as usize] });
        }
        let text = self.added_text(tokenizer)?;
        Ok(Some(GeneratedToken { id, text, logprob: probabilities[id as usize].ln(), top }))
    }

    /// One of the ids whose logits are finite.
    fn choose(&self, logits: &[f32]) -> Result<u32> {
        let none = || Error::Tokenizer { what: "vocabulary".into(), reason: "it has no token".into() };
        let first = likeliest(logits, 1).first().copied().ok_or_else(none)?;
        if self.config.temperature == 0.0 {
            return Ok(first);
        }
        let weights = softmax(logits, self.config.temperature);
        let order = likeliest(logits, if self.config.top_k == 0 { logits.len() } else { self.config.top_k });
        let mass = if self.config.top_k == 0 { 1.0 } else { order.iter().map(|&id| weights[id as usize]).sum() };
        let mut kept = Vec::new();
        let mut total = 0.0;
        for &id in &order {
            kept.push(id);
            total += weights[id as usize];
            if total >= self.config.top_p * mass {
                break;
            }
        }
        let words = random::philox([self.generated as u32, 0, 0, 0], self.key);
        // 53 random bits: uniform on [0, 1).
        let uniform = (u64::from(words[0]) << 21 | u64::from(words[1]) >> 11) as f64 / (1u64 << 53) as f64;
        let mut left = uniform * total;
        for &id in &kept {
            left -= weights[id as usize];
            if left < 0.0 {
                return Ok(id);
            }
        }
        Ok(kept.last().copied().unwrap_or(first))
    }

    /// The text that the newest token adds after the prompt. A character that is split over tokens appears with the last of them.
    fn added_text(&mut self, tokenizer: &Tokenizer) -> Result<String> {
        let shown = match self.shown.take() {
            Some(shown) => shown,
            None => self.prompt_text(tokenizer)?,
        };
        let text = tokenizer.decode(&self.ids)?;
        let complete = text.trim_end_matches('\u{FFFD}');
        let rest = complete.strip_prefix(shown.as_str()).or_else(|| complete.strip_prefix(shown.trim_end_matches('\u{FFFD}')));
        let added = rest.unwrap_or("").to_string();
        self.shown = Some(if added.is_empty() { shown } else { complete.to_string() });
        Ok(added)
    }

    /// The text of the prompt, of which ids without a token are left out. Special tokens alone are no text: what follows them begins one, and
    /// a vocabulary that writes a space before each word leaves it out there.
    fn prompt_text(&mut self, tokenizer: &Tokenizer) -> Result<String> {
        let newest = self.ids.pop();
        self.ids.retain(|&id| tokenizer.has(id) && usize::try_from(id).is_ok_and(|id| id < tokenizer.vocab_size()));
        if self.ids.iter().all(|&id| tokenizer.is_special(id)) {
            self.ids.clear();
        }
        let text = tokenizer.decode(&self.ids)?;
        self.ids.extend(newest);
        Ok(text)
    }
}

/// The `count` likeliest token ids by descending logit; equal logits by ascending id. Those at −∞ are no tokens.
fn likeliest(logits: &[f32], count: usize) -> Vec<u32> {
    let by_logit = |&a: &u32, &b: &u32| logits[b as usize].total_cmp(&logits[a as usize]).then(a.cmp(&b));
    let mut order: Vec<u32> = (0..logits.len() as u32).filter(|&id| logits[id as usize] > f32::NEG_INFINITY).collect();
    if count < order.len() {
        order.select_nth_unstable_by(count, by_logit);
        order.truncate(count);
    }
    order.sort_unstable_by(by_logit);
    order
}

/// softmax(logits / temperature) in f64.
fn softmax(logits: &[f32], temperature: f64) -> Vec<f64> {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = logits.iter().map(|&value| (f64::from(value - max) / temperature).exp()).collect();
    let total: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / total).collect()
}
