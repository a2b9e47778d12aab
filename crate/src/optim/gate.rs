//! The gate of a step, which decides on the device if the step may change anything: a flag that a non-finite loss or norm raises for this step
//! and the following ones, and the factor that bounds the norm of the gradients (shaders/README.md, "A step without a wait").

use burn::tensor::{DType, Device, Tensor, TensorData};

use crate::error::Result;
use crate::gpu::{Buffer, run};
use crate::optim::norm::{SquareSum, clip_factor};

crate::kernel! {
    /// Updates `gate [2]` from `losses [k]` and the `sum [1]`, `partials [n]` of [`SquareSum`], and writes a row `[3 + k]` of `rows`: status, bad
    /// partial, sum, losses.
    pub KERNEL = "step_gate" [64], (losses, sum, partials) -> (mut gate, mut rows),
    /// Lengths, the place of the row, and the bound of the norm.
    struct Params {
        /// k, the number of losses.
        losses: usize,
        /// n, the number of partials.
        partials: usize,
        /// Index of the first word of the row.
        row: usize,
        /// Bound of the norm; 0 = none.
        max_norm: f32,
    } varying,
    twin twin
}

/// Number of words of a row before its losses.
pub const HEAD: usize = 3;

/// Status of a row: the step was taken.
pub const TAKEN: u32 = 0;

/// Status of a row: the step's loss or norm was not finite, so that nothing was written.
pub const RAISED: u32 = 1;

/// Status of a row: an earlier step had raised the flag.
pub const CLOSED: u32 = 2;

/// The value in place of the index of a partial if all partials are finite.
pub const NONE: u32 = u32::MAX;

/// Returns true if the step writes.
pub(crate) fn open(gate: &[u32]) -> bool {
    gate[0] == 0
}

/// The factor of the gradients.
pub(crate) fn factor(gate: &[u32]) -> f32 {
    f32::from_bits(gate[1])
}

fn twin([losses, sum, partials]: [&[u32]; 3], [gate, rows]: [&mut [u32]; 2], s: &Params) {
    let finite = |words: &[u32]| words.iter().all(|&word| f32::from_bits(word).is_finite());
    let losses = &losses[..s.losses];
    let bad = !finite(losses) || !finite(&sum[..1]);
    let first = if finite(&sum[..1]) {
        None
    } else {
        partials[..s.partials]
            .iter()
            .position(|word| !finite(&[*word]))
    };
    let status = if gate[0] != 0 { CLOSED } else { u32::from(bad) };
    let row = &mut rows[s.row..][..HEAD + losses.len()];
    row[..HEAD].copy_from_slice(&[status, first.map_or(NONE, |first| first as u32), sum[0]]);
    row[HEAD..].copy_from_slice(losses);
    let norm = f64::from(f32::from_bits(sum[0])).sqrt();
    gate[0] = u32::from(status != TAKEN);
    gate[1] = clip_factor(norm, f64::from(s.max_norm)).to_bits();
}

/// The gate of a step on its device: flag and factor. A twin reads them by [`Gate::factor`] ([example](super::Rule::binds_gate)).
#[derive(Debug, Clone)]
pub struct Gate(Buffer);

impl Gate {
    /// The factor of the gradients, or `None` if the step must not write, from the two words of [`Update::gate`](super::Update::gate). For twins.
    pub fn factor(words: &[u32]) -> Option<f32> {
        open(words).then(|| factor(words))
    }

    /// Makes an open gate, which lets a step pass with its gradients times `factor`.
    #[doc(hidden)]
    pub fn open(factor: f32, device: &Device) -> Self {
        let words = TensorData::new(vec![0.0, factor], [2]);
        Self(Tensor::<1>::from_data(words, (device, DType::F32)).into())
    }

    /// The two words `[2]`, as the update kernels bind them.
    pub(super) fn buffer(&self) -> Buffer {
        self.0.clone()
    }

    /// Computes the gate of the next step from its `losses [k]` (a sum for each micro-batch) and gradients, and writes the outcome into `rows` from
    /// the word `row` on. A flag that an earlier step has raised stays raised.
    ///
    /// # Errors
    ///
    /// `kernel.mixed-devices` for tensors on different devices.
    #[doc(hidden)]
    pub fn next(
        self,
        losses: Tensor<1>,
        squares: SquareSum,
        max_norm: f64,
        rows: Buffer,
        row: usize,
    ) -> Result<(Self, Buffer)> {
        let params = Params {
            losses: losses.dims()[0],
            partials: squares.blocks,
            row,
            max_norm: max_norm as f32,
        };
        let [gate, rows] = run(
            &KERNEL,
            [losses.into(), squares.sum.into(), squares.partials],
            [self.0, rows],
            &params,
            1,
        )?;
        Ok((Self(gate), rows))
    }
}
