//! Places of the modules of a model, and their names in files.

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
