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
use crate::ops;

#[derive(Module, Debug)]
struct SwiGlu {
    gate: Named<Linear>,
    up: Named<Linear>,
}

/// The first products, by what is computed of them.
#[derive(Module, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one for each block: few, and read in every step"
)]
enum Hidden {
    SwiGlu(SwiGlu),
    Gelu(Named<Linear>),
}

/// MLP of a block.
#[derive(Module, Debug)]
pub struct Mlp {
    hidden: Hidden,
    down: Named<Linear>,
}

impl Mlp {
    /// Requests the parameters of `mlp`, which reads and writes rows of `width` values.
    pub fn new(mlp: config::Mlp, width: usize, builder: &mut ParameterBuilder<'_>) -> Result<Self> {
        let mut inner = |slot| builder.linear(slot, [mlp.width, width], mlp.bias, Role::Inner);
        let hidden = match mlp.activation {
            Activation::SwiGlu => Hidden::SwiGlu(SwiGlu {
                gate: inner(Slot::Gate)?,
                up: inner(Slot::Up)?,
            }),
            Activation::Gelu => Hidden::Gelu(inner(Slot::Up)?),
        };
        Ok(Self {
            hidden,
            down: builder.linear(Slot::Down, [width, mlp.width], mlp.bias, Role::Residual)?,
        })
    }

    /// Removes the factors of an adapter.
    pub fn detach(&mut self) {
        match &mut self.hidden {
            Hidden::SwiGlu(SwiGlu { gate, up }) => {
                [gate, up].into_iter().for_each(|matrix| matrix.detach())
            }
            Hidden::Gelu(up) => up.detach(),
        }
        self.down.detach();
    }

    /// Computes the output for the rows of `x [B·T, C]` → `[B·T, C]`.
    pub fn forward(&self, x: Tensor<2>, span: Span<'_>) -> Tensor<2> {
        let hidden = match &self.hidden {
            Hidden::SwiGlu(SwiGlu { gate, up }) => {
                match [gate, up].map(|matrix| matrix.alone(&x)) {
                    [Some(gate), Some(up)] => ops::gated(x, [gate, up]),
                    _ => {
                        let gate = gate.forward_at(x.clone(), span);
                        ops::swiglu(gate, up.forward_at(x, span))
                    }
                }
            }
            Hidden::Gelu(up) => {
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
