//! The records and twins of the linear kernels.

use super::twins::{backward_input, backward_weight, both, forward, tile};
use crate::kernel_record;
use crate::kernels::kernel::{read, update, write};

crate::kernel_params! {
    /// Shapes for the blocked forward kernels.
    pub struct ForwardParams {
        /// Rows of x and y.
        n: u32,
        /// Columns of y, rows of w.
        m: u32,
        /// Columns of x and w, divided by 4.
        k4: u32,
    }
}

crate::kernel_params! {
    /// Shapes for the blocked weight gradient.
    pub struct BackwardParams {
        /// Rows of x and dy.
        n: u32,
        /// Columns of dy, rows of w, divided by 4.
        m4: u32,
        /// Columns of x and w, divided by 4.
        k4: u32,
        /// 1 where dw contains a sum that this gradient is added to.
        add: u32,
    }
}

crate::kernel_params! {
    /// Shapes for both gradients in one dispatch.
    pub struct BothParams {
        /// Rows of x and dy.
        n: u32,
        /// Columns of dy, rows of w, divided by 4.
        m4: u32,
        /// Columns of x and w, divided by 4.
        k4: u32,
        /// 1 where dx contains a sum that this gradient is added to.
        add: u32,
    }
}

crate::kernel_params! {
    /// Shapes for `dx = dy W` in slices of dy's columns.
    pub struct InputParams {
        /// Rows of dx and dy.
        n: u32,
        /// Columns of dy, rows of w, divided by 4.
        m4: u32,
        /// Columns of dx and w, divided by 4.
        k4: u32,
        /// Columns of a slice, divided by 4.
        slice4: u32,
    }
}

crate::kernel_params! {
    /// Shapes for `dx = dy W` of any shape in slices of dy's columns.
    pub struct AnyInputParams {
        /// Rows of dx and dy.
        n: u32,
        /// Columns of dy, rows of w.
        m: u32,
        /// Columns of dx and w.
        k: u32,
        /// 1 where w is packed bf16.
        packed: u32,
        /// Columns of a slice.
        slice: u32,
    }
}

crate::kernel_params! {
    /// Shapes for the kernels of any shape with weights of either dtype.
    pub struct AnyParams {
        /// Rows of x and dy.
        n: u32,
        /// Columns of dy, rows of w.
        m: u32,
        /// Columns of x and w.
        k: u32,
        /// 1 where w is packed bf16.
        packed: u32,
    }
}

crate::kernel_params! {
    /// Shapes for the weight gradient of any shape.
    pub struct AnyWeightParams {
        /// Rows of x and dy.
        n: u32,
        /// Columns of dy, rows of dw.
        m: u32,
        /// Columns of x and dw.
        k: u32,
        /// 1 where dw contains a sum that this gradient is added to.
        add: u32,
    }
}

crate::kernel_params! {
    /// Shapes for the gradients by tiles.
    pub struct TileParams {
        /// Rows of x and dy.
        n: u32,
        /// Columns of dy, rows of w, divided by 4.
        m4: u32,
        /// Columns of x and w, divided by 4.
        k4: u32,
        /// Columns of a slice of dy, divided by 4.
        slice4: u32,
        /// Number of workgroups that compute dx; the remaining ones compute dW.
        input: u32,
        /// Bit 0 where dx, bit 1 where dW holds a sum that the gradient is added to.
        add: u32,
        /// 1 where w is packed bf16.
        packed: u32,
    }
}

kernel_record! {
    /// `y = x Wᵀ`, f32, k a multiple of 4.
    FORWARD, "linear_forward" in "../../../../shaders/", [read("x"), read("w"), write("y")], ForwardParams, |b, p| {
        let p = ForwardParams::from_words(p);
        forward(b, p.n, p.m, p.k4 * 4, false);
    }
}
kernel_record! {
    /// `y = x Wᵀ`, bf16 weights, k a multiple of 4.
    FORWARD_BF16, "linear_forward_bf16" in "../../../../shaders/", [read("x"), read("w"), write("y")], ForwardParams, |b, p| {
        let p = ForwardParams::from_words(p);
        forward(b, p.n, p.m, p.k4 * 4, true);
    }
}
kernel_record! {
    /// `y = x Wᵀ` for few rows, f32, k a multiple of 4.
    ROW, "linear_row" in "../../../../shaders/", [read("x"), read("w"), write("y")], ForwardParams, |b, p| {
        let p = ForwardParams::from_words(p);
        forward(b, p.n, p.m, p.k4 * 4, false);
    }, 32
}
kernel_record! {
    /// `y = x Wᵀ` for few rows, bf16 weights, k a multiple of 4.
    ROW_BF16, "linear_row_bf16" in "../../../../shaders/", [read("x"), read("w"), write("y")], ForwardParams, |b, p| {
        let p = ForwardParams::from_words(p);
        forward(b, p.n, p.m, p.k4 * 4, true);
    }, 32
}
kernel_record! {
    /// `y = x Wᵀ`, any shape and weights.
    FORWARD_ANY, "linear_forward_any" in "../../../../shaders/", [read("x"), read("w"), write("y")], AnyParams, |b, p| {
        let p = AnyParams::from_words(p);
        forward(b, p.n, p.m, p.k, p.packed == 1);
    }
}
kernel_record! {
    /// `dx = dy W`, f32, m and k multiples of 4.
    BACKWARD_INPUT, "linear_backward_input" in "../../../../shaders/", [read("dy"), read("w"), write("dx")], InputParams, |b, p| {
        let p = InputParams::from_words(p);
        backward_input(b, p.n, p.m4 * 4, p.k4 * 4, p.slice4 * 4, false);
    }
}
kernel_record! {
    /// `dx = dy W`, bf16 weights, m and k multiples of 4.
    BACKWARD_INPUT_BF16, "linear_backward_input_bf16" in "../../../../shaders/", [read("dy"), read("w"), write("dx")], InputParams, |b, p| {
        let p = InputParams::from_words(p);
        backward_input(b, p.n, p.m4 * 4, p.k4 * 4, p.slice4 * 4, true);
    }
}
kernel_record! {
    /// `dx = dy W`, any shape and weights.
    BACKWARD_INPUT_ANY, "linear_backward_input_any" in "../../../../shaders/", [read("dy"), read("w"), write("dx")], AnyInputParams, |b, p| {
        let p = AnyInputParams::from_words(p);
        backward_input(b, p.n, p.m, p.k, p.slice, p.packed == 1);
    }
}
kernel_record! {
    /// `dW (+)= dyᵀ x`, m and k multiples of 4.
    BACKWARD_WEIGHT, "linear_backward_weight" in "../../../../shaders/", [read("dy"), read("x"), update("dw")], BackwardParams, |b, p| {
        let p = BackwardParams::from_words(p);
        backward_weight(b, p.n, p.m4 * 4, p.k4 * 4, p.add == 1);
    }
}
kernel_record! {
    /// `dW (+)= dyᵀ x`, any shape.
    BACKWARD_WEIGHT_ANY, "linear_backward_weight_any" in "../../../../shaders/", [read("dy"), read("x"), update("dw")], AnyWeightParams, |b, p| {
        let p = AnyWeightParams::from_words(p);
        backward_weight(b, p.n, p.m, p.k, p.add == 1);
    }
}

kernel_record! {
    /// `y = x Wᵀ` for many rows, f32, k a multiple of 4.
    FORWARD_BLOCK, "linear_forward_block" in "../../../../shaders/", [read("x"), read("w"), write("y")], ForwardParams, |b, p| {
        let p = ForwardParams::from_words(p);
        forward(b, p.n, p.m, p.k4 * 4, false);
    }, 16
}
kernel_record! {
    /// `y = x Wᵀ` for many rows, bf16 weights, k a multiple of 4.
    FORWARD_BLOCK_BF16, "linear_forward_block_bf16" in "../../../../shaders/", [read("x"), read("w"), write("y")], ForwardParams, |b, p| {
        let p = ForwardParams::from_words(p);
        forward(b, p.n, p.m, p.k4 * 4, true);
    }, 16
}
kernel_record! {
    /// `dx = dy W` for many rows, f32, m and k multiples of 4.
    BACKWARD_INPUT_BLOCK, "linear_backward_input_block" in "../../../../shaders/",
    [read("dy"), read("w"), write("dx")], InputParams, |b, p| {
        let p = InputParams::from_words(p);
        backward_input(b, p.n, p.m4 * 4, p.k4 * 4, p.slice4 * 4, false);
    }, 16
}
kernel_record! {
    /// `dx = dy W` for many rows, bf16 weights, m and k multiples of 4.
    BACKWARD_INPUT_BLOCK_BF16, "linear_backward_input_block_bf16" in "../../../../shaders/",
    [read("dy"), read("w"), write("dx")], InputParams, |b, p| {
        let p = InputParams::from_words(p);
        backward_input(b, p.n, p.m4 * 4, p.k4 * 4, p.slice4 * 4, true);
    }, 16
}
kernel_record! {
    /// `dW (+)= dyᵀ x`, m and k multiples of 4.
    BACKWARD_WEIGHT_BLOCK, "linear_backward_weight_block" in "../../../../shaders/",
    [read("dy"), read("x"), update("dw")], BackwardParams, |b, p| {
        let p = BackwardParams::from_words(p);
        backward_weight(b, p.n, p.m4 * 4, p.k4 * 4, p.add == 1);
    }, 16
}

kernel_record! {
    /// `dx = dy W` and `dW = dyᵀ x` for many rows, f32, m and k multiples of 4.
    BACKWARD_BLOCK, "linear_backward_block" in "../../../../shaders/",
    [read("dy"), read("x"), read("w"), update("dx"), write("dw")], BothParams, |b, p| both(b, BothParams::from_words(p), false), 16
}
kernel_record! {
    /// `dx = dy W` and `dW = dyᵀ x` for many rows, bf16 weights, m and k multiples of 4.
    BACKWARD_BLOCK_BF16, "linear_backward_block_bf16" in "../../../../shaders/",
    [read("dy"), read("x"), read("w"), update("dx"), write("dw")], BothParams, |b, p| both(b, BothParams::from_words(p), true), 16
}

kernel_record! {
    /// `y = x Wᵀ` for many rows, any shape and weights.
    FORWARD_ANY_BLOCK, "linear_forward_any_block" in "../../../../shaders/", [read("x"), read("w"), write("y")], AnyParams, |b, p| {
        let p = AnyParams::from_words(p);
        forward(b, p.n, p.m, p.k, p.packed == 1);
    }, 32
}
kernel_record! {
    /// `dx = dy W` for many rows, any shape and weights.
    BACKWARD_INPUT_ANY_BLOCK, "linear_backward_input_any_block" in "../../../../shaders/",
    [read("dy"), read("w"), write("dx")], AnyInputParams, |b, p| {
        let p = AnyInputParams::from_words(p);
        backward_input(b, p.n, p.m, p.k, p.slice, p.packed == 1);
    }, 32
}
kernel_record! {
    /// `dW (+)= dyᵀ x`, any shape.
    BACKWARD_WEIGHT_ANY_BLOCK, "linear_backward_weight_any_block" in "../../../../shaders/",
    [read("dy"), read("x"), update("dw")], AnyWeightParams, |b, p| {
        let p = AnyWeightParams::from_words(p);
        backward_weight(b, p.n, p.m, p.k, p.add == 1);
    }, 32
}

kernel_record! {
    /// `y = x Wᵀ` by tiles in workgroup memory, either dtype, k a multiple of 4.
    FORWARD_TILE, "linear_forward_tile" in "../../../../shaders/", [read("x"), read("w"), write("y")], AnyParams, |b, p| {
        let p = AnyParams::from_words(p);
        forward(b, p.n, p.m, p.k, p.packed == 1);
    }
}
kernel_record! {
    /// `dx = dy W` and `dW = dyᵀ x` by tiles in workgroup memory, either dtype, m and k multiples of 4.
    BACKWARD_TILE, "linear_backward_tile" in "../../../../shaders/",
    [read("dy"), read("x"), read("w"), update("dx"), update("dw")], TileParams, |b, p| tile(b, TileParams::from_words(p))
}
