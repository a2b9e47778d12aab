use tabtune::gpu::StorageType::{self, Bf16, F32};
use tabtune::gpu::{AnyKernel, Kernel, KernelParams, Stored, StoredMatrix};
use tabtune::ops::linear::kernels;
use tabtune::ops::linear::params::{
    AnyInputParams, AnyParams, AnyWeightParams, BackwardParams, BlockParams, ForwardParams,
    ForwardTileParams, InputParams, TileParams, TransposeParams,
};
use tabtune_tests::kernels::{Case, check, noise, packed, poisoned, words};
use tabtune_tests::packed as blocks;

/// Sums of up to 4099 products in f32 compared with f64.
const BOUND: f64 = 1e-5;

fn shapes() -> Vec<(usize, usize, usize)> {
    vec![
        (1, 4, 4),
        (5, 8, 12),
        (7, 12, 340),
        (255, 4, 8),
        (256, 8, 4),
        (257, 12, 4),
        (3, 4100, 64),
        (9, 64, 4100),
        (33, 20, 36),
    ]
}

fn odd_shapes() -> Vec<(usize, usize, usize)> {
    vec![
        (1, 1, 1),
        (5, 3, 7),
        (7, 13, 341),
        (255, 2, 3),
        (256, 5, 3),
        (257, 3, 5),
        (2, 4099, 9),
        (3, 9, 4099),
        (33, 19, 37),
    ]
}

/// Makes stored weights [m, k]. Returns them with the position of their second plane.
pub(super) fn weights(shape: [usize; 2], storage: StorageType) -> (Vec<u32>, usize) {
    let values = noise(shape[0] * shape[1], 2);
    match storage {
        F32 => (words(&values), 0),
        Bf16 => (packed(&values).0, 0),
        _ => {
            let form = StoredMatrix::new(storage, shape).unwrap();
            (
                blocks::words(storage, &blocks::small_blocks(storage, form.blocks(), 2)),
                form.plane(),
            )
        }
    }
}

/// Returns the number of workgroups for one thread per block of outputs.
fn groups(kernel: &AnyKernel, slices: u32, rows: u32, columns: u32) -> u32 {
    let (height, width) = match kernel.name {
        name if name.contains("row") => return rows * columns.div_ceil(8),
        name if name.contains("tile_small") => {
            return slices * rows.div_ceil(32) * columns.div_ceil(32);
        }
        name if name.contains("tile") => return slices * rows.div_ceil(64) * columns.div_ceil(64),
        name if name.contains("any_block") => (16, 8),
        name if name.contains("block") => (32, 16),
        _ => (4, 4),
    };
    (slices * rows.div_ceil(height) * columns.div_ceil(width)).div_ceil(kernel.workgroup)
}

/// Parameters of the kernels for widths that are multiples of 4, and of those for any width.
pub(super) trait Shape: KernelParams {
    /// Makes the parameters. `add`: dW holds a sum already; `plane`: position of the second plane of the weights.
    fn of(shape: (usize, usize, usize), add: bool, plane: usize) -> Self;

    /// Returns the distance of rows in a result with m columns, in elements.
    fn stride(m: usize) -> usize {
        m
    }
}

impl Shape for ForwardTileParams {
    fn of((n, m, k): (usize, usize, usize), _add: bool, plane: usize) -> Self {
        Self {
            n,
            m,
            k4: k / 4,
            stride: Self::stride(m),
            first: 3,
            plane,
        }
    }

    fn stride(m: usize) -> usize {
        m.next_multiple_of(4) + 4
    }
}

macro_rules! shape {
    ($params:ident, |$n:ident, $m:ident, $k:ident, $add:ident, $plane:ident| $made:expr) => {
        impl Shape for $params {
            fn of((n, m, k): (usize, usize, usize), add: bool, plane: usize) -> Self {
                let ($n, $m, $k, $add, $plane) = (n, m, k, add, plane);
                $made
            }
        }
    };
}

shape!(ForwardParams, |n, m, k, _add, plane| ForwardParams {
    n,
    m,
    k4: k / 4,
    plane
});
shape!(AnyParams, |n, m, k, _add, plane| AnyParams {
    n,
    m,
    k,
    plane
});
shape!(InputParams, |n, m, k, _add, plane| InputParams {
    n,
    m4: m / 4,
    k4: k / 4,
    slice4: SLICE / 4,
    plane
});
shape!(AnyInputParams, |n, m, k, _add, plane| AnyInputParams {
    n,
    m,
    k,
    slice: SLICE,
    plane
});
shape!(BackwardParams, |n, m, k, add, _plane| BackwardParams {
    n,
    m4: m / 4,
    k4: k / 4,
    add
});
shape!(AnyWeightParams, |n, m, k, add, _plane| AnyWeightParams {
    n,
    m,
    k,
    add
});

pub(super) fn forward<P: Shape>(
    kernel: &'static Stored<P, 2, 1>,
    (n, m, k): (usize, usize, usize),
    storage: StorageType,
) -> Case {
    let kernel = kernel.of(storage);
    let (weights, plane) = weights([m, k], storage);
    let read = [weights, words(&noise(n * k, 1))];
    Case::new(
        kernel,
        read,
        [poisoned(n * P::stride(m))],
        &P::of((n, m, k), false, plane),
        groups(kernel.any(), 1, n as u32, m as u32),
    )
}

/// Columns of a slice; the longest shapes have several slices.
const SLICE: usize = 1024;

pub(super) fn backward_input<P: Shape>(
    kernel: &'static Stored<P, 2, 1>,
    (n, m, k): (usize, usize, usize),
    storage: StorageType,
) -> Case {
    let kernel = kernel.of(storage);
    let slices = m.div_ceil(SLICE);
    let (weights, plane) = weights([m, k], storage);
    let read = [weights, words(&noise(n * m, 1))];
    let dx = poisoned(slices * n * k);
    Case::new(
        kernel,
        read,
        [dx],
        &P::of((n, m, k), false, plane),
        groups(kernel.any(), slices as u32, n as u32, k as u32),
    )
}

/// Makes the product of columns between other columns of x, written to a place within y; with `add`, added to its contents.
pub(super) fn block((n, m, k): (usize, usize, usize), storage: StorageType, add: bool) -> Case {
    let kernel = kernels::BLOCK.of(storage);
    let (weights, plane) = weights([m, k], storage);
    let (columns, rows) = (k + 12, n + 5);
    let y = if add {
        words(&noise(rows * (m + 5), 3))
    } else {
        poisoned(rows * (m + 5))
    };
    let read = [weights, words(&noise(n * columns, 1))];
    let (k4, stride4) = (k / 4, columns / 4);
    let params = BlockParams {
        n,
        m,
        k4,
        stride4,
        first4: 2,
        first: 3,
        width: m + 5,
        column: 2,
        add,
        plane,
    };
    let groups = groups(kernel.any(), 1, n as u32, m as u32);
    Case::new(kernel, read, [y], &params, groups)
}

/// Makes the transposition of w [m, k] without 5 rows and 12 columns around the part.
pub(super) fn transposed([m, k]: [usize; 2], storage: StorageType) -> Case {
    let kernel = kernels::TRANSPOSE.of(storage);
    let (weights, plane) = weights([m, k], storage);
    let (n, m4, k4) = (m - 5, (k - 12) / 4, k / 4);
    let params = TransposeParams {
        n,
        m4,
        k4,
        first: 3,
        first4: 2,
        stride4: n.div_ceil(4) + 3,
        at4: 2,
        plane,
    };
    Case::new(
        kernel,
        [weights],
        [words(&noise(4 * m4 * (n.next_multiple_of(4) + 12), 3))],
        &params,
        kernel.groups(n.div_ceil(4) * m4),
    )
}

/// Makes the gradient dW; with `add`, added to the contents.
fn backward_weight<P: Shape>(
    kernel: &'static Kernel<P, 2, 1>,
    (n, m, k): (usize, usize, usize),
    add: bool,
) -> Case {
    let dw = if add {
        words(&noise(m * k, 3))
    } else {
        poisoned(m * k)
    };
    let read = [words(&noise(n * m, 1)), words(&noise(n * k, 2))];
    Case::new(
        kernel,
        read,
        [dw],
        &P::of((n, m, k), add, 0),
        groups(kernel.any(), 1, m as u32, k as u32),
    )
}

fn all(
    shapes: Vec<(usize, usize, usize)>,
    case: impl Fn((usize, usize, usize)) -> Case,
) -> Vec<Case> {
    shapes.into_iter().map(case).collect()
}

#[test]
fn linear_forward_multiplies_by_the_transpose() {
    check(
        &all(shapes(), |s| forward(&kernels::FORWARD, s, F32)),
        BOUND,
        ("dot(p2, q1)", "dot(p2, q2)"),
    );
    check(
        &all(shapes(), |s| forward(&kernels::FORWARD, s, Bf16)),
        BOUND,
        ("a3 +=", "a3 -="),
    );
}

#[test]
fn weights_are_read_as_they_are_stored() {
    for (storage, flip) in [
        (F32, ("row * params.k4 + i", "row * params.k4")),
        (Bf16, ("row * params.k4 + i", "row * params.k4 + i + 1u")),
    ] {
        check(
            &all(shapes(), |s| forward(&kernels::FORWARD, s, storage)),
            BOUND,
            flip,
        );
    }
    for (storage, flip) in [
        (F32, ("row * params.k + i", "row * params.k")),
        (Bf16, ("(at & 1u) == 1u", "(at & 1u) == 0u")),
    ] {
        check(
            &all(odd_shapes(), |s| forward(&kernels::FORWARD_ANY, s, storage)),
            BOUND,
            flip,
        );
    }
}

#[test]
fn linear_row_multiplies_by_the_transpose() {
    check(
        &all(shapes(), |s| forward(&kernels::ROW, s, F32)),
        BOUND,
        ("a += dots", "a -= dots"),
    );
    check(
        &all(shapes(), |s| forward(&kernels::ROW, s, Bf16)),
        BOUND,
        ("j += 32u", "j += 33u"),
    );
}

#[test]
fn linear_forward_any_takes_odd_shapes() {
    let flip = ("a1 +=", "a1 -=");
    check(
        &all(odd_shapes(), |s| forward(&kernels::FORWARD_ANY, s, F32)),
        BOUND,
        flip,
    );
    check(
        &all(odd_shapes(), |s| forward(&kernels::FORWARD_ANY, s, Bf16)),
        BOUND,
        flip,
    );
}

#[test]
fn linear_backward_input_multiplies_by_the_weights() {
    check(
        &all(shapes(), |s| {
            backward_input(&kernels::BACKWARD_INPUT, s, F32)
        }),
        BOUND,
        ("p1.z * q2", "p1.z * q1"),
    );
    check(
        &all(shapes(), |s| {
            backward_input(&kernels::BACKWARD_INPUT, s, Bf16)
        }),
        BOUND,
        ("p0.w * q3", "p0.x * q3"),
    );
}

#[test]
fn linear_backward_input_any_takes_odd_shapes() {
    let flip = ("a2 +=", "a2 -=");
    check(
        &all(odd_shapes(), |s| {
            backward_input(&kernels::BACKWARD_INPUT_ANY, s, F32)
        }),
        BOUND,
        flip,
    );
    check(
        &all(odd_shapes(), |s| {
            backward_input(&kernels::BACKWARD_INPUT_ANY, s, Bf16)
        }),
        BOUND,
        flip,
    );
}

#[test]
fn linear_backward_input_sums_every_slice() {
    let long = (13, 4100, 8);
    let flip = ("let end = min(start", "let end = min(start + 4u");
    check(
        &[backward_input(&kernels::BACKWARD_INPUT, long, F32)],
        BOUND,
        flip,
    );
    check(
        &[backward_input(&kernels::BACKWARD_INPUT, long, Bf16)],
        BOUND,
        flip,
    );
    check(
        &[backward_input(&kernels::BACKWARD_INPUT_ANY, long, Bf16)],
        BOUND,
        flip,
    );
    check(
        &[backward_input(
            &kernels::BACKWARD_INPUT_ANY_BLOCK,
            long,
            F32,
        )],
        BOUND,
        flip,
    );
}

#[test]
fn linear_backward_weight_sums_over_rows() {
    for add in [false, true] {
        check(
            &all(shapes(), |s| {
                backward_weight(&kernels::BACKWARD_WEIGHT, s, add)
            }),
            BOUND,
            ("p.z * q", "p.y * q"),
        );
        check(
            &all(odd_shapes(), |s| {
                backward_weight(&kernels::BACKWARD_WEIGHT_ANY, s, add)
            }),
            BOUND,
            ("a3 +=", "a3 -="),
        );
    }
}

#[test]
fn linear_backward_weight_adds_to_what_is_there() {
    let flip = ("params.add == 1u", "params.add == 2u");
    check(
        &all(shapes(), |s| {
            backward_weight(&kernels::BACKWARD_WEIGHT, s, true)
        }),
        BOUND,
        flip,
    );
    check(
        &all(odd_shapes(), |s| {
            backward_weight(&kernels::BACKWARD_WEIGHT_ANY, s, true)
        }),
        BOUND,
        flip,
    );
    check(
        &all(odd_shapes(), |s| {
            backward_weight(&kernels::BACKWARD_WEIGHT_ANY_BLOCK, s, true)
        }),
        BOUND,
        flip,
    );
}

#[test]
fn linear_block_takes_parts_of_x_and_y() {
    let cases = |storage, add| all(shapes(), |s| block(s, storage, add));
    check(
        &cases(F32, true),
        BOUND,
        ("params.add == 1u", "params.add == 2u"),
    );
    check(&cases(F32, false), BOUND, ("params.first + row", "row"));
    check(
        &cases(Bf16, true),
        BOUND,
        ("stride4 + first4 + i", "stride4 + i"),
    );
}

#[test]
fn linear_transpose_moves_bits() {
    let cases = |storage| {
        [[6, 16], [10, 20], [9, 268], [68, 24], [71, 272]].map(|w| transposed(w, storage))
    };
    for storage in [F32, Bf16] {
        check(&cases(storage), 0.0, ("params.first + min(row", "min(row"));
        check(&cases(storage), 0.0, ("row < params.n", "row <= params.n"));
    }
}

#[test]
fn linear_any_blocks_agree_with_the_definition() {
    let flip = ("a9 +=", "a9 -=");
    check(
        &all(odd_shapes(), |s| {
            forward(&kernels::FORWARD_ANY_BLOCK, s, F32)
        }),
        BOUND,
        flip,
    );
    check(
        &all(odd_shapes(), |s| {
            forward(&kernels::FORWARD_ANY_BLOCK, s, Bf16)
        }),
        BOUND,
        flip,
    );
    check(
        &all(odd_shapes(), |s| {
            backward_input(&kernels::BACKWARD_INPUT_ANY_BLOCK, s, F32)
        }),
        BOUND,
        flip,
    );
    check(
        &all(odd_shapes(), |s| {
            backward_input(&kernels::BACKWARD_INPUT_ANY_BLOCK, s, Bf16)
        }),
        BOUND,
        flip,
    );
    check(
        &all(odd_shapes(), |s| {
            backward_weight(&kernels::BACKWARD_WEIGHT_ANY_BLOCK, s, false)
        }),
        BOUND,
        flip,
    );
}

#[test]
fn linear_twins_of_packed_weights_have_the_bits_of_widened_ones() {
    let (n, m, k) = (5, 8, 12);
    let wide = words(&packed(&noise(m * k, 2)).1);
    let widened = |mut case: Case| {
        case.buffers[0] = wide.clone();
        case.twin()
    };
    let shape = (n, m, k);
    let expected = widened(forward(&kernels::FORWARD, shape, F32));
    assert_eq!(forward(&kernels::FORWARD, shape, Bf16).twin(), expected);
    assert_eq!(forward(&kernels::FORWARD_ANY, shape, Bf16).twin(), expected);
    let expected = widened(backward_input(&kernels::BACKWARD_INPUT, shape, F32));
    assert_eq!(
        backward_input(&kernels::BACKWARD_INPUT, shape, Bf16).twin(),
        expected
    );
    assert_eq!(
        backward_input(&kernels::BACKWARD_INPUT_ANY, shape, Bf16).twin(),
        expected
    );
}

/// Makes the gradients that `made` requests, as `[dx, dW]`; with `add`, added to the contents. Rows of dy are padded to a multiple of 4.
pub(super) fn tile(
    kernel: &'static Stored<TileParams, 3, 2>,
    (n, m, k): (usize, usize, usize),
    storage: StorageType,
    made: [bool; 2],
    add: [bool; 2],
) -> Case {
    let (mut weights, plane) = weights([m, k], storage);
    if storage == F32 {
        // The words after the weights must not be used.
        weights.extend(words(&noise(3 * k, 4)));
    }
    let kernel = kernel.of(storage);
    let (n32, m32, k32) = (n as u32, m as u32, k as u32);
    let stride = m.next_multiple_of(4);
    let slices = if add[0] { 1 } else { stride.div_ceil(SLICE) };
    let input = if made[0] {
        groups(kernel.any(), slices as u32, n32, k32)
    } else {
        0
    };
    let weight = if made[1] {
        groups(kernel.any(), 1, m32, k32)
    } else {
        0
    };
    let slice4 = if add[0] { stride / 4 } else { SLICE / 4 };
    let add_both = u32::from(add[0]) + 2 * u32::from(add[1]);
    let params = TileParams {
        n,
        m,
        m4: stride / 4,
        k4: k / 4,
        stride4: stride / 4 + 3,
        first4: 2,
        slice4,
        input: input as usize,
        add: add_both,
        scale: 0.5,
        plane,
    };
    let sum = |made: bool, len: usize, add: bool| match (made, add) {
        (false, _) => poisoned(4),
        (true, false) => poisoned(len),
        (true, true) => words(&noise(len, 3)),
    };
    let (dx, dw) = (
        sum(made[0], slices * n * k, add[0]),
        sum(made[1], m * k, add[1]),
    );
    let read = [
        weights,
        words(&noise(n * (stride + 12), 1)),
        words(&noise(n * k, 2)),
    ];
    Case::new(kernel, read, [dx, dw], &params, input + weight)
}

#[test]
fn linear_tiles_agree_with_the_definition() {
    let more = [
        (64, 64, 64),
        (65, 68, 132),
        (130, 60, 64),
        (63, 256, 68),
        (33, 1, 8),
        (40, 63, 4),
        (32, 65, 36),
        (2, 4097, 8),
    ];
    let shapes = || shapes().into_iter().chain(more).collect();
    for kernel in [&kernels::FORWARD_TILE, &kernels::FORWARD_TILE_SMALL] {
        check(
            &all(shapes(), |s| forward(kernel, s, F32)),
            BOUND,
            ("(q0.x, q1.x", "(q1.x, q0.x"),
        );
        check(
            &all(shapes(), |s| forward(kernel, s, Bf16)),
            BOUND,
            ("(params.k4 + more() + 3u) / 4u", "params.k4 / 4u"),
        );
    }
    // GPT-2's head.
    let head = vec![(33, 50_257, 4)];
    check(
        &all(head.clone(), |s| forward(&kernels::FORWARD_TILE, s, F32)),
        BOUND,
        ("(q0.x, q1.x", "(q1.x, q0.x"),
    );
    let gradients = |s| {
        tile(
            &kernels::BACKWARD_TILE,
            s,
            F32,
            [true, true],
            [false, false],
        )
    };
    check(&all(head, gradients), BOUND, ("(p.z), aq2", "(p.z), aq1"));
    // Each kernel with each storage type; checks of text that all storage types share run once.
    let (large, small) = (&kernels::BACKWARD_TILE, &kernels::BACKWARD_TILE_SMALL);
    for (storage, kernel, checks) in [
        (F32, large, 7),
        (F32, small, 3),
        (Bf16, large, 1),
        (Bf16, small, 1),
    ] {
        for (made, add, flip) in [
            ([true, true], [false, false], ("(p.z), aq2", "(p.z), aq1")),
            (
                [false, true],
                [false, true],
                ("(p.y), a, a1", "(p.x), a, a1"),
            ),
            (
                [true, true],
                [true, true],
                ("(params.add & 1u) == 1u", "params.add == 1u"),
            ),
            (
                [true, true],
                [false, true],
                ("(params.add & 2u) == 2u", "params.add == 3u"),
            ),
            (
                [true, false],
                [false, false],
                ("outputs() - 4u * first", "4u * params.m4"),
            ),
            (
                [true, false],
                [false, false],
                ("let first = slice * params.slice4;", "let first = 0u;"),
            ),
            ([false, true], [false, false], ("params.scale * sum", "sum")),
        ]
        .into_iter()
        .take(checks)
        {
            check(
                &all(shapes(), |s| tile(kernel, s, storage, made, add)),
                BOUND,
                flip,
            );
        }
    }
}
