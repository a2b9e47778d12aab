//! Gated delta rule of a block (Gated DeltaNet, arXiv:2412.06464), with the convolution in front of it and the gate after it.

#![allow(non_snake_case, reason = "parameters are called as files call them")]

use burn::module::Module;
use burn::tensor::Tensor;

use super::Span;
use super::builder::ParameterBuilder;
use super::cache::LayerCache;
use super::layers::{Decays, Linear, Taps};
use super::named::Named;
use super::norm::Norm;
use super::part::Role;
use crate::config::{self, Slot};
use crate::error::Result;
use crate::ops::{self, ConvShape, DeltaGates, DeltaShape, GateFunction};

/// Gated delta rule of a block.
#[derive(Module, Debug)]
pub struct DeltaNet {
    input: Named<Linear>,
    taps: Named<Taps>,
    gate: Named<Linear>,
    decay: Named<Linear>,
    weight: Named<Linear>,
    decays: Named<Decays>,
    norm: Norm,
    output: Named<Linear>,
    #[module(skip)]
    shape: config::DeltaNet,
}

impl DeltaNet {
    /// Requests the parameters of the delta rule `shape` of a block with norms as `norm`, which reads and writes rows of `width` values.
    pub fn new(
        shape: config::DeltaNet,
        norm: config::Norm,
        width: usize,
        builder: &mut ParameterBuilder<'_>,
    ) -> Result<Self> {
        let [_, values] = shape.widths();
        let (channels, heads) = (shape.channels(), shape.value_heads);
        let mut linear = |slot, rows| builder.linear(slot, [rows, width], false, Role::Inner);
        let (input, gate) = (
            linear(Slot::DeltaInput, channels)?,
            linear(Slot::DeltaGate, values)?,
        );
        let (decay, weight) = (
            linear(Slot::DeltaDecay, heads)?,
            linear(Slot::DeltaWeight, heads)?,
        );
        Ok(Self {
            input,
            taps: builder.taps(Slot::DeltaTaps, [channels, 1, shape.taps])?,
            gate,
            decay,
            weight,
            decays: builder.decays(Slot::DeltaDecays, heads)?,
            // Its weight is used as it is stored.
            norm: builder.norm(
                Slot::DeltaNorm,
                config::Norm {
                    offset: 0.0,
                    ..norm
                },
                shape.value_dim,
            )?,
            output: builder.linear(Slot::DeltaOutput, [width, values], false, Role::Residual)?,
            shape,
        })
    }

    /// Removes the factors of an adapter.
    pub fn detach(&mut self) {
        for matrix in [
            &mut self.input,
            &mut self.gate,
            &mut self.decay,
            &mut self.weight,
            &mut self.output,
        ] {
            matrix.detach();
        }
    }

    /// Returns the layer that writes to the residual stream.
    pub fn output(&self) -> &Linear {
        &self.output
    }

    /// Computes what the output matrix reads from the rows of `x [B·T, C]`. With `cache`, the state of earlier tokens and the last rows of their
    /// convolution are read and replaced.
    pub fn mixed(&self, x: Tensor<2>, span: Span<'_>, cache: Option<LayerCache<'_>>) -> Tensor<2> {
        let rows = self.input.forward_at(x.clone(), span);
        let (gate, a, b) = (
            self.gate.forward_at(x.clone(), span),
            self.decay.forward_at(x.clone(), span),
            self.weight.forward_at(x, span),
        );
        let gates = DeltaGates {
            log_rates: self.decays.A_log.beside(&a),
            bias: self.decays.dt_bias.beside(&a),
            a,
            b,
        };
        let values = match cache {
            None => {
                let starts = span.document_starts.cloned();
                let rows = self.convolved(rows, starts.clone(), span.seq_len);
                ops::delta_rule(rows, gates, starts, self.sizes(span))
            }
            Some(mut cache) => {
                let (rows, earlier) = cache.recent(rows, self.shape.taps - 1, span);
                let len = earlier + span.seq_len;
                let rows = self.convolved(rows, None, len);
                let rows = rows.reshape([span.batch_size, len, self.shape.channels()]);
                let rows = rows.narrow(1, earlier, span.seq_len);
                let rows = rows.reshape([span.batch_size * span.seq_len, self.shape.channels()]);
                let state = cache.state();
                let (values, state) = ops::delta_rule_from(rows, gates, state, self.sizes(span));
                cache.keep_state(state);
                values
            }
        };
        let ([rows, width], value_dim) = (values.dims(), self.shape.value_dim);
        let values = values.reshape([rows * self.shape.value_heads, value_dim]);
        let normed = self.norm.forward(values).reshape([rows, width]);
        ops::gated_unit(gate, normed, GateFunction::Silu)
    }

    /// Computes SiLU of the convolution of rows `[B·len, channels]`.
    fn convolved(
        &self,
        rows: Tensor<2>,
        starts: Option<Tensor<1, burn::tensor::Int>>,
        seq_len: usize,
    ) -> Tensor<2> {
        let taps = self.taps.weight.beside(&rows);
        let taps = taps.reshape([self.shape.channels() * self.shape.taps]);
        let shape = ConvShape {
            seq_len,
            taps: self.shape.taps,
        };
        ops::silu(ops::causal_conv(rows, taps, starts, shape))
    }

    fn sizes(&self, span: Span<'_>) -> DeltaShape {
        DeltaShape {
            seq_len: span.seq_len,
            key_heads: self.shape.key_heads,
            heads: self.shape.value_heads,
            key_dim: self.shape.key_dim,
            value_dim: self.shape.value_dim,
        }
    }
}
