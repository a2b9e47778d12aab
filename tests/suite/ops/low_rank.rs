//! The low-rank part of an adapter: its kernels against their twins, and the operation with its gradients against Burn's own operations.

use burn::tensor::{Device as TensorDevice, Tensor, TensorData};
use tabtune::gpu::StorageType::{self, Bf16, F32};
use tabtune::gpu::StoredMatrix;
use tabtune::ops::low_rank::{
    BACKWARD_TILE, BACKWARD_TILE_SMALL, BackwardParams, FORWARD_TILE, FORWARD_TILE_SMALL,
    ForwardParams,
};
use tabtune::ops::{self, Adapted};
use tabtune_tests::kernels::{Case, check, noise, packed, poisoned, words};

use super::gradients::{self, Inputs, compare_within};
use super::linear::weights;

/// Sums of up to 1100 products in f32 compared with f64.
const BOUND: f64 = 1e-5;

/// Rows, columns of y, columns of x, rank.
type Shape = (usize, usize, usize, usize);

const SHAPES: [Shape; 6] = [
    (1, 4, 4, 4),
    (33, 20, 36, 4),
    (64, 64, 64, 16),
    (65, 68, 132, 12),
    (130, 60, 64, 64),
    (5, 1036, 12, 8),
];

fn factor(len: usize, storage: StorageType) -> Vec<u32> {
    let values = noise(len, 4);
    if storage == F32 {
        words(&values)
    } else {
        packed(&values).0
    }
}

/// Makes the launch for y with W stored as `storage` and B as `of_factor`.
pub(super) fn forward(
    small: bool,
    (n, m, k, r): Shape,
    storage: StorageType,
    of_factor: StorageType,
) -> Case {
    let (w, plane) = weights([m, k], storage);
    let wide = of_factor == F32;
    let params = ForwardParams {
        n,
        m,
        k4: k / 4,
        r4: r / 4,
        wide,
        scale: 1.5,
        plane,
    };
    let read = [
        w,
        words(&noise(n * k, 1)),
        words(&noise(n * r, 3)),
        factor(m * r, of_factor),
    ];
    let (kernel, size) = if small {
        (&FORWARD_TILE_SMALL, 32)
    } else {
        (&FORWARD_TILE, 64)
    };
    Case::new(
        kernel.of(storage),
        read,
        [poisoned(n * m)],
        &params,
        (n.div_ceil(size) * m.div_ceil(size)) as u32,
    )
}

/// Makes the launch for dx with W stored as `storage` and A as `of_factor`, in slices of 512 columns; with `add`, added to the contents.
pub(super) fn backward(
    small: bool,
    (n, m, k, r): Shape,
    storage: StorageType,
    of_factor: StorageType,
    add: bool,
) -> Case {
    let (w, plane) = weights([m, k], storage);
    let slice = if add { m } else { 512 };
    let slices = m.div_ceil(slice);
    let wide = of_factor == F32;
    let slice4 = slice / 4;
    let params = BackwardParams {
        n,
        m4: m / 4,
        k4: k / 4,
        r4: r / 4,
        slice4,
        add,
        wide,
        scale: 1.5,
        plane,
    };
    let dx = if add {
        words(&noise(n * k, 6))
    } else {
        poisoned(slices * n * k)
    };
    let read = [
        w,
        words(&noise(n * m, 1)),
        words(&noise(n * r, 3)),
        factor(r * k, of_factor),
    ];
    let (kernel, size) = if small {
        (&BACKWARD_TILE_SMALL, 32)
    } else {
        (&BACKWARD_TILE, 64)
    };
    Case::new(
        kernel.of(storage),
        read,
        [dx],
        &params,
        (slices * n.div_ceil(size) * k.div_ceil(size)) as u32,
    )
}

#[test]
fn low_rank_tiles_agree_with_the_definition() {
    for (storage, of_factor, flip) in [
        (F32, F32, ("k4 + more() + 3u", "k4 + 3u")),
        (F32, F32, ("params.scale * factor4", "factor4")),
        (
            Bf16,
            F32,
            ("more_input(row, i - params.k4)", "more_input(row, i)"),
        ),
        (F32, Bf16, ("params.wide == 1u", "params.wide == 0u")),
        (F32, Bf16, ("factor[2u * at + 1u]", "factor[2u * at]")),
    ] {
        // The factor is read by the same text in both.
        for small in [false, true]
            .into_iter()
            .take(if of_factor == F32 { 2 } else { 1 })
        {
            check(
                &SHAPES.map(|shape| forward(small, shape, storage, of_factor)),
                BOUND,
                flip,
            );
        }
    }
    for (storage, of_factor, add, flip) in [
        (
            F32,
            F32,
            false,
            ("select(0u, more(), slice == 0u)", "more()"),
        ),
        (F32, F32, true, ("params.r4 + 3u", "3u")),
        (
            Bf16,
            F32,
            true,
            ("(params.add & 1u) == 1u", "params.add == 0u"),
        ),
        (
            F32,
            Bf16,
            false,
            ("row * params.k4 + i);", "row * params.k4);"),
        ),
        (F32, F32, true, ("c - own);", "c);")),
    ] {
        for small in [false, true].into_iter().take(if add { 2 } else { 1 }) {
            check(
                &SHAPES.map(|shape| backward(small, shape, storage, of_factor, add)),
                BOUND,
                flip,
            );
        }
    }
}

/// Covers tiles (as a GPU, 32 rows and more, multiples of 4) and separate operations; more than 4096 outputs are summed in slices. A gradient
/// goes through two sums, the first of which may cancel.
#[test]
fn low_rank_matches_its_formula() {
    for (n, m, k, r) in [
        (33, 20, 36, 4),
        (130, 72, 68, 16),
        (64, 4100, 8, 4),
        (9, 20, 36, 4),
        (40, 20, 36, 3),
        (33, 21, 35, 4),
        (1, 8, 4, 1),
    ] {
        let base = |device: &TensorDevice| {
            Tensor::<1>::from_data(TensorData::new(noise(m * k, 5), [m * k]), device)
        };
        for (conv1d, [rows, columns]) in [(false, [m, k]), (true, [k, m])] {
            let form = StoredMatrix::new(F32, [rows, columns]).unwrap();
            let adapted = Adapted {
                form,
                conv1d,
                scale: 1.75,
                mask: None,
            };
            // The input is the sum of an earlier operation, so that another operation begins its gradient.
            let ours = |i: &Inputs| {
                let x = i[0].clone() * 2.0;
                let z = ops::linear(x.clone().inner(), i[1].clone().inner());
                let words = Tensor::from_inner(base(&x.device().inner()));
                let y = ops::low_rank(
                    x.clone(),
                    words,
                    Tensor::from_inner(z),
                    i[1].clone(),
                    i[2].clone(),
                    adapted,
                );
                ops::residual_add(y, ops::linear(x, i[3].clone()))
            };
            compare_within(
                4.0 * gradients::BOUND,
                "low_rank",
                &[[n, k], [r, k], [m, r], [m, k]],
                &ours,
                &|i| {
                    let x = i[0].clone() * 2.0;
                    let w = base(&x.device().inner()).reshape([rows, columns]);
                    let w = Tensor::from_inner(if conv1d { w } else { w.transpose() });
                    let low = x
                        .clone()
                        .matmul(i[1].clone().transpose())
                        .matmul(i[2].clone().transpose());
                    x.clone().matmul(w) + low * 1.75 + x.matmul(i[3].clone().transpose())
                },
            );
        }
    }
}
