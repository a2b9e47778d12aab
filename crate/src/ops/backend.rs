//! The operations as a Burn backend extension: [`Launch`] backends run kernels, and autodiff backends record our gradients.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, backend_extension};

use crate::gpu::StoredMatrix;
use crate::gpu::launch::Launch;
use crate::ops::attention::{self, AttentionShape};
use crate::ops::dropout::{self, Mask};
use crate::ops::loss::head::{self, HeadPlan};
use crate::ops::low_rank::{self, Adapted, LowRank};
use crate::ops::norm::{layer, rms};
use crate::ops::rope::{self, Positions};
use crate::ops::weights::Weights;
use crate::ops::{blocks, elementwise, embedding, linear, packed_qkv, residual};

/// The operations of models, differentiable on an autodiff backend. [`crate::ops`] wraps them and states all shapes.
#[backend_extension(Cube, Flex: cfg(feature = "cpu"), Autodiff)]
pub trait ModelOps: Backend {
    /// Computes `x [n, k] · w [m, k]ᵀ`.
    fn linear(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self>;
    /// Computes `x [n, k] · w [k, m]`.
    fn conv1d(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self>;
    /// Computes `x [n, C] + b [C]`.
    fn bias_add(x: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self>;
    /// Computes `x + y`.
    fn residual_add(x: FloatTensor<Self>, y: FloatTensor<Self>) -> FloatTensor<Self>;
    /// Looks up rows of a table.
    fn embedding(w: FloatTensor<Self>, ids: IntTensor<Self>) -> FloatTensor<Self>;
    /// Adds the gradient of the table to `sum`; not differentiable itself.
    fn embedding_backward(sum: FloatTensor<Self>, ids: IntTensor<Self>, dy: FloatTensor<Self>) -> FloatTensor<Self>;
    /// Computes `Σ loss` of the rows of x under the head w.
    fn head_loss(x: FloatTensor<Self>, w: FloatTensor<Self>, targets: IntTensor<Self>, plan: HeadPlan) -> FloatTensor<Self>;
    /// Computes [`ModelOps::linear`] by the words of a packed matrix, which are a constant.
    fn packed_linear(x: FloatTensor<Self>, words: FloatTensor<Self>, form: StoredMatrix) -> FloatTensor<Self>;
    /// Computes [`ModelOps::conv1d`] by the words of a packed matrix, which are a constant.
    fn packed_conv1d(x: FloatTensor<Self>, words: FloatTensor<Self>, form: StoredMatrix) -> FloatTensor<Self>;
    /// Computes a product with a constant matrix, plus the low-rank part of an adapter.
    fn low_rank(
        x: FloatTensor<Self>,
        words: FloatTensor<Self>,
        z: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        adapted: Adapted,
    ) -> FloatTensor<Self>;
    /// Looks up rows of a packed table.
    fn packed_embedding(words: FloatTensor<Self>, ids: IntTensor<Self>, form: StoredMatrix) -> FloatTensor<Self>;
    /// Computes [`ModelOps::head_loss`] under a packed head, which is a constant.
    fn packed_head_loss(
        x: FloatTensor<Self>,
        words: FloatTensor<Self>,
        targets: IntTensor<Self>,
        form: StoredMatrix,
        plan: HeadPlan,
    ) -> FloatTensor<Self>;
    /// Computes `[Σ loss, number of targets that are the arg max]` of the rows of x under a head of any form; not differentiable itself.
    fn head_evaluation(
        x: FloatTensor<Self>,
        words: FloatTensor<Self>,
        targets: IntTensor<Self>,
        form: StoredMatrix,
        rows: usize,
    ) -> FloatTensor<Self>;
    /// Computes RMSNorm.
    fn rms_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, eps: f32) -> FloatTensor<Self>;
    /// Computes `x + y`, and its RMSNorm.
    fn add_rms_norm(x: FloatTensor<Self>, y: FloatTensor<Self>, w: FloatTensor<Self>, eps: f32) -> (FloatTensor<Self>, FloatTensor<Self>);
    /// Computes LayerNorm.
    fn layer_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>, eps: f32) -> FloatTensor<Self>;
    /// Applies the rotary embedding to queries and keys.
    fn rope(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        cosines: FloatTensor<Self>,
        sines: FloatTensor<Self>,
        positions: Positions,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
    /// Computes causal attention. `starts` is read only with documents.
    fn attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        starts: IntTensor<Self>,
        documents: bool,
        shape: AttentionShape,
    ) -> FloatTensor<Self>;
    /// Computes attention between the rows of x. `starts` is read only with documents.
    #[allow(clippy::too_many_arguments, reason = "a tensor in an array would not reach the backend")]
    fn self_attention(
        x: FloatTensor<Self>,
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        cosines: FloatTensor<Self>,
        sines: FloatTensor<Self>,
        starts: IntTensor<Self>,
        documents: bool,
        shape: AttentionShape,
    ) -> FloatTensor<Self>;
    /// `silu(x gateᵀ) (x upᵀ)`
    fn gated(x: FloatTensor<Self>, gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self>;
    /// `silu(gate) up`
    fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self>;
    /// `x + (y + bias)`, without the bias where there is none, and its LayerNorm.
    fn add_layer_norm(
        x: FloatTensor<Self>,
        y: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        biased: bool,
        w: FloatTensor<Self>,
        b: FloatTensor<Self>,
        eps: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
    /// Attention between the rows of `x + b`, whose thirds are queries, keys and values.
    fn attention_of_packed_qkv(
        x: FloatTensor<Self>,
        b: FloatTensor<Self>,
        starts: IntTensor<Self>,
        documents: bool,
        shape: AttentionShape,
    ) -> FloatTensor<Self>;
    /// GELU, tanh form.
    fn gelu(x: FloatTensor<Self>) -> FloatTensor<Self>;
    /// GELU of `x + b`.
    fn gelu_bias(x: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self>;
    /// Some values 0, the others scaled.
    fn dropout(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self>;
}

impl<B: Launch> ModelOps for B {
    fn linear(x: FloatTensor<B>, w: FloatTensor<B>) -> FloatTensor<B> {
        linear::forward::<B>(x, Weights::of(w))
    }
    fn conv1d(x: FloatTensor<B>, w: FloatTensor<B>) -> FloatTensor<B> {
        linear::backward_input::<B>(x, Weights::of(w))
    }
    fn bias_add(x: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
        elementwise::bias_add::<B>(x, b)
    }
    fn residual_add(x: FloatTensor<B>, y: FloatTensor<B>) -> FloatTensor<B> {
        residual::residual_add::<B>(x, y)
    }
    fn embedding(w: FloatTensor<B>, ids: IntTensor<B>) -> FloatTensor<B> {
        embedding::forward::<B>(Weights::of(w), B::ids(ids))
    }
    fn embedding_backward(sum: FloatTensor<B>, ids: IntTensor<B>, dy: FloatTensor<B>) -> FloatTensor<B> {
        embedding::backward::<B>(sum, B::ids(ids), dy)
    }
    fn head_loss(x: FloatTensor<B>, w: FloatTensor<B>, targets: IntTensor<B>, plan: HeadPlan) -> FloatTensor<B> {
        head::forward::<B>(x, Weights::of(w), targets, HeadPlan { needs: [false; 2], ..plan }).0
    }
    fn packed_linear(x: FloatTensor<B>, words: FloatTensor<B>, form: StoredMatrix) -> FloatTensor<B> {
        linear::forward::<B>(x, Weights { words, form })
    }
    fn packed_conv1d(x: FloatTensor<B>, words: FloatTensor<B>, form: StoredMatrix) -> FloatTensor<B> {
        linear::backward_input::<B>(x, Weights { words, form })
    }
    fn low_rank(
        x: FloatTensor<B>,
        words: FloatTensor<B>,
        z: FloatTensor<B>,
        a: FloatTensor<B>,
        b: FloatTensor<B>,
        adapted: Adapted,
    ) -> FloatTensor<B> {
        low_rank::forward::<B>(&LowRank { x, words, z, a, b, adapted })
    }
    fn packed_embedding(words: FloatTensor<B>, ids: IntTensor<B>, form: StoredMatrix) -> FloatTensor<B> {
        embedding::forward::<B>(Weights { words, form }, B::ids(ids))
    }
    fn packed_head_loss(
        x: FloatTensor<B>,
        words: FloatTensor<B>,
        targets: IntTensor<B>,
        form: StoredMatrix,
        plan: HeadPlan,
    ) -> FloatTensor<B> {
        head::forward::<B>(x, Weights { words, form }, targets, HeadPlan { needs: [false; 2], ..plan }).0
    }
    fn head_evaluation(x: FloatTensor<B>, words: FloatTensor<B>, targets: IntTensor<B>, form: StoredMatrix, rows: usize) -> FloatTensor<B> {
        head::evaluation::<B>(x, Weights { words, form }, targets, rows)
    }
    fn rms_norm(x: FloatTensor<B>, w: FloatTensor<B>, eps: f32) -> FloatTensor<B> {
        let [y, _] = rms::forward::<B>(x, w, eps);
        y
    }
    fn add_rms_norm(x: FloatTensor<B>, y: FloatTensor<B>, w: FloatTensor<B>, eps: f32) -> (FloatTensor<B>, FloatTensor<B>) {
        let [sum, normed, _] = rms::add_forward::<B>(x, y, w, eps);
        (sum, normed)
    }
    fn layer_norm(x: FloatTensor<B>, w: FloatTensor<B>, b: FloatTensor<B>, eps: f32) -> FloatTensor<B> {
        let [y, _] = layer::forward::<B>(x, w, b, eps);
        y
    }
    fn rope(
        q: FloatTensor<B>,
        k: FloatTensor<B>,
        cosines: FloatTensor<B>,
        sines: FloatTensor<B>,
        positions: Positions,
    ) -> (FloatTensor<B>, FloatTensor<B>) {
        let [q, k] = rope::rope::<B>([q, k], [cosines, sines], positions, 1.0);
        (q, k)
    }
    fn attention(
        q: FloatTensor<B>,
        k: FloatTensor<B>,
        v: FloatTensor<B>,
        starts: IntTensor<B>,
        documents: bool,
        shape: AttentionShape,
    ) -> FloatTensor<B> {
        attention::forward::<B>(q, k, v, B::ids(starts), documents, shape).0
    }
    fn self_attention(
        x: FloatTensor<B>,
        q: FloatTensor<B>,
        k: FloatTensor<B>,
        v: FloatTensor<B>,
        cosines: FloatTensor<B>,
        sines: FloatTensor<B>,
        starts: IntTensor<B>,
        documents: bool,
        shape: AttentionShape,
    ) -> FloatTensor<B> {
        blocks::self_attention::<B>(x, [q, k, v].map(Weights::of), [cosines, sines], B::ids(starts), documents, shape).0
    }
    fn gated(x: FloatTensor<B>, gate: FloatTensor<B>, up: FloatTensor<B>) -> FloatTensor<B> {
        blocks::gated::<B>(x, [gate, up].map(Weights::of)).0
    }
    fn swiglu(gate: FloatTensor<B>, up: FloatTensor<B>) -> FloatTensor<B> {
        elementwise::swiglu::<B>(gate, up)
    }
    fn add_layer_norm(
        x: FloatTensor<B>,
        y: FloatTensor<B>,
        bias: FloatTensor<B>,
        biased: bool,
        w: FloatTensor<B>,
        b: FloatTensor<B>,
        eps: f32,
    ) -> (FloatTensor<B>, FloatTensor<B>) {
        let [sum, normed, _] = layer::add_forward::<B>(x, y, biased.then_some(bias), [w, b], eps);
        (sum, normed)
    }
    fn attention_of_packed_qkv(
        x: FloatTensor<B>,
        b: FloatTensor<B>,
        starts: IntTensor<B>,
        documents: bool,
        shape: AttentionShape,
    ) -> FloatTensor<B> {
        packed_qkv::attention::<B>(x, b, B::ids(starts), documents, shape).0
    }
    fn gelu(x: FloatTensor<B>) -> FloatTensor<B> {
        elementwise::gelu::<B>(x)
    }
    fn gelu_bias(x: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
        let [_, y] = elementwise::gelu_bias::<B>(x, b);
        y
    }
    fn dropout(x: FloatTensor<B>, mask: Mask) -> FloatTensor<B> {
        dropout::dropout::<B>(x, mask)
    }
}
