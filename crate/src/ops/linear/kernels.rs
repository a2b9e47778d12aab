//! The records and twins of the linear kernels.

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
    /// `y = x Wᵀ`, k a multiple of 4.
    pub FORWARD = "linear_forward" of weight4 [64], (w, x) -> (y),
    /// Shapes for widths that are multiples of 4.
    struct ForwardParams {
        /// Rows of x and y.
        n: u32,
        /// Columns of y, rows of w.
        m: u32,
        /// Columns of x and w, divided by 4.
        k4: u32,
        /// The word at which the weights' second plane begins.
        plane: u32,
    },
    twin |read, [y], p| forward(read, y, [p.n, p.m, p.k4 * 4], p.m);

    /// `y = x Wᵀ` for few rows, k a multiple of 4.
    pub ROW = "linear_row" of weight4 [32] as FORWARD;
}
crate::kernel! {
    /// `y (+)= x Wᵀ` for many rows by large register blocks, k a multiple of 4.
    pub BLOCK = "linear_block" of weight4 [8], (w, x) -> (mut y),
    /// Where the product is in x and y, and its shapes.
    struct BlockParams {
        /// Rows of the product.
        n: u32,
        /// Columns of y, rows of w.
        m: u32,
        /// Columns of w, divided by 4.
        k4: u32,
        /// Columns of x, divided by 4.
        stride4: u32,
        /// The first column of x that counts, divided by 4.
        first4: u32,
        /// The first row of y.
        first: u32,
        /// 1 where y contains sums that the products are added to.
        add: u32,
        /// The word at which the weights' second plane begins.
        plane: u32,
    },
    twin |read, [y], p| block(read, y, p)
}
crate::kernel! {
    /// A part of w, transposed and in f32, its rows filled up with zeros to a multiple of 4.
    pub TRANSPOSE = "linear_transpose" of weight4 [32], (w) -> (y),
    /// The part.
    struct TransposeParams {
        /// Rows of the part.
        n: u32,
        /// Columns of the part, divided by 4.
        m4: u32,
        /// Columns of w, divided by 4.
        k4: u32,
        /// The first row of the part.
        first: u32,
        /// The first column of the part, divided by 4.
        first4: u32,
        /// The word at which the weights' second plane begins.
        plane: u32,
    },
    twin |[w], [y], p| {
        let [n, columns] = [p.n, p.k4 * 4].map(|size| size as usize);
        for (i, row) in y.chunks_mut(n.next_multiple_of(4)).enumerate().take(p.m4 as usize * 4) {
            row.fill(0);
            let from = p.first as usize * columns + p.first4 as usize * 4 + i;
            row[..n].iter_mut().zip(w[from..].iter().step_by(columns)).for_each(|(y, &w)| *y = w);
        }
    }
}
crate::kernel! {
    /// `y = x Wᵀ` by tiles in workgroup memory, k a multiple of 4.
    pub FORWARD_TILE = "linear_forward_tile" of weight4 through "chunks/forward_tile" [64], (w, x) -> (y),
    /// Shapes for the product by tiles.
    struct ForwardTileParams {
        /// Rows of x and y.
        n: u32,
        /// Columns of y that are written, rows of w.
        m: u32,
        /// Columns of x and w, divided by 4.
        k4: u32,
        /// Elements from one row of y to the next, at least m.
        stride: u32,
        /// The word at which the weights' second plane begins.
        plane: u32,
    },
    twin |read, [y], p| forward(read, y, [p.n, p.m, p.k4 * 4], p.stride);

    /// [`FORWARD_TILE`] by tiles of half the size.
    pub FORWARD_TILE_SMALL = "linear_forward_tile_small" of weight4 through "chunks/forward_tile_small"
        text (crate::kernel!(@source "linear_forward_tile")) as FORWARD_TILE;
}
crate::kernel! {
    /// `y = x Wᵀ`, any shape.
    pub FORWARD_ANY = "linear_forward_any" of weight1 [64], (w, x) -> (y),
    /// Shapes for any width.
    struct AnyParams {
        /// Rows of x and dy.
        n: u32,
        /// Columns of dy, rows of w.
        m: u32,
        /// Columns of x and w.
        k: u32,
        /// The word at which the weights' second plane begins.
        plane: u32,
    },
    twin |read, [y], p| forward(read, y, [p.n, p.m, p.k], p.m);

    /// `y = x Wᵀ` for many rows, any shape.
    pub FORWARD_ANY_BLOCK = "linear_forward_any_block" of weight1 [32] as FORWARD_ANY;
}

crate::kernel! {
    /// `dx = dy W`, m and k multiples of 4.
    pub BACKWARD_INPUT = "linear_backward_input" of weight4 [64], (w, dy) -> (dx),
    /// Shapes for `dx = dy W` in slices of dy's columns.
    struct InputParams {
        /// Rows of dx and dy.
        n: u32,
        /// Columns of dy, rows of w, divided by 4.
        m4: u32,
        /// Columns of dx and w, divided by 4.
        k4: u32,
        /// Columns of a slice, divided by 4.
        slice4: u32,
        /// The word at which the weights' second plane begins.
        plane: u32,
    },
    twin |read, [dx], p| backward_input(read, dx, [p.n, p.m4 * 4, p.k4 * 4], p.slice4 * 4)
}
crate::kernel! {
    /// `dx = dy W`, any shape.
    pub BACKWARD_INPUT_ANY = "linear_backward_input_any" of weight1 [64], (w, dy) -> (dx),
    /// Shapes for `dx = dy W` of any shape in slices of dy's columns.
    struct AnyInputParams {
        /// Rows of dx and dy.
        n: u32,
        /// Columns of dy, rows of w.
        m: u32,
        /// Columns of dx and w.
        k: u32,
        /// Columns of a slice.
        slice: u32,
        /// The word at which the weights' second plane begins.
        plane: u32,
    },
    twin |read, [dx], p| backward_input(read, dx, [p.n, p.m, p.k], p.slice);

    /// `dx = dy W` for many rows, any shape.
    pub BACKWARD_INPUT_ANY_BLOCK = "linear_backward_input_any_block" of weight1 [32] as BACKWARD_INPUT_ANY;
}

crate::kernel! {
    /// `dW (+)= dyᵀ x`, m and k multiples of 4.
    pub BACKWARD_WEIGHT = "linear_backward_weight" [64], (dy, x) -> (mut dw),
    /// Shapes for the blocked weight gradient.
    struct BackwardParams {
        /// Rows of x and dy.
        n: u32,
        /// Columns of dy, rows of w, divided by 4.
        m4: u32,
        /// Columns of x and w, divided by 4.
        k4: u32,
        /// 1 where dw contains a sum that this gradient is added to.
        add: u32,
    },
    twin |read, [dw], p| backward_weight(read, dw, [p.n, p.m4 * 4, p.k4 * 4], p.add == 1)
}
crate::kernel! {
    /// `dW (+)= dyᵀ x`, any shape.
    pub BACKWARD_WEIGHT_ANY = "linear_backward_weight_any" [64], (dy, x) -> (mut dw),
    /// Shapes for the weight gradient of any shape.
    struct AnyWeightParams {
        /// Rows of x and dy.
        n: u32,
        /// Columns of dy, rows of dw.
        m: u32,
        /// Columns of x and dw.
        k: u32,
        /// 1 where dw contains a sum that this gradient is added to.
        add: u32,
    },
    twin |read, [dw], p| backward_weight(read, dw, [p.n, p.m, p.k], p.add == 1);

    /// [`BACKWARD_WEIGHT_ANY`] by large register blocks.
    pub BACKWARD_WEIGHT_ANY_BLOCK = "linear_backward_weight_any_block" [32] as BACKWARD_WEIGHT_ANY;
}

crate::kernel! {
    /// `dx = dy W` and `dW = scale dyᵀ x` by tiles in workgroup memory, k and the rows of dy multiples of 4.
    pub BACKWARD_TILE = "linear_backward_tile" of weight4 through "chunks/input_tile" [64], (w, dy, x) -> (mut dx, mut dw),
    /// Shapes for the gradients by tiles.
    struct TileParams {
        /// Rows of x and dy.
        n: u32,
        /// Rows of w and dW, columns of dy that count.
        m: u32,
        /// Columns of dy, divided by 4.
        m4: u32,
        /// Columns of x and w, divided by 4.
        k4: u32,
        /// Columns of a slice of dy, divided by 4.
        slice4: u32,
        /// Number of workgroups that compute dx; the remaining ones compute dW.
        input: u32,
        /// Bit 0 where dx, bit 1 where dW holds a sum that the gradient is added to.
        add: u32,
        /// Factor of dW.
        scale: f32,
        /// The word at which the weights' second plane begins.
        plane: u32,
    },
    twin tile;

    /// [`BACKWARD_TILE`] by tiles of half the size.
    pub BACKWARD_TILE_SMALL = "linear_backward_tile_small" of weight4 through "chunks/input_tile_small" as BACKWARD_TILE;
}
