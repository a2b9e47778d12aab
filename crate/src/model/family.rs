//! Facts that each family of models provides about itself: structure is asked for here and never derived from names.

use burn::tensor::{Int, Tensor};

use super::Span;
use super::attention::KvCache;
use super::layers::RmsNorm;
use super::rope::Rope;
use super::weight::Matrix;
use crate::config::ModelConfig;
use crate::ops;

/// Position of a parameter in a model: table, block or head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A table whose rows are looked up; a tied table is also the head's weight.
    Table {
        /// True if the head shares the table.
        tied: bool,
    },
    /// The block with this number, counted from 0.
    Block(usize),
    /// The final norm and the head.
    Head,
}

impl Part {
    /// Returns the block's number, or `None` outside the blocks.
    pub fn block(self) -> Option<usize> {
        match self {
            Part::Block(block) => Some(block),
            Part::Table { .. } | Part::Head => None,
        }
    }

    /// Returns whether the head's backward pass produces a gradient for it.
    pub(crate) fn in_head(self) -> bool {
        matches!(self, Part::Head | Part::Table { tied: true })
    }

    /// Returns whether lookups produce a gradient for it.
    pub fn is_table(self) -> bool {
        matches!(self, Part::Table { .. })
    }
}

/// Role of a matrix, which decides the spread of its initial values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads the residual stream, or is a table.
    Inner,
    /// Writes to the residual stream.
    Residual,
}

/// Table whose rows are read for the input of the first block.
pub struct Lookup<'a> {
    /// State-dict name.
    pub name: &'static str,
    /// Table `[rows, C]`.
    pub table: &'a Matrix,
    /// Indices of the rows, `[B·T]`.
    pub rows: Tensor<1, Int>,
}

/// Residual stream between two blocks, `[B·T, C]`. The output of the last block is added by the norm of the next block, where that norm can
/// do so.
#[derive(Debug, Clone)]
pub struct Stream {
    /// The stream before the addition.
    pub x: Tensor<2>,
    /// Output of the last block that is still to be added.
    pub added: Option<Tensor<2>>,
}

impl Stream {
    /// Creates a stream with nothing left to add.
    pub fn of(x: Tensor<2>) -> Self {
        Self { x, added: None }
    }

    /// Returns the sum.
    pub fn sum(self) -> Tensor<2> {
        match self.added {
            Some(added) => ops::residual_add(self.x, added),
            None => self.x,
        }
    }

    /// Returns the sum and its norm.
    pub fn normed(self, norm: &RmsNorm, eps: f64) -> (Tensor<2>, Tensor<2>) {
        match self.added {
            Some(added) => norm.add_forward(self.x, added, eps),
            None => (self.x.clone(), norm.forward(self.x, eps)),
        }
    }
}

/// One family of models. Its constructor requests each parameter with its [`Part`] and its [`Role`].
pub trait Family {
    /// Returns the number of values that a block keeps for its backward pass.
    fn kept(&self, config: &ModelConfig) -> Kept;

    /// Returns whether blocks rotate queries and keys by tables of positions.
    fn rotates(&self) -> bool;

    /// Returns the tables that embed tokens and, in some families, positions. `ids [B·T]`.
    fn lookups(&self, ids: Tensor<1, Int>, span: Span<'_>) -> Vec<Lookup<'_>>;

    /// Runs one block. With `cache`, keys and values of earlier tokens are read and the new ones are added.
    fn block(&self, place: Place<'_>, stream: Stream, span: Span<'_>, cache: Option<&mut KvCache>) -> Stream;

    /// Returns the normed input of the head `[N, C]` and the head's weight `[V, C]`.
    fn before_head(&self, config: &ModelConfig, x: Tensor<2>) -> (Tensor<2>, &Matrix);
}

/// Position of the block that runs, and data that all blocks share.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The model's configuration.
    pub config: &'a ModelConfig,
    /// Number of the block, counted from 0.
    pub layer: usize,
    /// Tables of positions, if the family [rotates](Family::rotates).
    pub rope: Option<&'a Rope>,
}

/// Number of values per token that a block keeps for its backward pass.
#[derive(Debug)]
pub struct Kept {
    /// Values that are always kept: the inputs of norms and activations; for attention q, k, v, its output and two numbers per head.
    pub always: usize,
    /// Inputs of the linear layers in their order, as layer names and width: layers that are named together have the same input. The
    /// input of attention's output projection is not listed, because attention already keeps it.
    pub inputs: [(&'static [&'static str], usize); 3],
}

impl Kept {
    /// Returns the name of the layer at the end of the block.
    pub fn last(&self) -> &'static str {
        self.inputs[2].0[0]
    }

    /// Returns the number of values that are kept if only the layers that `needs` selects need their inputs.
    pub fn where_needed(&self, needs: impl Fn(&str) -> bool) -> usize {
        let needed = self.inputs.iter().filter(|(layers, _)| layers.iter().any(|layer| needs(layer)));
        self.always + needed.map(|(_, width)| width).sum::<usize>()
    }
}

/// Returns the number of values per token that a block of any family always keeps, apart from its MLP.
pub fn kept_outside_mlp(config: &ModelConfig) -> usize {
    let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
    2 * config.hidden_size + 2 * (heads + kv_heads) * config.head_dim + 2 * heads
}
