//! Gated short convolution over time (LFM2, arXiv:2511.23404): rows of three parts b, c and u give `z = b u`, `y_t = Σ_k w_k z_{t − κ + 1 + k}` for
//! each channel, within documents, and the output `c y`.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{Int, Tensor};

use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{Kernels, Words};
use crate::ops::attention::given;
use crate::ops::column_sum::{self, column_sum};
use crate::ops::operation::operation;
use crate::ops::tape::{Grads, Sum, Vjp};

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&FORWARD.all(), &INPUT.all(), &WEIGHT.all()];

crate::kernel! {
    /// Computes the output.
    pub FORWARD = "short_conv_forward" [64], (x, w, starts) -> (y),
    /// Shapes.
    struct Params {
        /// Number of rows.
        n: usize,
        /// C, the number of channels.
        width: usize,
        /// κ, the number of taps of a channel.
        taps: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// 1 if each row has a first row of its own, that of its document; otherwise the first row is that of the sequence.
        documents: bool,
    },
    twin forward_twin
}
crate::kernel! {
    /// Computes the gradient of the rows.
    pub INPUT = "short_conv_backward_input" [64], (x, w, starts, dy) -> (dx), Params, twin input_twin
}
crate::kernel! {
    /// Computes the gradient of the taps, in parts of the rows.
    pub WEIGHT = "short_conv_backward_weight" [64], (x, starts, dy) -> (dw),
    /// Shapes, and the cut of the rows.
    struct WeightParams {
        /// Number of rows.
        n: usize,
        /// C, the number of channels.
        width: usize,
        /// κ, the number of taps of a channel.
        taps: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// 1 if each row has a first row of its own.
        documents: bool,
        /// Number of rows of a part.
        rows: usize,
        /// Number of parts.
        parts: usize,
    },
    twin weight_twin
}

/// Returns the first position whose value row `r` of sequences of `len` rows reads.
fn first(starts: &[u32], documents: bool, r: usize) -> usize {
    if documents { starts[r] as usize } else { 0 }
}

/// Returns `z` of a row.
fn gated(x: &[u32], row: usize, width: usize, c: usize) -> f64 {
    x.wide(row * 3 * width + c) * x.wide(row * 3 * width + 2 * width + c)
}

/// Returns the sum over the taps of a row.
fn convolved(x: &[u32], w: &[u32], starts: &[u32], p: &Params, r: usize, c: usize) -> f64 {
    let (t, base) = (r % p.len, r - r % p.len);
    let first = first(starts, p.documents, r);
    (0..p.taps)
        .filter(|k| t + k + 1 >= p.taps && t + k + 1 - p.taps >= first)
        .map(|k| w.wide(c * p.taps + k) * gated(x, base + t + k + 1 - p.taps, p.width, c))
        .sum()
}

fn forward_twin([x, w, starts]: [&[u32]; 3], [y]: [&mut [u32]; 1], p: &Params) {
    for i in 0..p.n * p.width {
        let (r, c) = (i / p.width, i % p.width);
        let factor = x.wide(r * 3 * p.width + p.width + c);
        y.set(i, factor * convolved(x, w, starts, p, r, c));
    }
}

fn input_twin([x, w, starts, dy]: [&[u32]; 4], [dx]: [&mut [u32]; 1], p: &Params) {
    let width = p.width;
    for i in 0..p.n * width {
        let (r, c) = (i / width, i % width);
        let at = r * 3 * width + c;
        dx.set(at + width, dy.wide(i) * convolved(x, w, starts, p, r, c));
        let dz: f64 = (0..p.taps)
            .filter(|later| r % p.len + later < p.len)
            .filter(|later| first(starts, p.documents, r + later) <= r % p.len)
            .map(|later| {
                let other = r + later;
                let slope = dy.wide(other * width + c) * x.wide(other * 3 * width + width + c);
                w.wide(c * p.taps + p.taps - 1 - later) * slope
            })
            .sum();
        dx.set(at, dz * x.wide(at + 2 * width));
        dx.set(at + 2 * width, dz * x.wide(at));
    }
}

fn weight_twin([x, starts, dy]: [&[u32]; 3], [dw]: [&mut [u32]; 1], p: &WeightParams) {
    let (width, taps) = (p.width, p.taps);
    let cut = column_sum::Params {
        n: p.n,
        width: width * taps,
        rows: p.rows,
        parts: p.parts,
    };
    for i in 0..p.parts * width * taps {
        let (c, k) = (i % (width * taps) / taps, i % taps);
        let term = |r: usize| {
            let t = r % p.len;
            let seen = t + k + 1 >= taps && t + k + 1 - taps >= first(starts, p.documents, r);
            if !seen {
                return 0.0;
            }
            let slope = dy.wide(r * width + c) * x.wide(r * 3 * width + width + c);
            slope * gated(x, r + k + 1 - taps, width, c)
        };
        dw.set(i, cut.part(i / (width * taps)).map(term).sum::<f64>());
    }
}

/// The shape of a convolution, which cannot be derived from its tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvShape {
    /// T, the number of rows of a sequence.
    pub seq_len: usize,
    /// κ, the number of taps of a channel.
    pub taps: usize,
}

/// The backward pass of a convolution.
#[derive(Debug, Clone)]
struct ShortConv<T> {
    x: T,
    w: T,
    starts: T,
    documents: bool,
    shape: ConvShape,
}

impl<T> ShortConv<T> {
    fn params(&self, [n, columns]: [usize; 2]) -> Params {
        Params {
            n,
            width: columns / 3,
            taps: self.shape.taps,
            len: self.shape.seq_len.max(1),
            documents: self.documents,
        }
    }
}

impl<B: Launch> Vjp<B, 2> for ShortConv<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 2], _: Sum<'_, B>) -> Grads<B, 2> {
        let (n, columns) = rows_columns(&self.x.shape());
        let params = self.params([n, columns]);
        let shape = self.w.shape();
        let Self { x, w, starts, .. } = self;
        let dw = needs[1].then(|| {
            let cut = column_sum::Params::cut(n, params.width * params.taps);
            let of_weight = WeightParams {
                n,
                width: params.width,
                taps: params.taps,
                len: params.len,
                documents: params.documents,
                rows: cut.rows,
                parts: cut.parts,
            };
            let read = [x.clone(), starts.clone(), dy.clone()];
            let threads = cut.parts * cut.width;
            let parts = B::made(&WEIGHT, read, [cut.parts, cut.width], &of_weight, threads);
            B::float_reshape(column_sum::<B>(parts), shape)
        });
        let dx = needs[0].then(|| {
            let all = x.shape();
            B::made(&INPUT, [x, w, starts, dy], all, &params, n * params.width)
        });
        [dx, dw]
    }
}

operation! {
    /// Computes [`short_conv`]; `starts` is read only with documents.
    fn conv_of_rows(x: Tensor<2>, w: Tensor<1>; documents: bool, shape: ConvShape; starts: Tensor<1, Int>) -> Tensor<2> {
        let ([x, w], nodes) = B::parts([x, w]);
        let starts = B::Inner::ids(B::integers(starts));
        let vjp = ShortConv { x, w, starts, documents, shape };
        let (n, columns) = rows_columns(&vjp.x.shape());
        let params = vjp.params([n, columns]);
        let read = [vjp.x.clone(), vjp.w.clone(), vjp.starts.clone()];
        let y = B::Inner::made(&FORWARD, read, [n, params.width], &params, n * params.width);
        B::record(nodes, y, vjp)
    }
}

/// Computes `c y` with `y_t = Σ_k w_k (b u)_{t − κ + 1 + k}` of the rows `x [B·T, 3 C]`, which have b, c and u one after another, and the taps
/// `w [C · κ]` of each channel → `[B·T, C]`. Row t reads no row of its sequence before `starts[t]`, which grows with t, or before 0 without `starts`.
pub fn short_conv(
    x: Tensor<2>,
    w: Tensor<1>,
    starts: Option<Tensor<1, Int>>,
    shape: ConvShape,
) -> Tensor<2> {
    let (documents, starts) = given(starts, &x.device());
    conv_of_rows(x, w, documents, shape, starts)
}
