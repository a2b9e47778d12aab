//! The operations of the model and the optimizer.

pub mod noise;
mod read;
pub mod stock;

pub use readback::{read_data, read_f32};
pub use stock::{attention, conv1d, cross_entropy, embedding, gelu, layer_norm, linear, rms_norm, rope, swiglu};

/// Sizes of one attention call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionShape {
    /// B.
    pub batch_size: usize,
    /// T, the queries of each sequence.
    pub query_len: usize,
    /// Keys before the first query.
    pub offset: usize,
    /// Query heads.
    pub num_attention_heads: usize,
    /// Key and value heads.
    pub num_key_value_heads: usize,
    /// H.
    pub head_dim: usize,
}
