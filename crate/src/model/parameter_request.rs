//! A parameter that a model requests, before it has values.

use super::part::{Part, Role};
use crate::config::Slot;

/// Parameter that a model requests.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterRequest {
    /// State-dict name.
    pub name: String,
    /// Shape.
    pub shape: Vec<usize>,
    /// Position in the model.
    pub part: Part,
    /// Module that it belongs to.
    pub slot: Slot,
    /// Kind of the parameter.
    pub kind: Kind,
    /// True for a trained parameter, false for a constant of a model with an adapter.
    pub trained: bool,
}

impl ParameterRequest {
    /// The number of its elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Kind of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A matrix with this role.
    Matrix(Role),
    /// A vector that starts with this value.
    Vector(f32),
    /// Logarithms of rates, which start evenly spread between 0 and 16 (Gated DeltaNet draws them from there).
    Rates,
    /// Taps of a convolution.
    Taps,
    /// A factor A whose new values are uniform in ±1/√in.
    Uniform,
    /// A factor A whose new values are normal with standard deviation 1/r.
    Gaussian,
    /// A factor B, which starts with zeros.
    Zero,
}

impl Kind {
    /// Returns whether it is stored in the precision of a run; vectors and taps are f32.
    pub fn is_matrix(self) -> bool {
        !matches!(self, Self::Vector(_) | Self::Rates | Self::Taps)
    }

    /// Returns whether it belongs to an adapter.
    pub(crate) fn is_factor(self) -> bool {
        matches!(self, Self::Uniform | Self::Gaussian | Self::Zero)
    }
}
