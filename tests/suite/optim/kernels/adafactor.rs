use super::gate::open;
use tabtune::optim::adafactor::{
    apply as adafactor_apply, moments as adafactor_moments, norm as adafactor_norm,
    sums as adafactor_sums, vector_apply as adafactor_vector_apply,
    vector_moments as adafactor_vector_moments,
};
use tabtune_tests::kernels::{Case, check, noise, packed, place, poisoned, words};

/// A device's sum may differ from its twin by 2e-6 relative (shaders/README.md, "Block tree").
const BOUND: f64 = 2e-6;

/// One element, edges of a tile, many tiles, more than 256 tiles, and trees of more than one block (across, down).
const SHAPES: [(usize, usize); 9] = [
    (1, 1),
    (1, 65),
    (32, 64),
    (33, 65),
    (31, 63),
    (257, 3),
    (300, 1100),
    (2, 16_500),
    (8300, 2),
];

pub(crate) fn positive(n: usize, seed: u32) -> Vec<u32> {
    words(
        &noise(n, seed)
            .into_iter()
            .map(|x| x.abs() + 0.1)
            .collect::<Vec<f32>>(),
    )
}

fn lanes(rows: usize, cols: usize) -> usize {
    (rows.div_ceil(32) * cols.div_ceil(64)).min(256)
}

pub(crate) fn sums((rows, cols): (usize, usize)) -> Case {
    let params = adafactor_sums::Params {
        rows,
        cols,
        eps1: 1e-30,
    };
    let (across, down) = (cols.div_ceil(64), rows.div_ceil(32));
    let written = [poisoned(rows * across), poisoned(down * cols)];
    let groups = (across * down).div_ceil(adafactor_sums::TILES) as u32;
    Case::new(
        &adafactor_sums::KERNEL,
        [words(&noise(rows * cols, 1)), open(0.5)],
        written,
        &params,
        groups,
    )
}

pub(super) fn moments((rows, cols): (usize, usize)) -> Case {
    let params = adafactor_moments::Params { rows, cols, w: 0.3 };
    let (across, down) = (cols.div_ceil(64), rows.div_ceil(32));
    let (read, written) = (
        [
            positive(rows * across, 1),
            positive(down * cols, 2),
            open(1.0),
        ],
        [positive(rows, 3), positive(cols, 4)],
    );
    Case::new(
        &adafactor_moments::KERNEL,
        read,
        written,
        &params,
        ((rows + cols) as u32).div_ceil(256),
    )
}

pub(crate) fn norm((rows, cols): (usize, usize), is_packed: bool) -> Case {
    let lanes = lanes(rows, cols);
    let params = adafactor_norm::Params {
        rows,
        cols,
        lanes,
        relative_step: true,
        packed: is_packed,
    };
    let p = if is_packed {
        packed(&noise(rows * cols, 2)).0
    } else {
        words(&noise(rows * cols, 2))
    };
    let read = [
        words(&noise(rows * cols, 1)),
        p,
        positive(rows, 3),
        positive(cols, 4),
        open(0.5),
    ];
    Case::new(
        &adafactor_norm::KERNEL,
        read,
        [poisoned(3 * lanes)],
        &params,
        lanes as u32,
    )
}

pub(crate) fn apply((rows, cols): (usize, usize), rounding: u32, relative_step: bool) -> Case {
    let (lanes, n) = (lanes(rows, cols), rows * cols);
    let params = adafactor_apply::Params {
        rows,
        cols,
        lanes,
        rate: 0.01,
        decay: 0.1,
        d: 0.999,
        clip: 0.7,
        eps2: 1e-3,
        relative_step,
        noise: place(rounding),
    };
    let p = if rounding == 0 {
        words(&noise(n, 2))
    } else {
        packed(&noise(n, 2)).0
    };
    let given = (0..n as u32)
        .map(|i| i.wrapping_mul(40_503) & 0xFFFF)
        .collect();
    let read = [
        words(&noise(n, 1)),
        positive(rows, 3),
        positive(cols, 4),
        positive(3 * lanes, 5),
        given,
        open(0.5),
    ];
    Case::new(
        &adafactor_apply::KERNEL,
        read,
        [p],
        &params,
        (n as u32).div_ceil(2).div_ceil(2048),
    )
}

const LENGTHS: [usize; 7] = [1, 2, 255, 256, 257, 4099, 600_001];

fn vector_lanes(n: usize) -> usize {
    n.div_ceil(2048).min(256)
}

pub(crate) fn vector_moments(n: usize) -> Case {
    let lanes = vector_lanes(n);
    let params = adafactor_vector_moments::Params {
        n,
        lanes,
        eps1: 1e-30,
        w: 0.3,
        relative_step: true,
        packed: false,
    };
    let (read, written) = (
        [words(&noise(n, 1)), words(&noise(n, 2)), open(0.5)],
        [positive(n, 3), poisoned(2 * lanes)],
    );
    Case::new(
        &adafactor_vector_moments::KERNEL,
        read,
        written,
        &params,
        lanes as u32,
    )
}

pub(crate) fn vector_apply(n: usize, rounding: u32) -> Case {
    let lanes = vector_lanes(n);
    let params = adafactor_apply::Params {
        rows: n,
        cols: 1,
        lanes,
        rate: 0.01,
        decay: 0.1,
        d: 0.999,
        clip: 0.7,
        eps2: 1e-3,
        relative_step: true,
        noise: place(rounding),
    };
    let p = if rounding == 0 {
        words(&noise(n, 2))
    } else {
        packed(&noise(n, 2)).0
    };
    let given = (0..n as u32)
        .map(|i| i.wrapping_mul(40_503) & 0xFFFF)
        .collect();
    let read = [
        words(&noise(n, 1)),
        positive(n, 3),
        positive(2 * lanes, 5),
        given,
        open(0.5),
    ];
    Case::new(
        &adafactor_vector_apply::KERNEL,
        read,
        [p],
        &params,
        (n as u32).div_ceil(2).div_ceil(2048),
    )
}

#[test]
fn adafactor_sums_equal_their_twin() {
    check(
        &SHAPES.map(sums),
        BOUND,
        ("x * x + params.eps1", "x * x * x + params.eps1"),
    );
    check(
        &SHAPES.map(sums),
        BOUND,
        ("leaves[k + 6u]", "leaves[k + 5u]"),
    );
}

#[test]
fn adafactor_moments_equal_their_twin() {
    check(
        &SHAPES.map(moments),
        BOUND,
        ("sum = open[level] + sum", "sum = open[level] - sum"),
    );
}

#[test]
fn adafactor_norm_equals_its_twin() {
    let cases: Vec<Case> = SHAPES
        .into_iter()
        .flat_map(|shape| [norm(shape, false), norm(shape, true)])
        .collect();
    check(
        &cases,
        BOUND,
        ("tile += max(params.lanes", "tile += 2u * max(params.lanes"),
    );
    check(&cases, BOUND, ("e += 4u", "e += 8u"));
}

#[test]
fn adafactor_apply_equals_its_twin() {
    let cases: Vec<Case> = SHAPES
        .into_iter()
        .flat_map(|shape| [false, true].map(|relative_step| apply(shape, 0, relative_step)))
        .collect();
    check(&cases, BOUND, ("p0 * s.w - s.z", "p0 * s.w + s.z"));
    check(&cases, BOUND, ("1.0 - rate * params.decay", "params.d"));
}

#[test]
fn adafactor_keeps_a_silent_row_next_to_a_huge_gradient() {
    // row/S underflows in f32: 0·∞ would make NaN of a row without gradients.
    let mut case = apply((3, 64), 0, false);
    case.buffers[0][..64].fill(0);
    case.buffers[1] = words(&[6.4e-29, 1e30, 1.0]);
    case.buffers[2] = words(&[1e30; 64]);
    let lanes = case.buffers[3].len() / 3;
    case.buffers[3] = words(
        &[
            vec![1e-30; lanes],
            vec![1.0; lanes],
            vec![1e30 / lanes as f32; lanes],
        ]
        .concat(),
    );
    let d = 0.999;
    let [before, after] =
        [&case.buffers[6], &case.twin()[0]].map(|p| tabtune_tests::kernels::floats(&p[..64]));
    assert!(
        before
            .iter()
            .zip(after)
            .all(|(before, after)| before * d == after)
    );
    check(&[case], BOUND, ("share < 1.17549435e-38", "share < 0.0"));
}

#[test]
fn adafactor_vectors_equal_their_twins() {
    check(
        &LENGTHS.map(vector_moments),
        BOUND,
        ("gi / sqrt(moment)", "gi * sqrt(moment)"),
    );
    check(
        &LENGTHS.map(|n| vector_apply(n, 0)),
        BOUND,
        ("/ s.x", "* s.x"),
    );
}

#[test]
fn adafactor_rounds_like_its_twin() {
    // One lane and statistics of one: the sums have the same bits on both sides, so every rounding decision is the same too.
    let exact = |rounding| {
        let (mut matrix, mut vector) = (
            apply((32, 64), rounding, false),
            vector_apply(2001, rounding),
        );
        matrix.buffers[3] = vec![2048f32.to_bits(), 0, 32f32.to_bits()];
        vector.buffers[2] = vec![2001f32.to_bits(), 2001f32.to_bits()];
        (matrix, vector)
    };
    let (matrices, vectors): (Vec<Case>, Vec<Case>) = [1, 2, 3].into_iter().map(exact).unzip();
    check(
        &matrices,
        0.0,
        (
            "noise_words(params.noise, pair).z",
            "noise_words(params.noise, pair).x",
        ),
    );
    check(
        &vectors,
        0.0,
        (
            "noise_words(params.noise, pair).z",
            "noise_words(params.noise, pair).x",
        ),
    );
}
