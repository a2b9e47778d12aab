//! The parameters of the kernels of the delta rule.

crate::kernel! {
    /// Shape of the gates.
    pub struct GateParams {
        /// Number of rows.
        n: usize,
        /// M, the number of value heads.
        heads: usize,
    }
}

crate::kernel! {
    /// Shape of the rows.
    pub struct UnitParams {
        /// Number of rows.
        n: usize,
        /// Width of a row of x.
        width: usize,
        /// G, the number of key heads.
        heads: usize,
        /// D, the width of a key.
        dim: usize,
    }
}

crate::kernel! {
    /// Shape of the rows.
    pub struct UnitBackwardParams {
        /// Number of rows.
        n: usize,
        /// G, the number of key heads.
        key_heads: usize,
        /// M, the number of value heads.
        heads: usize,
        /// D, the width of a key.
        key_dim: usize,
        /// E, the width of a value.
        value_dim: usize,
    }
}

crate::kernel! {
    /// Shape of the gates.
    pub struct DecayParams {
        /// Number of rows.
        n: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// M, the number of value heads.
        heads: usize,
        /// 1 if each row has a first row of its own, that of its document.
        documents: bool,
    }
}

crate::kernel! {
    /// Shapes, and which rows are multiplied.
    pub struct PairParams {
        /// Number of rows.
        n: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// M, the number of value heads.
        heads: usize,
        /// Width of a head.
        dim: usize,
        /// Number of heads of a row of x, and of z.
        own: usize,
        /// Width of a row of x.
        x_width: usize,
        /// Place of the first head in a row of x.
        x_first: usize,
        /// Width of a row of z.
        z_width: usize,
        /// 1 without the product of a row with itself.
        strict: bool,
        /// 1 if the products are multiplied by β.
        weighted: bool,
        /// 1 if each row has a first row of its own.
        documents: bool,
        /// 1 if the products themselves multiply y.
        times: bool,
    }
}

crate::kernel! {
    /// Shape of the pairs.
    pub struct InverseParams {
        /// Number of rows.
        n: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// M, the number of value heads.
        heads: usize,
    }
}

crate::kernel! {
    /// Shapes, and how y is changed.
    pub struct MixParams {
        /// Number of rows.
        n: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// M, the number of value heads.
        heads: usize,
        /// Width of a head.
        dim: usize,
        /// Width of a row of x.
        width: usize,
        /// Number of heads of a row of x.
        own: usize,
        /// Place of the first head in a row of x.
        first: usize,
        /// 1 if rows and columns of the weights change places.
        turned: bool,
        /// 1 if the result is added to y.
        add: bool,
        /// Factor of the result.
        factor: f32,
    }
}

crate::kernel! {
    /// Shapes, and how y is changed.
    pub struct ReadParams {
        /// Number of rows.
        n: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// M, the number of value heads.
        heads: usize,
        /// Width of a head of y.
        dim: usize,
        /// Width of a head of x.
        inner: usize,
        /// Width of a row of x.
        width: usize,
        /// Number of heads of a row of x.
        own: usize,
        /// Place of the first head in a row of x.
        first: usize,
        /// Number of states that a sequence has in s.
        states: usize,
        /// 1 if rows and columns of the states change places.
        turned: bool,
        /// 1 if the result is added to y.
        add: bool,
        /// Factor of the result.
        factor: f32,
    }
}

crate::kernel! {
    /// Shapes.
    pub struct ScanParams {
        /// Number of rows.
        n: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// G, the number of key heads.
        key_heads: usize,
        /// M, the number of value heads.
        heads: usize,
        /// D, the width of a key.
        key_dim: usize,
        /// E, the width of a value.
        value_dim: usize,
        /// 1 if the first states are given.
        carried: bool,
    }
}

crate::kernel! {
    /// Shape of products of heads, and how y is changed.
    pub struct DotParams {
        /// Number of heads of all rows.
        n: usize,
        /// E, the width of a head.
        dim: usize,
        /// 1 if the result is added to y.
        add: bool,
        /// Factor of the result.
        factor: f32,
    }
}

crate::kernel! {
    /// Shape of the rows.
    pub struct WrittenParams {
        /// Number of rows.
        n: usize,
        /// M, the number of value heads.
        heads: usize,
        /// E, the width of a value.
        dim: usize,
    }
}

crate::kernel! {
    /// Shape of the states.
    pub struct ThroughParams {
        /// Number of rows.
        n: usize,
        /// T, the number of rows of a sequence.
        len: usize,
        /// M, the number of value heads.
        heads: usize,
        /// Number of values of a state of a head.
        size: usize,
    }
}
