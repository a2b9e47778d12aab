//! The global gradient norm: one dispatch a tensor and at most two more, one read (shaders/README.md, "Update rules" and "Block tree").

pub mod blocks;
pub mod tree;

use burn::tensor::{DType, Tensor};

use crate::error::{Error, Result};
use crate::gpu::{Buffer, Kernels, run};

/// The kernels of this folder.
pub(crate) static KERNELS: Kernels = &[&blocks::KERNEL.all(), &tree::KERNEL.all()];

/// Σ g² over all gradients (f32, contiguous), still on the device; `None` without gradients.
pub fn sum_of_squares(grads: Vec<(Buffer, usize)>) -> Result<Option<Tensor<1>>> {
    let total: usize = grads.iter().map(|(_, n)| n.div_ceil(256)).sum();
    let Some(first) = grads.iter().find(|(_, n)| *n > 0) else { return Ok(None) };
    let mut partials = first.0.empty_like([total], DType::F32);
    let mut next = 0;
    for (grad, n) in grads.into_iter().filter(|(_, n)| *n > 0) {
        let params = blocks::Params { n: n as u32, first: next };
        [partials] = run(&blocks::KERNEL, [grad], [partials], &params, n.div_ceil(blocks::ELEMENTS) as u32)?;
        next += n.div_ceil(256) as u32;
    }
    let mut n = total;
    while n > 1 {
        let outputs = n.div_ceil(tree::VALUES);
        let out = partials.empty_like([outputs], DType::F32);
        let params = tree::Params { n: n as u32 };
        [partials] = run(&tree::KERNEL, [partials], [out], &params, outputs as u32)?;
        n = outputs;
    }
    Ok(Some(partials.float()))
}

/// The global 2-norm of gradients; each comes with its number of elements. NaN or infinite if any element is.
pub async fn global_norm(grads: Vec<(Buffer, usize)>) -> Result<f64> {
    let Some(sum) = sum_of_squares(grads)? else { return Ok(0.0) };
    let data = sum.into_data_async().await.map_err(|e| Error::DeviceLost { reason: e.to_string() })?;
    let sum = data.iter::<f32>().next().unwrap_or(f32::NAN);
    Ok(f64::from(sum).sqrt())
}

/// The factor that makes the norm of the gradients at most `max_grad_norm` (0 = no bound).
pub fn clip_factor(norm: f64, max_grad_norm: f64) -> f32 {
    if max_grad_norm > 0.0 && norm > max_grad_norm { (max_grad_norm / norm) as f32 } else { 1.0 }
}
