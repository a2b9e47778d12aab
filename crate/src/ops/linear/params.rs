//! The parameters of the linear kernels.

crate::kernel! {
    /// Shapes of a product whose width k is a multiple of 4.
    pub struct ForwardParams {
        /// Number of rows of x and y.
        n: usize,
        /// Number of columns of y, and of rows of w.
        m: usize,
        /// Number of columns of x and w, divided by 4.
        k4: usize,
        /// Index of the word at which the second plane of the weights begins.
        plane: usize,
    }
}

crate::kernel! {
    /// Shapes of the product, and its place in x and y.
    pub struct BlockParams {
        /// Number of rows of the product.
        n: usize,
        /// Number of columns of the product, and of rows of w.
        m: usize,
        /// Number of columns of w, divided by 4.
        k4: usize,
        /// Number of columns of x, divided by 4.
        stride4: usize,
        /// Index of the first column of x that counts, divided by 4.
        first4: usize,
        /// Index of the first row of y.
        first: usize,
        /// Number of columns of y.
        width: usize,
        /// Index of the first column of y.
        column: usize,
        /// 1 where y contains sums that the products are added to, else 0.
        add: bool,
        /// Index of the word at which the second plane of the weights begins.
        plane: usize,
    }
}

crate::kernel! {
    /// The part of w.
    pub struct TransposeParams {
        /// Number of rows of the part.
        n: usize,
        /// Number of columns of the part, divided by 4.
        m4: usize,
        /// Number of columns of w, divided by 4.
        k4: usize,
        /// Index of the first row of the part.
        first: usize,
        /// Index of the first column of the part, divided by 4.
        first4: usize,
        /// Number of columns of y, divided by 4.
        stride4: usize,
        /// Index of the first column of y that is written, divided by 4.
        at4: usize,
        /// Index of the word at which the second plane of the weights begins.
        plane: usize,
    }
}

crate::kernel! {
    /// Shapes of a product by tiles.
    pub struct ForwardTileParams {
        /// Number of rows of x and y.
        n: usize,
        /// Number of columns of y that are written, and of rows of w.
        m: usize,
        /// Number of columns of x and w, divided by 4.
        k4: usize,
        /// Distance from one row of y to the next in elements, at least m.
        stride: usize,
        /// Index of the first column of y that is written.
        first: usize,
        /// Index of the word at which the second plane of the weights begins.
        plane: usize,
    }
}

crate::kernel! {
    /// Shapes of a product of any width.
    pub struct AnyParams {
        /// Number of rows of x and y.
        n: usize,
        /// Number of columns of y, and of rows of w.
        m: usize,
        /// Number of columns of x and w.
        k: usize,
        /// Index of the word at which the second plane of the weights begins.
        plane: usize,
    }
}

crate::kernel! {
    /// Shapes of `dx = dy W` in slices of dy's columns.
    pub struct InputParams {
        /// Number of rows of dx and dy.
        n: usize,
        /// Number of columns of dy, and of rows of w, divided by 4.
        m4: usize,
        /// Number of columns of dx and w, divided by 4.
        k4: usize,
        /// Number of columns of a slice, divided by 4.
        slice4: usize,
        /// Index of the word at which the second plane of the weights begins.
        plane: usize,
    }
}

crate::kernel! {
    /// Shapes of `dx = dy W` of any width, in slices of dy's columns.
    pub struct AnyInputParams {
        /// Number of rows of dx and dy.
        n: usize,
        /// Number of columns of dy, and of rows of w.
        m: usize,
        /// Number of columns of dx and w.
        k: usize,
        /// Number of columns of a slice.
        slice: usize,
        /// Index of the word at which the second plane of the weights begins.
        plane: usize,
    }
}

crate::kernel! {
    /// Shapes of the weight gradient for widths that are multiples of 4.
    pub struct BackwardParams {
        /// Number of rows of x and dy.
        n: usize,
        /// Number of columns of dy, and of rows of w, divided by 4.
        m4: usize,
        /// Number of columns of x and w, divided by 4.
        k4: usize,
        /// 1 where dw contains a sum that this gradient is added to, else 0.
        add: bool,
    }
}

crate::kernel! {
    /// Shapes of the weight gradient for any widths.
    pub struct AnyWeightParams {
        /// Number of rows of x and dy.
        n: usize,
        /// Number of columns of dy, and of rows of dw.
        m: usize,
        /// Number of columns of x and dw.
        k: usize,
        /// 1 where dw contains a sum that this gradient is added to, else 0.
        add: bool,
    }
}

crate::kernel! {
    /// Shapes of the gradients by tiles, and the scale of dW.
    pub struct TileParams {
        /// Number of rows of x and dy.
        n: usize,
        /// Number of rows of w and dW, and of columns of dy that count.
        m: usize,
        /// Number of columns of dy that are read, divided by 4.
        m4: usize,
        /// Number of columns of x and w, divided by 4.
        k4: usize,
        /// Number of columns of dy, divided by 4.
        stride4: usize,
        /// Index of the first column of dy that is read, divided by 4.
        first4: usize,
        /// Number of columns of a slice of dy, divided by 4.
        slice4: usize,
        /// Number of workgroups that compute dx; the remaining ones compute dW.
        input: usize,
        /// Flags: bit 0 is set where dx, bit 1 where dW holds a sum that the gradient is added to.
        add: u32,
        /// Factor of dW.
        scale: f32,
        /// Index of the word at which the second plane of the weights begins.
        plane: usize,
    }
}
