//! The operations that models are built of. Each is one kernel or several, with its gradient.
//!
//! The functions here work on tensors of any device; on an autodiff device they are differentiable. A buffer is changed in place only if it
//! is uniquely owned, that is, if no other handle shares it. Rows are tokens: `[B·T, C]`, so that nothing is ever transposed. Weights may
//! be f32 or packed bf16 (for storage only); everything else is f32.

#![allow(clippy::needless_range_loop, reason = "twins index as their formula does")]

pub mod attention;
pub mod backend;
pub mod blocks;
pub mod cast_bf16;
pub mod column_sum;
mod differentiable;
pub mod dropout;
pub mod elementwise;
pub mod embedding;
pub mod linear;
pub mod loss;
pub mod low_rank;
pub mod norm;
pub mod packed;
pub mod packed_qkv;
pub mod residual;
pub mod rope;
pub mod scale;
pub mod tape;
mod weights;

pub use attention::{AttentionShape, MAX_HEAD_DIM};
pub use dropout::{DropoutStep, Mask};
pub use low_rank::Adapted;
pub(crate) use packed::packed_head_evaluation;
pub use packed::{PackedMatrix, packed_conv1d, packed_embedding, packed_head_loss, packed_linear};
pub use rope::Positions;

use crate::gpu::{Kernels, StorageType, StoredMatrix};

/// The kernels of all operations.
pub(crate) const KERNELS: [Kernels; 16] = [
    attention::kernels::KERNELS,
    cast_bf16::KERNELS,
    column_sum::KERNELS,
    dropout::KERNELS,
    elementwise::KERNELS,
    embedding::KERNELS,
    linear::joint::KERNELS,
    linear::kernels::KERNELS,
    loss::cross_entropy::KERNELS,
    low_rank::KERNELS,
    norm::layer::KERNELS,
    norm::rms::KERNELS,
    packed_qkv::KERNELS,
    residual::KERNELS,
    rope::KERNELS,
    scale::KERNELS,
];

use backend::ModelOps;
use burn::backend::Dispatch;
use burn::tensor::{DType, Int, Tensor};
use loss::head::HeadPlan;

/// Computes `x [n, k] · w [m, k]ᵀ → [n, m]`. The weights are f32 or packed bf16; their gradient is f32.
pub fn linear(x: Tensor<2>, w: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::linear(x.into_dispatch(), w.into_dispatch()))
}

/// Computes `x [n, k] · w [k, m] → [n, m]`, the layout of GPT-2's Conv1D. The weights are f32 or packed bf16; their gradient is f32.
pub fn conv1d(x: Tensor<2>, w: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::conv1d(x.into_dispatch(), w.into_dispatch()))
}

/// Computes `x [n, k] · Wᵀ + s·z·Bᵀ → [n, m]` by the words of a constant matrix W, which `adapted` describes, and the factors `a [r, k]`, `b [m, r]`
/// of an adapter (f32 or packed bf16). `z [n, r]` is `d(x)·Aᵀ` with the dropout d of `adapted`, computed before and not recorded: the gradients
/// of x and A, which pass through it, are computed here.
pub fn low_rank(x: Tensor<2>, words: Tensor<1>, z: Tensor<2>, [a, b]: [Tensor<2>; 2], adapted: Adapted) -> Tensor<2> {
    let [words, z] = [words.into_dispatch(), z.into_dispatch()];
    Tensor::from_dispatch(Dispatch::low_rank(x.into_dispatch(), words, z, a.into_dispatch(), b.into_dispatch(), adapted))
}

/// Computes `x [n, C] + b [C]`, in place of x if it is uniquely owned.
pub fn bias_add(x: Tensor<2>, b: Tensor<1>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::bias_add(x.into_dispatch(), b.into_dispatch()))
}

/// Computes `x + y`, both `[n, C]`, in place of one of them if it is uniquely owned.
pub fn residual_add(x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::residual_add(x.into_dispatch(), y.into_dispatch()))
}

/// Looks up the rows of `w [V, C]` (f32 or packed bf16) at `ids [n]` → `[n, C]`, f32; an id outside the table gives zeros. The gradient is dense
/// and f32.
pub fn embedding(w: Tensor<2>, ids: Tensor<1, Int>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::embedding(w.into_dispatch(), ids.into_dispatch()))
}

/// Computes the gradient of [`embedding()`]'s table from that of its output: adds each row of `dy [n, C]` to the row of its id in `sum [V, C]`. It is
/// computed in place if the sum is uniquely owned, so that the gradient of a tied table never exists twice. Not differentiable.
pub fn embedding_backward(sum: Tensor<2>, ids: Tensor<1, Int>, dy: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::embedding_backward(sum.into_dispatch(), ids.into_dispatch(), dy.into_dispatch()))
}

/// Computes `Σ loss` in nats, `[1]`, of the rows of `x [n, C]` under the head `w [V, C]` (f32 or packed bf16) with targets `[n]`. Targets that are
/// not an id (IGNORE_INDEX) do not count. At most `rows` rows of the logits, and of their gradient, exist at once.
pub fn head_loss(x: Tensor<2>, w: Tensor<2>, targets: Tensor<1, Int>, rows: usize) -> Tensor<1> {
    let plan = HeadPlan { rows: rows.max(1), needs: [x.is_tracked(), w.is_tracked()] };
    Tensor::from_dispatch(Dispatch::head_loss(x.into_dispatch(), w.into_dispatch(), targets.into_dispatch(), plan))
}

/// Computes `[Σ loss in nats, number of targets that are the arg max of their logits, the lowest id of equal ones] → [2]`, from the arguments of
/// [`head_loss`]: `x [n, C]`, `w [V, C]`, targets `[n]`. Not differentiable.
pub(crate) fn head_evaluation(x: Tensor<2>, w: Tensor<2>, targets: Tensor<1, Int>, rows: usize) -> Tensor<1> {
    let [vocab, width] = w.dims();
    let form = StoredMatrix { storage: StorageType::of(w.dtype()), rows: vocab, columns: width };
    Tensor::from_dispatch(Dispatch::head_evaluation(x.into_dispatch(), w.into_dispatch(), targets.into_dispatch(), form, rows.max(1)))
}

/// Computes the RMSNorm of the rows of `x [n, C]` with `weight [C]`. For norms of heads, `x` is `[n · heads, H]`.
pub fn rms_norm(x: Tensor<2>, weight: Tensor<1>, eps: f64) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::rms_norm(x.into_dispatch(), weight.into_dispatch(), eps as f32))
}

/// Computes `x + y`, both `[n, C]`, and its RMSNorm with `weight [C]`. The sum is computed in place of y if it is uniquely owned.
pub fn add_rms_norm(x: Tensor<2>, y: Tensor<2>, weight: Tensor<1>, eps: f64) -> (Tensor<2>, Tensor<2>) {
    let (x, y, weight) = (x.into_dispatch(), y.into_dispatch(), weight.into_dispatch());
    let (sum, normed) = Dispatch::add_rms_norm(x, y, weight, eps as f32);
    (Tensor::from_dispatch(sum), Tensor::from_dispatch(normed))
}

/// Computes the LayerNorm of the rows of `x [n, C]` with `weight` and `bias [C]`.
pub fn layer_norm(x: Tensor<2>, weight: Tensor<1>, bias: Tensor<1>, eps: f64) -> Tensor<2> {
    let (weight, bias) = (weight.into_dispatch(), bias.into_dispatch());
    Tensor::from_dispatch(Dispatch::layer_norm(x.into_dispatch(), weight, bias, eps as f32))
}

/// Applies the rotary embedding to `q [B·T, heads·H]` and `k [B·T, kv_heads·H]`, in half-split pairing, by tables `[positions, H/2]` that need no
/// gradient. Each is changed in place if it is uniquely owned.
pub fn rope(q: Tensor<2>, k: Tensor<2>, cosines: Tensor<2>, sines: Tensor<2>, positions: Positions) -> (Tensor<2>, Tensor<2>) {
    let [cosines, sines] = [cosines.into_dispatch(), sines.into_dispatch()];
    let (q, k) = Dispatch::rope(q.into_dispatch(), k.into_dispatch(), cosines, sines, positions);
    (Tensor::from_dispatch(q), Tensor::from_dispatch(k))
}

/// Computes causal attention: `q [B·T, heads·H]`, `k`, `v [B·(offset + T), kv_heads·H]` → `[B·T, heads·H]`. Query t sees the keys
/// `start ..= offset + t` of its sequence; scores are divided by √H. `starts [B·T]` are key indices that grow with t and are at most `offset + t`;
/// if `starts` is `None`, each is 0.
pub fn attention(q: Tensor<2>, k: Tensor<2>, v: Tensor<2>, starts: Option<Tensor<1, Int>>, shape: AttentionShape) -> Tensor<2> {
    let documents = starts.is_some();
    // A binding cannot be omitted: without documents this one is not read.
    let starts = starts.unwrap_or_else(|| Tensor::empty([1], (&q.device(), DType::I32)));
    let (q, k, v) = (q.into_dispatch(), k.into_dispatch(), v.into_dispatch());
    Tensor::from_dispatch(Dispatch::attention(q, k, v, starts.into_dispatch(), documents, shape))
}

/// Computes [`attention()`] between the rows of `x [B·T, C]` → `[B·T, heads·H]`. Queries, keys and values are `x · wᵀ` with the matrices
/// `[heads·H, C]`, `[kv_heads·H, C]` and `[kv_heads·H, C]` of `ws`; queries and keys are rotated as by [`rope()`].
pub fn self_attention(
    x: Tensor<2>,
    ws: [Tensor<2>; 3],
    [cosines, sines]: [Tensor<2>; 2],
    starts: Option<Tensor<1, Int>>,
    shape: AttentionShape,
) -> Tensor<2> {
    let documents = starts.is_some();
    let starts = starts.unwrap_or_else(|| Tensor::empty([1], (&x.device(), DType::I32))).into_dispatch();
    let [q, k, v] = ws.map(Tensor::into_dispatch);
    let (x, cosines, sines) = (x.into_dispatch(), cosines.into_dispatch(), sines.into_dispatch());
    Tensor::from_dispatch(Dispatch::self_attention(x, q, k, v, cosines, sines, starts, documents, shape))
}

/// Computes `silu(x · Wgᵀ) · (x · Wuᵀ)`: `x [n, C]`, gate and up `[F, C]` → `[n, F]`.
pub fn gated(x: Tensor<2>, [gate, up]: [Tensor<2>; 2]) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::gated(x.into_dispatch(), gate.into_dispatch(), up.into_dispatch()))
}

/// Computes [`attention()`] from the rows of `x + b`, `x [B·T, 3·C]`, `b [3·C]` → `[B·T, C]`. The thirds of a row are queries, keys and values, of
/// equally many heads.
pub fn attention_of_packed_qkv(x: Tensor<2>, b: Tensor<1>, starts: Option<Tensor<1, Int>>, shape: AttentionShape) -> Tensor<2> {
    let documents = starts.is_some();
    let starts = starts.unwrap_or_else(|| Tensor::empty([1], (&x.device(), DType::I32))).into_dispatch();
    Tensor::from_dispatch(Dispatch::attention_of_packed_qkv(x.into_dispatch(), b.into_dispatch(), starts, documents, shape))
}

/// Computes `x + (y + bias)`, `x` and `y [n, C]`, `bias [C]`, and its LayerNorm with `weight` and `b [C]`. The sum is computed in place of y if it is
/// uniquely owned.
pub fn add_layer_norm(
    x: Tensor<2>,
    y: Tensor<2>,
    bias: Option<Tensor<1>>,
    [weight, b]: [Tensor<1>; 2],
    eps: f64,
) -> (Tensor<2>, Tensor<2>) {
    let biased = bias.is_some();
    // A binding cannot be omitted: without a bias this one is not read.
    let bias = bias.unwrap_or_else(|| Tensor::empty([4], &x.device())).into_dispatch();
    let (x, y, weight, b) = (x.into_dispatch(), y.into_dispatch(), weight.into_dispatch(), b.into_dispatch());
    let (sum, normed) = Dispatch::add_layer_norm(x, y, bias, biased, weight, b, eps as f32);
    (Tensor::from_dispatch(sum), Tensor::from_dispatch(normed))
}

/// Computes `silu(gate) · up`, both `[n, C]`. Their gradients are computed in place of them if they are uniquely owned.
pub fn swiglu(gate: Tensor<2>, up: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::swiglu(gate.into_dispatch(), up.into_dispatch()))
}

/// Returns `x [n, C]` with some values set to 0 and the others divided by 1 − p, as `mask` says.
pub fn dropout(x: Tensor<2>, mask: Mask) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::dropout(x.into_dispatch(), mask))
}

/// Computes [`gelu`] of `x + b`, `x [n, C]`, `b [C]`, with the sum in place of x if it is uniquely owned.
pub fn gelu_bias(x: Tensor<2>, b: Tensor<1>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::gelu_bias(x.into_dispatch(), b.into_dispatch()))
}

/// Computes GELU in its tanh form, `[n, C]`, finite for every finite input. The gradient is computed in place of x if it is uniquely owned.
pub fn gelu(x: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::gelu(x.into_dispatch()))
}
