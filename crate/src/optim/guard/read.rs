//! A gradient, or a packed bf16 tensor, as a rule without a gate of its own reads it (shaders/README.md, "A rule of another crate").

use crate::bf16::get;
use crate::gpu::Words;
use crate::optim::arithmetic::bounded;
use crate::optim::gate::factor;

crate::kernel! {
    /// Writes `y [n]` f32 from `x [n]`: packed bf16, or a gradient f32.
    pub KERNEL = "guard_read" [256], (x, gate) -> (y),
    /// Length and form of the tensor.
    struct Params {
        /// Number of elements.
        n: usize,
        /// True for packed bf16, whose values are read; false for a gradient, which is bounded and clipped.
        packed: bool,
    },
    twin |[x, gate], [y], s| {
        for i in 0..s.n {
            y.floats_mut()[i] = if s.packed { get(x, i) } else { bounded(x.floats()[i]) * factor(gate) };
        }
    }
}
