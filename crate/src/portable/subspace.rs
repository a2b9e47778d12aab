//! Finds the largest directions of a matrix that is read in blocks of rows: subspace iteration from random vectors (Halko, Martinsson and
//! Tropp, arXiv:0909.4061, section 4.5), all in f64 and in a fixed order, so that the result has the same bits everywhere.
//!
//! A list of `width` vectors of n values has n rows: the values at one position of all vectors are adjacent.

use crate::random;

/// Purpose word of the noise for the vectors that the iteration starts from.
const EXTRACT: &str = "extract:";
/// Maximum number of times that one vector is made orthogonal to those before it; twice is enough unless it was in their span.
const PASSES: usize = 5;
/// Maximum number of sweeps over all pairs of vectors. They converge after six to ten.
const SWEEPS: usize = 30;
/// Cosine below which two vectors count as orthogonal.
const ORTHOGONAL: f64 = 1e-14;

/// Makes `width` vectors of `count` values, uniform in (−1, 1), for the matrix of this name.
pub(super) fn random_vectors(name: &str, count: usize, width: usize) -> Vec<f64> {
    let key = random::key(EXTRACT, 0, name);
    let uniform = |word: u32| (f64::from(word) + 0.5) / f64::from(1u32 << 31) - 1.0;
    let mut values: Vec<f64> = Vec::with_capacity(count * width + 3);
    for call in 0..(count * width).div_ceil(4) {
        values.extend(random::words(key, call as u64, 0).map(uniform));
    }
    values.truncate(count * width);
    values
}

/// Multiplies rows, each with as many values as there are rows in `vectors`, with each vector.
pub(super) fn products(rows: &[f64], vectors: &[f64], width: usize) -> Vec<f64> {
    let columns = vectors.len() / width;
    let mut out = vec![0.0; rows.len() / columns * width];
    for (column, values) in vectors.chunks_exact(width).enumerate() {
        for (row, out) in rows.chunks_exact(columns).zip(out.chunks_exact_mut(width)) {
            add_scaled(out, row[column], values);
        }
    }
    out
}

/// Adds to `out` the rows, each times its row of `factors`: the product of the transposed rows with the factors.
pub(super) fn add_transposed(rows: &[f64], factors: &[f64], out: &mut [f64], width: usize) {
    let columns = out.len() / width;
    for (column, out) in out.chunks_exact_mut(width).enumerate() {
        for (row, factors) in rows.chunks_exact(columns).zip(factors.chunks_exact(width)) {
            add_scaled(out, row[column], factors);
        }
    }
}

fn add_scaled(out: &mut [f64], factor: f64, values: &[f64]) {
    out.iter_mut()
        .zip(values)
        .for_each(|(out, value)| *out += factor * value);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Makes the vectors orthogonal and of length 1 (Gram and Schmidt, repeated). One in the span of those before it becomes a direction of
/// rounding errors, orthogonal to them, or 0.
pub(super) fn orthonormalise(vectors: &mut [f64], width: usize) {
    let length = |vectors: &[f64], at: usize| {
        vectors
            .iter()
            .skip(at)
            .step_by(width)
            .map(|value| value * value)
            .sum::<f64>()
            .sqrt()
    };
    let mut shares = vec![0.0; width];
    for at in 0..width {
        let (mut before, mut settled) = (length(vectors, at), false);
        for _ in 0..PASSES {
            shares[..at].fill(0.0);
            for row in vectors.chunks_exact(width) {
                add_scaled(&mut shares[..at], row[at], &row[..at]);
            }
            for row in vectors.chunks_exact_mut(width) {
                row[at] -= dot(&shares[..at], &row[..at]);
            }
            let after = length(vectors, at);
            settled = after > 0.5 * before;
            before = after;
            if settled {
                break;
            }
        }
        let scale = if settled { 1.0 / before } else { 0.0 };
        vectors
            .iter_mut()
            .skip(at)
            .step_by(width)
            .for_each(|value| *value *= scale);
    }
}

/// Computes the best product of rank `rank` for a matrix D within the span of the orthonormal `vectors`, whose images D·v are `images`: its
/// left factor [rows, rank] and its right factor [rank, columns]. Each direction's size is shared: √σ on either side. Directions of the rank
/// beyond `width` are 0.
///
/// Both lists are rotated together until the images are orthogonal (Hestenes, 1958): then image and vector are σ·u and v.
pub(super) fn best_product(
    images: &[f64],
    vectors: &[f64],
    width: usize,
    rank: usize,
) -> [Vec<f32>; 2] {
    let separate = |list: &[f64]| -> Vec<Vec<f64>> {
        (0..width)
            .map(|at| list.iter().skip(at).step_by(width).copied().collect())
            .collect()
    };
    let (mut images, mut vectors) = (separate(images), separate(vectors));
    let squares: f64 = images.iter().map(|image| dot(image, image)).sum();
    // Directions of rounding errors are left as they are.
    let least = squares * f64::EPSILON * f64::EPSILON;
    for _ in 0..SWEEPS {
        let mut turned = false;
        for second in 1..width {
            for first in 0..second {
                let (a, b) = (
                    dot(&images[first], &images[first]),
                    dot(&images[second], &images[second]),
                );
                let both = dot(&images[first], &images[second]);
                if a.min(b) <= least || both.abs() <= ORTHOGONAL * (a * b).sqrt() {
                    continue;
                }
                turned = true;
                // Tangent t of the smaller rotation that makes them orthogonal: t² + 2·z·t − 1 = 0, z = (b − a) / 2ab.
                let z = (b - a) / (2.0 * both);
                let tan = z.signum() / (z.abs() + (z * z + 1.0).sqrt());
                turn(&mut images, first, second, tan);
                turn(&mut vectors, first, second, tan);
            }
        }
        if !turned {
            break;
        }
    }
    let mut sizes: Vec<(f64, usize)> = images
        .iter()
        .map(|image| dot(image, image).sqrt())
        .zip(0..)
        .collect();
    sizes.sort_by(|a, b| b.0.total_cmp(&a.0));
    let length = |list: &[Vec<f64>]| list.first().map_or(0, Vec::len);
    let (rows, columns) = (length(&images), length(&vectors));
    let (mut left, mut right) = (vec![0.0; rows * rank], vec![0.0; rank * columns]);
    for (place, (size, at)) in sizes
        .into_iter()
        .take(rank)
        .enumerate()
        .filter(|(_, (size, _))| *size > 0.0)
    {
        let root = size.sqrt();
        left.iter_mut()
            .skip(place)
            .step_by(rank)
            .zip(&images[at])
            .for_each(|(out, value)| *out = (value / root) as f32);
        right[place * columns..][..columns]
            .iter_mut()
            .zip(&vectors[at])
            .for_each(|(out, value)| *out = (value * root) as f32);
    }
    [left, right]
}

/// Subtracts the product of `left`, `rank` values for each row, with the rows `right` from the rows.
pub(super) fn subtract(rows: &mut [f64], left: &[f32], right: &[f32], rank: usize) {
    let columns = right.len() / rank;
    for (row, factors) in rows.chunks_exact_mut(columns).zip(left.chunks_exact(rank)) {
        for (factor, values) in factors.iter().zip(right.chunks_exact(columns)) {
            let factor = f64::from(*factor);
            row.iter_mut()
                .zip(values)
                .for_each(|(row, value)| *row -= factor * f64::from(*value));
        }
    }
}

/// Rotates two vectors in their plane.
fn turn(list: &mut [Vec<f64>], first: usize, second: usize, tan: f64) {
    let cos = 1.0 / (tan * tan + 1.0).sqrt();
    let sin = cos * tan;
    let (before, after) = list.split_at_mut(second);
    for (a, b) in before[first].iter_mut().zip(&mut after[0]) {
        (*a, *b) = (cos * *a - sin * *b, sin * *a + cos * *b);
    }
}
