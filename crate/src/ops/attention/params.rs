//! The parameters of the attention kernels.

use std::ops::Range;

crate::kernel! {
    /// Shapes and the scale of the scores.
    pub struct Params {
        /// B, the number of sequences.
        batch: usize,
        /// Number of heads of q.
        heads: usize,
        /// Number of heads of k and v; divides `heads`.
        kv_heads: usize,
        /// T, the number of queries of a sequence.
        len: usize,
        /// Number of keys before the first query.
        offset: usize,
        /// Width of a head, divided by 4.
        width4: usize,
        /// Factor of the scores.
        scale: f32,
        /// Bound c of the scores, which become c·tanh(s/c); 0 for none.
        cap: f32,
        /// 1 if each query has a first key of its own; otherwise the first key is 0.
        documents: bool,
    }
}

crate::kernel! {
    /// Shapes of a sum over heads.
    pub struct HeadSumParams {
        /// Total number of heads of each output.
        n: usize,
        /// Number of heads that are added up to one.
        group: usize,
        /// Width of a head, divided by 4.
        width4: usize,
    }
}

crate::kernel! {
    /// Shapes, the scale of the scores, and the part of a long row that a launch covers.
    pub struct BlockParams {
        /// B, the number of sequences.
        batch: usize,
        /// Number of heads of q.
        heads: usize,
        /// Number of heads of k and v; divides `heads`.
        kv_heads: usize,
        /// T, the number of queries of a sequence.
        len: usize,
        /// Number of keys before the first query.
        offset: usize,
        /// Width of a head, divided by 4.
        width4: usize,
        /// Factor of the scores.
        scale: f32,
        /// Bound c of the scores, which become c·tanh(s/c); 0 for none.
        cap: f32,
        /// 1 if each query has a first key of its own; otherwise the first key is 0.
        documents: bool,
        /// First key of this launch (in the kernel for dk and dv: first query), a multiple of 8.
        first: usize,
        /// Key (or query) before which this launch ends.
        end: usize,
    }
}

crate::kernel! {
    /// Queries with a window.
    pub struct WindowParams {
        /// Total number of queries.
        n: usize,
        /// T, the number of queries of a sequence.
        len: usize,
        /// Number of keys before the first query.
        offset: usize,
        /// Number of keys that a query sees.
        window: usize,
        /// 1 if each query has a first key of its own without the window.
        documents: bool,
    }
}

crate::kernel! {
    /// Shapes of a change of head width.
    pub struct PadParams {
        /// Total number of heads.
        n: usize,
        /// Width of the input's heads.
        from_width: usize,
        /// Width of the output's heads.
        to_width: usize,
    }
}

impl Params {
    /// The parameters of a launch that covers `part` of a row.
    pub(super) fn part(&self, part: Range<usize>) -> BlockParams {
        let Self {
            batch,
            heads,
            kv_heads,
            len,
            offset,
            width4,
            scale,
            cap,
            documents,
        } = *self;
        BlockParams {
            batch,
            heads,
            kv_heads,
            len,
            offset,
            width4,
            scale,
            cap,
            documents,
            first: part.start,
            end: part.end,
        }
    }

    /// The parameters of a launch that covers all of a row.
    pub(super) fn whole(&self) -> BlockParams {
        self.part(0..usize::MAX)
    }
}
