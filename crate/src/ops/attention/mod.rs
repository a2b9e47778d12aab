//! Causal attention with grouped queries, within documents if their starts are given. Its softmax is computed online, so that memory grows with T
//! and not with T² (arXiv:2205.14135). The forward pass keeps the log-sum-exp of each row; the backward pass computes the weights again.

pub mod kernels;
pub mod params;
mod twins;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, Device, Int, Tensor};

use crate::gpu::groups_of_64;
use crate::gpu::launch::Launch;
use crate::ops::operation::operation;
use crate::ops::tape::{Grads, Sum, Vjp};
use kernels::{TILE, TILE_WIDTH, WIDE_TILE_WIDTH};
use params::{BlockParams, HeadSumParams, PadParams, Params, WindowParams};

pub use crate::config::MAX_HEAD_DIM;

/// Number of queries and of keys of a block.
const BLOCK: usize = 8;

/// Maximum number of products of a pass that a software adapter computes row by row. With 16,384 products llvmpipe takes no longer than by blocks,
/// and SwiftShader takes ten times as long to compile the kernels by blocks.
const FEW: usize = 1 << 15;

/// Maximum number of loop rounds in a thread: Mesa's lavapipe ends loops after 65,535 rounds, with nested loops counted together.
const ROUNDS: usize = 48_000;

/// The sizes of an attention, which cannot be derived from the number of rows. `head_dim` ≤ [`MAX_HEAD_DIM`], `kv_heads` divides `heads`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionShape {
    /// B, the number of sequences.
    pub batch_size: usize,
    /// T, the number of queries of a sequence.
    pub seq_len: usize,
    /// Number of keys before the first query, which are in a cache.
    pub offset: usize,
    /// Number of heads of q.
    pub heads: usize,
    /// Number of heads of k and v.
    pub kv_heads: usize,
    /// H, the width of a head.
    pub head_dim: usize,
    /// W, the number of keys that a query sees, the last of which is its own position; `None` for all.
    pub window: Option<usize>,
    /// Factor of the scores; `None` for 1/√H.
    pub scale: Option<f64>,
    /// Bound c > 0 of the scores, which become c·tanh(s/c), if they have one.
    pub cap: Option<f64>,
}

impl AttentionShape {
    /// The window, if some query does not see all keys before it.
    fn narrower_window(&self) -> Option<usize> {
        let keys = self.offset + self.seq_len;
        self.window.filter(|window| *window < keys)
    }

    fn padded(&self) -> usize {
        self.head_dim.next_multiple_of(4)
    }

    fn queries(&self) -> usize {
        self.batch_size * self.seq_len * self.heads
    }

    fn keys(&self) -> usize {
        self.batch_size * (self.offset + self.seq_len) * self.kv_heads
    }

    fn params(&self, documents: bool) -> Params {
        Params {
            batch: self.batch_size,
            heads: self.heads,
            kv_heads: self.kv_heads,
            len: self.seq_len,
            offset: self.offset,
            width4: self.padded() / 4,
            scale: self.scale.unwrap_or(1.0 / (self.head_dim as f64).sqrt()) as f32,
            cap: self.cap.unwrap_or(0.0) as f32,
            documents,
        }
    }

    /// Returns true if on a software adapter a thread takes one query, or one key, against `step` keys at a time. That is so for few products, and
    /// for short sequences, of which a block of 8 would compute some rows twice.
    fn by_row(&self, step: usize) -> bool {
        let keys = self.offset + self.seq_len;
        let rounds = keys.div_ceil(step) * (1 + self.padded() / 2);
        rounds <= ROUNDS
            && (self.seq_len < BLOCK / 2 || self.queries() * keys * self.padded() <= FEW)
    }

    fn wide(&self) -> bool {
        self.padded() > TILE_WIDTH
    }

    /// The number of workgroups of a kernel by tiles, for `rows` queries or keys of a sequence, with `columns` of a head each.
    fn tiles(&self, rows: usize, columns: usize) -> u32 {
        let parts = self.padded().div_ceil(columns);
        (self.batch_size * self.heads * rows.div_ceil(TILE) * parts) as u32
    }

    /// The number of workgroups of the kernels by tiles of queries.
    fn query_tiles(&self) -> u32 {
        self.tiles(self.seq_len, WIDE_TILE_WIDTH)
    }

    /// The number of threads of a block kernel, for `rows` queries or keys of a sequence.
    fn block_threads(&self, rows: usize, heads: usize) -> usize {
        self.batch_size * rows.div_ceil(BLOCK) * heads
    }

    /// The parameters of the launches that together cover `rows` keys or queries, if 8 of these cost `heads` passes over a head.
    fn parts(&self, documents: bool, rows: usize, heads: usize) -> Vec<BlockParams> {
        let step = (ROUNDS / (heads * (1 + self.padded() / 2)) * BLOCK).max(BLOCK);
        let whole = self.params(documents);
        let part = |first: usize| whole.part(first..first + step);
        (0..rows).step_by(step).map(part).collect()
    }
}

impl AttentionShape {
    /// Adds gradients of keys and of values by query head up to gradients by the head that these share.
    fn shared<B: Launch>(&self, made: [FloatTensor<B>; 2]) -> [FloatTensor<B>; 2] {
        if self.heads == self.kv_heads {
            return made;
        }
        let (n, width4) = (self.keys(), self.padded() / 4);
        let shape = [n / self.kv_heads, self.kv_heads * self.padded()];
        let sums = [(); 2].map(|()| B::floats(&made[0], shape));
        let params = HeadSumParams {
            n,
            group: self.heads / self.kv_heads,
            width4,
        };
        let groups = groups_of_64(n * width4);
        B::launch(&kernels::HEAD_SUM, made, sums, &params, groups)
    }
}

/// Returns the first key of each query with a window, `[B·T]` as words.
fn in_window<B: Launch>(
    starts: FloatTensor<B>,
    documents: bool,
    window: usize,
    shape: AttentionShape,
) -> FloatTensor<B> {
    let n = shape.batch_size * shape.seq_len;
    let params = WindowParams {
        n,
        len: shape.seq_len.max(1),
        offset: shape.offset,
        window,
        documents,
    };
    B::made(&kernels::WINDOW_STARTS, [starts], [n], &params, n)
}

/// Pads or cuts heads of `from` elements to heads of `to` elements: the kernels read four elements at a time.
fn resized<B: Launch>(x: FloatTensor<B>, from: usize, to: usize) -> FloatTensor<B> {
    if from == to {
        return x;
    }
    let n = x.shape().num_elements() / from;
    let width = x.shape().last().copied().unwrap_or(from) / from * to;
    let params = PadParams {
        n,
        from_width: from,
        to_width: to,
    };
    let shape = [n * to / width, width];
    B::made(&kernels::HEAD_PAD, [x], shape, &params, n * to)
}

/// The inputs of the backward pass, with padded heads.
#[derive(Debug, Clone)]
pub struct Attention<T> {
    /// Queries `[B·T, heads·H]`.
    pub q: T,
    /// Keys `[B·(offset + T), kv_heads·H]`.
    pub k: T,
    /// Values `[B·(offset + T), kv_heads·H]`.
    pub v: T,
    /// Output `[B·T, heads·H]`.
    pub y: T,
    /// The log-sum-exp and 0 of each row; with documents, the first key of each query follows.
    pub stats: T,
    /// True if each query has a first key of its own.
    pub documents: bool,
    /// Sizes, with the width of a head before padding.
    pub shape: AttentionShape,
}

/// Computes attention: `q [B·T, heads·H]`, `k`, `v [B·(offset + T), kv_heads·H]` → `[B·T, heads·H]`, and the inputs of the backward pass. With
/// `documents`, `starts [B·T]` holds the first key of each query.
pub fn forward<B: Launch>(
    q: FloatTensor<B>,
    k: FloatTensor<B>,
    v: FloatTensor<B>,
    starts: FloatTensor<B>,
    documents: bool,
    shape: AttentionShape,
) -> (FloatTensor<B>, Attention<FloatTensor<B>>) {
    let (starts, documents) = match shape.narrower_window() {
        Some(window) => (in_window::<B>(starts, documents, window, shape), true),
        None => (starts, documents),
    };
    let (from, to) = (shape.head_dim, shape.padded());
    let [q, k, v] = [q, k, v].map(|x| resized::<B>(x, from, to));
    let y = B::floats(&q, q.shape());
    let firsts = if documents {
        shape.batch_size * shape.seq_len
    } else {
        0
    };
    let stats = B::floats(&q, [2 * shape.queries() + firsts]);
    let (written, params) = ([y, stats], shape.params(documents));
    let read = || [q.clone(), k.clone(), v.clone(), starts.clone()];
    let [y, stats] = if !B::software(&q) {
        let kernel = if shape.wide() {
            &kernels::FORWARD_TILE_WIDE
        } else {
            &kernels::FORWARD_TILE
        };
        B::launch(kernel, read(), written, &params, shape.query_tiles())
    } else if shape.by_row(4) {
        let groups = groups_of_64(shape.queries());
        B::launch(&kernels::FORWARD, read(), written, &params, groups)
    } else {
        let kernel = &kernels::FORWARD_BLOCK;
        let groups = kernel.groups(shape.block_threads(shape.seq_len, shape.heads));
        let add = |sums, params: &BlockParams| B::launch(kernel, read(), sums, params, groups);
        shape
            .parts(documents, shape.offset + shape.seq_len, 1)
            .iter()
            .fold(written, add)
    };
    (
        resized::<B>(y.clone(), to, from),
        Attention {
            q,
            k,
            v,
            y,
            stats,
            documents,
            shape,
        },
    )
}

/// Computes the gradients of q, k and v from `dy [B·T, heads·H]` as the kernels make them: with padded heads, and on a GPU those of k and v by
/// query head.
pub(crate) fn by_head<B: Launch>(
    of: Attention<FloatTensor<B>>,
    dy: FloatTensor<B>,
) -> [FloatTensor<B>; 3] {
    let Attention {
        q,
        k,
        v,
        y,
        stats,
        documents,
        shape,
    } = of;
    let dq = B::floats(&q, q.shape());
    let of_query = || [q.clone(), k.clone(), v.clone(), y.clone(), dy.clone()];
    let of_key =
        |stats: &FloatTensor<B>| [q.clone(), k.clone(), v.clone(), dy.clone(), stats.clone()];
    let keys = shape.offset + shape.seq_len;
    let params = shape.params(documents);
    if B::software(&q) {
        let (dk, dv) = (B::floats(&k, k.shape()), B::floats(&v, v.shape()));
        if shape.by_row(1) {
            let groups = [shape.queries(), shape.keys()].map(groups_of_64);
            let [stats, dq] = B::launch(
                &kernels::BACKWARD_QUERY,
                of_query(),
                [stats, dq],
                &params,
                groups[0],
            );
            let [dk, dv] = B::launch(
                &kernels::BACKWARD_KEY_VALUE,
                of_key(&stats),
                [dk, dv],
                &params,
                groups[1],
            );
            return [dq, dk, dv];
        }
        let (by_query, by_key) = (
            &kernels::BACKWARD_QUERY_BLOCK,
            &kernels::BACKWARD_KEY_VALUE_BLOCK,
        );
        let groups = by_query.groups(shape.block_threads(shape.seq_len, shape.heads));
        let add =
            |sums, params: &BlockParams| B::launch(by_query, of_query(), sums, params, groups);
        let [stats, dq] = shape
            .parts(documents, keys, 1)
            .iter()
            .fold([stats, dq], add);
        let groups = by_key.groups(shape.block_threads(keys, shape.kv_heads));
        let add =
            |sums, params: &BlockParams| B::launch(by_key, of_key(&stats), sums, params, groups);
        let [dk, dv] = shape
            .parts(documents, shape.seq_len, shape.heads / shape.kv_heads)
            .iter()
            .fold([dk, dv], add);
        return [dq, dk, dv];
    }
    let by_query = if shape.wide() {
        &kernels::BACKWARD_QUERY_TILE_WIDE
    } else {
        &kernels::BACKWARD_QUERY_TILE
    };
    let [stats, dq] = B::launch(
        by_query,
        of_query(),
        [stats, dq],
        &params,
        shape.query_tiles(),
    );
    let made = [shape.batch_size * keys, shape.heads * shape.padded()];
    let made = [B::floats(&k, made), B::floats(&v, made)];
    let groups = shape.tiles(keys, TILE_WIDTH);
    let [dk, dv] = B::launch(
        &kernels::BACKWARD_KEY_VALUE_TILE,
        of_key(&stats),
        made,
        &params,
        groups,
    );
    [dq, dk, dv]
}

impl<B: Launch> Vjp<B, 3> for Attention<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, _needs: [bool; 3], _: Sum<'_, B>) -> Grads<B, 3> {
        let shape = self.shape;
        let (from, to) = (shape.head_dim, shape.padded());
        let [dq, dk, dv] = by_head::<B>(self, resized::<B>(dy, from, to));
        let [dk, dv] = if B::software(&dq) {
            [dk, dv]
        } else {
            shape.shared::<B>([dk, dv])
        };
        [dq, dk, dv].map(|x| Some(resized::<B>(x, to, from)))
    }
}

operation! {
    /// Computes [`attention()`]; `starts` is read only with documents.
    fn causal(q: Tensor<2>, k: Tensor<2>, v: Tensor<2>; documents: bool, shape: AttentionShape; starts: Tensor<1, Int>) -> Tensor<2> {
        let ([q, k, v], nodes) = B::parts([q, k, v]);
        let (y, vjp) = forward::<B::Inner>(q, k, v, B::Inner::ids(B::integers(starts)), documents, shape);
        B::record(nodes, y, vjp)
    }
}

/// Returns whether there are starts, and a tensor that can be bound: without documents it is not read.
pub(crate) fn given(starts: Option<Tensor<1, Int>>, device: &Device) -> (bool, Tensor<1, Int>) {
    (
        starts.is_some(),
        starts.unwrap_or_else(|| Tensor::empty([1], (device, DType::I32))),
    )
}

/// Computes causal attention: `q [B·T, heads·H]`, `k`, `v [B·(offset + T), kv_heads·H]` → `[B·T, heads·H]`. Query t sees the keys
/// `start ..= offset + t` of its sequence; scores are divided by √H unless the shape says another
/// factor, and capped where it has a cap. `starts [B·T]` are key indices that grow with t and are at most `offset + t`;
/// if `starts` is `None`, each is 0.
pub fn attention(
    q: Tensor<2>,
    k: Tensor<2>,
    v: Tensor<2>,
    starts: Option<Tensor<1, Int>>,
    shape: AttentionShape,
) -> Tensor<2> {
    let (documents, starts) = given(starts, &q.device());
    causal(q, k, v, documents, shape, starts)
}
