//! Keys and values that generation keeps, so that each token is computed once.

use burn::tensor::Tensor;

use super::Span;

/// Memory of a layer about the tokens so far.
#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "one for each block: few, and read for every token"
)]
enum Kept {
    /// Keys and values [B, S, num_key_value_heads · head_dim].
    KeysValues(Tensor<3>, Tensor<3>),
    /// The last rows that a convolution read, [B, up to κ − 1, width], and the state of a delta rule after them.
    Rows(Tensor<3>, Option<Tensor<2>>),
}

/// Memory of the layers about the tokens so far.
#[derive(Debug, Clone, Default)]
pub struct KvCache {
    layers: Vec<Kept>,
    len: usize,
    /// Number of tokens that the text will have at most; 0 if it was not announced.
    reach: usize,
}

/// The cache of one layer.
pub struct LayerCache<'a> {
    layers: &'a mut Vec<Kept>,
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

    /// Forgets all tokens after the first `len`, or every token where a layer cannot go back to that number.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        let mut layers = self.layers.iter();
        let goes_back = layers.all(|kept| matches!(kept, Kept::KeysValues(..)));
        if len == 0 || !goes_back {
            self.layers.clear();
            self.len = 0;
            return;
        }
        self.len = len;
        for kept in &mut self.layers {
            if let Kept::KeysValues(k, v) = kept {
                (*k, *v) = (k.clone().narrow(1, 0, len), v.clone().narrow(1, 0, len));
            }
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

    /// Keeps this of the layer, and nothing else.
    fn keep(&mut self, kept: Kept) {
        if self.layer < self.layers.len() {
            self.layers[self.layer] = kept;
        } else {
            self.layers.push(kept);
        }
    }

    /// Adds the keys and values `[B·T, width]` of the tokens of `span`, and returns those of all tokens.
    pub fn extend(mut self, k: Tensor<2>, v: Tensor<2>, span: Span<'_>) -> (Tensor<2>, Tensor<2>) {
        let width = k.dims()[1];
        let rows = |y: Tensor<2>| y.reshape([span.batch_size, span.seq_len, width]);
        let (k, v) = (rows(k), rows(v));
        let (k, v) = match self.layers.get(self.layer) {
            Some(Kept::KeysValues(old_k, old_v)) => (
                Tensor::cat(vec![old_k.clone(), k], 1),
                Tensor::cat(vec![old_v.clone(), v], 1),
            ),
            _ => (k, v),
        };
        self.keep(Kept::KeysValues(k.clone(), v.clone()));
        let all = span.batch_size * (span.offset + span.seq_len);
        (k.reshape([all, width]), v.reshape([all, width]))
    }

    /// Puts the last `most` rows of earlier tokens in front of the rows `[B·T, width]` of the tokens of `span`, and keeps the last of all. Returns
    /// them with the number of earlier ones.
    pub fn recent(&mut self, rows: Tensor<2>, most: usize, span: Span<'_>) -> (Tensor<2>, usize) {
        let width = rows.dims()[1];
        let rows = rows.reshape([span.batch_size, span.seq_len, width]);
        let rows = match self.layers.get(self.layer) {
            Some(Kept::Rows(earlier, _)) => Tensor::cat(vec![earlier.clone(), rows], 1),
            _ => rows,
        };
        let state = self.state();
        let all = rows.dims()[1];
        let kept = all.min(most);
        self.keep(Kept::Rows(rows.clone().narrow(1, all - kept, kept), state));
        let rows = rows.reshape([span.batch_size * all, width]);
        (rows, all - span.seq_len)
    }

    /// Returns the state of a delta rule after the earlier tokens, if there are any.
    pub fn state(&self) -> Option<Tensor<2>> {
        match self.layers.get(self.layer) {
            Some(Kept::Rows(_, state)) => state.clone(),
            _ => None,
        }
    }

    /// Keeps the state of a delta rule after the tokens whose rows are kept.
    pub fn keep_state(&mut self, state: Tensor<2>) {
        if let Some(Kept::Rows(_, kept)) = self.layers.get_mut(self.layer) {
            *kept = Some(state);
        }
    }
}
