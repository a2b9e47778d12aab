//! The factors of a matrix that an extraction finds, by subspace iteration over the difference of two models.

use super::difference::Difference;
use super::subspace::{
    add_transposed, best_product, orthonormalise, products, random_vectors, subtract,
};
use crate::config::Module;
use crate::error::Result;
use crate::state::{Bytes, Tensor, transposed};

/// Number of vectors beyond the rank, which make the iteration converge.
const SPARE: usize = 8;
/// Number of times that the vectors are multiplied by DᵀD.
const ROUNDS: usize = 4;
/// Number of times that a target is read after it was measured.
pub(super) const READINGS: u64 = ROUNDS as u64 + 2;
/// Number of rows that are multiplied together, so that the vectors are read from memory once for all of them.
const ROWS: usize = 16;

/// Factors A [r, in] and B [out, r] of a target.
pub(super) struct Factors {
    pub(super) a: Vec<f32>,
    pub(super) b: Vec<f32>,
    /// Squared length of the difference that they leave.
    pub(super) rest: f64,
}

/// Computes the factors of one target: the largest directions of D, as it is stored, found by multiplying vectors by DᵀD.
pub(super) async fn factors_of(
    difference: &mut Difference<'_>,
    name: &str,
    module: &Module,
    rank: usize,
) -> Result<Factors> {
    let [out, input] = module.shape;
    let [rows, columns] = if module.fan_in_fan_out {
        [input, out]
    } else {
        [out, input]
    };
    let width = (rank + SPARE).min(rows).min(columns);
    let mut vectors = random_vectors(&module.name, columns, width);
    orthonormalise(&mut vectors, width);
    for _ in 0..ROUNDS {
        let mut next = vec![0.0; vectors.len()];
        let multiply = |block: &mut [f64]| {
            add_transposed(block, &products(block, &vectors, width), &mut next, width)
        };
        difference.read(name, ROWS * columns, multiply).await?;
        vectors = next;
        orthonormalise(&mut vectors, width);
    }
    let mut images = Vec::with_capacity(rows * width);
    difference
        .read(name, ROWS * columns, |block| {
            images.extend(products(block, &vectors, width))
        })
        .await?;
    let [left, right] = best_product(&images, &vectors, width, rank);
    drop((images, vectors));

    let (mut row, mut rest) = (0, 0.0);
    let leave = |block: &mut [f64]| {
        let count = block.len() / columns;
        subtract(block, &left[row * rank..][..count * rank], &right, rank);
        row += count;
        rest += block.iter().map(|value| value * value).sum::<f64>();
    };
    difference.read(name, ROWS * columns, leave).await?;
    // For a matrix that is stored as [in, out], the factors change places.
    let [a, b] = if module.fan_in_fan_out {
        [transposed(&left, rank), transposed(&right, columns)]
    } else {
        [right, left]
    };
    Ok(Factors { a, b, rest })
}

/// Makes the tensor of a factor, whose bytes stay in memory until it is written.
pub(super) fn in_memory(name: &str, shape: [usize; 2], values: &[f32]) -> Tensor {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let shape = shape.map(|dim| dim as u64);
    Tensor::parameter(name, "F32", &shape, Bytes::host(bytes))
}
