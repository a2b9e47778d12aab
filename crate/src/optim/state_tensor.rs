//! One entry of the optimizer file, with its values on the device or the host.

use crate::error::Result;
use crate::gpu::transfer::{Flat, read_parts};

/// The place of a state's values.
#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "a handle for each tensor of a model: few, and short-lived"
)]
pub enum StateData {
    /// A counter on the host.
    Step(u64),
    /// Values on the device; the handles are shared, not copied.
    Tensor(Flat),
}

/// One entry of the optimizer file ([example](crate#any-burn-module)).
#[derive(Debug, Clone)]
pub struct StateTensor {
    /// Shape in the file.
    #[doc(hidden)]
    pub shape: Vec<usize>,
    /// `U64` of a step, otherwise the dtype of the layout.
    #[doc(hidden)]
    pub dtype: &'static str,
    /// The values.
    #[doc(hidden)]
    pub data: StateData,
}

impl StateTensor {
    /// Appends rows that follow those of a tensor on the device.
    pub(super) fn append_rows(&mut self, rows: usize, flat: Flat) {
        if let StateData::Tensor(own) = &mut self.data {
            own.append(flat);
            self.shape[0] += rows;
        }
    }

    /// Returns the length of [`Self::bytes`].
    pub(crate) fn len_bytes(&self) -> usize {
        let size = match self.dtype {
            "U64" => 8,
            "BF16" => 2,
            "U8" => 1,
            _ => 4,
        };
        self.shape.iter().product::<usize>() * size
    }

    /// Reads the values as little-endian bytes, row-major.
    ///
    /// # Errors
    ///
    /// `device.lost` if the read fails.
    pub async fn bytes(&self) -> Result<Vec<u8>> {
        match &self.data {
            StateData::Step(step) => Ok(step.to_le_bytes().to_vec()),
            StateData::Tensor(flat) => {
                let whole = 0..self.len_bytes() as u64;
                read_parts(&flat.parts(&whole)).await
            }
        }
    }
}
