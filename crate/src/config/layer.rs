//! Description of a model's layers, as data. A family of `families` makes it, and `model` builds its modules from it alone.

use super::delta_net::DeltaNet;
use super::model::RopeScaling;
use super::slot::TensorNames;

/// Kind of a norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormKind {
    /// RMSNorm (arXiv:1910.07467), with a weight.
    Rms,
    /// LayerNorm (arXiv:1607.06450), with a weight and a bias.
    Layer,
}

/// A norm of the residual stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Norm {
    /// Kind of the norm.
    pub kind: NormKind,
    /// ε, which is added to the mean square or to the variance.
    pub eps: f64,
    /// Added to the weight before it multiplies: 0, or 1 where files store the difference from 1.
    pub offset: f64,
}

impl Norm {
    /// Describes a norm whose weight is used as it is stored.
    pub fn new(kind: NormKind, eps: f64) -> Self {
        Self {
            kind,
            eps,
            offset: 0.0,
        }
    }
}

/// Norms of queries and keys, of the kind of the block's other norms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QkNorm {
    /// None.
    None,
    /// Over the values of each head, with one weight for all heads.
    Head,
    /// As [`Self::Head`], after the rotation.
    HeadAfterRope,
    /// Over the values of all heads of a row.
    All,
}

/// Rotary positions of queries and keys (arXiv:2104.09864).
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Number of dimensions that are rotated, the first of a head: an even number.
    pub rotated: usize,
    /// True if the dimensions 2i and 2i + 1 are a pair, false if i and i + rotated / 2 are.
    pub adjacent: bool,
    /// Base of the frequencies.
    pub base: f64,
    /// Stretching of the frequencies.
    pub scaling: RopeScaling,
    /// Factor of the rotated dimensions.
    pub magnitude: f64,
    /// Growth of the queries with their position.
    pub query_growth: Option<QueryGrowth>,
}

impl Rope {
    /// Describes plain rotary positions of all dimensions of a head, in half-split pairing.
    pub fn plain(head_dim: usize, base: f64) -> Self {
        Self {
            rotated: head_dim,
            adjacent: false,
            base,
            scaling: RopeScaling::Default,
            magnitude: 1.0,
            query_growth: None,
        }
    }
}

/// Factor 1 + β ln(1 + ⌊p / original⌋) of a query at position p (Ministral 3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryGrowth {
    /// β.
    pub beta: f64,
    /// Number of positions with the factor 1.
    pub original: usize,
}

/// Causal grouped-query attention of a block.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    /// Number of query heads.
    pub heads: usize,
    /// Number of key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Dimension of a head, H.
    pub head_dim: usize,
    /// Norms of queries and keys, before they are rotated.
    pub qk_norm: QkNorm,
    /// Rotary positions, if this layer has them.
    pub rope: Option<Rope>,
    /// True if queries, keys and values have biases.
    pub bias: bool,
    /// True if the output has a bias.
    pub output_bias: bool,
    /// True if one matrix makes queries, keys and values.
    pub fused: bool,
    /// True if the matrix of the queries also makes a gate for each head, whose sigmoid multiplies what the head reads.
    pub gate: bool,
    /// Number of keys that a query sees, the last of which is its own position; `None` for all.
    pub window: Option<usize>,
    /// Factor of the scores; `None` for 1/√H.
    pub score_scale: Option<f64>,
    /// Bound c of the scores, which become c·tanh(s/c), if they have one.
    pub score_cap: Option<f64>,
}

impl Attention {
    /// Describes attention of these heads with separate matrices and without anything optional.
    pub fn new(heads: usize, kv_heads: usize, head_dim: usize) -> Self {
        Self {
            heads,
            kv_heads,
            head_dim,
            qk_norm: QkNorm::None,
            rope: None,
            bias: false,
            output_bias: false,
            fused: false,
            gate: false,
            window: None,
            score_scale: None,
            score_cap: None,
        }
    }

    /// Returns the widths of a row of queries and of a row of keys or values.
    pub fn widths(&self) -> [usize; 2] {
        [self.heads, self.kv_heads].map(|heads| heads * self.head_dim)
    }
}

/// The part of a block that mixes the tokens of a text.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "one for each block of a description: few"
)]
pub enum Mixer {
    /// Attention.
    Attention(Attention),
    /// A gated convolution over this number of tokens (LFM2).
    ShortConv {
        /// Number of taps of a channel.
        taps: usize,
    },
    /// A gated delta rule (Qwen3.5).
    DeltaNet(DeltaNet),
}

impl Mixer {
    /// Returns the attention, if it is one.
    pub fn attention(&self) -> Option<&Attention> {
        match self {
            Self::Attention(attention) => Some(attention),
            Self::ShortConv { .. } | Self::DeltaNet(_) => None,
        }
    }
}

/// Function that an MLP computes between its first products and its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `silu(gate) · up` (arXiv:2002.05202).
    SwiGlu,
    /// `gelu(gate) · up`, GELU in its tanh form (arXiv:2002.05202).
    GeGlu,
    /// GELU in its tanh form (arXiv:1606.08415), of one product.
    Gelu,
}

/// MLP of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mlp {
    /// Function between its products.
    pub activation: Activation,
    /// Hidden width, F.
    pub width: usize,
    /// True if its matrices have biases.
    pub bias: bool,
    /// True if one matrix makes gate and up.
    pub fused: bool,
}

/// Places of the norms of an attention or an MLP f, which is added to the residual stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NormPlaces {
    /// True for a norm of the input: `x += f(norm(x))`.
    pub before: bool,
    /// True for a norm of the output: `x += norm(f(x))`.
    pub after: bool,
}

impl NormPlaces {
    /// A norm of the input.
    pub const BEFORE: Self = Self {
        before: true,
        after: false,
    };
    /// A norm of the output.
    pub const AFTER: Self = Self {
        before: false,
        after: true,
    };
    /// Norms of input and output.
    pub const BOTH: Self = Self {
        before: true,
        after: true,
    };
}

/// A block: attention or another mixer, then an MLP, each added to the residual stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Places of the attention's norms.
    pub attention_norms: NormPlaces,
    /// Places of the MLP's norms.
    pub mlp_norms: NormPlaces,
    /// Norms of attention and MLP.
    pub norm: Norm,
    /// The attention, or what is in its place.
    pub mixer: Mixer,
    /// The MLP.
    pub mlp: Mlp,
    /// Factor of the outputs of attention and MLP before they are added.
    pub residual_scale: f64,
}

impl Layer {
    /// Describes a block with norms of the inputs.
    pub fn new(norm: Norm, attention: Attention, mlp: Mlp) -> Self {
        let places = NormPlaces::BEFORE;
        Self {
            attention_norms: places,
            mlp_norms: places,
            norm,
            mixer: Mixer::Attention(attention),
            mlp,
            residual_scale: 1.0,
        }
    }
}

/// A model from its tables to its head.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    /// Number of learned positions, whose table is added to that of the tokens, if the model has one.
    pub positions: Option<usize>,
    /// The blocks.
    pub layers: Vec<Layer>,
    /// Norm after the last block.
    pub last_norm: Norm,
    /// True if the head is the table of the tokens.
    pub tied: bool,
    /// True if the matrices of the blocks are stored as `[in, out]` (GPT-2's Conv1D), false for `[out, in]`.
    pub conv1d: bool,
    /// Names of the tensors.
    pub names: &'static TensorNames,
    /// Factor of the rows of the tables.
    pub embedding_scale: f64,
    /// Divisor of the logits.
    pub logit_divisor: f64,
    /// Bound c of the logits, which become c·tanh(l/c), if they have one.
    pub logit_cap: Option<f64>,
}

impl Stack {
    /// Describes a model with a head of its own, matrices `[out, in]` and without learned positions.
    pub fn new(layers: Vec<Layer>, last_norm: Norm, names: &'static TensorNames) -> Self {
        let (embedding_scale, logit_divisor, logit_cap) = (1.0, 1.0, None);
        Self {
            positions: None,
            layers,
            last_norm,
            tied: false,
            conv1d: false,
            names,
            embedding_scale,
            logit_divisor,
            logit_cap,
        }
    }

    /// Returns the different rotary positions of the layers, each with the width of a head.
    pub fn ropes(&self) -> Vec<(Rope, usize)> {
        let mut found: Vec<(Rope, usize)> = Vec::new();
        for attention in self
            .layers
            .iter()
            .filter_map(|layer| layer.mixer.attention())
        {
            let head_dim = attention.head_dim;
            let Some(rope) = &attention.rope else {
                continue;
            };
            let known = |(other, width): &(Rope, usize)| other == rope && *width == head_dim;
            if !found.iter().any(known) {
                found.push((rope.clone(), head_dim));
            }
        }
        found
    }
}
