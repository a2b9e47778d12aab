//! Requests the parameters of modules, by the places that these have in a model.

use burn::module::Param;
use burn::tensor::Tensor;

use super::adaptation::Adaptation;
use super::layers::{
    Decays, Embedding, Factor, LayerNorm, Linear, LowRank, Matrix, RmsNorm, Taps, Weight,
};
use super::named::Named;
use super::norm::{Norm, NormModule};
use super::parameter_request::Kind;
use super::part::{Part, Place, Role};
use crate::config::{self, NormKind, Slot, Stack};
use crate::error::Result;

/// Source of a model's parameters, by name.
pub trait WeightSource {
    /// Returns a matrix of this shape.
    fn matrix(&mut self, name: &str, shape: [usize; 2], place: Place, role: Role)
    -> Result<Matrix>;
    /// Returns a vector `[len]`, whose kind says the initial values of a new model.
    fn vector(&mut self, name: &str, len: usize, place: Place, kind: Kind) -> Result<Weight<1>>;
    /// Returns the taps of a convolution, which are stored as vectors are.
    fn taps(&mut self, name: &str, shape: [usize; 3], place: Place) -> Result<Weight<3>>;
    /// Returns a factor of an adapter.
    fn factor(
        &mut self,
        name: &str,
        shape: [usize; 2],
        place: Place,
        kind: Kind,
    ) -> Result<Param<Tensor<2>>>;
    /// Returns the adapter of the model, if it has one.
    fn adaptation(&self) -> Option<&Adaptation>;
}

/// Requests the modules of one part of a model. A request fails as its [`WeightSource`] does.
pub struct ParameterBuilder<'a> {
    pub weights: &'a mut dyn WeightSource,
    pub stack: &'a Stack,
    pub part: Part,
}

/// Additions of a target to its matrix: A, B, and how they are used.
type Factors = (Option<Factor>, Option<Factor>, Option<LowRank>);

impl ParameterBuilder<'_> {
    /// Returns the name of a module, and its place.
    fn at(&self, slot: Slot) -> (String, Place) {
        (
            self.stack.names.module(self.part.block(), slot),
            Place {
                part: self.part,
                slot,
            },
        )
    }

    /// Requests the factors of a matrix `[out, input]`, if it is a target.
    fn factors(&mut self, module: &str, shape: [usize; 2], place: Place) -> Result<Factors> {
        let Some(request) = self
            .weights
            .adaptation()
            .and_then(|adaptation| adaptation.factors(module, shape))
        else {
            return Ok((None, None, None));
        };
        let mut factor =
            |(name, shape, kind): (String, [usize; 2], Kind)| -> Result<Option<Factor>> {
                Ok(Some(Factor {
                    weight: self.weights.factor(&name, shape, place, kind)?,
                }))
            };
        Ok((
            factor(request.a)?,
            factor(request.b)?,
            Some(request.low_rank),
        ))
    }

    /// Requests the matrix `[out, input]` of a linear layer and, with `bias`, its bias `[out]`.
    pub fn linear(
        &mut self,
        slot: Slot,
        [out, input]: [usize; 2],
        bias: bool,
        role: Role,
    ) -> Result<Named<Linear>> {
        let (name, place) = self.at(slot);
        let conv1d = self.stack.conv1d && self.part.block().is_some();
        let shape = if conv1d { [input, out] } else { [out, input] };
        let weight = self
            .weights
            .matrix(&format!("{name}.weight"), shape, place, role)?;
        let bias = if bias {
            Some(
                self.weights
                    .vector(&format!("{name}.bias"), out, place, Kind::Vector(0.0))?,
            )
        } else {
            None
        };
        let (a, b, low_rank) = self.factors(&name, [out, input], place)?;
        Ok(Named::new(
            name,
            Linear {
                weight,
                bias,
                lora_A: a,
                lora_B: b,
                low_rank,
                conv1d,
            },
        ))
    }

    /// Requests the taps of a convolution, `[C, 1, κ]`.
    pub fn taps(&mut self, slot: Slot, shape: [usize; 3]) -> Result<Named<Taps>> {
        let (name, place) = self.at(slot);
        let weight = self.weights.taps(&format!("{name}.weight"), shape, place)?;
        Ok(Named::new(name, Taps { weight }))
    }

    /// Requests the rates and biases of the decays of `heads`.
    pub fn decays(&mut self, slot: Slot, heads: usize) -> Result<Named<Decays>> {
        let (name, place) = self.at(slot);
        let mut vector = |end, kind| {
            self.weights
                .vector(&format!("{name}.{end}"), heads, place, kind)
        };
        let decays = Decays {
            A_log: vector("A_log", Kind::Rates)?,
            dt_bias: vector("dt_bias", Kind::Vector(1.0))?,
        };
        Ok(Named::new(name, decays))
    }

    /// Requests a table `[rows, width]`.
    pub fn embedding(&mut self, slot: Slot, shape: [usize; 2]) -> Result<Named<Embedding>> {
        let (name, place) = self.at(slot);
        let weight = self
            .weights
            .matrix(&format!("{name}.weight"), shape, place, Role::Inner)?;
        Ok(Named::new(name, Embedding { weight }))
    }

    /// Requests the weight `[width]` of a norm and, for LayerNorm, its bias `[width]`.
    pub fn norm(&mut self, slot: Slot, norm: config::Norm, width: usize) -> Result<Norm> {
        let (name, place) = self.at(slot);
        let fresh = Kind::Vector(1.0 - norm.offset as f32);
        let weight = self
            .weights
            .vector(&format!("{name}.weight"), width, place, fresh)?;
        let module = match norm.kind {
            NormKind::Rms => NormModule::Rms(Named::new(name, RmsNorm { weight })),
            NormKind::Layer => {
                let bias = self.weights.vector(
                    &format!("{name}.bias"),
                    width,
                    place,
                    Kind::Vector(0.0),
                )?;
                NormModule::Layer(Named::new(name, LayerNorm { weight, bias }))
            }
        };
        Ok(Norm::new(module, norm))
    }
}
