//! The beginning of a text that a device has already computed.

use crate::error::Result;
use crate::model::{KvCache, Model, Span};

/// Tokens with their keys and values, for a text that begins with these tokens. A prefix is valid only for the weights that computed it.
#[derive(Debug, Clone, Default)]
pub struct Prefix {
    ids: Vec<u32>,
    cache: KvCache,
}

impl Prefix {
    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Keeps the tokens that a text of these ids begins with, except for its last token, whose logits are needed. The text will have `reach`
    /// tokens at most; where its rotary positions are therefore others, nothing is kept.
    pub(super) fn shared_with(mut self, ids: &[u32], model: &Model, reach: usize) -> Self {
        let common = self.ids.iter().zip(ids).take_while(|(a, b)| a == b).count();
        let same = model.rotates_equally(self.cache.reach(), reach);
        let kept = if same {
            common.min(ids.len().saturating_sub(1))
        } else {
            0
        };
        self.cache.announce(reach);
        self.cache.truncate(kept);
        self.ids.truncate(self.cache.len());
        self
    }

    /// Adds tokens, at least one → the logits `[1, V]` after the last.
    pub(super) fn extend(&mut self, model: &Model, ids: &[u32]) -> Result<burn::tensor::Tensor<2>> {
        let span = Span {
            offset: self.len(),
            ..Span::whole(1, ids.len())
        };
        model.check_span(span)?;
        let words: Vec<i32> = ids.iter().map(|&id| id as i32).collect();
        let mut x = model.embed(model.token_tensor(&words)?, span);
        for layer in 0..model.config().num_hidden_layers {
            x = model.block(layer, x, span, Some(&mut self.cache));
        }
        self.cache.advance(ids.len());
        self.ids.extend(ids);
        Ok(model.head(x.narrow(0, ids.len() - 1, 1)))
    }
}
