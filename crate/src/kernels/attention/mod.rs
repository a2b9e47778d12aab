//! Causal attention with grouped queries: online softmax, so that memory grows with T and not with T² (arXiv:2205.14135). The
//! forward pass keeps the log-sum-exp of each row, the backward pass computes the weights again.

pub mod kernels;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::DType;

use super::autodiff::Rule;
use super::kernel::groups_of_64;
use super::launch::Launch;
use kernels::{PadParams, Params};

pub use crate::config::MAX_HEAD_DIM;

/// The shapes that rows do not tell. `head_dim` ≤ [`MAX_HEAD_DIM`], `kv_heads` divides `heads`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionShape {
    /// B.
    pub batch_size: usize,
    /// T, queries of a sequence.
    pub seq_len: usize,
    /// Keys before the first query, in a cache.
    pub offset: usize,
    /// Heads of q.
    pub heads: usize,
    /// Heads of k and v.
    pub kv_heads: usize,
    /// H.
    pub head_dim: usize,
}

impl AttentionShape {
    fn padded(&self) -> usize {
        self.head_dim.next_multiple_of(4)
    }

    fn queries(&self) -> usize {
        self.batch_size * self.seq_len * self.heads
    }

    fn keys(&self) -> usize {
        self.batch_size * (self.offset + self.seq_len) * self.kv_heads
    }

    fn params(&self) -> Vec<u32> {
        let params = Params {
            batch: self.batch_size as u32,
            heads: self.heads as u32,
            kv_heads: self.kv_heads as u32,
            len: self.seq_len as u32,
            offset: self.offset as u32,
            width4: self.padded() as u32 / 4,
            scale: (1.0 / (self.head_dim as f64).sqrt()) as f32,
        };
        params.words()
    }
}

/// Heads of `from` elements to heads of `to`: the kernels read four at a time.
fn resized<B: Launch>(x: FloatTensor<B>, from: usize, to: usize) -> FloatTensor<B> {
    if from == to {
        return x;
    }
    let n = x.shape().num_elements() / from;
    let width = x.shape().last().copied().unwrap_or(from) / from * to;
    let y = B::empty(&x, [n * to / width, width].into(), DType::F32);
    let params = PadParams { n: n as u32, from_width: from as u32, to_width: to as u32 }.words();
    B::one(&kernels::HEAD_PAD, vec![x, y], &params, groups_of_64(n * to))
}

/// What the backward pass needs, heads padded.
#[derive(Debug, Clone)]
pub struct Attention<T> {
    /// Queries.
    pub q: T,
    /// Keys.
    pub k: T,
    /// Values.
    pub v: T,
    /// Output.
    pub y: T,
    /// Log-sum-exp of each row.
    pub stats: T,
    /// Shapes.
    pub shape: AttentionShape,
}

/// `q [B·T, heads·H]`, `k`, `v [B·(offset + T), kv_heads·H]` → `[B·T, heads·H]`, and what the backward pass needs.
pub fn forward<B: Launch>(
    q: FloatTensor<B>,
    k: FloatTensor<B>,
    v: FloatTensor<B>,
    shape: AttentionShape,
) -> (FloatTensor<B>, Attention<FloatTensor<B>>) {
    let (from, to) = (shape.head_dim, shape.padded());
    let [q, k, v] = [q, k, v].map(|x| resized::<B>(x, from, to));
    let y = B::empty(&q, q.shape(), DType::F32);
    let stats = B::empty(&q, [shape.queries(), 2].into(), DType::F32);
    let buffers = vec![q.clone(), k.clone(), v.clone(), y, stats];
    let [y, stats] = B::two(&kernels::FORWARD, buffers, &shape.params(), groups_of_64(shape.queries()));
    (resized::<B>(y.clone(), to, from), Attention { q, k, v, y, stats, shape })
}

impl<B: Launch> Rule<B, 3> for Attention<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, _needs: [bool; 3]) -> [Option<FloatTensor<B>>; 3] {
        let Self { q, k, v, y, stats, shape } = self;
        let (from, to) = (shape.head_dim, shape.padded());
        let dy = resized::<B>(dy, from, to);
        let dq = B::empty(&q, q.shape(), DType::F32);
        let buffers = vec![q.clone(), k.clone(), v.clone(), y, dy.clone(), stats, dq];
        let [stats, dq] = B::two(&kernels::BACKWARD_QUERY, buffers, &shape.params(), groups_of_64(shape.queries()));
        let (dk, dv) = (B::empty(&k, k.shape(), DType::F32), B::empty(&v, v.shape(), DType::F32));
        let buffers = vec![q, k, v, dy, stats, dk, dv];
        let [dk, dv] = B::two(&kernels::BACKWARD_KEY_VALUE, buffers, &shape.params(), groups_of_64(shape.keys()));
        [dq, dk, dv].map(|x| Some(resized::<B>(x, to, from)))
    }
}
