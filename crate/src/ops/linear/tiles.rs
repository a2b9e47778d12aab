//! Products by tiles in workgroup memory, for GPUs: of 64 by 64, or of 32 by 32 where the large ones would make too few workgroups.

use std::ops::Range;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::params::TileParams;
use super::{SLICE, kernels};
use crate::gpu::StorageType;
use crate::gpu::launch::{Launch, rows_columns};
use crate::ops::weights::Weights;

/// The size of a tile. Each element that is read serves as many products as a tile has rows, or columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) enum Tile {
    /// 64 by 64.
    Large,
    /// 32 by 32.
    Small,
}

/// Number of workgroups from which large tiles keep every processor of a large GPU busy.
const FILLED: u32 = 256;

/// Number of rows from which tiles pay off on a GPU.
const TILE_ROWS: usize = 32;

impl Tile {
    fn size(self) -> usize {
        match self {
            Self::Large => 64,
            Self::Small => 32,
        }
    }

    /// The number of workgroups for the tiles of `[rows, columns]`.
    pub(in crate::ops) fn of(self, rows: usize, columns: usize) -> u32 {
        (rows.div_ceil(self.size()) * columns.div_ceil(self.size())) as u32
    }

    /// Chooses the kernel for tiles of this size.
    pub(in crate::ops) fn choose<T>(self, large: T, small: T) -> T {
        match self {
            Self::Large => large,
            Self::Small => small,
        }
    }
}

/// Chooses the tiles of a product, large ones if they are enough, and returns their number of workgroups with them.
pub(in crate::ops) fn tiling(groups: impl Fn(Tile) -> u32) -> (Tile, u32) {
    let large = groups(Tile::Large);
    if large >= FILLED {
        (Tile::Large, large)
    } else {
        (Tile::Small, groups(Tile::Small))
    }
}

/// Returns true if products of `n` rows are computed by tiles.
pub(in crate::ops) fn tiled(software: bool, n: usize) -> bool {
    !software && n >= TILE_ROWS
}

/// Computes the gradients from `dy [n, stride]` by tiles: dx if w is given, added to its sum or in slices of dy's columns `[slices, n·k]`, and
/// `scale` dW `[m, k]` if x is given, added to its sum if there is one. An output that is not requested is a placeholder. dy has a multiple
/// of 4 columns, and the first m of them count.
pub(in crate::ops) fn by_tiles<B: Launch>(
    dy: FloatTensor<B>,
    x: Option<FloatTensor<B>>,
    w: Option<Weights<FloatTensor<B>>>,
    shape: [usize; 2],
    scale: f32,
    sums: [Option<FloatTensor<B>>; 2],
) -> [FloatTensor<B>; 2] {
    let all = 0..rows_columns(&dy.shape()).1;
    by_tiles_of::<B>(dy, &all, x, w, shape, scale, sums)
}

/// Computes [`by_tiles`] from these columns of dy, which begin and end at multiples of 4.
pub(super) fn by_tiles_of<B: Launch>(
    dy: FloatTensor<B>,
    columns: &Range<usize>,
    x: Option<FloatTensor<B>>,
    w: Option<Weights<FloatTensor<B>>>,
    [m, k]: [usize; 2],
    scale: f32,
    sums: [Option<FloatTensor<B>>; 2],
) -> [FloatTensor<B>; 2] {
    let (n, stride) = rows_columns(&dy.shape());
    let slices = columns.len().div_ceil(SLICE).max(1);
    // Without weights the kernel reads none, so their storage type does not matter.
    let (storage, plane) = w
        .as_ref()
        .map_or((StorageType::F32, 0), |w| (w.form.storage, w.form.plane()));
    let of_input = |tile: Tile| {
        if w.is_some() {
            slices as u32 * tile.of(n, k)
        } else {
            0
        }
    };
    let (tile, groups) =
        tiling(|tile| of_input(tile) + if x.is_some() { tile.of(m, k) } else { 0 });
    let input = of_input(tile);
    let add = u32::from(sums[0].is_some()) + 2 * u32::from(sums[1].is_some());
    let params = TileParams {
        n,
        m,
        m4: columns.len() / 4,
        k4: k / 4,
        stride4: stride / 4,
        first4: columns.start / 4,
        slice4: SLICE / 4,
        input: input as usize,
        add,
        scale,
        plane,
    };
    let place = |made: bool, rows: usize, columns: usize| {
        B::floats(&dy, if made { [rows, columns] } else { [1, 4] })
    };
    let [dx, dw] = sums;
    let dx = dx.unwrap_or_else(|| place(w.is_some(), slices, n * k));
    let dw = dw.unwrap_or_else(|| place(x.is_some(), m, k));
    let [x, w] = [x, w.map(|w| w.words)].map(|given| given.unwrap_or_else(|| place(false, 1, 4)));
    let kernel = tile.choose(&kernels::BACKWARD_TILE, &kernels::BACKWARD_TILE_SMALL);
    B::launch(kernel.of(storage), [w, dy, x], [dx, dw], &params, groups)
}
