//! The first stage of the global norm: Σg² of a gradient by blocks of 256 elements (shaders/README.md, "Block tree").

use crate::gpu::{KernelParams, Words};
use crate::optim::arithmetic::bounded;

crate::kernel! {
    /// Computes [`KERNEL`] for six gradients, `g_j [n_j] → partials [first_j … first_j + ⌈n_j/256⌉]`.
    pub SIX = "global_norm_six" through "chunks/norm_blocks" [64], (g0, g1, g2, g3, g4, g5) -> (mut partials),
    /// Lengths of the gradients, and their places among the partials.
    struct SixParams {
        /// Number of elements of the first gradient.
        n0: usize,
        /// Number of elements of the second gradient.
        n1: usize,
        /// Number of elements of the third gradient.
        n2: usize,
        /// Number of elements of the fourth gradient.
        n3: usize,
        /// Number of elements of the fifth gradient.
        n4: usize,
        /// Number of elements of the sixth gradient.
        n5: usize,
        /// Index of the first partial of the first gradient.
        first0: usize,
        /// Index of the first partial of the second gradient.
        first1: usize,
        /// Index of the first partial of the third gradient.
        first2: usize,
        /// Index of the first partial of the fourth gradient.
        first3: usize,
        /// Index of the first partial of the fifth gradient.
        first4: usize,
        /// Index of the first partial of the sixth gradient.
        first5: usize,
    },
    twin |gradients, [partials], s| {
        let places = [(s.n0, s.first0), (s.n1, s.first1), (s.n2, s.first2), (s.n3, s.first3), (s.n4, s.first4), (s.n5, s.first5)];
        for (g, (n, first)) in gradients.into_iter().zip(places) {
            twin([g], [&mut *partials], &Params { n, first });
        }
    }
}

impl SixParams {
    /// The parameters of six gradients, each with its number of elements and the index of its first partial sum.
    pub fn of(gradients: [(usize, usize); 6]) -> Self {
        let lengths = gradients.map(|(n, _)| n as u32);
        let firsts = gradients.map(|(_, first)| first as u32);
        Self::from_words(&[lengths, firsts].concat())
    }
}

crate::kernel! {
    /// Computes `g [n] → partials [first … first + ⌈n/256⌉]`, f32; the other partials are unchanged.
    pub KERNEL = "global_norm" through "chunks/norm_blocks" [64], (g) -> (mut partials),
    /// Length of the gradient, and its place among the partials.
    struct Params {
        /// Number of elements.
        n: usize,
        /// Index of the first partial of this gradient.
        first: usize,
    },
    twin twin
}

/// Number of elements per workgroup.
pub const ELEMENTS: usize = 2048;

fn twin([g]: [&[u32]; 1], [partials]: [&mut [u32]; 1], s: &Params) {
    let partials = partials.floats_mut().iter_mut().skip(s.first);
    for (block, out) in g.floats()[..s.n].chunks(256).zip(partials) {
        *out = block
            .iter()
            .map(|&g| f64::from(bounded(g)).powi(2))
            .sum::<f64>() as f32;
    }
}
