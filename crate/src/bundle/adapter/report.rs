//! Measures the effect of a merge on a model.

use super::merged_adapter::MergedAdapter;
use crate::bundle::tensors::Bundle;
use crate::error::Result;
use crate::state::{PIECE_ELEMENTS, Tensor};

/// Effect of a merge on one tensor.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct MergedTensor {
    /// Name of the tensor.
    pub name: String,
    /// Largest change of a value, after rounding.
    pub max_abs_change: f64,
    /// Largest error of rounding to the tensor's dtype.
    pub max_rounding_error: f64,
}

#[doc(hidden)]
impl Bundle {
    /// Returns the adapter that was merged on opening, if any.
    pub fn merged_adapter(&self) -> Option<&MergedAdapter> {
        self.adapter.as_ref()
    }

    /// Returns whether the values of the tensor `name` differ from those that the base stores.
    pub fn is_merged(&self, name: &str) -> bool {
        self.tensors
            .get(name)
            .is_some_and(|tensor| self.is_changed(tensor))
    }

    /// Reads every tensor that the adapter changes, one piece at a time, and measures the change.
    ///
    /// # Errors
    /// Errors of reading, `source.too-large`, and `export.overflow` if a merged value exceeds its dtype.
    pub fn measure_merge(&self) -> Result<Vec<MergedTensor>> {
        self.tensors
            .values()
            .filter(|tensor| self.is_changed(tensor))
            .map(|tensor| self.measure(tensor))
            .collect()
    }

    fn is_changed(&self, tensor: &Tensor) -> bool {
        tensor.merged().is_some() || self.replaced.contains_key(&tensor.name)
    }

    fn measure(&self, tensor: &Tensor) -> Result<MergedTensor> {
        let mut merged = tensor.pieces(PIECE_ELEMENTS)?;
        let mut base = self.stored(&tensor.name).pieces(PIECE_ELEMENTS)?;
        let (mut change, mut rest) = (0.0f32, Vec::new());
        while let Some((_, values)) = merged.next_piece()? {
            while rest.len() < values.len()
                && let Some((_, more)) = base.next_piece()?
            {
                rest.extend_from_slice(more);
            }
            change = values
                .iter()
                .zip(&rest)
                .map(|(new, old)| (new - old).abs())
                .fold(change, f32::max);
            rest.drain(..values.len().min(rest.len()));
        }
        let name = tensor.name.clone();
        Ok(MergedTensor {
            name,
            max_abs_change: change.into(),
            max_rounding_error: merged.rounding_error().into(),
        })
    }
}
