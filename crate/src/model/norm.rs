//! Norms of rows, with what an addition in front of them can take over.

use burn::module::Module;
use burn::tensor::Tensor;

use super::layers::{LayerNorm, RmsNorm};
use super::named::Named;
use crate::config;
use crate::ops::{self, NormConstants};

/// The parameters, by what is computed with them.
#[derive(Module, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "a few for each block, and read in every step"
)]
pub enum NormModule {
    /// RMSNorm.
    Rms(Named<RmsNorm>),
    /// LayerNorm.
    Layer(Named<LayerNorm>),
}

/// Norm of rows.
#[derive(Module, Debug)]
pub struct Norm {
    module: NormModule,
    #[module(skip)]
    of: NormConstants,
}

impl Norm {
    /// Creates a norm with these parameters, as `norm` describes it.
    pub fn new(module: NormModule, norm: config::Norm) -> Self {
        let of = NormConstants {
            eps: norm.eps,
            offset: norm.offset,
        };
        Self { module, of }
    }

    /// Normalizes rows. `x [N, C]` → `[N, C]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        match &self.module {
            NormModule::Rms(norm) => norm.forward(x, self.of),
            NormModule::Layer(norm) => norm.forward(x, self.of.eps),
        }
    }

    /// Returns x + (y + bias) and its norm, `x` and `y` `[N, C]`, `bias [C]`.
    pub fn add_forward(
        &self,
        x: Tensor<2>,
        y: Tensor<2>,
        bias: Option<Tensor<1>>,
    ) -> (Tensor<2>, Tensor<2>) {
        match (&self.module, bias) {
            (NormModule::Rms(norm), Some(bias)) => {
                norm.add_forward(x, ops::bias_add(y, bias), self.of)
            }
            (NormModule::Rms(norm), None) => norm.add_forward(x, y, self.of),
            (NormModule::Layer(norm), bias) => norm.add_forward(x, y, bias, self.of.eps),
        }
    }
}
