//! The twins of functions of `common.wgsl` that the update rules share.

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
