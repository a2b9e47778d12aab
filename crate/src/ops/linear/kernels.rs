//! The declarations of the linear kernels.

use super::params::{
    AnyInputParams, AnyParams, AnyWeightParams, BackwardParams, BlockParams, ForwardParams,
    ForwardTileParams, InputParams, TileParams, TransposeParams,
};
use super::twins::{backward_input, backward_weight, block, forward, tile};
use crate::gpu::Kernels;

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[
    &FORWARD.all(),
    &ROW.all(),
    &BLOCK.all(),
    &TRANSPOSE.all(),
    &FORWARD_TILE.all(),
    &FORWARD_TILE_SMALL.all(),
    &FORWARD_ANY.all(),
    &FORWARD_ANY_BLOCK.all(),
    &BACKWARD_INPUT.all(),
    &BACKWARD_INPUT_ANY.all(),
    &BACKWARD_INPUT_ANY_BLOCK.all(),
    &BACKWARD_WEIGHT.all(),
    &BACKWARD_WEIGHT_ANY.all(),
    &BACKWARD_WEIGHT_ANY_BLOCK.all(),
    &BACKWARD_TILE.all(),
    &BACKWARD_TILE_SMALL.all(),
];

crate::kernel! {
    /// Computes `y = x Wᵀ`, k a multiple of 4.
    pub FORWARD = "linear_forward" of weight4 [64], (w, x) -> (y), ForwardParams,
    twin |read, [y], p| forward(read, y, [p.n, p.m, p.k4 * 4], p.m);

    /// Computes `y = x Wᵀ` for few rows, k a multiple of 4.
    pub ROW = "linear_row" of weight4 [32] as FORWARD;
}
crate::kernel! {
    /// Computes `y (+)= x Wᵀ` for many rows by large register blocks, k a multiple of 4.
    pub BLOCK = "linear_block" of weight4 [8], (w, x) -> (mut y), BlockParams,
    twin |read, [y], p| block(read, y, p)
}
crate::kernel! {
    /// Transposes a part of w into columns of y in f32, with zeros after them up to a multiple of 4.
    pub TRANSPOSE = "linear_transpose" of weight4 [32], (w) -> (mut y), TransposeParams,
    twin |[w], [y], p| {
        let [n, columns] = [p.n, p.k4 * 4];
        for (i, row) in y.chunks_mut(p.stride4 * 4).enumerate().take(p.m4 * 4) {
            let row = &mut row[p.at4 * 4..][..n.next_multiple_of(4)];
            row.fill(0);
            let from = p.first * columns + p.first4 * 4 + i;
            row[..n].iter_mut().zip(w[from..].iter().step_by(columns)).for_each(|(y, &w)| *y = w);
        }
    }
}
crate::kernel! {
    /// Computes `y = x Wᵀ` by tiles in workgroup memory, k a multiple of 4.
    pub FORWARD_TILE = "linear_forward_tile" of weight4 through "chunks/forward_tile" [64], (w, x) -> (mut y), ForwardTileParams,
    twin |read, [y], p| forward(read, &mut y[p.first..], [p.n, p.m, p.k4 * 4], p.stride);

    /// [`FORWARD_TILE`] by tiles of half the size.
    pub FORWARD_TILE_SMALL = "linear_forward_tile_small" of weight4 through "chunks/forward_tile_small"
        text (crate::kernel!(@source "linear_forward_tile")) as FORWARD_TILE;
}
crate::kernel! {
    /// Computes `y = x Wᵀ`, any shape.
    pub FORWARD_ANY = "linear_forward_any" of weight1 [64], (w, x) -> (y), AnyParams,
    twin |read, [y], p| forward(read, y, [p.n, p.m, p.k], p.m);

    /// Computes `y = x Wᵀ` for many rows, any shape.
    pub FORWARD_ANY_BLOCK = "linear_forward_any_block" of weight1 [32] as FORWARD_ANY;
}

crate::kernel! {
    /// Computes `dx = dy W`, m and k multiples of 4.
    pub BACKWARD_INPUT = "linear_backward_input" of weight4 [64], (w, dy) -> (dx), InputParams,
    twin |read, [dx], p| backward_input(read, dx, [p.n, p.m4 * 4, p.k4 * 4], p.slice4 * 4)
}
crate::kernel! {
    /// Computes `dx = dy W`, any shape.
    pub BACKWARD_INPUT_ANY = "linear_backward_input_any" of weight1 [64], (w, dy) -> (dx), AnyInputParams,
    twin |read, [dx], p| backward_input(read, dx, [p.n, p.m, p.k], p.slice);

    /// Computes `dx = dy W` for many rows, any shape.
    pub BACKWARD_INPUT_ANY_BLOCK = "linear_backward_input_any_block" of weight1 [32] as BACKWARD_INPUT_ANY;
}

crate::kernel! {
    /// Computes `dW (+)= dyᵀ x`, m and k multiples of 4.
    pub BACKWARD_WEIGHT = "linear_backward_weight" [64], (dy, x) -> (mut dw), BackwardParams,
    twin |read, [dw], p| backward_weight(read, dw, [p.n, p.m4 * 4, p.k4 * 4], p.add)
}
crate::kernel! {
    /// Computes `dW (+)= dyᵀ x`, any shape.
    pub BACKWARD_WEIGHT_ANY = "linear_backward_weight_any" [64], (dy, x) -> (mut dw), AnyWeightParams,
    twin |read, [dw], p| backward_weight(read, dw, [p.n, p.m, p.k], p.add);

    /// [`BACKWARD_WEIGHT_ANY`] by large register blocks.
    pub BACKWARD_WEIGHT_ANY_BLOCK = "linear_backward_weight_any_block" [32] as BACKWARD_WEIGHT_ANY;
}

crate::kernel! {
    /// Computes `dx (+)= dy W` and `dW (+)= scale dyᵀ x` by tiles in workgroup memory, k and the length of dy's rows multiples of 4.
    pub BACKWARD_TILE = "linear_backward_tile" of weight4 through "chunks/input_tile" [64], (w, dy, x) -> (mut dx, mut dw), TileParams,
    twin tile;

    /// [`BACKWARD_TILE`] by tiles of half the size.
    pub BACKWARD_TILE_SMALL = "linear_backward_tile_small" of weight4 through "chunks/input_tile_small" as BACKWARD_TILE;
}
