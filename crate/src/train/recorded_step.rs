//! A step that was recorded, and the state of recording and repeating the steps of a run.

use burn::tensor::Tensor;

use super::backward::NamedGradients;
use crate::error::Result;
use crate::gpu::Buffer;
use crate::gpu::graph::{Recording, RunBuffer};
use crate::optim::{SquareSum, blocks_of, sum_of_squares};
use crate::parameters::whole_name;

/// Properties that two steps must share to be the same launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub batch_size: usize,
    pub seq_len: usize,
    pub documents: bool,
}

/// Results of a backward pass: the sum of losses of each micro-batch, Σg², and the gradients.
#[derive(Clone)]
pub(super) struct BackwardOutput {
    pub losses: Tensor<1>,
    pub squares: SquareSum,
    pub gradients: NamedGradients,
}

impl BackwardOutput {
    pub fn new(losses: Tensor<1>, gradients: NamedGradients) -> Result<Self> {
        let flat = gradients
            .values()
            .map(|g| (Buffer::from(g.clone()), g.dims()[0]))
            .collect();
        let none = || losses.clone().narrow(0, 0, 1).zeros_like();
        let squares = match sum_of_squares(flat)? {
            Some(squares) => squares,
            None => SquareSum {
                sum: none(),
                partials: none().into(),
                blocks: 0,
            },
        };
        Ok(Self {
            losses,
            squares,
            gradients,
        })
    }

    /// Returns the number of partials of each gradient's norm.
    pub fn partials(&self) -> Vec<(String, usize)> {
        self.gradients
            .iter()
            .map(|(name, g)| (whole_name(name).to_string(), blocks_of(g.dims()[0])))
            .collect()
    }
}

/// A recorded step.
pub(super) struct Recorded {
    /// Forward and backward pass, and their results.
    pub passes: Recording,
    pub output: BackwardOutput,
    /// Judging and updates, if they can be recorded.
    pub conclusion: Option<Recording>,
}

/// State of recording and repeating the steps of a run.
#[derive(Default)]
pub(super) struct Repeats {
    /// True if steps are to be recorded at all.
    pub allowed: bool,
    /// Kind of the last step.
    pub kind: Option<Kind>,
    /// Number of steps of this kind in a row that were launched.
    pub count: usize,
    pub attempts: usize,
    /// Number of launches of the last step whose parameters vary.
    pub varying: usize,
    /// Data that differ between the runs of the recording, allocated before the steps whose memory the recording takes.
    pub buffer: Option<RunBuffer>,
    pub recorded: Option<Recorded>,
}

impl Repeats {
    /// Drops the recording and the memory that is kept for it. The next steps are launched again before one is recorded.
    pub fn forget(&mut self) {
        (self.kind, self.count, self.buffer, self.recorded) = (None, 0, None, None);
    }
}
