//! The modules of a model from its tables to its head, made of a description.

use burn::module::Module;
use burn::tensor::{Int, Tensor};

use super::Span;
use super::block::Block;
use super::builder::{ParameterBuilder, WeightSource};
use super::layers::{Embedding, Linear, Matrix};
use super::named::Named;
use super::norm::Norm;
use super::part::{Part, Role};
use crate::config::{ModelConfig, Slot, Stack};
use crate::error::Result;
use crate::ops;

/// Table whose rows are read for the input of the first block.
pub struct Lookup<'a> {
    /// Name of the table.
    pub name: String,
    /// Table `[rows, C]`.
    pub table: &'a Matrix,
    /// Indices of the rows, `[B·T]`.
    pub rows: Tensor<1, Int>,
}

impl<'a> Lookup<'a> {
    fn of(table: &'a Named<Embedding>, rows: Tensor<1, Int>) -> Self {
        Self {
            name: table.weight_name(),
            table: &table.weight,
            rows,
        }
    }
}

fn scaled(x: Tensor<2>, factor: f64) -> Tensor<2> {
    if factor == 1.0 {
        x
    } else {
        ops::scaled(x, factor)
    }
}

/// The modules of a model.
#[derive(Module, Debug)]
pub struct Body {
    tokens: Named<Embedding>,
    positions: Option<Named<Embedding>>,
    blocks: Vec<Block>,
    last_norm: Norm,
    head: Option<Named<Linear>>,
    #[module(skip)]
    embedding_scale: f64,
    #[module(skip)]
    logit_divisor: f64,
    #[module(skip)]
    logit_cap: Option<f64>,
}

impl Body {
    /// Builds the modules that `stack` describes from the parameters that `weights` provides by name.
    ///
    /// # Errors
    /// The errors of `weights`, for example for a parameter that it lacks.
    pub fn new(
        config: &ModelConfig,
        stack: &Stack,
        weights: &mut dyn WeightSource,
    ) -> Result<Self> {
        let (rows, width) = (config.vocab_size, config.hidden_size);
        let mut blocks = Vec::with_capacity(stack.layers.len());
        for (number, layer) in stack.layers.iter().enumerate() {
            blocks.push(Block::new(
                layer,
                width,
                &mut ParameterBuilder {
                    weights,
                    stack,
                    part: Part::Block(number),
                },
            )?);
        }
        let mut table = ParameterBuilder {
            weights,
            stack,
            part: Part::Table { tied: stack.tied },
        };
        let tokens = table.embedding(Slot::Tokens, [rows, width])?;
        let mut table = ParameterBuilder {
            weights,
            stack,
            part: Part::Table { tied: false },
        };
        let positions = stack
            .positions
            .map(|positions| table.embedding(Slot::Positions, [positions, width]))
            .transpose()?;
        let mut end = ParameterBuilder {
            weights,
            stack,
            part: Part::Head,
        };
        let last_norm = end.norm(Slot::LastNorm, stack.last_norm, width)?;
        let head = if stack.tied {
            None
        } else {
            Some(end.linear(Slot::Head, [rows, width], false, Role::Inner)?)
        };
        Ok(Self {
            tokens,
            positions,
            blocks,
            last_norm,
            head,
            embedding_scale: stack.embedding_scale,
            logit_divisor: stack.logit_divisor,
            logit_cap: stack.logit_cap,
        })
    }

    /// Removes the factors of an adapter.
    pub fn detach(&mut self) {
        self.blocks.iter_mut().for_each(Block::detach);
    }

    /// Returns the block with this number.
    pub fn block(&self, number: usize) -> &Block {
        &self.blocks[number]
    }

    /// Returns the tables that embed tokens and, in some families, positions, which count from the start of each token's document.
    /// `ids [B·T]`.
    pub fn lookups(&self, ids: Tensor<1, Int>, span: Span<'_>) -> Vec<Lookup<'_>> {
        let device = ids.device();
        let mut lookups = vec![Lookup::of(&self.tokens, ids)];
        if let Some(table) = &self.positions {
            let (first, last) = (span.offset as i64, (span.offset + span.seq_len) as i64);
            let positions =
                Tensor::<1, Int>::arange(first..last, &device).repeat_dim(0, span.batch_size);
            let positions = span
                .document_starts
                .cloned()
                .map_or(positions.clone(), |starts| positions - starts);
            lookups.push(Lookup::of(table, positions));
        }
        lookups
    }

    /// Returns the normed input of the head `[N, C]`, divided by the divisor of the logits, and the head's weight `[V, C]`.
    pub fn before_head(&self, x: Tensor<2>) -> (Tensor<2>, &Matrix) {
        let weight = self
            .head
            .as_ref()
            .map_or(&self.tokens.weight, |head| &head.weight);
        let x = scaled(self.last_norm.forward(x), 1.0 / self.logit_divisor);
        (x, weight)
    }

    /// Returns the soft cap of the logits, if they have one.
    pub fn logit_cap(&self) -> Option<f64> {
        self.logit_cap
    }

    /// Scales the rows of the tables, or their gradient.
    pub fn embedded(&self, rows: Tensor<2>) -> Tensor<2> {
        scaled(rows, self.embedding_scale)
    }
}
