//! The records and twins of the attention kernels.

use super::twins::{
    backward_key_value_block_twin, backward_key_value_twin, backward_query_block_twin, backward_query_twin, forward_block_twin,
    forward_twin,
};
use crate::kernels::kernel::{read, update, write};
use crate::{kernel_params, kernel_record};

kernel_params! {
    /// Shapes and the scale of the scores.
    pub struct Params {
        /// B.
        batch: u32,
        /// Heads of q.
        heads: u32,
        /// Heads of k and v; divides `heads`.
        kv_heads: u32,
        /// T, queries of a sequence.
        len: u32,
        /// Keys before the first query.
        offset: u32,
        /// Width of a head, divided by 4.
        width4: u32,
        /// Factor of the scores.
        scale: f32,
        /// 1 if each query has a first key of its own; otherwise the first key is 0.
        documents: u32,
    }
}

kernel_params! {
    /// Shapes, the scale of the scores and the part of a long row.
    pub struct BlockParams {
        /// B.
        batch: u32,
        /// Heads of q.
        heads: u32,
        /// Heads of k and v; divides `heads`.
        kv_heads: u32,
        /// T, queries of a sequence.
        len: u32,
        /// Keys before the first query.
        offset: u32,
        /// Width of a head, divided by 4.
        width4: u32,
        /// Factor of the scores.
        scale: f32,
        /// 1 if each query has a first key of its own; otherwise the first key is 0.
        documents: u32,
        /// First key of this launch (in the kernel for dk and dv: first query), a multiple of 8.
        first: u32,
        /// Where this launch ends.
        end: u32,
    }
}

kernel_params! {
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

kernel_record! {
    /// `y = softmax(scale q kᵀ) v` and the log-sum-exp.
    FORWARD, "attention_forward" in "../../../../shaders/",
    [read("q"), read("k"), read("v"), read("starts"), write("y"), write("stats")], Params, forward_twin
}
kernel_record! {
    /// `dq`, and `delta = dy y` into the stats.
    BACKWARD_QUERY, "attention_backward_query" in "../../../../shaders/",
    [read("q"), read("k"), read("v"), read("y"), read("dy"), update("stats"), write("dq")], Params, backward_query_twin
}
kernel_record! {
    /// `dk` and `dv`.
    BACKWARD_KEY_VALUE, "attention_backward_key_value" in "../../../../shaders/",
    [read("q"), read("k"), read("v"), read("dy"), read("stats"), write("dk"), write("dv")], Params, backward_key_value_twin
}
kernel_record! {
    /// `y = softmax(scale q kᵀ) v` and the log-sum-exp, 8 queries per thread.
    FORWARD_BLOCK, "attention_forward_block" in "../../../../shaders/",
    [read("q"), read("k"), read("v"), read("starts"), update("y"), update("stats")], BlockParams, forward_block_twin, 32
}
kernel_record! {
    /// `dq`, and `delta = dy y` into the stats, 8 queries per thread.
    BACKWARD_QUERY_BLOCK, "attention_backward_query_block" in "../../../../shaders/",
    [read("q"), read("k"), read("v"), read("y"), read("dy"), update("stats"), update("dq")], BlockParams, backward_query_block_twin, 32
}
kernel_record! {
    /// `dk` and `dv`, 8 keys per thread.
    BACKWARD_KEY_VALUE_BLOCK, "attention_backward_key_value_block" in "../../../../shaders/",
    [read("q"), read("k"), read("v"), read("dy"), read("stats"), update("dk"), update("dv")], BlockParams, backward_key_value_block_twin, 32
}
kernel_record! {
    /// Widens heads with zeros, or cuts them back.
    HEAD_PAD, "head_pad" in "../../../../shaders/", [read("x"), write("y")], PadParams, |buffers, params| {
        let p = PadParams::from_words(params);
        let [x, y] = buffers else { return };
        let (from, to) = (p.from_width as usize, p.to_width as usize);
        for i in 0..p.n as usize * to {
            let column = i % to;
            y.words_mut()[i] = if column < from { x.words()[i / to * from + column] } else { 0 };
        }
    }
}
