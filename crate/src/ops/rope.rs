//! Rotary position embedding (arXiv:2104.09864), by tables that are made on the host: of whole heads in half-split pairing, or of a part of each
//! head, in either pairing.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{FloatDType, Int, Shape, Tensor};

use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{Kernels, Words, groups_of_64};
use crate::ops::attention::given;
use crate::ops::operation::operation;
use crate::ops::tape::{Grads, JointVjp, Sum, Vjp};

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[&KERNEL.all(), &WIDE.all(), &PART.all(), &BACKWARD.all()];

crate::kernel! {
    /// Rotates the pairs of queries and keys: `(a, b) ← (a c − b s, b c + a s)`.
    pub KERNEL = "rope" [64], (cosines, sines) -> (mut q, mut k),
    /// Shapes, the position of the first row, and the direction of the rotation.
    struct Params {
        /// Total number of pairs of q.
        pairs: usize,
        /// Total number of pairs of k.
        kv_pairs: usize,
        /// Number of heads of a row of q.
        heads: usize,
        /// Number of heads of a row of k.
        kv_heads: usize,
        /// Half the width of a head.
        half: usize,
        /// Number of rows of a sequence.
        len: usize,
        /// Position of the first row of each sequence.
        offset: usize,
        /// Direction: 1, or −1 to rotate back.
        sign: f32,
    },
    twin twin;

    /// [`KERNEL`] for halves that are a multiple of 4, with four pairs per thread.
    pub WIDE = "rope_wide" as KERNEL;
}

crate::kernel! {
    /// Rotates pairs of the first `2 half` dimensions of each head: `(a, b) ← (a c − b s, b c + a s)`.
    pub PART = "rope_part" [64], (cosines, sines, starts) -> (mut x),
    /// Shapes, the pairing, the position of the first row, and the direction of the rotation.
    struct PartParams {
        /// Total number of pairs.
        pairs: usize,
        /// Number of heads of a row.
        heads: usize,
        /// Width of a head.
        width: usize,
        /// Number of pairs of a head.
        half: usize,
        /// 1 if the dimensions 2 i and 2 i + 1 are a pair, 0 if i and i + half are.
        adjacent: bool,
        /// Number of rows of a sequence.
        len: usize,
        /// Position of the first row of each sequence.
        offset: usize,
        /// Direction: 1, or −1 to rotate back.
        sign: f32,
        /// 1 if positions count from a first row of each row.
        documents: bool,
    },
    twin |[cosines, sines, starts], [x], p| {
        for i in 0..p.pairs {
            let (head, pair) = (i / p.half, i % p.half);
            let row = head / p.heads;
            let start = if p.documents { starts[row] as usize } else { 0 };
            let entry = (p.offset + row % p.len - start) * p.half + pair;
            let (c, s) = (cosines.wide(entry), sines.wide(entry) * f64::from(p.sign));
            let (step, gap) = if p.adjacent { (2, 1) } else { (1, p.half) };
            let at = head * p.width + step * pair;
            let (a, b) = (x.wide(at), x.wide(at + gap));
            x.set(at, a * c - b * s);
            x.set(at + gap, b * c + a * s);
        }
    }
}

crate::kernel! {
    /// Turns the gradients of attention's inputs by query head into those of queries, keys and values before the rotation, one after another.
    pub BACKWARD = "rope_backward" [64], (cosines, sines, dq, dk, dv) -> (dy),
    /// Shapes, and the position of the first row.
    struct BackwardParams {
        /// Number of rows of dq, dk and dv.
        rows: usize,
        /// Number of heads of a row of queries.
        heads: usize,
        /// Number of heads of a row of keys, a divisor of `heads`.
        kv_heads: usize,
        /// Half the width of a head, divided by 4.
        half4: usize,
        /// Number of rows of a sequence.
        len: usize,
        /// Position of the first row of each sequence.
        offset: usize,
    },
    twin backward_twin
}

fn backward_twin(
    [cosines, sines, dq, dk, dv]: [&[u32]; 5],
    [dy]: [&mut [u32]; 1],
    p: &BackwardParams,
) {
    let (rows, heads, kv_heads, half) = (p.rows, p.heads, p.kv_heads, 4 * p.half4);
    let (width, sharing) = (2 * half, heads / kv_heads);
    let shared = |x: &[u32]| -> Vec<f64> {
        let sum = |at: usize| {
            (0..sharing)
                .map(|other| x.wide(((at / width) * sharing + other) * width + at % width))
                .sum()
        };
        (0..rows * kv_heads * width).map(sum).collect()
    };
    let turned = |x: Vec<f64>, heads: usize| -> Vec<f64> {
        let element = |at: usize| {
            let (head, i) = (at / width, at % half);
            let entry = (p.offset + head / heads % p.len) * half + i;
            let (c, s) = (cosines.wide(entry), sines.wide(entry));
            let (a, b) = (x[head * width + i], x[head * width + half + i]);
            if at % width < half {
                a * c + b * s
            } else {
                b * c - a * s
            }
        };
        (0..x.len()).map(element).collect()
    };
    let q = turned(dq.floats().iter().map(|&x| f64::from(x)).collect(), heads);
    let all = q
        .into_iter()
        .chain(turned(shared(dk), kv_heads))
        .chain(shared(dv));
    dy.floats_mut()
        .iter_mut()
        .zip(all)
        .for_each(|(dy, x)| *dy = x as f32);
}

fn twin([cosines, sines]: [&[u32]; 2], [q, k]: [&mut [u32]; 2], p: &Params) {
    let half = p.half;
    for (x, pairs, heads) in [(q, p.pairs, p.heads), (k, p.kv_pairs, p.kv_heads)] {
        for i in 0..pairs {
            let head = i / half;
            let position = p.offset + head / heads % p.len;
            let at = head * 2 * half + i % half;
            let c = cosines.wide(position * half + i % half);
            let s = sines.wide(position * half + i % half) * f64::from(p.sign);
            let (a, b) = (x.wide(at), x.wide(at + half));
            x.set(at, a * c - b * s);
            x.set(at + half, b * c + a * s);
        }
    }
}

/// The positions of the rows of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Positions {
    /// Number of rows of a sequence; sequences follow each other.
    pub len: usize,
    /// Position of the first row of each sequence.
    pub offset: usize,
}

/// Rotates `q [rows, heads · H]` and `k [rows, kv_heads · H]` by the tables `[positions, H / 2]`, or back with the sign −1. Each is changed in place
/// if it is uniquely owned.
pub(crate) fn rotated<B: Launch>(
    of: [FloatTensor<B>; 2],
    tables: [FloatTensor<B>; 2],
    positions: Positions,
    sign: f32,
) -> [FloatTensor<B>; 2] {
    let half = rows_columns(&tables[0].shape()).1.max(1);
    let [(pairs, heads), (kv_pairs, kv_heads)] = of.each_ref().map(|x| {
        (
            x.shape().num_elements() / 2,
            (rows_columns(&x.shape()).1 / 2 / half).max(1),
        )
    });
    let params = Params {
        pairs,
        kv_pairs,
        heads,
        kv_heads,
        half,
        len: positions.len.max(1),
        offset: positions.offset,
        sign,
    };
    let all = pairs + kv_pairs;
    let (kernel, threads) = if half.is_multiple_of(4) {
        (&WIDE, all / 4)
    } else {
        (&KERNEL, all)
    };
    B::launch(kernel, tables, of, &params, groups_of_64(threads))
}

/// Turns the gradients of rotated queries, and of keys and values by query head, all `[rows, heads · H]`, H a multiple of 8, into those of queries
/// `[rows, heads · H]`, keys and values `[rows, kv_heads · H]` before the rotation, one after another in one buffer.
pub fn backward<B: Launch>(
    by_head: [FloatTensor<B>; 3],
    tables: [FloatTensor<B>; 2],
    positions: Positions,
    [heads, kv_heads]: [usize; 2],
) -> FloatTensor<B> {
    let (rows, width) = rows_columns(&by_head[0].shape());
    let half = rows_columns(&tables[0].shape()).1;
    let params = BackwardParams {
        rows,
        heads,
        kv_heads,
        half4: half / 4,
        len: positions.len.max(1),
        offset: positions.offset,
    };
    let threads = rows * (heads + 3 * kv_heads) * half / 4;
    let shape = [rows * (width + 2 * kv_heads * 2 * half)];
    let ([cosines, sines], [dq, dk, dv]) = (tables, by_head);
    let read = [cosines, sines, dq, dk, dv];
    B::made(&BACKWARD, read, shape, &params, threads)
}

/// The backward pass of the rotations, which rotates back.
#[derive(Debug, Clone)]
pub struct Rope<T> {
    /// The tables of cosines and sines.
    pub tables: [T; 2],
    /// The positions of the rows.
    pub positions: Positions,
    /// Shapes of q and k.
    pub shapes: [Shape; 2],
}

impl<B: Launch> JointVjp<B, 2, 2> for Rope<FloatTensor<B>> {
    fn backward(self, grads: Grads<B, 2>, _needs: [bool; 2]) -> Grads<B, 2> {
        let Self {
            tables,
            positions,
            shapes,
        } = self;
        let [dq, dk] = grads;
        let or_zeros = |grad: Option<_>, shape: Shape| {
            grad.unwrap_or_else(|| B::float_zeros(shape, &tables[0].device(), FloatDType::F32))
        };
        let [q, k] = shapes;
        let grads = [or_zeros(dq, q), or_zeros(dk, k)];
        rotated::<B>(grads, tables, positions, -1.0).map(Some)
    }
}

operation! {
    /// Applies the rotary embedding to `q [B·T, heads·H]` and `k [B·T, kv_heads·H]`, in half-split pairing, by tables `[positions, H/2]` that need no
    /// gradient. Each is changed in place if it is uniquely owned.
    pub fn rope(
        q: Tensor<2>, k: Tensor<2>, cosines: Tensor<2>, sines: Tensor<2>; positions: Positions
    ) -> (Tensor<2>, Tensor<2>) {
        let (of, nodes) = B::parts([q, k]);
        let tables = [B::constant(cosines), B::constant(sines)];
        let shapes = of.each_ref().map(|x| x.shape());
        let turned = rotated::<B::Inner>(of, tables.clone(), positions, 1.0);
        let [q, k] = B::record_joint(nodes, turned, Rope { tables, positions, shapes });
        (q, k)
    }
}

/// Dimensions of each head that are rotated, and their pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pairing {
    /// Width of a head.
    pub width: usize,
    /// True if the dimensions 2 i and 2 i + 1 are a pair, false for i and i + n / 2 of n rotated ones.
    pub adjacent: bool,
}

/// The rotation of parts: its tables, and how dimensions and positions are counted.
#[derive(Debug, Clone)]
struct PartRope<T> {
    tables: [T; 2],
    /// First row of each row's document, as words; not read without documents.
    starts: T,
    documents: bool,
    pairing: Pairing,
    positions: Positions,
}

/// Rotates the first dimensions of each head of `x [rows, heads · H]`, or back with the sign −1, in place of x if it is uniquely owned.
fn part_rotated<B: Launch>(
    x: FloatTensor<B>,
    of: PartRope<FloatTensor<B>>,
    sign: f32,
) -> FloatTensor<B> {
    let PartRope {
        tables: [cosines, sines],
        starts,
        documents,
        pairing,
        positions,
    } = of;
    let (rows, columns) = rows_columns(&x.shape());
    let half = rows_columns(&cosines.shape()).1.max(1);
    let heads = (columns / pairing.width.max(1)).max(1);
    let params = PartParams {
        pairs: rows * heads * half,
        heads,
        width: pairing.width,
        half,
        adjacent: pairing.adjacent,
        len: positions.len.max(1),
        offset: positions.offset,
        sign,
        documents,
    };
    let read = [cosines, sines, starts];
    let [x] = B::launch(&PART, read, [x], &params, groups_of_64(params.pairs));
    x
}

impl<B: Launch> Vjp<B, 1> for PartRope<FloatTensor<B>> {
    fn backward(self, dy: FloatTensor<B>, _needs: [bool; 1], _: Sum<'_, B>) -> Grads<B, 1> {
        [Some(part_rotated::<B>(dy, self, -1.0))]
    }
}

operation! {
    /// Computes [`rope_of_part`]; `starts` is read only with documents.
    fn part_of_heads(
        x: Tensor<2>, cosines: Tensor<2>, sines: Tensor<2>; pairing: Pairing, positions: Positions, documents: bool;
        starts: Tensor<1, Int>
    ) -> Tensor<2> {
        let ([x], nodes) = B::parts([x]);
        let tables = [B::constant(cosines), B::constant(sines)];
        let starts = B::Inner::ids(B::integers(starts));
        let of = PartRope { tables, starts, documents, pairing, positions };
        let turned = part_rotated::<B::Inner>(x, of.clone(), 1.0);
        B::record(nodes, turned, of)
    }
}

/// Applies the rotary embedding to the first dimensions of each head of `x [B·T, heads·H]`, by tables `[positions, pairs]` that need no gradient. The
/// others are left as they are. With `starts [B·T]` positions count from these rows of a sequence. x is changed in place if it is uniquely owned.
pub fn rope_of_part(
    x: Tensor<2>,
    [cosines, sines]: [Tensor<2>; 2],
    pairing: Pairing,
    positions: Positions,
    starts: Option<Tensor<1, Int>>,
) -> Tensor<2> {
    let (documents, starts) = given(starts, &x.device());
    part_of_heads(x, cosines, sines, pairing, positions, documents, starts)
}
