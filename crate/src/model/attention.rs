//! Causal grouped-query attention of a block.

use burn::module::Module;
use burn::tensor::Tensor;

use super::Span;
use super::builder::ParameterBuilder;
use super::cache::LayerCache;
use super::layers::Linear;
use super::named::Named;
use super::norm::Norm;
use super::part::Role;
use super::rope::Ropes;
use crate::config::{self, QkNorm, Slot};
use crate::error::Result;
use crate::ops;

/// Matrices of queries, keys and values.
#[derive(Module, Debug)]
struct Apart {
    query: Named<Linear>,
    key: Named<Linear>,
    value: Named<Linear>,
}

/// Layers that make queries, keys and values.
#[derive(Module, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one for each block: few, and read in every step"
)]
enum Projections {
    Apart(Apart),
    Together(Named<Linear>),
}

/// Attention of a block.
#[derive(Module, Debug)]
pub struct Attention {
    projections: Projections,
    output: Named<Linear>,
    query_norm: Option<Norm>,
    key_norm: Option<Norm>,
    #[module(skip)]
    shape: config::Attention,
}

impl Attention {
    /// Requests the parameters of the `attention` of `layer`, which reads and writes rows of `width` values.
    pub fn new(
        layer: &config::Layer,
        attention: &config::Attention,
        width: usize,
        builder: &mut ParameterBuilder<'_>,
    ) -> Result<Self> {
        let shape = attention.clone();
        let [q, kv] = shape.widths();
        let projections = if shape.fused {
            Projections::Together(builder.linear(
                Slot::QueryKeyValue,
                [q + 2 * kv, width],
                shape.bias,
                Role::Inner,
            )?)
        } else {
            let rows = if shape.gate { 2 * q } else { q };
            Projections::Apart(Apart {
                query: builder.linear(Slot::Query, [rows, width], shape.bias, Role::Inner)?,
                key: builder.linear(Slot::Key, [kv, width], shape.bias, Role::Inner)?,
                value: builder.linear(Slot::Value, [kv, width], shape.bias, Role::Inner)?,
            })
        };
        let mut norm = |slot, width| match shape.qk_norm {
            QkNorm::None => Ok(None),
            QkNorm::Head | QkNorm::HeadAfterRope => {
                builder.norm(slot, layer.norm, shape.head_dim).map(Some)
            }
            QkNorm::All => builder.norm(slot, layer.norm, width).map(Some),
        };
        let (query_norm, key_norm) = (norm(Slot::QueryNorm, q)?, norm(Slot::KeyNorm, kv)?);
        let output = builder.linear(Slot::Output, [width, q], shape.output_bias, Role::Residual)?;
        Ok(Self {
            projections,
            output,
            query_norm,
            key_norm,
            shape,
        })
    }

    /// Removes the factors of an adapter.
    pub fn detach(&mut self) {
        match &mut self.projections {
            Projections::Apart(Apart { query, key, value }) => [query, key, value]
                .into_iter()
                .for_each(|matrix| matrix.detach()),
            Projections::Together(matrix) => matrix.detach(),
        }
        self.output.detach();
    }

    /// Returns the layer that writes to the residual stream.
    pub fn output(&self) -> &Linear {
        &self.output
    }

    /// Computes attention, causal and within documents, between the rows of `x [B·T, C]` → `[B·T, heads·H]`, in front of [`Self::output`]. With
    /// `cache`, keys and values are added to those of earlier tokens, and queries attend to all of them.
    pub fn attended(
        &self,
        x: Tensor<2>,
        ropes: &Ropes,
        span: Span<'_>,
        cache: Option<LayerCache<'_>>,
    ) -> Tensor<2> {
        let x = match cache {
            None => match self.attended_at_once(x, ropes, span) {
                Ok(attended) => return attended,
                Err(x) => x,
            },
            Some(_) => x,
        };
        let ([q, k, v], gate) = self.queries_keys_values(x, span);
        let late = self.shape.qk_norm == QkNorm::HeadAfterRope;
        let normed = |q, k| {
            let (of_q, of_k) = (&self.query_norm, &self.key_norm);
            (self.normed(of_q, q), self.normed(of_k, k))
        };
        let (q, k) = if late { (q, k) } else { normed(q, k) };
        let length = cache
            .as_ref()
            .map_or(span.seq_len, |cache| cache.reach(span));
        let (q, k) = match &self.shape.rope {
            Some(rope) => ropes
                .of(rope, self.shape.head_dim, length)
                .rotate(q, k, span, late),
            None => (q, k),
        };
        let (q, k) = if late { normed(q, k) } else { (q, k) };
        let (k, v) = match cache {
            Some(cache) => cache.extend(k, v, span),
            None => (k, v),
        };
        let attended = ops::attention(q, k, v, span.document_starts.cloned(), self.sizes(span));
        match gate {
            Some(gate) => ops::sigmoid_gate(attended, gate),
            None => attended,
        }
    }

    /// Computes the same without a cache where one operation does all of it, and returns x where none does.
    #[allow(
        clippy::result_large_err,
        reason = "x is given back, so that it is freed as soon as its products exist"
    )]
    fn attended_at_once(
        &self,
        x: Tensor<2>,
        ropes: &Ropes,
        span: Span<'_>,
    ) -> std::result::Result<Tensor<2>, Tensor<2>> {
        let (starts, sizes) = (span.document_starts.cloned(), self.sizes(span));
        let rope = self.shape.rope.as_ref();
        let tables = rope.map(|rope| ropes.of(rope, self.shape.head_dim, span.seq_len));
        let tables = tables.map(|rope| rope.plain_tables());
        match (&self.projections, tables, self.shape.qk_norm) {
            (Projections::Apart(Apart { query, key, value }), Some(Some(tables)), QkNorm::None) => {
                let [Some(q), Some(k), Some(v)] =
                    [query, key, value].map(|matrix| matrix.alone(&x))
                else {
                    return Err(x);
                };
                Ok(ops::self_attention(x, [q, k, v], tables, starts, sizes))
            }
            (Projections::Together(matrix), None, QkNorm::None)
                if sizes.heads == sizes.kv_heads =>
            {
                let Some(bias) = &matrix.bias else {
                    return Err(x);
                };
                let qkv = matrix.unbiased_at(x, span);
                let bias = bias.beside(&qkv);
                Ok(ops::attention_of_packed_qkv(qkv, bias, starts, sizes))
            }
            _ => Err(x),
        }
    }

    /// Computes queries, keys and values of the rows of `x [B·T, C]`, before they are normalized and rotated, and the gates of the heads.
    fn queries_keys_values(
        &self,
        x: Tensor<2>,
        span: Span<'_>,
    ) -> ([Tensor<2>; 3], Option<Tensor<2>>) {
        match &self.projections {
            Projections::Apart(Apart { query, key, value }) => {
                let (q, k) = (
                    query.forward_at(x.clone(), span),
                    key.forward_at(x.clone(), span),
                );
                let v = value.forward_at(x, span);
                if !self.shape.gate {
                    return ([q, k, v], None);
                }
                let config::Attention {
                    heads, head_dim, ..
                } = self.shape;
                let rows = q.dims()[0];
                let both = q.reshape([rows, heads, 2 * head_dim]);
                let part = |first| {
                    let part = both.clone().narrow(2, first, head_dim);
                    part.reshape([rows, heads * head_dim])
                };
                ([part(0), k, v], Some(part(head_dim)))
            }
            Projections::Together(matrix) => {
                let (all, [q, kv]) = (matrix.forward_at(x, span), self.shape.widths());
                let part = |first, width| all.clone().narrow(1, first, width);
                ([part(0, q), part(q, kv), part(q + kv, kv)], None)
            }
        }
    }

    /// Normalizes each head of the rows of `x`, or each row.
    fn normed(&self, norm: &Option<Norm>, x: Tensor<2>) -> Tensor<2> {
        let ([rows, width], head_dim) = (x.dims(), self.shape.head_dim);
        match norm {
            Some(norm) if self.shape.qk_norm == QkNorm::All => norm.forward(x),
            Some(norm) => norm
                .forward(x.reshape([rows * width / head_dim, head_dim]))
                .reshape([rows, width]),
            None => x,
        }
    }

    fn sizes(&self, span: Span<'_>) -> ops::AttentionShape {
        let config::Attention {
            heads,
            kv_heads,
            head_dim,
            window,
            score_scale,
            score_cap,
            ..
        } = self.shape;
        ops::AttentionShape {
            batch_size: span.batch_size,
            seq_len: span.seq_len,
            offset: span.offset,
            heads,
            kv_heads,
            head_dim,
            window,
            scale: score_scale,
            cap: score_cap,
        }
    }
}
