//! The parameters of the attention kernels.

crate::kernel! {
    /// Shapes and the scale of the scores.
    pub struct Params {
        /// B, the number of sequences.
        batch: u32,
        /// Number of heads of q.
        heads: u32,
        /// Number of heads of k and v; divides `heads`.
        kv_heads: u32,
        /// T, the number of queries of a sequence.
        len: u32,
        /// Number of keys before the first query.
        offset: u32,
        /// Width of a head, divided by 4.
        width4: u32,
        /// Factor of the scores.
        scale: f32,
        /// 1 if each query has a first key of its own; otherwise the first key is 0.
        documents: u32,
    }
}

crate::kernel! {
    /// Shapes of a sum over heads.
    pub struct HeadSumParams {
        /// Total number of heads of each output.
        n: u32,
        /// Number of heads that are added up to one.
        group: u32,
        /// Width of a head, divided by 4.
        width4: u32,
    }
}

crate::kernel! {
    /// Shapes, the scale of the scores, and the part of a long row that a launch covers.
    pub struct BlockParams {
        /// B, the number of sequences.
        batch: u32,
        /// Number of heads of q.
        heads: u32,
        /// Number of heads of k and v; divides `heads`.
        kv_heads: u32,
        /// T, the number of queries of a sequence.
        len: u32,
        /// Number of keys before the first query.
        offset: u32,
        /// Width of a head, divided by 4.
        width4: u32,
        /// Factor of the scores.
        scale: f32,
        /// 1 if each query has a first key of its own; otherwise the first key is 0.
        documents: u32,
        /// First key of this launch (in the kernel for dk and dv: first query), a multiple of 8.
        first: u32,
        /// Key (or query) before which this launch ends.
        end: u32,
    }
}

crate::kernel! {
    /// Shapes of a change of head width.
    pub struct PadParams {
        /// Total number of heads.
        n: u32,
        /// Width of the input's heads.
        from_width: u32,
        /// Width of the output's heads.
        to_width: u32,
    }
}
