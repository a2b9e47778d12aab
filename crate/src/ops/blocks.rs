//! The two parts of a Llama block between its norms, as one operation each: self-attention and the gated products. Products of one input that
//! belong together are one dispatch on a GPU, forward and backward, where their shapes and storage types allow it (`linear/joint.rs`).

use burn::backend::tensor::FloatTensor;
use burn::tensor::{Int, Tensor};

use crate::gpu::launch::Launch;
use crate::ops::attention::{self, Attention, AttentionShape};
use crate::ops::elementwise::{self, GateFunction, GatedUnit};
use crate::ops::linear::joint::{self, Joint};
use crate::ops::operation::operation;
use crate::ops::rope::{self, Positions};
use crate::ops::tape::{Grads, Sum, Vjp, gradients};
use crate::ops::weights::Weights;

/// The backward pass of self-attention.
#[derive(Debug, Clone)]
pub struct SelfAttention<T> {
    of: Joint<T, 3>,
    tables: [T; 2],
    positions: Positions,
    attention: Attention<T>,
}

impl<B: Launch> Vjp<B, 4> for SelfAttention<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 4], sum: Sum<'_, B>) -> Grads<B, 4> {
        let Self {
            of,
            tables,
            positions,
            attention,
        } = self;
        let shape = attention.shape;
        let joint =
            needs == [true; 4] && joint::joins::<B, 3>(&of) && shape.head_dim.is_multiple_of(8);
        let (dx, [dq, dk, dv]) = if joint {
            let by_head = attention::by_head::<B>(attention, dy);
            let dy = rope::backward::<B>(by_head, tables, positions, [shape.heads, shape.kv_heads]);
            joint::three::<B>(dy, of, sum.take())
        } else {
            let [dq, dk, dv] = gradients::<B, 3>(attention, dy, [true; 3], None)
                .map(|grad| grad.expect("attention gives all gradients"));
            let [dq, dk] = rope::rotated::<B>([dq, dk], tables, positions, -1.0);
            let needs = (needs[0], [needs[1], needs[2], needs[3]]);
            joint::apart::<B, 3>([dq, dk, dv], of, needs, sum.take())
        };
        [dx, dq, dk, dv]
    }
}

/// The backward pass of the gated products.
#[derive(Debug, Clone)]
pub struct Gated<T> {
    of: Joint<T, 2>,
    unit: GatedUnit<T>,
}

impl<B: Launch> Vjp<B, 3> for Gated<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, needs: [bool; 3], sum: Sum<'_, B>) -> Grads<B, 3> {
        let Self { of, unit } = self;
        let dys = gradients::<B, 2>(unit, dy, [true; 2], None)
            .map(|grad| grad.expect("a gated unit gives both gradients"));
        let (dx, [dg, du]) = if needs == [true; 3] && joint::joins::<B, 2>(&of) {
            joint::two::<B>(dys, of, sum.take())
        } else {
            let needs = (needs[0], [needs[1], needs[2]]);
            joint::apart::<B, 2>(dys, of, needs, sum.take())
        };
        [dx, dg, du]
    }
}

operation! {
    /// Computes [`self_attention`]; `starts` is read only with documents.
    fn attention_of_rows(
        x: Tensor<2>, q: Tensor<2>, k: Tensor<2>, v: Tensor<2>, cosines: Tensor<2>, sines: Tensor<2>;
        documents: bool, shape: AttentionShape;
        starts: Tensor<1, Int>
    ) -> Tensor<2> {
        let ([x, q, k, v], nodes) = B::parts([x, q, k, v]);
        let tables = [B::constant(cosines), B::constant(sines)];
        let starts = B::Inner::ids(B::integers(starts));
        let ws = [q, k, v].map(Weights::of);
        let positions = Positions { len: shape.seq_len, offset: shape.offset };
        let [q, k, v] = joint::forward::<B::Inner, 3>(x.clone(), ws.clone());
        let [q, k] = rope::rotated::<B::Inner>([q, k], tables.clone(), positions, 1.0);
        let (y, attention) = attention::forward::<B::Inner>(q, k, v, starts, documents, shape);
        B::record(nodes, y, SelfAttention { of: Joint { x, ws }, tables, positions, attention })
    }
}

/// Computes [`attention()`](crate::ops::attention()) between the rows of `x [B·T, C]` → `[B·T, heads·H]`. Queries, keys and values are `x · wᵀ` with the
/// matrices `[heads·H, C]`, `[kv_heads·H, C]` and `[kv_heads·H, C]` of `ws`; queries and keys are rotated as by [`rope()`](crate::ops::rope()).
pub fn self_attention(
    x: Tensor<2>,
    [q, k, v]: [Tensor<2>; 3],
    [cosines, sines]: [Tensor<2>; 2],
    starts: Option<Tensor<1, Int>>,
    shape: AttentionShape,
) -> Tensor<2> {
    let (documents, starts) = attention::given(starts, &x.device());
    attention_of_rows(x, q, k, v, cosines, sines, documents, shape, starts)
}

operation! {
    /// Computes [`gated`] with the matrices apart.
    fn gated_by(x: Tensor<2>, gate: Tensor<2>, up: Tensor<2>; function: GateFunction) -> Tensor<2> {
        let ([x, gate, up], nodes) = B::parts([x, gate, up]);
        let ws = [gate, up].map(Weights::of);
        let [gate, up] = joint::forward::<B::Inner, 2>(x.clone(), ws.clone());
        let y = elementwise::gated_values::<B::Inner>(gate.clone(), up.clone(), function);
        B::record(nodes, y, Gated { of: Joint { x, ws }, unit: GatedUnit { gate, up, function } })
    }
}

/// Computes `f(x · Wgᵀ) · (x · Wuᵀ)`: `x [n, C]`, gate and up `[F, C]` → `[n, F]`.
pub fn gated(x: Tensor<2>, [gate, up]: [Tensor<2>; 2], function: GateFunction) -> Tensor<2> {
    gated_by(x, gate, up, function)
}
