//! What one family of models knows about itself. Structure is asked for here and never read out of names.

use burn::tensor::{Int, Tensor};

use super::Span;
use super::attention::KvCache;
use super::layers::RmsNorm;
use super::rope::Rope;
use super::weight::Matrix;
use crate::config::ModelConfig;
use crate::ops;

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A table whose rows are looked up; a tied one is the head's weight too.
    Table {
        /// Whether the head shares it.
        tied: bool,
    },
    /// The block of this number.
    Block(usize),
    /// The last norm and the head.
    Head,
}

impl Part {
    /// The block; `None` outside the blocks.
    pub fn block(self) -> Option<usize> {
        match self {
            Part::Block(block) => Some(block),
            Part::Table { .. } | Part::Head => None,
        }
    }

    /// Whether the head's backward pass gives a gradient.
    pub fn in_head(self) -> bool {
        matches!(self, Part::Head | Part::Table { tied: true })
    }

    /// Whether lookups give a gradient.
    pub fn is_table(self) -> bool {
        matches!(self, Part::Table { .. })
    }
}

/// What a matrix does, which decides its initial spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It reads the residual stream, or is a table.
    Inner,
    /// It writes to the residual stream.
    Residual,
}

/// A table whose rows are read for the input of the first block.
pub struct Lookup<'a> {
    /// State-dict name.
    pub name: &'static str,
    /// [rows, C].
    pub table: &'a Matrix,
    /// [B·T].
    pub rows: Tensor<1, Int>,
}

/// The residual stream between two blocks [B·T, C]: what the last block adds is added by the norm of the next, where that can do so.
#[derive(Debug, Clone)]
pub struct Stream {
    /// The stream before.
    pub x: Tensor<2>,
    /// What is still to be added to it.
    pub added: Option<Tensor<2>>,
}

impl Stream {
    /// A stream of which nothing is left to be added.
    pub fn of(x: Tensor<2>) -> Self {
        Self { x, added: None }
    }

    /// The sum.
    pub fn sum(self) -> Tensor<2> {
        match self.added {
            Some(added) => ops::residual_add(self.x, added),
            None => self.x,
        }
    }

    /// The sum and its norm.
    pub fn normed(self, norm: &RmsNorm, eps: f64) -> (Tensor<2>, Tensor<2>) {
        match self.added {
            Some(added) => norm.add_forward(self.x, added, eps),
            None => (self.x.clone(), norm.forward(self.x, eps)),
        }
    }
}

/// One family. Its constructor requests each parameter with its [`Part`] and its [`Role`].
pub trait Family {
    /// What a block keeps for its backward pass.
    fn kept(&self, config: &ModelConfig) -> Kept;

    /// Whether blocks rotate queries and keys by tables of positions.
    fn rotates(&self) -> bool;

    /// The tables that embed tokens and, in some families, positions. ids [B·T].
    fn lookups(&self, ids: Tensor<1, Int>, span: Span<'_>) -> Vec<Lookup<'_>>;

    /// One block. With `cache`, keys and values of earlier tokens are read and these are added.
    fn block(&self, place: Place<'_>, stream: Stream, span: Span<'_>, cache: Option<&mut KvCache>) -> Stream;

    /// The normed input of the head [N, C] and its weight [V, C].
    fn before_head(&self, config: &ModelConfig, x: Tensor<2>) -> (Tensor<2>, &Matrix);
}

/// Which block runs, and what all blocks share.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The model's configuration.
    pub config: &'a ModelConfig,
    /// Number of the block.
    pub layer: usize,
    /// Tables of positions, if the family [rotates](Family::rotates).
    pub rope: Option<&'a Rope>,
}

/// Values per token that a block keeps for its backward pass.
#[derive(Debug)]
pub struct Kept {
    /// Those that it always keeps: the inputs of norms and activations, and of attention q, k, v, its output and two numbers per head.
    pub always: usize,
    /// The inputs of linear layers in their order, by what these are called and how wide they are: layers that are named together have the
    /// same input. That of attention's output is kept by attention already.
    pub inputs: [(&'static [&'static str], usize); 3],
}

impl Kept {
    /// Name of the layer at the end of the block.
    pub fn last(&self) -> &'static str {
        self.inputs[2].0[0]
    }

    /// Where these layers need their inputs.
    pub fn where_needed(&self, needs: impl Fn(&str) -> bool) -> usize {
        let needed = self.inputs.iter().filter(|(layers, _)| layers.iter().any(|layer| needs(layer)));
        self.always + needed.map(|(_, width)| width).sum::<usize>()
    }
}

/// What the block of every family always keeps, apart from its MLP.
pub fn kept_outside_mlp(config: &ModelConfig) -> usize {
    let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
    2 * config.hidden_size + 2 * (heads + kv_heads) * config.head_dim + 2 * heads
}
