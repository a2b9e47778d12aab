//! Precision of a device's matrix products.

use burn::tensor::{Device, Tensor, TensorData};
use tabtune::Result;
use tabtune::gpu::read_f32;

use crate::comparison::Bounds;

/// Number of rows and of columns of the two matrices.
const SIDE: usize = 64;
/// Maximum relative error of a product in f32: a sum of 64 positive products has 64 roundings of at most 2⁻²⁴, 4e-6.
const OF_F32: f64 = 1e-5;
/// Maximum relative error of a product in TF32, whose factors have 11 bits: 2e-3 if both are truncated, and far less in a sum.
const OF_TF32: f64 = 2e-3;

/// Number format that a device multiplies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// Full f32, with all 24 bits of the factors.
    F32,
    /// TF32, with 11 bits of the factors as in tensor cores; sums are in f32.
    Tf32,
    /// Fewer bits than TF32, or results that are not numbers.
    Coarse,
}

impl Arithmetic {
    /// Detects the arithmetic of `device` by multiplying two matrices and comparing with f64.
    ///
    /// # Errors
    /// Errors of reading from the device.
    pub async fn of(device: &Device) -> Result<Self> {
        let (a, b) = (matrix(1), matrix(2));
        let placed = |values: &[f32]| {
            Tensor::<2>::from_data(TensorData::new(values.to_vec(), [SIDE, SIDE]), device)
        };
        Ok(Self::of_product(
            &a,
            &b,
            &read_f32(placed(&a).matmul(placed(&b))).await?,
        ))
    }

    fn of_product(a: &[f32], b: &[f32], product: &[f32]) -> Self {
        let exact = |at: usize| {
            (0..SIDE)
                .map(|k| f64::from(a[at / SIDE * SIDE + k]) * f64::from(b[k * SIDE + at % SIDE]))
                .sum::<f64>()
        };
        let errors = product
            .iter()
            .enumerate()
            .map(|(at, value)| (f64::from(*value) / exact(at) - 1.0).abs());
        // A comparison with NaN is false, so NaN counts as the worst error.
        let worst = errors.fold(
            0.0,
            |worst, error| if error <= worst { worst } else { error },
        );
        match worst {
            _ if worst <= OF_F32 => Self::F32,
            _ if worst <= OF_TF32 => Self::Tf32,
            _ => Self::Coarse,
        }
    }

    /// Returns the bounds of the distance from a run in f32. Coarse products have no bounds of their own and must meet those of TF32.
    pub fn bounds(self) -> Bounds {
        match self {
            Self::F32 => Bounds::F32,
            Self::Tf32 | Self::Coarse => Bounds::TF32,
        }
    }

    /// Returns the name for tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Tf32 => "TF32",
            Self::Coarse => "coarser than TF32",
        }
    }
}

/// Makes numbers from 0.5 to 1.5 that use all bits. They are positive, so that no sum is smaller than its terms.
fn matrix(seed: u32) -> Vec<f32> {
    let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(seed), next)
        .skip(4)
        .take(SIDE * SIDE)
        .map(|state| 0.5 + (state >> 8) as f32 / (1 << 24) as f32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_factors_are_reported() {
        let (a, b) = (matrix(1), matrix(2));
        let product = |kept: u32| {
            let cut = |values: &[f32]| {
                values
                    .iter()
                    .map(|value| f32::from_bits(value.to_bits() & kept))
                    .collect::<Vec<_>>()
            };
            let (a, b) = (cut(&a), cut(&b));
            (0..SIDE * SIDE)
                .map(|at| {
                    (0..SIDE)
                        .map(|k| a[at / SIDE * SIDE + k] * b[k * SIDE + at % SIDE])
                        .sum()
                })
                .collect::<Vec<f32>>()
        };
        let of = |product: &[f32]| Arithmetic::of_product(&a, &b, product);
        assert_eq!(of(&product(u32::MAX)), Arithmetic::F32);
        assert_eq!(of(&product(!0x1fff)), Arithmetic::Tf32);
        assert_eq!(of(&product(!0xffff)), Arithmetic::Coarse, "bf16");
        assert_eq!(of(&[f32::NAN; SIDE * SIDE]), Arithmetic::Coarse);
    }
}
