//! The declarations of the linear kernels.

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
    pub FORWARD = "linear_forward" of weight4 [64], (w, x) -> (y),
    /// Shapes of a product whose width k is a multiple of 4.
    struct ForwardParams {
        /// Number of rows of x and y.
        n: u32,
        /// Number of columns of y, and of rows of w.
        m: u32,
        /// Number of columns of x and w, divided by 4.
        k4: u32,
        /// Index of the word at which the second plane of the weights begins.
        plane: u32,
    },
    twin |read, [y], p| forward(read, y, [p.n, p.m, p.k4 * 4], p.m);

    /// Computes `y = x Wᵀ` for few rows, k a multiple of 4.
    pub ROW = "linear_row" of weight4 [32] as FORWARD;
}
crate::kernel! {
    /// Computes `y (+)= x Wᵀ` for many rows by large register blocks, k a multiple of 4.
    pub BLOCK = "linear_block" of weight4 [8], (w, x) -> (mut y),
    /// Shapes of the product, and its place in x and y.
    struct BlockParams {
        /// Number of rows of the product.
        n: u32,
        /// Number of columns of y, and of rows of w.
        m: u32,
        /// Number of columns of w, divided by 4.
        k4: u32,
        /// Number of columns of x, divided by 4.
        stride4: u32,
        /// Index of the first column of x that counts, divided by 4.
        first4: u32,
        /// Index of the first row of y.
        first: u32,
        /// 1 where y contains sums that the products are added to, else 0.
        add: u32,
        /// Index of the word at which the second plane of the weights begins.
        plane: u32,
    },
    twin |read, [y], p| block(read, y, p)
}
crate::kernel! {
    /// Transposes a part of w into f32, with rows filled up with zeros to a multiple of 4.
    pub TRANSPOSE = "linear_transpose" of weight4 [32], (w) -> (y),
    /// The part of w.
    struct TransposeParams {
        /// Number of rows of the part.
        n: u32,
        /// Number of columns of the part, divided by 4.
        m4: u32,
        /// Number of columns of w, divided by 4.
        k4: u32,
        /// Index of the first row of the part.
        first: u32,
        /// Index of the first column of the part, divided by 4.
        first4: u32,
        /// Index of the word at which the second plane of the weights begins.
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
    /// Computes `y = x Wᵀ` by tiles in workgroup memory, k a multiple of 4.
    pub FORWARD_TILE = "linear_forward_tile" of weight4 through "chunks/forward_tile" [64], (w, x) -> (y),
    /// Shapes of a product by tiles.
    struct ForwardTileParams {
        /// Number of rows of x and y.
        n: u32,
        /// Number of columns of y that are written, and of rows of w.
        m: u32,
        /// Number of columns of x and w, divided by 4.
        k4: u32,
        /// Distance from one row of y to the next in elements, at least m.
        stride: u32,
        /// Index of the word at which the second plane of the weights begins.
        plane: u32,
    },
    twin |read, [y], p| forward(read, y, [p.n, p.m, p.k4 * 4], p.stride);

    /// [`FORWARD_TILE`] by tiles of half the size.
    pub FORWARD_TILE_SMALL = "linear_forward_tile_small" of weight4 through "chunks/forward_tile_small"
        text (crate::kernel!(@source "linear_forward_tile")) as FORWARD_TILE;
}
crate::kernel! {
    /// Computes `y = x Wᵀ`, any shape.
    pub FORWARD_ANY = "linear_forward_any" of weight1 [64], (w, x) -> (y),
    /// Shapes of a product of any width.
    struct AnyParams {
        /// Number of rows of x and y.
        n: u32,
        /// Number of columns of y, and of rows of w.
        m: u32,
        /// Number of columns of x and w.
        k: u32,
        /// Index of the word at which the second plane of the weights begins.
        plane: u32,
    },
    twin |read, [y], p| forward(read, y, [p.n, p.m, p.k], p.m);

    /// Computes `y = x Wᵀ` for many rows, any shape.
    pub FORWARD_ANY_BLOCK = "linear_forward_any_block" of weight1 [32] as FORWARD_ANY;
}

crate::kernel! {
    /// Computes `dx = dy W`, m and k multiples of 4.
    pub BACKWARD_INPUT = "linear_backward_input" of weight4 [64], (w, dy) -> (dx),
    /// Shapes of `dx = dy W` in slices of dy's columns.
    struct InputParams {
        /// Number of rows of dx and dy.
        n: u32,
        /// Number of columns of dy, and of rows of w, divided by 4.
        m4: u32,
        /// Number of columns of dx and w, divided by 4.
        k4: u32,
        /// Number of columns of a slice, divided by 4.
        slice4: u32,
        /// Index of the word at which the second plane of the weights begins.
        plane: u32,
    },
    twin |read, [dx], p| backward_input(read, dx, [p.n, p.m4 * 4, p.k4 * 4], p.slice4 * 4)
}
crate::kernel! {
    /// Computes `dx = dy W`, any shape.
    pub BACKWARD_INPUT_ANY = "linear_backward_input_any" of weight1 [64], (w, dy) -> (dx),
    /// Shapes of `dx = dy W` of any width, in slices of dy's columns.
    struct AnyInputParams {
        /// Number of rows of dx and dy.
        n: u32,
        /// Number of columns of dy, and of rows of w.
        m: u32,
        /// Number of columns of dx and w.
        k: u32,
        /// Number of columns of a slice.
        slice: u32,
        /// Index of the word at which the second plane of the weights begins.
        plane: u32,
    },
    twin |read, [dx], p| backward_input(read, dx, [p.n, p.m, p.k], p.slice);

    /// Computes `dx = dy W` for many rows, any shape.
    pub BACKWARD_INPUT_ANY_BLOCK = "linear_backward_input_any_block" of weight1 [32] as BACKWARD_INPUT_ANY;
}

crate::kernel! {
    /// Computes `dW (+)= dyᵀ x`, m and k multiples of 4.
    pub BACKWARD_WEIGHT = "linear_backward_weight" [64], (dy, x) -> (mut dw),
    /// Shapes of the weight gradient for widths that are multiples of 4.
    struct BackwardParams {
        /// Number of rows of x and dy.
        n: u32,
        /// Number of columns of dy, and of rows of w, divided by 4.
        m4: u32,
        /// Number of columns of x and w, divided by 4.
        k4: u32,
        /// 1 where dw contains a sum that this gradient is added to, else 0.
        add: u32,
    },
    twin |read, [dw], p| backward_weight(read, dw, [p.n, p.m4 * 4, p.k4 * 4], p.add == 1)
}
crate::kernel! {
    /// Computes `dW (+)= dyᵀ x`, any shape.
    pub BACKWARD_WEIGHT_ANY = "linear_backward_weight_any" [64], (dy, x) -> (mut dw),
    /// Shapes of the weight gradient for any widths.
    struct AnyWeightParams {
        /// Number of rows of x and dy.
        n: u32,
        /// Number of columns of dy, and of rows of dw.
        m: u32,
        /// Number of columns of x and dw.
        k: u32,
        /// 1 where dw contains a sum that this gradient is added to, else 0.
        add: u32,
    },
    twin |read, [dw], p| backward_weight(read, dw, [p.n, p.m, p.k], p.add == 1);

    /// [`BACKWARD_WEIGHT_ANY`] by large register blocks.
    pub BACKWARD_WEIGHT_ANY_BLOCK = "linear_backward_weight_any_block" [32] as BACKWARD_WEIGHT_ANY;
}

crate::kernel! {
    /// Computes `dx (+)= dy W` and `dW (+)= scale dyᵀ x` by tiles in workgroup memory, k and the length of dy's rows multiples of 4.
    pub BACKWARD_TILE = "linear_backward_tile" of weight4 through "chunks/input_tile" [64], (w, dy, x) -> (mut dx, mut dw),
    /// Shapes of the gradients by tiles, and the scale of dW.
    struct TileParams {
        /// Number of rows of x and dy.
        n: u32,
        /// Number of rows of w and dW, and of columns of dy that count.
        m: u32,
        /// Number of columns of dy, divided by 4.
        m4: u32,
        /// Number of columns of x and w, divided by 4.
        k4: u32,
        /// Number of columns of a slice of dy, divided by 4.
        slice4: u32,
        /// Number of workgroups that compute dx; the remaining ones compute dW.
        input: u32,
        /// Flags: bit 0 is set where dx, bit 1 where dW holds a sum that the gradient is added to.
        add: u32,
        /// Factor of dW.
        scale: f32,
        /// Index of the word at which the second plane of the weights begins.
        plane: u32,
    },
    twin tile;

    /// [`BACKWARD_TILE`] by tiles of half the size.
    pub BACKWARD_TILE_SMALL = "linear_backward_tile_small" of weight4 through "chunks/input_tile_small" as BACKWARD_TILE;
}
