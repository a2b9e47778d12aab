//! LayerNorm: `y = (x − mean) r w + b`, `r = 1 / √(var + eps)` (arXiv:1607.06450).

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::DType;

use super::autodiff::Rule;
use super::column_sum::{self, column_sum};
use super::kernel::{Words, groups_of_64, read, write};
use super::launch::{Launch, rows_columns};
use super::rms_norm::ForwardParams;
use crate::{kernel_params, kernel_record};

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
    /// `y`, and mean and `r` of each row.
    FORWARD, "layer_norm_forward" in "../../../shaders/",
    [read("x"), read("w"), read("b"), write("y"), write("stats")], ForwardParams, forward_twin
}
kernel_record! {
    /// `dx = r (dy w − mean(dy w) − z mean(dy w z))`, `z = (x − mean) r`
    BACKWARD_INPUT, "layer_norm_backward_input" in "../../../shaders/",
    [read("x"), read("w"), read("stats"), read("dy"), write("dx")], BackwardParams, backward_input_twin
}
kernel_record! {
    /// `dw = Σ dy z`, `db = Σ dy` in parts.
    BACKWARD_WEIGHT, "layer_norm_backward_weight" in "../../../shaders/",
    [read("x"), read("stats"), read("dy"), write("dw"), write("db")], column_sum::Params, backward_weight_twin
}

fn forward_twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let p = ForwardParams::from_words(params);
    let [x, w, b, y, stats] = buffers else { return };
    let width = p.width as usize;
    for row in 0..p.n as usize {
        let x = &x.floats()[row * width..][..width];
        let mean = x.iter().map(|&v| f64::from(v)).sum::<f64>() / width as f64;
        let variance = x.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / width as f64;
        let r = 1.0 / (variance + f64::from(p.eps)).sqrt();
        for c in 0..width {
            let z = (f64::from(x[c]) - mean) * r;
            y.floats_mut()[row * width + c] = (z * f64::from(w.floats()[c]) + f64::from(b.floats()[c])) as f32;
        }
        stats.floats_mut()[2 * row] = mean as f32;
        stats.floats_mut()[2 * row + 1] = r as f32;
    }
}

fn backward_input_twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let p = BackwardParams::from_words(params);
    let [x, w, stats, dy, dx] = buffers else { return };
    let width = p.width as usize;
    for row in 0..p.n as usize {
        let at = row * width;
        let (mean, r) = (f64::from(stats.floats()[2 * row]), f64::from(stats.floats()[2 * row + 1]));
        let z = |c: usize| (f64::from(x.floats()[at + c]) - mean) * r;
        let d = |c: usize| f64::from(dy.floats()[at + c]) * f64::from(w.floats()[c]);
        let first = (0..width).map(d).sum::<f64>() / width as f64;
        let second = (0..width).map(|c| d(c) * z(c)).sum::<f64>() / width as f64;
        for c in 0..width {
            dx.floats_mut()[at + c] = (r * (d(c) - first - z(c) * second)) as f32;
        }
    }
}

fn backward_weight_twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let p = column_sum::Params::from_words(params);
    let [x, stats, dy, dw, db] = buffers else { return };
    let width = p.width as usize;
    for i in 0..p.parts as usize * width {
        let dy = |r: usize| f64::from(dy.floats()[r * width + i % width]);
        let z = |r: usize| {
            let x = f64::from(x.floats()[r * width + i % width]);
            (x - f64::from(stats.floats()[2 * r])) * f64::from(stats.floats()[2 * r + 1])
        };
        dw.floats_mut()[i] = p.part(i / width).map(|r| dy(r) * z(r)).sum::<f64>() as f32;
        db.floats_mut()[i] = p.part(i / width).map(dy).sum::<f64>() as f32;
    }
}

/// `x [n, C]`, `w`, `b [C]` → `y [n, C]` and mean and scale of each row `[n, 2]`
pub fn forward<B: Launch>(x: FloatTensor<B>, w: FloatTensor<B>, b: FloatTensor<B>, eps: f32) -> [FloatTensor<B>; 2] {
    let (n, width) = rows_columns(&x.shape());
    let y = B::empty(&x, x.shape(), DType::F32);
    let stats = B::empty(&x, [n, 2].into(), DType::F32);
    let params = ForwardParams { n: n as u32, width: width as u32, eps }.words();
    B::two(&FORWARD, vec![x, w, b, y, stats], &params, groups_of_64(n))
}

/// Gradients of LayerNorm.
#[derive(Debug, Clone)]
pub struct LayerNorm<T> {
    /// Input rows.
    pub x: T,
    /// Weight.
    pub w: T,
    /// Mean and scale of each row.
    pub stats: T,
}

impl<B: Launch> Rule<B, 3> for LayerNorm<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 3]) -> [Option<FloatTensor<B>>; 3] {
        let Self { x, w, stats } = self;
        let (n, width) = rows_columns(&x.shape());
        let (mut dw, mut db) = (None, None);
        if needs[1] || needs[2] {
            let params = column_sum::Params::cut(n, width);
            let [part_w, part_b] = [(); 2].map(|()| B::empty(&x, [params.parts as usize, width].into(), DType::F32));
            let buffers = vec![x.clone(), stats.clone(), dy.clone(), part_w, part_b];
            let [part_w, part_b] = B::two(&BACKWARD_WEIGHT, buffers, &params.words(), params.groups());
            dw = needs[1].then(|| column_sum::<B>(part_w));
            db = needs[2].then(|| column_sum::<B>(part_b));
        }
        let dx = needs[0].then(|| {
            let dx = B::empty(&x, x.shape(), DType::F32);
            let params = BackwardParams { n: n as u32, width: width as u32 }.words();
            B::one(&BACKWARD_INPUT, vec![x, w, stats, dy, dx], &params, groups_of_64(n))
        });
        [dx, dw, db]
    }
}
