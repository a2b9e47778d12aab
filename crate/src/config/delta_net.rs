//! Shape of a gated delta rule.

use serde::{Deserialize, Serialize};

/// Gated delta rule of a block (Gated DeltaNet, arXiv:2412.06464), with a convolution in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeltaNet {
    /// Number of heads of queries and keys.
    pub key_heads: usize,
    /// Number of heads of values; a multiple of `key_heads`.
    pub value_heads: usize,
    /// Width of a query or key.
    pub key_dim: usize,
    /// Width of a value.
    pub value_dim: usize,
    /// Number of taps of a channel of the convolution.
    pub taps: usize,
}

impl DeltaNet {
    /// Returns the widths of the queries or keys of a row, and of its values.
    pub fn widths(&self) -> [usize; 2] {
        [
            self.key_heads * self.key_dim,
            self.value_heads * self.value_dim,
        ]
    }

    /// Returns the number of channels of the convolution: queries, keys and values.
    pub fn channels(&self) -> usize {
        let [keys, values] = self.widths();
        2 * keys + values
    }
}
