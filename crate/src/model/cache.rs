//! Keys and values that generation keeps, so that each token is computed once.

use burn::tensor::Tensor;

use super::Span;

/// Keys and values of the tokens so far, per layer [B·S, num_key_value_heads · head_dim].
#[derive(Debug, Clone, Default)]
pub struct KvCache {
    layers: Vec<(Tensor<3>, Tensor<3>)>,
    len: usize,
    /// Number of tokens that the text will have at most; 0 if it was not announced.
    reach: usize,
}

/// The cache of one layer.
pub struct LayerCache<'a> {
    layers: &'a mut Vec<(Tensor<3>, Tensor<3>)>,
    layer: usize,
    reach: usize,
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

    /// Returns the announced number of tokens.
    pub fn reach(&self) -> usize {
        self.reach
    }

    /// Announces that the text will have this many tokens at most, before the first is cached: some rotary positions depend on it.
    pub fn announce(&mut self, tokens: usize) {
        self.reach = tokens;
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

    /// Returns the cache of a layer; layers are filled in their order.
    pub(super) fn layer(&mut self, layer: usize) -> LayerCache<'_> {
        LayerCache {
            layers: &mut self.layers,
            layer,
            reach: self.reach,
        }
    }
}

impl LayerCache<'_> {
    /// Returns the number of tokens by which rotary positions are chosen.
    pub fn reach(&self, span: Span<'_>) -> usize {
        self.reach.max(span.offset + span.seq_len)
    }

    /// Adds the keys and values `[B·T, width]` of the tokens of `span`, and returns those of all tokens.
    pub fn extend(self, k: Tensor<2>, v: Tensor<2>, span: Span<'_>) -> (Tensor<2>, Tensor<2>) {
        let width = k.dims()[1];
        let rows = |y: Tensor<2>| y.reshape([span.batch_size, span.seq_len, width]);
        let (k, v) = (rows(k), rows(v));
        let (k, v) = match self.layers.get(self.layer) {
            Some((old_k, old_v)) => (
                Tensor::cat(vec![old_k.clone(), k], 1),
                Tensor::cat(vec![old_v.clone(), v], 1),
            ),
            None => (k, v),
        };
        if self.layer < self.layers.len() {
            self.layers[self.layer] = (k.clone(), v.clone());
        } else {
            self.layers.push((k.clone(), v.clone()));
        }
        let all = span.batch_size * (span.offset + span.seq_len);
        (k.reshape([all, width]), v.reshape([all, width]))
    }
}
