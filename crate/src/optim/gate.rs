//! Whether a step may change anything, decided on the device: the factor that bounds the norm of its gradients, and a flag that a loss or a
//! norm which is not finite raises for this step and those after it (shaders/README.md, "A step without a wait").

use burn::tensor::{DType, Device, Tensor, TensorData};

use crate::error::Result;
use crate::gpu::{Buffer, run};
use crate::optim::norm::{SquareSum, clip_factor};

crate::kernel! {
    /// `losses [k], sum [1], partials [n]` of [`SquareSum`] into `gate [2]` and a row [3 + k] of `rows`: status, bad partial, sum, losses.
    pub KERNEL = "step_gate" [64], (losses, sum, partials) -> (mut gate, mut rows),
    /// Lengths, the row, and the bound of the norm.
    struct Params {
        /// k.
        losses: u32,
        /// n.
        partials: u32,
        /// Index of the first word of the row.
        row: u32,
        /// Bound of the norm; 0 is none.
        max_norm: f32,
    } varying,
    twin twin
}

/// The words of a row before the losses.
pub const HEAD: usize = 3;

/// Status of a row: the step was taken.
pub const TAKEN: u32 = 0;

/// Status of a row: the step's loss or norm was not finite, so that nothing was written.
pub const RAISED: u32 = 1;

/// Status of a row: a step before it had raised the flag.
pub const CLOSED: u32 = 2;

/// In place of the number of a partial: all of them are finite.
pub const NONE: u32 = u32::MAX;

/// True where a step writes.
pub(crate) fn open(gate: &[u32]) -> bool {
    gate[0] == 0
}

/// The factor of the gradients.
pub(crate) fn factor(gate: &[u32]) -> f32 {
    f32::from_bits(gate[1])
}

fn twin([losses, sum, partials]: [&[u32]; 3], [gate, rows]: [&mut [u32]; 2], s: &Params) {
    let finite = |words: &[u32]| words.iter().all(|&word| f32::from_bits(word).is_finite());
    let losses = &losses[..s.losses as usize];
    let bad = !finite(losses) || !finite(&sum[..1]);
    let first = if finite(&sum[..1]) { None } else { partials[..s.partials as usize].iter().position(|word| !finite(&[*word])) };
    let status = if gate[0] != 0 { CLOSED } else { u32::from(bad) };
    let row = &mut rows[s.row as usize..][..HEAD + losses.len()];
    row[..HEAD].copy_from_slice(&[status, first.map_or(NONE, |first| first as u32), sum[0]]);
    row[HEAD..].copy_from_slice(losses);
    let norm = f64::from(f32::from_bits(sum[0])).sqrt();
    gate[0] = u32::from(status != TAKEN);
    gate[1] = clip_factor(norm, f64::from(s.max_norm)).to_bits();
}

/// The flag and the factor of a step, on its device.
#[derive(Debug, Clone)]
pub struct Gate(Buffer);

impl Gate {
    /// A gate that lets gradients pass, times `factor`.
    pub fn open(factor: f32, device: &Device) -> Self {
        let words = TensorData::new(vec![0.0, factor], [2]);
        Self(Tensor::<1>::from_data(words, (device, DType::F32)).into())
    }

    /// The two words, as the update kernels bind them.
    pub(super) fn buffer(&self) -> Buffer {
        self.0.clone()
    }

    /// The gate of a step with these losses (a sum for each micro-batch) and gradients, and `rows` with what happened at the word `row`. The flag
    /// that an earlier step has raised stays.
    pub fn next(self, losses: Tensor<1>, squares: SquareSum, max_norm: f64, rows: Buffer, row: usize) -> Result<(Self, Buffer)> {
        let params =
            Params { losses: losses.dims()[0] as u32, partials: squares.blocks as u32, row: row as u32, max_norm: max_norm as f32 };
        let [gate, rows] = run(&KERNEL, [losses.into(), squares.sum.into(), squares.partials], [self.0, rows], &params, 1)?;
        Ok((Self(gate), rows))
    }
}
