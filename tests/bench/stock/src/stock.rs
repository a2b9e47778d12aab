//! The benchmark's model in Burn's own operations: what the kernels are measured against.

use burn::tensor::activation::{log_softmax, silu, softmax};
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use tabtune::data::Batch;

use crate::work::{ADAMW, LEARNING_RATE, NORM_EPS, ROPE_BASE, Shape};

/// Tensors of a block: norm, q, k, v, o, norm, gate, up, down.
const OF_A_BLOCK: usize = 9;

/// A parameter [rows, columns] (a norm is [1, C]) with its moments.
struct Parameter {
    value: Tensor<2>,
    m: Tensor<2>,
    v: Tensor<2>,
    decays: bool,
}

/// The model with its optimizer.
pub struct Stock {
    shape: Shape,
    device: Device,
    parameters: Vec<Parameter>,
    cos: Tensor<4>,
    sin: Tensor<4>,
    /// True where a key comes after its query.
    later: Tensor<4, Bool>,
    step: i32,
}

/// A forward pass.
pub struct Forward {
    weights: Vec<Tensor<2>>,
    loss: Tensor<1>,
}

impl Stock {
    /// The same initial weights as ours, on an autodiff `device`.
    pub fn new(shape: Shape, device: Device) -> Self {
        let plain = device.clone().inner();
        let parameters = shape.weights().into_iter().map(|(_, dims, values)| {
            let (decays, dims) = if let [rows, columns] = *dims { (true, [rows, columns]) } else { (false, [1, dims[0]]) };
            let value = Tensor::from_data(TensorData::new(values, dims), &plain);
            Parameter { m: Tensor::zeros(dims, &plain), v: Tensor::zeros(dims, &plain), value, decays }
        });
        let (t, half) = (shape.seq_len, shape.d / shape.heads / 2);
        let table = |of: fn(f64) -> f64| {
            let angles = (0..t * half).map(|i| (i / half) as f64 * ROPE_BASE.powf(-((i % half) as f64) / half as f64));
            let values: Vec<f32> = angles.map(|angle| of(angle) as f32).collect();
            Tensor::<4>::from_data(TensorData::new(values, [1, 1, t, half]), &device)
        };
        // `tril_mask` is true above the diagonal.
        let later = Tensor::<2, Bool>::tril_mask([t, t], 0, &device).reshape([1, 1, t, t]);
        let (cos, sin) = (table(f64::cos), table(f64::sin));
        Self { parameters: parameters.collect(), cos, sin, later, step: 0, shape, device }
    }

    fn rotate(&self, x: Tensor<4>) -> Tensor<4> {
        let halves = x.chunk(2, 3);
        let (a, b) = (halves[0].clone(), halves[1].clone());
        let (cos, sin) = (self.cos.clone(), self.sin.clone());
        Tensor::cat(vec![a.clone() * cos.clone() - b.clone() * sin.clone(), b * cos + a * sin], 3)
    }

    fn attention(&self, x: &Tensor<2>, [q, k, v, o]: [&Tensor<2>; 4]) -> Tensor<2> {
        let Shape { d, heads, seq_len, batch_size, .. } = self.shape;
        let per_head = |w: &Tensor<2>| linear(x, w).reshape([batch_size, seq_len, heads, d / heads]).swap_dims(1, 2);
        let (q, k, v) = (self.rotate(per_head(q)), self.rotate(per_head(k)), per_head(v));
        let scores = q.matmul(k.swap_dims(2, 3)) / ((d / heads) as f64).sqrt();
        let later = self.later.clone().expand([batch_size, heads, seq_len, seq_len]);
        let mixed = softmax(scores.mask_fill(later, -1e9), 3).matmul(v);
        linear(&mixed.swap_dims(1, 2).reshape([batch_size * seq_len, d]), o)
    }

    fn loss(&self, weights: &[Tensor<2>], batch: &Batch) -> Tensor<1> {
        let n = batch.inputs.len();
        let ids = |values: &[i32]| Tensor::<1, Int>::from_data(TensorData::new(values.to_vec(), [n]), &self.device);
        let mut x = weights[0].clone().select(0, ids(&batch.inputs));
        for block in weights[1..].chunks_exact(OF_A_BLOCK) {
            x = x.clone() + self.attention(&rms_norm(x, &block[0]), [&block[1], &block[2], &block[3], &block[4]]);
            let normed = rms_norm(x.clone(), &block[5]);
            x = x + linear(&(silu(linear(&normed, &block[6])) * linear(&normed, &block[7])), &block[8]);
        }
        let last = weights.last().expect("the final norm is the last parameter");
        let logits = linear(&rms_norm(x, last), &weights[0]);
        log_softmax(logits, 1).gather(1, ids(&batch.targets).reshape([n, 1])).mean().neg()
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.parameters.iter().map(|p| p.value.shape().num_elements()).sum()
    }

    /// The loss of `batch`, with all that its backward pass needs.
    pub fn forward(&self, batch: &Batch) -> Forward {
        let weights: Vec<Tensor<2>> = self.parameters.iter().map(|p| Tensor::from_inner(p.value.clone()).require_grad()).collect();
        Forward { loss: self.loss(&weights, batch), weights }
    }

    /// One step of AdamW; the loss before it, [1], not read yet.
    pub fn update(&mut self, Forward { weights, loss }: Forward) -> Tensor<1> {
        self.step += 1;
        let value = loss.clone().inner();
        let mut gradients = loss.backward();
        let (beta1, beta2) = (ADAMW.beta1, ADAMW.beta2);
        let (scale1, scale2) = (1.0 / (1.0 - beta1.powi(self.step)), 1.0 / (1.0 - beta2.powi(self.step)));
        for (parameter, weight) in self.parameters.iter_mut().zip(&weights) {
            let Some(g) = weight.grad_remove(&mut gradients) else { continue };
            parameter.m = parameter.m.clone() * beta1 + g.clone() * (1.0 - beta1);
            parameter.v = parameter.v.clone() * beta2 + g.square() * (1.0 - beta2);
            let change = parameter.m.clone() * scale1 / ((parameter.v.clone() * scale2).sqrt() + ADAMW.eps);
            let decay = if parameter.decays { LEARNING_RATE * ADAMW.weight_decay } else { 0.0 };
            parameter.value = parameter.value.clone() * (1.0 - decay) - change * LEARNING_RATE;
        }
        value
    }
}

/// x [n, k] · w [m, k]ᵀ
fn linear(x: &Tensor<2>, w: &Tensor<2>) -> Tensor<2> {
    x.clone().matmul(w.clone().transpose())
}

fn rms_norm(x: Tensor<2>, weight: &Tensor<2>) -> Tensor<2> {
    let scale = (x.clone().square().mean_dim(1) + NORM_EPS).sqrt();
    x / scale * weight.clone()
}
