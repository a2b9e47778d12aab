//! The operations on an autodiff backend, which records our gradients on its tape.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, AutodiffBackend, TensorMetadata};

use crate::gpu::StoredMatrix;
use crate::gpu::launch::Launch;
use crate::ops::attention::{self, AttentionShape};
use crate::ops::backend::ModelOps;
use crate::ops::dropout::{self, Mask};
use crate::ops::loss::head::{self, HeadPlan};
use crate::ops::low_rank::{self, Adapted, LowRank};
use crate::ops::norm::{layer, rms};
use crate::ops::rope::{self, Positions};
use crate::ops::tape::{record, record_joint};
use crate::ops::weights::Weights;
use crate::ops::{blocks, elementwise, embedding, linear, packed_qkv, residual};

impl<B: Launch, C: CheckpointStrategy> ModelOps for Autodiff<B, C> {
    fn linear(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self> {
        let ((x, x_node), (w, w_node)) = (x.into_parts(), w.into_parts());
        let w = Weights::of(w);
        let y = linear::forward::<B>(x.clone(), w.clone());
        record::<B, C, _, 2>([x_node, w_node], y, linear::Linear { x, w })
    }
    fn conv1d(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self> {
        let ((x, x_node), (w, w_node)) = (x.into_parts(), w.into_parts());
        let w = Weights::of(w);
        let y = linear::backward_input::<B>(x.clone(), w.clone());
        record::<B, C, _, 2>([x_node, w_node], y, linear::Conv1d { x, w })
    }
    fn bias_add(x: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        let ((x, x_node), (b, b_node)) = (x.into_parts(), b.into_parts());
        record::<B, C, _, 2>([x_node, b_node], elementwise::bias_add::<B>(x, b), elementwise::Bias)
    }
    fn residual_add(x: FloatTensor<Self>, y: FloatTensor<Self>) -> FloatTensor<Self> {
        let ((x, x_node), (y, y_node)) = (x.into_parts(), y.into_parts());
        record::<B, C, _, 2>([x_node, y_node], residual::residual_add::<B>(x, y), elementwise::Residual)
    }
    fn embedding(w: FloatTensor<Self>, ids: IntTensor<Self>) -> FloatTensor<Self> {
        let (w, w_node) = w.into_parts();
        let (w, ids) = (Weights::of(w), B::ids(ids));
        let shape = [w.form.rows, w.form.columns];
        let y = embedding::forward::<B>(w, ids.clone());
        record::<B, C, _, 1>([w_node], y, embedding::Embedding { ids, shape })
    }
    fn embedding_backward(sum: FloatTensor<Self>, ids: IntTensor<Self>, dy: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::from_inner(embedding::backward::<B>(sum.into_primitive(), B::ids(ids), dy.into_primitive()))
    }
    fn head_loss(x: FloatTensor<Self>, w: FloatTensor<Self>, targets: IntTensor<Self>, plan: HeadPlan) -> FloatTensor<Self> {
        let ((x, x_node), (w, w_node)) = (x.into_parts(), w.into_parts());
        let (loss, vjp) = head::forward::<B>(x, Weights::of(w), targets, plan);
        record::<B, C, _, 2>([x_node, w_node], loss, vjp)
    }
    fn packed_linear(x: FloatTensor<Self>, words: FloatTensor<Self>, form: StoredMatrix) -> FloatTensor<Self> {
        let ((x, x_node), w) = (x.into_parts(), Weights { words: words.into_primitive(), form });
        let y = linear::forward::<B>(x, w.clone());
        record::<B, C, _, 1>([x_node], y, linear::FrozenLinear { w })
    }
    fn packed_conv1d(x: FloatTensor<Self>, words: FloatTensor<Self>, form: StoredMatrix) -> FloatTensor<Self> {
        let ((x, x_node), w) = (x.into_parts(), Weights { words: words.into_primitive(), form });
        let y = linear::backward_input::<B>(x, w.clone());
        record::<B, C, _, 1>([x_node], y, linear::FrozenConv1d { w })
    }
    fn low_rank(
        x: FloatTensor<Self>,
        words: FloatTensor<Self>,
        z: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        adapted: Adapted,
    ) -> FloatTensor<Self> {
        let ((x, x_node), (a, a_node), (b, b_node)) = (x.into_parts(), a.into_parts(), b.into_parts());
        let vjp = LowRank { x, words: words.into_primitive(), z: z.into_primitive(), a, b, adapted };
        record::<B, C, _, 3>([x_node, a_node, b_node], low_rank::forward::<B>(&vjp), vjp)
    }
    fn packed_embedding(words: FloatTensor<Self>, ids: IntTensor<Self>, form: StoredMatrix) -> FloatTensor<Self> {
        Self::from_inner(embedding::forward::<B>(Weights { words: words.into_primitive(), form }, B::ids(ids)))
    }
    fn packed_head_loss(
        x: FloatTensor<Self>,
        words: FloatTensor<Self>,
        targets: IntTensor<Self>,
        form: StoredMatrix,
        plan: HeadPlan,
    ) -> FloatTensor<Self> {
        let ((x, x_node), (words, words_node)) = (x.into_parts(), words.into_parts());
        let (loss, vjp) = head::forward::<B>(x, Weights { words, form }, targets, plan);
        record::<B, C, _, 2>([x_node, words_node], loss, vjp)
    }
    fn head_evaluation(
        x: FloatTensor<Self>,
        words: FloatTensor<Self>,
        targets: IntTensor<Self>,
        form: StoredMatrix,
        rows: usize,
    ) -> FloatTensor<Self> {
        let w = Weights { words: words.into_primitive(), form };
        Self::from_inner(head::evaluation::<B>(x.into_primitive(), w, targets, rows))
    }
    fn rms_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, eps: f32) -> FloatTensor<Self> {
        let ((x, x_node), (w, w_node)) = (x.into_parts(), w.into_parts());
        let [y, scales] = rms::forward::<B>(x.clone(), w.clone(), eps);
        record::<B, C, _, 2>([x_node, w_node], y, rms::RmsNorm { x, w, scales })
    }
    fn add_rms_norm(x: FloatTensor<Self>, y: FloatTensor<Self>, w: FloatTensor<Self>, eps: f32) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let ((x, x_node), (y, y_node), (w, w_node)) = (x.into_parts(), y.into_parts(), w.into_parts());
        let [sum, normed, scales] = rms::add_forward::<B>(x, y, w.clone(), eps);
        let stream = record::<B, C, _, 2>([x_node, y_node], sum.clone(), elementwise::Residual);
        let normed = record::<B, C, _, 2>([stream.node(), w_node], normed, rms::RmsNorm { x: sum, w, scales });
        (stream, normed)
    }
    fn layer_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>, eps: f32) -> FloatTensor<Self> {
        let ((x, x_node), (w, w_node), (b, b_node)) = (x.into_parts(), w.into_parts(), b.into_parts());
        let [y, stats] = layer::forward::<B>(x.clone(), w.clone(), b, eps);
        record::<B, C, _, 3>([x_node, w_node, b_node], y, layer::LayerNorm { x, w, stats })
    }
    fn rope(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        cosines: FloatTensor<Self>,
        sines: FloatTensor<Self>,
        positions: Positions,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let ((q, q_node), (k, k_node)) = (q.into_parts(), k.into_parts());
        let tables = [cosines.into_primitive(), sines.into_primitive()];
        let shapes = [q.shape(), k.shape()];
        let turned = rope::rope::<B>([q, k], tables.clone(), positions, 1.0);
        let [q, k] = record_joint::<B, C, _, 2, 2>([q_node, k_node], turned, rope::Rope { tables, positions, shapes });
        (q, k)
    }
    fn attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        starts: IntTensor<Self>,
        documents: bool,
        shape: AttentionShape,
    ) -> FloatTensor<Self> {
        let ((q, q_node), (k, k_node), (v, v_node)) = (q.into_parts(), k.into_parts(), v.into_parts());
        let (y, vjp) = attention::forward::<B>(q, k, v, B::ids(starts), documents, shape);
        record::<B, C, _, 3>([q_node, k_node, v_node], y, vjp)
    }
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
    ) -> FloatTensor<Self> {
        let ((x, x_node), (q, q_node)) = (x.into_parts(), q.into_parts());
        let ((k, k_node), (v, v_node)) = (k.into_parts(), v.into_parts());
        let tables = [cosines.into_primitive(), sines.into_primitive()];
        let (y, vjp) = blocks::self_attention::<B>(x, [q, k, v].map(Weights::of), tables, B::ids(starts), documents, shape);
        record::<B, C, _, 4>([x_node, q_node, k_node, v_node], y, vjp)
    }
    fn gated(x: FloatTensor<Self>, gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        let ((x, x_node), (gate, gate_node), (up, up_node)) = (x.into_parts(), gate.into_parts(), up.into_parts());
        let (y, vjp) = blocks::gated::<B>(x, [gate, up].map(Weights::of));
        record::<B, C, _, 3>([x_node, gate_node, up_node], y, vjp)
    }
    fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        let ((gate, gate_node), (up, up_node)) = (gate.into_parts(), up.into_parts());
        let y = elementwise::swiglu::<B>(gate.clone(), up.clone());
        record::<B, C, _, 2>([gate_node, up_node], y, elementwise::Swiglu { gate, up })
    }
    fn add_layer_norm(
        x: FloatTensor<Self>,
        y: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        biased: bool,
        w: FloatTensor<Self>,
        b: FloatTensor<Self>,
        eps: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let ((x, x_node), (y, y_node), (bias, bias_node)) = (x.into_parts(), y.into_parts(), bias.into_parts());
        let ((w, w_node), (b, b_node)) = (w.into_parts(), b.into_parts());
        let [sum, normed, stats] = layer::add_forward::<B>(x, y, biased.then_some(bias), [w.clone(), b], eps);
        let stream = if biased {
            record::<B, C, _, 3>([x_node, y_node, bias_node], sum.clone(), elementwise::BiasedResidual)
        } else {
            record::<B, C, _, 2>([x_node, y_node], sum.clone(), elementwise::Residual)
        };
        let normed = record::<B, C, _, 3>([stream.node(), w_node, b_node], normed, layer::LayerNorm { x: sum, w, stats });
        (stream, normed)
    }
    fn attention_of_packed_qkv(
        x: FloatTensor<Self>,
        b: FloatTensor<Self>,
        starts: IntTensor<Self>,
        documents: bool,
        shape: AttentionShape,
    ) -> FloatTensor<Self> {
        let ((x, x_node), (b, b_node)) = (x.into_parts(), b.into_parts());
        let (y, vjp) = packed_qkv::attention::<B>(x, b, B::ids(starts), documents, shape);
        record::<B, C, _, 2>([x_node, b_node], y, vjp)
    }
    fn gelu_bias(x: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        let ((x, x_node), (b, b_node)) = (x.into_parts(), b.into_parts());
        let [x, y] = elementwise::gelu_bias::<B>(x, b);
        record::<B, C, _, 2>([x_node, b_node], y, elementwise::GeluBias { x })
    }
    fn gelu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        let y = elementwise::gelu::<B>(x.clone());
        record::<B, C, _, 1>([node], y, elementwise::Gelu { x })
    }
    fn dropout(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        record::<B, C, _, 1>([node], dropout::dropout::<B>(x, mask), dropout::Dropout { mask })
    }
}
