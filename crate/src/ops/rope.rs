//! Rotary position embedding, half-split pairing (arXiv:2104.09864), from tables made on the host.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{FloatDType, Shape};

use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{Kernels, Words, groups_of_64};
use crate::ops::tape::JointVjp;

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&KERNEL.all(), &WIDE.all()];

crate::kernel! {
    /// `(a, b) ← (a c − b s, b c + a s)` of queries and keys
    pub KERNEL = "rope" [64], (cosines, sines) -> (mut q, mut k),
    /// Shapes, the position of the first row, the direction.
    struct Params {
        /// Total number of pairs of q.
        pairs: u32,
        /// Total number of pairs of k.
        kv_pairs: u32,
        /// Heads of a row of q.
        heads: u32,
        /// Heads of a row of k.
        kv_heads: u32,
        /// Half the width of a head.
        half: u32,
        /// Rows of a sequence.
        len: u32,
        /// Position of the first row of each sequence.
        offset: u32,
        /// 1, or −1 to turn back.
        sign: f32,
    },
    twin twin;

    /// The same for halves that are a multiple of 4, with four pairs per thread.
    pub WIDE = "rope_wide" as KERNEL;
}

fn twin([cosines, sines]: [&[u32]; 2], [q, k]: [&mut [u32]; 2], p: &Params) {
    let half = p.half as usize;
    for (x, pairs, heads) in [(q, p.pairs, p.heads), (k, p.kv_pairs, p.kv_heads)] {
        for i in 0..pairs as usize {
            let head = i / half;
            let position = p.offset as usize + head / heads as usize % p.len as usize;
            let at = head * 2 * half + i % half;
            let c = f64::from(cosines.floats()[position * half + i % half]);
            let s = f64::from(sines.floats()[position * half + i % half]) * f64::from(p.sign);
            let (a, b) = (f64::from(x.floats()[at]), f64::from(x.floats()[at + half]));
            x.floats_mut()[at] = (a * c - b * s) as f32;
            x.floats_mut()[at + half] = (b * c + a * s) as f32;
        }
    }
}

/// The positions of the rows of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Positions {
    /// Rows of a sequence; sequences follow each other.
    pub len: usize,
    /// Position of the first row of each sequence.
    pub offset: usize,
}

/// Rotates `q [rows, heads · H]` and `k [rows, kv_heads · H]` by the tables `[positions, H / 2]`, with the sign −1 back; in place of each if it is
/// uniquely owned.
pub fn rope<B: Launch>(of: [FloatTensor<B>; 2], tables: [FloatTensor<B>; 2], positions: Positions, sign: f32) -> [FloatTensor<B>; 2] {
    let half = rows_columns(&tables[0].shape()).1.max(1);
    let [(pairs, heads), (kv_pairs, kv_heads)] =
        of.each_ref().map(|x| (x.shape().num_elements() / 2, (rows_columns(&x.shape()).1 / 2 / half).max(1)));
    let params = Params {
        pairs: pairs as u32,
        kv_pairs: kv_pairs as u32,
        heads: heads as u32,
        kv_heads: kv_heads as u32,
        half: half as u32,
        len: positions.len.max(1) as u32,
        offset: positions.offset as u32,
        sign,
    };
    let all = pairs + kv_pairs;
    let (kernel, threads) = if half.is_multiple_of(4) { (&WIDE, all / 4) } else { (&KERNEL, all) };
    B::launch(kernel, tables, of, &params, groups_of_64(threads))
}

/// Gradients of the rotations: the rotations back.
#[derive(Debug, Clone)]
pub struct Rope<T> {
    /// Cosines and sines.
    pub tables: [T; 2],
    /// The positions of the rows.
    pub positions: Positions,
    /// Shapes of q and k.
    pub shapes: [Shape; 2],
}

impl<B: Launch> JointVjp<B, 2, 2> for Rope<FloatTensor<B>> {
    fn backward(self, grads: [Option<FloatTensor<B>>; 2], _needs: [bool; 2]) -> [Option<FloatTensor<B>>; 2] {
        let Self { tables, positions, shapes } = self;
        let [dq, dk] = grads;
        let or_zeros = |grad: Option<_>, shape: Shape| grad.unwrap_or_else(|| B::float_zeros(shape, &tables[0].device(), FloatDType::F32));
        let [q, k] = shapes;
        let grads = [or_zeros(dq, q), or_zeros(dk, k)];
        rope::<B>(grads, tables, positions, -1.0).map(Some)
    }
}
