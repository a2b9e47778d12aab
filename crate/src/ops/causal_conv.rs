//! Convolution over time, `y_t = Σ_k w_k x_{t − κ + 1 + k}` for each channel, within documents (Gated DeltaNet, arXiv:2412.06464).

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{Int, Tensor};

use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{Kernels, Words};
use crate::ops::attention::given;
use crate::ops::column_sum::{self, column_sum};
use crate::ops::operation::operation;
use crate::ops::short_conv::ConvShape;
use crate::ops::tape::{Grads, Sum, Vjp};

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&FORWARD.all(), &INPUT.all(), &WEIGHT.all()];

crate::kernel! {
    /// Computes the output.
    pub FORWARD = "causal_conv_forward" [64], (x, w, starts) -> (y),
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
    pub INPUT = "causal_conv_backward_input" [64], (w, starts, dy) -> (dx), Params, twin input_twin
}
crate::kernel! {
    /// Computes the gradient of the taps, in parts of the rows.
    pub WEIGHT = "causal_conv_backward_weight" [64], (x, starts, dy) -> (dw),
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

/// The first position whose value row `r` reads.
fn first(starts: &[u32], documents: bool, r: usize) -> usize {
    if documents { starts[r] as usize } else { 0 }
}

fn forward_twin([x, w, starts]: [&[u32]; 3], [y]: [&mut [u32]; 1], p: &Params) {
    for i in 0..p.n * p.width {
        let (r, c) = (i / p.width, i % p.width);
        let (t, first) = (r % p.len, first(starts, p.documents, r));
        let sum: f64 = (0..p.taps)
            .filter(|k| t + k + 1 >= p.taps + first)
            .map(|k| w.wide(c * p.taps + k) * x.wide((r + k + 1 - p.taps) * p.width + c))
            .sum();
        y.set(i, sum);
    }
}

fn input_twin([w, starts, dy]: [&[u32]; 3], [dx]: [&mut [u32]; 1], p: &Params) {
    for i in 0..p.n * p.width {
        let (r, c) = (i / p.width, i % p.width);
        let sum: f64 = (0..p.taps)
            .filter(|later| r % p.len + later < p.len)
            .filter(|later| first(starts, p.documents, r + later) <= r % p.len)
            .map(|later| {
                let tap = w.wide(c * p.taps + p.taps - 1 - later);
                tap * dy.wide((r + later) * p.width + c)
            })
            .sum();
        dx.set(i, sum);
    }
}

fn weight_twin([x, starts, dy]: [&[u32]; 3], [dw]: [&mut [u32]; 1], p: &WeightParams) {
    let columns = p.width * p.taps;
    let cut = column_sum::Params {
        n: p.n,
        width: columns,
        rows: p.rows,
        parts: p.parts,
    };
    for i in 0..p.parts * columns {
        let (c, k) = (i % columns / p.taps, i % p.taps);
        let term = |r: usize| {
            let seen = r % p.len + k + 1 >= p.taps + first(starts, p.documents, r);
            if seen {
                dy.wide(r * p.width + c) * x.wide((r + k + 1 - p.taps) * p.width + c)
            } else {
                0.0
            }
        };
        dw.set(i, cut.part(i / columns).map(term).sum::<f64>());
    }
}

/// The backward pass of a convolution.
#[derive(Debug, Clone)]
struct CausalConv<T> {
    x: T,
    w: T,
    starts: T,
    documents: bool,
    shape: ConvShape,
}

impl<T> CausalConv<T> {
    fn params(&self, [n, width]: [usize; 2]) -> Params {
        Params {
            n,
            width,
            taps: self.shape.taps,
            len: self.shape.seq_len.max(1),
            documents: self.documents,
        }
    }
}

impl<B: Launch> Vjp<B, 2> for CausalConv<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 2], _: Sum<'_, B>) -> Grads<B, 2> {
        let (n, width) = rows_columns(&self.x.shape());
        let params = self.params([n, width]);
        let (all, of_taps) = (self.x.shape(), self.w.shape());
        let Self { x, w, starts, .. } = self;
        let dw = needs[1].then(|| {
            let cut = column_sum::Params::cut(n, width * params.taps);
            let of_weight = WeightParams {
                n,
                width,
                taps: params.taps,
                len: params.len,
                documents: params.documents,
                rows: cut.rows,
                parts: cut.parts,
            };
            let read = [x, starts.clone(), dy.clone()];
            let threads = cut.parts * cut.width;
            let parts = B::made(&WEIGHT, read, [cut.parts, cut.width], &of_weight, threads);
            B::float_reshape(column_sum::<B>(parts), of_taps)
        });
        let dx = needs[0].then(|| B::made(&INPUT, [w, starts, dy], all, &params, n * width));
        [dx, dw]
    }
}

operation! {
    /// Computes [`causal_conv`]; `starts` is read only with documents.
    fn conv_of_rows(x: Tensor<2>, w: Tensor<1>; documents: bool, shape: ConvShape; starts: Tensor<1, Int>) -> Tensor<2> {
        let ([x, w], nodes) = B::parts([x, w]);
        let starts = B::Inner::ids(B::integers(starts));
        let vjp = CausalConv { x, w, starts, documents, shape };
        let (n, width) = rows_columns(&vjp.x.shape());
        let params = vjp.params([n, width]);
        let read = [vjp.x.clone(), vjp.w.clone(), vjp.starts.clone()];
        let y = B::Inner::made(&FORWARD, read, [n, width], &params, n * width);
        B::record(nodes, y, vjp)
    }
}

/// Computes `y_t = Σ_k w_k x_{t − κ + 1 + k}` of the rows `x [B·T, C]` and the taps `w [C · κ]` of each channel → `[B·T, C]`. Row t reads no row of its
/// sequence before `starts[t]`, which grows with t, or before 0 without `starts`.
pub fn causal_conv(
    x: Tensor<2>,
    w: Tensor<1>,
    starts: Option<Tensor<1, Int>>,
    shape: ConvShape,
) -> Tensor<2> {
    let (documents, starts) = given(starts, &x.device());
    conv_of_rows(x, w, documents, shape, starts)
}
