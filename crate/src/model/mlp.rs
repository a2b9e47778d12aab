//! MLP of a block.

use burn::module::Module;
use burn::tensor::Tensor;

use super::Span;
use super::builder::ParameterBuilder;
use super::layers::Linear;
use super::named::Named;
use super::part::Role;
use crate::config::{self, Activation, Slot};
use crate::error::Result;
use crate::ops::{self, GateFunction};

#[derive(Module, Debug)]
struct Apart {
    gate: Named<Linear>,
    up: Named<Linear>,
}

/// The first products.
#[derive(Module, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one for each block: few, and read in every step"
)]
enum Hidden {
    /// Gate and up, of one matrix each.
    Apart(Apart),
    /// Gate and up, of one matrix.
    Together(Named<Linear>),
    /// One product, without a gate.
    Alone(Named<Linear>),
}

/// MLP of a block.
#[derive(Module, Debug)]
pub struct Mlp {
    hidden: Hidden,
    down: Named<Linear>,
    #[module(skip)]
    activation: Activation,
}

impl Mlp {
    /// Requests the parameters of `mlp`, which reads and writes rows of `width` values.
    pub fn new(mlp: config::Mlp, width: usize, builder: &mut ParameterBuilder<'_>) -> Result<Self> {
        let config::Mlp {
            activation,
            width: hidden_width,
            bias,
            fused,
        } = mlp;
        let mut inner = |slot, rows| builder.linear(slot, [rows, width], bias, Role::Inner);
        let hidden = match (activation, fused) {
            (Activation::Gelu, _) => Hidden::Alone(inner(Slot::Up, hidden_width)?),
            (_, true) => Hidden::Together(inner(Slot::GateUp, 2 * hidden_width)?),
            (_, false) => Hidden::Apart(Apart {
                gate: inner(Slot::Gate, hidden_width)?,
                up: inner(Slot::Up, hidden_width)?,
            }),
        };
        Ok(Self {
            hidden,
            down: builder.linear(Slot::Down, [width, hidden_width], bias, Role::Residual)?,
            activation,
        })
    }

    /// Removes the factors of an adapter.
    pub fn detach(&mut self) {
        match &mut self.hidden {
            Hidden::Apart(Apart { gate, up }) => {
                [gate, up].into_iter().for_each(|matrix| matrix.detach())
            }
            Hidden::Together(matrix) | Hidden::Alone(matrix) => matrix.detach(),
        }
        self.down.detach();
    }

    /// Computes the output for the rows of `x [B·T, C]` → `[B·T, C]`.
    pub fn forward(&self, x: Tensor<2>, span: Span<'_>) -> Tensor<2> {
        let hidden = match &self.hidden {
            Hidden::Apart(Apart { gate, up }) => {
                let function = match self.activation {
                    Activation::GeGlu => GateFunction::Gelu,
                    Activation::SwiGlu | Activation::Gelu => GateFunction::Silu,
                };
                match [gate, up].map(|matrix| matrix.alone(&x)) {
                    [Some(gate), Some(up)] => ops::gated(x, [gate, up], function),
                    _ => {
                        let gate = gate.forward_at(x.clone(), span);
                        ops::gated_unit(gate, up.forward_at(x, span), function)
                    }
                }
            }
            Hidden::Together(both) => ops::swiglu_of_halves(both.forward_at(x, span)),
            Hidden::Alone(up) => {
                let hidden = up.unbiased_at(x, span);
                match &up.bias {
                    Some(bias) => {
                        let bias = bias.beside(&hidden);
                        ops::gelu_bias(hidden, bias)
                    }
                    None => ops::gelu(hidden),
                }
            }
        };
        self.down.forward_at(hidden, span)
    }
}
