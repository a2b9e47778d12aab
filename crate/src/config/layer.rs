//! Description of a model's layers, as data. A family of `families` makes it, and `model` builds its modules from it alone.

use serde::{Deserialize, Serialize};

use super::model::RopeScaling;

/// Place of a module in a model: outside the blocks, or in each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Table of the tokens.
    Tokens,
    /// Table of learned positions.
    Positions,
    /// Norm of the input of the attention.
    AttentionNorm,
    /// Matrix of the queries.
    Query,
    /// Matrix of the keys.
    Key,
    /// Matrix of the values.
    Value,
    /// One matrix for queries, keys and values.
    QueryKeyValue,
    /// Norm of the queries.
    QueryNorm,
    /// Norm of the keys.
    KeyNorm,
    /// Matrix of the attention's output.
    Output,
    /// Norm of the attention's output.
    AttentionPostNorm,
    /// Matrix of the queries, keys and values of a delta rule.
    DeltaInput,
    /// Taps of the convolution in front of a delta rule.
    DeltaTaps,
    /// Matrix of the gate of a delta rule's output.
    DeltaGate,
    /// Matrix of what the decays of a delta rule are made of.
    DeltaDecay,
    /// Matrix of what the weights β of a delta rule are made of.
    DeltaWeight,
    /// Rates and biases of the decays.
    DeltaDecays,
    /// Norm of the values that a delta rule reads.
    DeltaNorm,
    /// Matrix of the output of a delta rule.
    DeltaOutput,
    /// Matrix of the input of a short convolution.
    ConvolutionInput,
    /// Taps of a short convolution.
    Convolution,
    /// Matrix of the output of a short convolution.
    ConvolutionOutput,
    /// Norm of the input of the MLP.
    MlpNorm,
    /// Matrix whose products gate those of [`Self::Up`].
    Gate,
    /// Matrix from the residual stream to the width of the MLP.
    Up,
    /// One matrix for [`Self::Gate`] and [`Self::Up`], whose rows follow each other.
    GateUp,
    /// Matrix from the width of the MLP to the residual stream.
    Down,
    /// Norm of the MLP's output.
    MlpPostNorm,
    /// Norm after the last block.
    LastNorm,
    /// Matrix of the head, if it is not the table of the tokens.
    Head,
}

/// Names of a family's tensors in Hugging Face's files.
#[derive(Debug, PartialEq, Eq)]
pub struct TensorNames {
    /// Text in front of the number of a block.
    pub blocks: &'static str,
    /// Modules of a block, without the text in front of them, in the order of a file.
    pub parts: &'static [(Slot, &'static str)],
    /// Weights outside the blocks with their whole names. Files have them after the blocks, in this order.
    pub outer: &'static [(Slot, &'static str)],
}

impl TensorNames {
    /// Returns the position of a module in the order of a file, among those of its block or those outside the blocks.
    pub fn position(&self, slot: Slot) -> usize {
        let of = |list: &[(Slot, &str)]| list.iter().position(|(other, _)| *other == slot);
        of(self.parts)
            .or_else(|| of(self.outer))
            .expect("a family names every module that it has")
    }

    /// Returns the whole name of the weight of a module outside the blocks.
    pub fn outer(&self, slot: Slot) -> &'static str {
        self.outer[self.position(slot)].1
    }

    /// Returns the whole name of a module, without `.weight`.
    pub fn module(&self, block: Option<usize>, slot: Slot) -> String {
        match block {
            Some(block) => format!(
                "{}{block}.{}",
                self.blocks,
                self.parts[self.position(slot)].1
            ),
            None => self.outer(slot).trim_end_matches(".weight").to_string(),
        }
    }
}

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
