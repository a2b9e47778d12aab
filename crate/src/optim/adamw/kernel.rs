//! AdamW on an f32 tensor, in place (shaders/README.md, "AdamW"): `m ← lerp(m, g, w1)`, `v ← lerp(v, g², w2)`, `p ← p·d − α·m/(√v + ε)`.

use crate::gpu::Words;
use crate::optim::arithmetic::{bounded, lerp};
use crate::optim::gate::{factor, open};

crate::kernel! {
    /// Updates `p, m, v [n]` from `g [n]`, all f32.
    pub KERNEL = "adamw" [256], (g, gate) -> (mut p, mut m, mut v),
    /// Scalars of a step, computed in f64 and rounded once.
    struct Params {
        /// Number of elements.
        n: usize,
        /// 1 − β1.
        w1: f32,
        /// 1 − β2.
        w2: f32,
        /// 1 − ηλ.
        d: f32,
        /// η·√(1 − β2ᵗ)/(1 − β1ᵗ).
        alpha: f32,
        /// ε.
        eps: f32,
    } varying,
    twin twin;

    /// [`KERNEL`] for n a multiple of 4, with four elements per thread.
    pub WIDE = "adamw_wide" as KERNEL;
}

/// Computes the new p, m, v of one element, all f32.
pub(crate) fn element(s: &Params, factor: f32, [p, g, m, v]: [f32; 4]) -> (f32, f32, f32) {
    let g = bounded(g) * factor;
    let m = lerp(m, g, s.w1);
    let v = lerp(v, g * g, s.w2);
    (p * s.d - s.alpha * (m / (v.sqrt() + s.eps)), m, v)
}

fn twin([g, gate]: [&[u32]; 2], [p, m, v]: [&mut [u32]; 3], s: &Params) {
    if !open(gate) {
        return;
    }
    let (p, m, v) = (p.floats_mut(), m.floats_mut(), v.floats_mut());
    for (i, &g) in g.floats().iter().enumerate().take(s.n) {
        (p[i], m[i], v[i]) = element(s, factor(gate), [p[i], g, m[i], v[i]]);
    }
}
