//! Causal grouped-query attention and the cache of keys and values that generation keeps.

use burn::tensor::Tensor;

use super::Span;
use crate::config::ModelConfig;
use crate::ops;

/// Keys and values of the tokens so far, per layer [B·S, num_key_value_heads · head_dim].
#[derive(Debug, Clone, Default)]
pub struct KvCache {
    layers: Vec<(Tensor<3>, Tensor<3>)>,
    len: usize,
}

impl KvCache {
    /// Returns the number of cached tokens.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Counts `tokens` as cached, after every layer has added their keys and values.
    pub fn advance(&mut self, tokens: usize) {
        self.len += tokens;
    }

    /// Forgets all tokens after the first `len`.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.len = len;
        if len == 0 {
            self.layers.clear();
        }
        for (k, v) in &mut self.layers {
            (*k, *v) = (k.clone().narrow(1, 0, len), v.clone().narrow(1, 0, len));
        }
    }

    fn extend(&mut self, layer: usize, k: Tensor<3>, v: Tensor<3>) -> (Tensor<3>, Tensor<3>) {
        let (k, v) = match self.layers.get(layer) {
            Some((old_k, old_v)) => (Tensor::cat(vec![old_k.clone(), k], 1), Tensor::cat(vec![old_v.clone(), v], 1)),
            None => (k, v),
        };
        if layer < self.layers.len() {
            self.layers[layer] = (k.clone(), v.clone());
        } else {
            self.layers.push((k.clone(), v.clone()));
        }
        (k, v)
    }
}

/// Computes softmax(q·kᵀ/√H + causal, within documents)·v. `q [B·T, heads·H]`, `k` and `v` `[B·T, kv_heads·H]` → `[B·T, heads·H]`. With
/// `cache`, `k` and `v` are appended to the cached ones of block `layer`, and `q` attends to all of them.
pub fn attend(
    config: &ModelConfig,
    q: Tensor<2>,
    k: Tensor<2>,
    v: Tensor<2>,
    span: Span<'_>,
    cache: Option<&mut KvCache>,
    layer: usize,
) -> Tensor<2> {
    let kv_width = config.num_key_value_heads * config.head_dim;
    let rows = |y: Tensor<2>| y.reshape([span.batch_size, span.seq_len, kv_width]);
    let (k, v) = match cache {
        Some(cache) => {
            let (k, v) = cache.extend(layer, rows(k), rows(v));
            let all = span.batch_size * (span.offset + span.seq_len);
            (k.reshape([all, kv_width]), v.reshape([all, kv_width]))
        }
        None => (k, v),
    };
    ops::attention(q, k, v, span.document_starts.cloned(), attention_shape(config, span))
}

/// Returns the shape of the attention in a model's block.
pub fn attention_shape(config: &ModelConfig, span: Span<'_>) -> ops::AttentionShape {
    ops::AttentionShape {
        batch_size: span.batch_size,
        seq_len: span.seq_len,
        offset: span.offset,
        heads: config.num_attention_heads,
        kv_heads: config.num_key_value_heads,
        head_dim: config.head_dim,
    }
}
