//! AdamW on an f32 tensor, in place (shaders/README.md, "AdamW"): `m ← lerp(m, g, w1)`, `v ← lerp(v, g², w2)`, `p ← p·d − α·m/(√v + ε)`.

use crate::gpu::Words;
use crate::optim::arithmetic::{bounded, lerp};

crate::kernel! {
    /// `p, g, m, v [n]`, all f32.
    pub KERNEL = "adamw" [256], (g) -> (mut p, mut m, mut v),
    /// Scalars of a step, computed in f64 and rounded once.
    struct Params {
        /// Elements.
        n: u32,
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
        /// Factor of the gradient (clipping).
        scale: f32,
    },
    twin twin;

    /// The same for n a multiple of 4, with four elements per thread.
    pub WIDE = "adamw_wide" as KERNEL;
}

/// New p, m, v of one element, all f32.
pub(crate) fn element(s: &Params, p: f32, g: f32, m: f32, v: f32) -> (f32, f32, f32) {
    let g = bounded(g) * s.scale;
    let m = lerp(m, g, s.w1);
    let v = lerp(v, g * g, s.w2);
    (p * s.d - s.alpha * (m / (v.sqrt() + s.eps)), m, v)
}

fn twin([g]: [&[u32]; 1], [p, m, v]: [&mut [u32]; 3], s: &Params) {
    let (p, m, v) = (p.floats_mut(), m.floats_mut(), v.floats_mut());
    for (i, &g) in g.floats().iter().enumerate().take(s.n as usize) {
        (p[i], m[i], v[i]) = element(s, p[i], g, m[i], v[i]);
    }
}
