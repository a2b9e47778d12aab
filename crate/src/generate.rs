//! Generates text from a model, one token at a time, with cached keys and values.
//!
//! ```
//! use tabtune::generate::{GenerateConfig, Generator};
//! use tabtune::model::Model;
//! use tabtune::tokenizer::Tokenizer;
//!
//! /// Continues `prompt` by 100 tokens at most.
//! async fn continued(model: &Model, tokenizer: &Tokenizer, prompt: &str) -> tabtune::Result<String> {
//!     let config = GenerateConfig { max_tokens: 100, ..GenerateConfig::default() };
//!     let mut generator = Generator::new(model, tokenizer, prompt, config)?;
//!     let mut text = prompt.to_string();
//!     while let Some(token) = generator.next(model, tokenizer).await? {
//!         text += &token.text;
//!     }
//!     Ok(text)
//! }
//! ```

mod config;
mod prefix;
mod prefix_cache;
#[doc(hidden)]
pub mod score;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::gpu::read_f32;
use crate::model::{Model, Span};
use crate::random;
use crate::tokenizer::{Conversation, Findings, TextWarning, Tokenizer};

pub use config::GenerateConfig;

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    prefix::Prefix,
    prefix_cache::{Loan, PrefixCache},
};

/// One of the likeliest tokens of a position ([example](crate::generate)).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TopToken {
    /// Token id.
    pub id: u32,
    /// Text of the token.
    pub text: String,
    /// Probability under the model, before temperature and cuts.
    pub prob: f64,
}

/// One generated token ([example](crate::generate)).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratedToken {
    /// Token id.
    pub id: u32,
    /// Text that the token adds.
    pub text: String,
    /// Natural logarithm of its probability under the model, before temperature and cuts.
    pub logprob: f64,
    /// The likeliest tokens, likeliest first.
    pub top: Vec<TopToken>,
}

/// Reason why a text ended ([example](crate::generate)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// A stop token was drawn.
    Stop,
    /// `max_tokens` tokens were generated.
    Length,
    /// The model's context is full.
    Context,
}

#[doc(hidden)]
impl End {
    /// Returns its name, as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Context => "context",
        }
    }
}

/// Generates text after a prompt until a stop token, the token limit or the model's context ends it ([example](crate::generate)).
pub struct Generator {
    config: GenerateConfig,
    prefix: Prefix,
    pending: Vec<u32>,
    /// The prompt and the tokens generated after it.
    ids: Vec<u32>,
    /// Text of `ids` so far; that of the prompt is known from the first token on.
    shown: Option<String>,
    stop: Vec<u32>,
    generated: usize,
    key: [u32; 2],
    ended: Option<End>,
    /// Ids that no token has, such as rows that pad a table; known from the first token on.
    absent: Option<Vec<u32>>,
    findings: Findings,
}

impl Generator {
    /// Starts after `prompt`, preceded by the beginning-of-text if the tokenizer's files ask for one; any of [`Tokenizer::stops`] ends the
    /// text.
    ///
    /// # Errors
    /// `config.invalid` for a prompt without tokens, `model.context` for one longer than the context, and the tokenizer's errors.
    pub fn new(
        model: &Model,
        tokenizer: &Tokenizer,
        prompt: &str,
        config: GenerateConfig,
    ) -> Result<Self> {
        let (ids, findings) = tokenizer.encode_text(prompt)?;
        Ok(Self {
            findings,
            ..Self::from_ids(model, tokenizer.stops(), &ids, config)?
        })
    }

    /// Starts the answer to `conversation` as the chat template writes it, with nothing before it; any of [`Tokenizer::stops`] ends the
    /// answer. Tokens shared with the beginning of `prefix`, which is [`Self::into_prefix`] of the previous answer or empty, are not
    /// computed again.
    pub fn answer(
        model: &Model,
        tokenizer: &Tokenizer,
        conversation: &Conversation,
        config: GenerateConfig,
        prefix: Prefix,
    ) -> Result<Self> {
        let (ids, findings) = tokenizer.encode_chat(conversation, true)?;
        Ok(Self {
            findings,
            ..Self::after(model, tokenizer.stops(), &ids, config, prefix)?
        })
    }

    /// Starts after the tokens `prompt`, as [`Self::new`] does after a text; any of `stop` ends the text.
    #[doc(hidden)]
    pub fn from_ids(
        model: &Model,
        stop: Vec<u32>,
        prompt: &[u32],
        config: GenerateConfig,
    ) -> Result<Self> {
        Self::after(model, stop, prompt, config, Prefix::default())
    }

    fn after(
        model: &Model,
        stop: Vec<u32>,
        prompt: &[u32],
        config: GenerateConfig,
        prefix: Prefix,
    ) -> Result<Self> {
        config.validate()?;
        if prompt.is_empty() {
            return Err(Error::invalid("prompt", "at least one token", "none"));
        }
        model.check_span(Span::whole(1, prompt.len()))?;
        let key = random::key("sample:", config.seed, "");
        let longest = prompt.len().saturating_add(config.max_tokens);
        let reach = longest.min(model.config().max_position_embeddings);
        let prefix = prefix.shared_with(prompt, model, reach);
        let pending = prompt.iter().skip(prefix.len()).copied().collect();
        let ids = prompt.to_vec();
        let findings = Findings::default();
        Ok(Self {
            config,
            prefix,
            pending,
            ids,
            shown: None,
            stop,
            generated: 0,
            key,
            ended: None,
            absent: None,
            findings,
        })
    }

    /// The warnings about the prompt or the conversation.
    pub fn warnings(&self) -> Vec<TextWarning> {
        self.findings.warnings()
    }

    /// The number of tokens that are computed, and of those that the next token computes.
    #[doc(hidden)]
    pub fn progress(&self) -> (usize, usize) {
        (self.prefix.len(), self.pending.len())
    }

    /// The computed tokens, for a text that begins with them.
    #[doc(hidden)]
    pub fn into_prefix(self) -> Prefix {
        self.prefix
    }

    /// Returns why the text ended, once [`Self::next`] has returned `None`.
    pub fn ended(&self) -> Option<End> {
        self.ended
    }

    /// The next token, or `None` after a stop token, `max_tokens`, or the model's context. An id that no token has is never drawn.
    ///
    /// # Errors
    /// [`Error::NonFinite`] for logits that are not finite, with the number of tokens so far as its step; the text cannot continue then.
    pub async fn next(
        &mut self,
        model: &Model,
        tokenizer: &Tokenizer,
    ) -> Result<Option<GeneratedToken>> {
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
        check_finite(&logits, self.generated)?;
        let probabilities = softmax(&logits, 1.0);
        let absent = self.absent.get_or_insert_with(|| {
            (0..logits.len() as u32)
                .filter(|id| !tokenizer.has(*id))
                .collect()
        });
        absent
            .iter()
            .for_each(|&id| logits[id as usize] = f32::NEG_INFINITY);
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
            top.push(TopToken {
                id,
                text: tokenizer.token_text(id)?,
                prob: probabilities[id as usize],
            });
        }
        let text = self.added_text(tokenizer)?;
        Ok(Some(GeneratedToken {
            id,
            text,
            logprob: probabilities[id as usize].ln(),
            top,
        }))
    }

    /// Chooses one of the ids whose logits are finite.
    fn choose(&self, logits: &[f32]) -> Result<u32> {
        let none = || Error::Tokenizer {
            what: "vocabulary".into(),
            reason: "it has no token".into(),
        };
        let first = likeliest(logits, 1).first().copied().ok_or_else(none)?;
        if self.config.temperature == 0.0 {
            return Ok(first);
        }
        let weights = softmax(logits, self.config.temperature);
        let order = likeliest(
            logits,
            if self.config.top_k == 0 {
                logits.len()
            } else {
                self.config.top_k
            },
        );
        let mass = if self.config.top_k == 0 {
            1.0
        } else {
            order.iter().map(|&id| weights[id as usize]).sum()
        };
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
        let uniform =
            (u64::from(words[0]) << 21 | u64::from(words[1]) >> 11) as f64 / (1u64 << 53) as f64;
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
        let rest = complete
            .strip_prefix(shown.as_str())
            .or_else(|| complete.strip_prefix(shown.trim_end_matches('\u{FFFD}')));
        let added = rest.unwrap_or("").to_string();
        self.shown = Some(if added.is_empty() {
            shown
        } else {
            complete.to_string()
        });
        Ok(added)
    }

    /// The text of the prompt, without ids that no token has. A prompt of special tokens alone has no text: the text begins after
    /// it, where a vocabulary that writes a space before each word leaves that space out.
    fn prompt_text(&mut self, tokenizer: &Tokenizer) -> Result<String> {
        let newest = self.ids.pop();
        self.ids.retain(|&id| {
            tokenizer.has(id) && usize::try_from(id).is_ok_and(|id| id < tokenizer.vocab_size())
        });
        if self.ids.iter().all(|&id| tokenizer.is_special(id)) {
            self.ids.clear();
        }
        let text = tokenizer.decode(&self.ids)?;
        self.ids.extend(newest);
        Ok(text)
    }
}

/// The `count` likeliest token ids by descending logit; equal logits by ascending id. Ids at −∞ are not tokens.
fn likeliest(logits: &[f32], count: usize) -> Vec<u32> {
    let by_logit = |&a: &u32, &b: &u32| {
        logits[b as usize]
            .total_cmp(&logits[a as usize])
            .then(a.cmp(&b))
    };
    let mut order: Vec<u32> = (0..logits.len() as u32)
        .filter(|&id| logits[id as usize] > f32::NEG_INFINITY)
        .collect();
    if count < order.len() {
        order.select_nth_unstable_by(count, by_logit);
        order.truncate(count);
    }
    order.sort_unstable_by(by_logit);
    order
}

/// Checks the logits of a token, the number of tokens before which is `position`.
fn check_finite(logits: &[f32], position: usize) -> Result<()> {
    let value = logits.iter().find(|value| !value.is_finite());
    value.map_or(Ok(()), |&value| {
        Err(Error::NonFinite {
            step: position as u64,
            tensor: "logits".into(),
            value: f64::from(value),
        })
    })
}

/// Computes softmax(logits / temperature) in f64.
fn softmax(logits: &[f32], temperature: f64) -> Vec<f64> {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = logits
        .iter()
        .map(|&value| (f64::from(value - max) / temperature).exp())
        .collect();
    let total: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / total).collect()
}
