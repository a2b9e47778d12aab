//! A parameter that a model requests, before it has values.

use burn::tensor::DType;

use super::part::{Part, Role};
use crate::config::Slot;
use crate::gpu::StoredMatrix;
use crate::ops::linear::parts::row_parts;

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

    /// Cuts a table or a head of elements into parts that a kernel can bind, by their numbers of rows. `None` for any other parameter, for one
    /// that can be bound as a whole, and for one that no cut makes small enough. The gradient of a trained one is f32.
    pub(crate) fn row_parts(&self, dtype: DType, limit: u64) -> Option<Vec<usize>> {
        let size = if self.trained { 4 } else { dtype.size() };
        self.cut(limit, &|rows| (rows * self.shape[1] * size) as u64)
    }

    /// Cuts a packed constant in the same way.
    pub(crate) fn packed_row_parts(&self, form: StoredMatrix, limit: u64) -> Option<Vec<usize>> {
        self.cut(limit, &|rows| {
            4 * StoredMatrix { rows, ..form }.words() as u64
        })
    }

    /// Cuts a matrix whose first `rows` rows have `bytes` bytes.
    pub(crate) fn cut(&self, limit: u64, bytes: &dyn Fn(usize) -> u64) -> Option<Vec<usize>> {
        let by_rows = matches!(self.slot, Slot::Tokens | Slot::Head) && self.kind.is_matrix();
        if !by_rows || bytes(self.shape[0]) <= limit {
            return None;
        }
        row_parts(self.shape[0], &|rows| bytes(rows) <= limit)
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
