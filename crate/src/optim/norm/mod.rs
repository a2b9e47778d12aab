//! The global gradient norm. It reads each gradient once, on a GPU in one dispatch for six tensors, elsewhere in one for each, and takes at
//! most two more dispatches (shaders/README.md, "Update rules" and "Block tree").

pub mod blocks;
pub mod tree;

use burn::tensor::Tensor;

use crate::error::{Error, Result};
use crate::gpu::{Buffer, Kernels, run};

/// The kernels of this folder.
pub(crate) static KERNELS: Kernels = &[
    &blocks::KERNEL.all(),
    &blocks::SIX.all(),
    &tree::KERNEL.all(),
];

/// A gradient, its number of elements, and the index of its first partial.
type Placed = (Buffer, usize, usize);

fn six_of(of: &mut impl Iterator<Item = Placed>) -> Option<[Placed; 6]> {
    of.take(6).collect::<Vec<_>>().try_into().ok()
}

/// The sum Σ g² over all gradients, on the device.
#[derive(Debug, Clone)]
pub struct SquareSum {
    /// The sum `[1]`.
    pub sum: Tensor<1>,
    /// Its terms `[blocks]`, one for each block of 256 elements of a gradient, one gradient after the other.
    pub partials: Buffer,
    /// Number of the partials.
    pub blocks: usize,
}

/// The number of partials of a gradient `[elements]`.
pub(crate) const fn blocks_of(elements: usize) -> usize {
    elements.div_ceil(256)
}

/// Computes Σ g² over all gradients (f32, contiguous), each with its number of elements; `None` without gradients.
///
/// # Errors
///
/// `kernel.mixed-devices` for gradients on different devices.
pub fn sum_of_squares(grads: Vec<(Buffer, usize)>) -> Result<Option<SquareSum>> {
    let total: usize = grads.iter().map(|(_, n)| blocks_of(*n)).sum();
    let Some(first) = grads.iter().find(|(_, n)| *n > 0) else {
        return Ok(None);
    };
    let mut partials = first.0.floats_like([total]);
    // A software adapter would execute the reads of all six for each element.
    let software = first.0.on_software();
    let mut next = 0;
    let mut placed = Vec::with_capacity(grads.len());
    for (grad, n) in grads.into_iter().filter(|(_, n)| *n > 0) {
        placed.push((grad, n, next));
        next += blocks_of(n);
    }
    let together = if software { 0 } else { placed.len() / 6 * 6 };
    let alone = placed.split_off(together);
    let groups = |n: usize| n.div_ceil(blocks::ELEMENTS) as u32;
    let mut together = placed.into_iter();
    while let Some(six) = six_of(&mut together) {
        let params = blocks::SixParams::of(six.each_ref().map(|(_, n, first)| (*n, *first)));
        let all = six.iter().map(|(_, n, _)| groups(*n)).sum();
        [partials] = run(
            &blocks::SIX,
            six.map(|(grad, ..)| grad),
            [partials],
            &params,
            all,
        )?;
    }
    for (grad, n, first) in alone {
        [partials] = run(
            &blocks::KERNEL,
            [grad],
            [partials],
            &blocks::Params { n, first },
            groups(n),
        )?;
    }
    let (mut n, mut sum) = (total, partials.clone());
    while n > 1 {
        let outputs = n.div_ceil(tree::VALUES);
        let out = sum.floats_like([outputs]);
        let params = tree::Params { n };
        [sum] = run(&tree::KERNEL, [sum], [out], &params, outputs as u32)?;
        n = outputs;
    }
    Ok(Some(SquareSum {
        sum: sum.float(),
        partials,
        blocks: total,
    }))
}

/// Computes the global 2-norm of gradients, each with its number of elements. It is NaN or infinite if any element is.
///
/// # Errors
///
/// `kernel.mixed-devices` for gradients on different devices; `device.lost` if the read fails.
pub async fn global_norm(grads: Vec<(Buffer, usize)>) -> Result<f64> {
    let Some(SquareSum { sum, .. }) = sum_of_squares(grads)? else {
        return Ok(0.0);
    };
    let data = sum.into_data_async().await.map_err(Error::device_lost)?;
    let sum = data.iter::<f32>().next().unwrap_or(f32::NAN);
    Ok(f64::from(sum).sqrt())
}

/// The factor that makes the norm of the gradients at most `max_grad_norm` (0 = no bound).
pub fn clip_factor(norm: f64, max_grad_norm: f64) -> f32 {
    if max_grad_norm > 0.0 && norm > max_grad_norm {
        (max_grad_norm / norm) as f32
    } else {
        1.0
    }
}
