//! Rotary position embedding, half-split pairing (arXiv:2104.09864), from tables made on the host.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{Kernels, Words, groups_of_64};
use crate::ops::tape::Vjp;

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&KERNEL.all(), &WIDE.all()];

crate::kernel! {
    /// `(a, b) ← (a c − b s, b c + a s)`
    pub KERNEL = "rope" [64], (cosines, sines) -> (mut x),
    /// Shapes, the position of the first row, the direction.
    struct Params {
        /// Total number of pairs.
        pairs: u32,
        /// Heads of a row.
        heads: u32,
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

fn twin([cosines, sines]: [&[u32]; 2], [x]: [&mut [u32]; 1], p: &Params) {
    let half = p.half as usize;
    for i in 0..p.pairs as usize {
        let head = i / half;
        let position = p.offset as usize + head / p.heads as usize % p.len as usize;
        let at = head * 2 * half + i % half;
        let c = f64::from(cosines.floats()[position * half + i % half]);
        let s = f64::from(sines.floats()[position * half + i % half]) * f64::from(p.sign);
        let (a, b) = (f64::from(x.floats()[at]), f64::from(x.floats()[at + half]));
        x.floats_mut()[at] = (a * c - b * s) as f32;
        x.floats_mut()[at + half] = (b * c + a * s) as f32;
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

/// Rotates `x [rows, heads · H]` by the tables `[positions, H / 2]`; in place of x if it is uniquely owned.
pub fn rope<B: Launch>(x: FloatTensor<B>, tables: [FloatTensor<B>; 2], positions: Positions, sign: f32) -> FloatTensor<B> {
    let half = rows_columns(&tables[0].shape()).1.max(1);
    let (_, width) = rows_columns(&x.shape());
    let pairs = x.shape().num_elements() / 2;
    let params = Params {
        pairs: pairs as u32,
        heads: (width / 2 / half).max(1) as u32,
        half: half as u32,
        len: positions.len.max(1) as u32,
        offset: positions.offset as u32,
        sign,
    };
    let (kernel, threads) = if half.is_multiple_of(4) { (&WIDE, pairs / 4) } else { (&KERNEL, pairs) };
    let [x] = B::launch(kernel, tables, [x], &params, groups_of_64(threads));
    x
}

/// Gradient of the rotation: the rotation back.
#[derive(Debug, Clone)]
pub struct Rope<T> {
    /// Cosines and sines.
    pub tables: [T; 2],
    /// The positions of the rows.
    pub positions: Positions,
}

impl<B: Launch> Vjp<B, 1> for Rope<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, _needs: [bool; 1]) -> [Option<FloatTensor<B>>; 1] {
        [Some(rope::<B>(dy, self.tables, self.positions, -1.0))]
    }
}
