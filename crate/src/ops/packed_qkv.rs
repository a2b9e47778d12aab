//! Attention with queries, keys and values that are one product, as in GPT-2: `[n, 3 C]`, packed as the thirds of every row.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{Int, Tensor};

use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{Kernels, Words, groups_of_64};
use crate::ops::attention::{self, Attention, AttentionShape};
use crate::ops::column_sum::column_sum;
use crate::ops::operation::operation;
use crate::ops::tape::{Grads, Sum, Vjp, gradients};

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&SPLIT.all(), &JOIN.all()];

crate::kernel! {
    /// Splits the rows of `x + b` into thirds `q`, `k` and `v`.
    pub SPLIT = "qkv_split" [64], (x, b) -> (q, k, v),
    /// Shape of q, k and v.
    struct Params {
        /// Number of rows.
        n: usize,
        /// C, the width of a third.
        width: usize,
    },
    twin |[x, b], [q, k, v], p| {
        let width = p.width;
        for (third, y) in [q, k, v].into_iter().enumerate() {
            for i in 0..p.n * width {
                let column = third * width + i % width;
                y.floats_mut()[i] = x.floats()[i / width * 3 * width + column] + b.floats()[column];
            }
        }
    }
}
crate::kernel! {
    /// Joins the rows of q, k and v, one after another, to the rows of x.
    pub JOIN = "qkv_join" [64], (q, k, v) -> (x), Params,
    twin |[q, k, v], [x], p| {
        let width = p.width;
        for (third, y) in [q, k, v].into_iter().enumerate() {
            for i in 0..p.n * width {
                x[i / width * 3 * width + third * width + i % width] = y[i];
            }
        }
    }
}

/// The backward pass of [`attention_of_packed_qkv`].
#[derive(Debug, Clone)]
pub struct PackedQkv<T> {
    attention: Attention<T>,
}

impl<B: Launch> Vjp<B, 2> for PackedQkv<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 2], _: Sum<'_, B>) -> Grads<B, 2> {
        let (n, width) = rows_columns(&dy.shape());
        let grads = gradients::<B, 3>(self.attention, dy, [true; 3], None)
            .map(|grad| grad.expect("attention gives all gradients"));
        let params = Params { n, width };
        let dx = B::made(&JOIN, grads, [n, 3 * width], &params, 3 * n * width);
        let db = needs[1].then(|| column_sum::<B>(dx.clone()));
        [needs[0].then_some(dx), db]
    }
}

operation! {
    /// Computes [`attention_of_packed_qkv`]; `starts` is read only with documents.
    fn attention_of_thirds(x: Tensor<2>, b: Tensor<1>; documents: bool, shape: AttentionShape; starts: Tensor<1, Int>) -> Tensor<2> {
        let ([x, b], nodes) = B::parts([x, b]);
        let starts = B::Inner::ids(B::integers(starts));
        let (n, columns) = rows_columns(&x.shape());
        let params = Params { n, width: columns / 3 };
        let qkv = [(); 3].map(|()| B::Inner::floats(&x, [n, params.width]));
        let [q, k, v] = B::Inner::launch(&SPLIT, [x, b], qkv, &params, groups_of_64(n * columns));
        let (y, attention) = attention::forward::<B::Inner>(q, k, v, starts, documents, shape);
        B::record(nodes, y, PackedQkv { attention })
    }
}

/// Computes [`attention()`](crate::ops::attention()) from the rows of `x + b`, `x [B·T, 3·C]`, `b [3·C]` → `[B·T, C]`. The thirds of a row are queries,
/// keys and values, of equally many heads.
pub fn attention_of_packed_qkv(
    x: Tensor<2>,
    b: Tensor<1>,
    starts: Option<Tensor<1, Int>>,
    shape: AttentionShape,
) -> Tensor<2> {
    let (documents, starts) = attention::given(starts, &x.device());
    attention_of_thirds(x, b, documents, shape, starts)
}
