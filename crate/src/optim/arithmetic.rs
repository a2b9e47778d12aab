//! The twins of functions of `common.wgsl` that the update rules share.

use crate::bf16::get;

/// Bounds a finite gradient by ±1e15, so that g² stays finite; NaN and Inf pass.
pub fn bounded(g: f32) -> f32 {
    if g.is_finite() {
        g.clamp(-1e15, 1e15)
    } else {
        g
    }
}

/// Computes a + w·(b − a) from the nearer end, so that w = 0 and w = 1 give a and b exactly.
pub fn lerp(a: f32, b: f32, w: f32) -> f32 {
    if w < 0.5 {
        a + w * (b - a)
    } else {
        b - (b - a) * (1.0 - w)
    }
}

/// Sums values in f64, for twins.
pub(crate) fn sum(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value)).sum()
}

/// The sum of partial sums: those of kind `k`, of `lanes` each.
pub(crate) fn lane_sum(sums: &[f32], k: usize, lanes: usize) -> f64 {
    sum(&sums[k * lanes..][..lanes])
}

/// Element `i` of a tensor, f32 or packed bf16, for twins.
pub(crate) fn value(words: &[u32], i: usize, packed: bool) -> f32 {
    if packed {
        get(words, i)
    } else {
        f32::from_bits(words[i])
    }
}
