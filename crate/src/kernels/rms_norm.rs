//! RMSNorm: `y = x r w`, `r = 1 / √(mean(x²) + eps)` (arXiv:1910.07467).

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::DType;

use super::autodiff::Rule;
use super::column_sum::{self, column_sum};
use super::kernel::{Words, groups_of_64, read, write};
use super::launch::{Launch, rows_columns};
use crate::{kernel_params, kernel_record};

kernel_params! {
    /// Shapes and eps.
    pub struct ForwardParams {
        /// Rows.
        n: u32,
        /// C.
        width: u32,
        /// Added to the mean square.
        eps: f32,
    }
}

kernel_params! {
    /// Shapes of the input's gradient.
    pub struct BackwardParams {
        /// Rows.
        n: u32,
        /// C.
        width: u32,
    }
}

kernel_record! {
    /// `y` and the scale `r` of each row.
    FORWARD, "rms_norm_forward" in "../../../shaders/",
    [read("x"), read("w"), write("y"), write("scales")], ForwardParams, forward_twin
}
kernel_record! {
    /// `dx = r (dy w − x r² mean(dy w x))`
    BACKWARD_INPUT, "rms_norm_backward_input" in "../../../shaders/",
    [read("x"), read("w"), read("scales"), read("dy"), write("dx")], BackwardParams, backward_input_twin
}
kernel_record! {
    /// `dw = Σ dy x r` in parts.
    BACKWARD_WEIGHT, "rms_norm_backward_weight" in "../../../shaders/",
    [read("x"), read("scales"), read("dy"), write("dw")], column_sum::Params, backward_weight_twin
}

fn forward_twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let p = ForwardParams::from_words(params);
    let [x, w, y, scales] = buffers else { return };
    let width = p.width as usize;
    for row in 0..p.n as usize {
        let x = &x.floats()[row * width..][..width];
        let mean = x.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / width as f64;
        let r = 1.0 / (mean + f64::from(p.eps)).sqrt();
        for c in 0..width {
            y.floats_mut()[row * width + c] = (f64::from(x[c]) * r * f64::from(w.floats()[c])) as f32;
        }
        scales.floats_mut()[row] = r as f32;
    }
}

fn backward_input_twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let p = BackwardParams::from_words(params);
    let [x, w, scales, dy, dx] = buffers else { return };
    let width = p.width as usize;
    for row in 0..p.n as usize {
        let at = row * width;
        let x = |c: usize| f64::from(x.floats()[at + c]);
        let d = |c: usize| f64::from(dy.floats()[at + c]) * f64::from(w.floats()[c]);
        let r = f64::from(scales.floats()[row]);
        let mean = (0..width).map(|c| d(c) * x(c)).sum::<f64>() / width as f64;
        for c in 0..width {
            dx.floats_mut()[at + c] = (r * (d(c) - x(c) * r * r * mean)) as f32;
        }
    }
}

fn backward_weight_twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let p = column_sum::Params::from_words(params);
    let [x, scales, dy, dw] = buffers else { return };
    let width = p.width as usize;
    for i in 0..p.parts as usize * width {
        let term = |r: usize| {
            let at = r * width + i % width;
            f64::from(dy.floats()[at]) * f64::from(x.floats()[at]) * f64::from(scales.floats()[r])
        };
        dw.floats_mut()[i] = p.part(i / width).map(term).sum::<f64>() as f32;
    }
}

/// `x [n, C]`, `w [C]` → `y [n, C]` and the scale of each row `[n]`
pub fn forward<B: Launch>(x: FloatTensor<B>, w: FloatTensor<B>, eps: f32) -> [FloatTensor<B>; 2] {
    let (n, width) = rows_columns(&x.shape());
    let y = B::empty(&x, x.shape(), DType::F32);
    let scales = B::empty(&x, [n].into(), DType::F32);
    let params = ForwardParams { n: n as u32, width: width as u32, eps }.words();
    B::two(&FORWARD, vec![x, w, y, scales], &params, groups_of_64(n))
}

/// Gradients of RMSNorm.
#[derive(Debug, Clone)]
pub struct RmsNorm<T> {
    /// Input rows.
    pub x: T,
    /// Weight.
    pub w: T,
    /// Scale of each row.
    pub scales: T,
}

impl<B: Launch> Rule<B, 2> for RmsNorm<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 2]) -> [Option<FloatTensor<B>>; 2] {
        let Self { x, w, scales } = self;
        let (n, width) = rows_columns(&x.shape());
        let dw = needs[1].then(|| {
            let params = column_sum::Params::cut(n, width);
            let dw = B::empty(&x, [params.parts as usize, width].into(), DType::F32);
            let buffers = vec![x.clone(), scales.clone(), dy.clone(), dw];
            column_sum::<B>(B::one(&BACKWARD_WEIGHT, buffers, &params.words(), params.groups()))
        });
        let dx = needs[0].then(|| {
            let dx = B::empty(&x, x.shape(), DType::F32);
            let params = BackwardParams { n: n as u32, width: width as u32 }.words();
            B::one(&BACKWARD_INPUT, vec![x, w, scales, dy, dx], &params, groups_of_64(n))
        });
        [dx, dw]
    }
}
