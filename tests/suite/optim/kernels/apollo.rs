use super::gate::open;
use tabtune::optim::apollo::{
    apply as apollo_apply, combine as apollo_combine, moments as apollo_moments,
    prepare as apollo_prepare, project as apollo_project,
};
use tabtune_tests::kernels::{Case, check, noise, packed, place, poisoned, words};

/// A device's sum may differ from its twin by 2e-6 relative (shaders/README.md, "Block tree"); R is a sum of products of both signs.
const BOUND: f64 = 5e-6;

/// channels, dim, rank, by row. Shapes with many channels have higher ranks: at rank 1 some channel's R cancels to almost nothing, and
/// s = ‖R̃‖/‖R‖ magnifies its last bit.
const SHAPES: [(usize, usize, usize, bool); 6] = [
    (1, 1, 1, true),
    (5, 3, 3, true),
    (257, 33, 8, false),
    (300, 64, 8, true),
    (255, 65, 9, false),
    (4099, 17, 12, false),
];

pub(super) fn project(
    (channels, dim, rank, by_row): (usize, usize, usize, bool),
    given: bool,
) -> Case {
    let params = apollo_project::Params {
        channels,
        dim,
        rank,
        channel_stride: if by_row { dim } else { 1 },
        dim_stride: if by_row { 1 } else { channels },
        given,
        sigma: (dim as f32 / rank as f32).sqrt(),
        unit: apollo_project::unit(dim),
        w1: 0.1,
        w2: 0.01,
        eps: 1e-6,
        key0: 7,
        key1: 11,
        refresh_low: 2,
        refresh_high: 0,
    };
    let v = noise(rank * channels, 4)
        .into_iter()
        .map(|x| x.abs() + 0.1)
        .collect::<Vec<f32>>();
    let matrix = if given {
        words(&noise(dim * rank, 2))
    } else {
        vec![0]
    };
    let written = [
        words(&noise(rank * channels, 3)),
        words(&v),
        poisoned(4 * channels),
    ];
    let read = [words(&noise(channels * dim, 1)), matrix, open(0.5)];
    Case::new(
        &apollo_project::KERNEL,
        read,
        written,
        &params,
        (channels as u32).div_ceil(256),
    )
}

fn prepare((rows, cols, rank, by_row): (usize, usize, usize, bool), given: bool) -> Case {
    let params = apollo_prepare::Params {
        rows,
        cols,
        rank,
        by_row,
        lines: apollo_prepare::Params::lines_of(by_row, rows, cols),
        given,
        unit: apollo_project::unit(if by_row { cols } else { rows }),
        key0: 7,
        key1: 11,
        refresh_low: 2,
        refresh_high: 0,
    };
    let mut g = words(&noise(rows * cols, 1));
    // One beyond the bound, and one that stays infinite.
    g[rows * cols / 2] = 1e30f32.to_bits();
    if cols > 3 {
        g[3] = f32::NEG_INFINITY.to_bits();
    }
    let entries = params.dim() * rank;
    let matrix = if given {
        words(&noise(entries, 2))
    } else {
        vec![0]
    };
    let lengths = params.parts() * if by_row { rows } else { cols };
    Case::new(
        &apollo_prepare::KERNEL,
        [matrix],
        [g, poisoned(entries), poisoned(lengths)],
        &params,
        params.groups(),
    )
}

#[test]
fn apollo_prepare_equals_its_twin() {
    let shapes = [
        (1, 1, 1, true),
        (5, 3, 8, true),
        (33, 257, 8, false),
        (300, 64, 16, true),
        (65, 255, 9, false),
        (17, 4099, 12, false),
    ];
    let cases: Vec<Case> = shapes
        .into_iter()
        .flat_map(|shape| [prepare(shape, false), prepare(shape, true)])
        .collect();
    check(&cases, BOUND, ("bits.y & 0x7fffffffu", "bits.y"));
    check(
        &cases,
        BOUND,
        ("pt[j * dim + i] = given[e]", "pt[e] = given[e]"),
    );
    check(&cases, BOUND, ("g[at] = x;", ""));
    check(&cases, BOUND, ("line / strips * cols + column", "column"));
}

pub(super) fn moments((channels, rank, parts): (usize, usize, usize)) -> Case {
    let params = apollo_moments::Params {
        channels,
        rank,
        parts,
        sigma: 1.5,
        w1: 0.1,
        w2: 0.01,
        eps: 1e-6,
    };
    let positive = |n, seed| {
        words(
            &noise(n, seed)
                .into_iter()
                .map(|x| x.abs() + 0.1)
                .collect::<Vec<f32>>(),
        )
    };
    let read = [
        words(&noise(rank * channels, 1)),
        positive(parts * channels, 2),
        open(0.5),
    ];
    let written = [
        words(&noise(rank * channels, 3)),
        positive(rank * channels, 4),
        poisoned(4 * channels),
    ];
    Case::new(
        &apollo_moments::KERNEL,
        read,
        written,
        &params,
        channels.div_ceil(apollo_moments::CHANNELS) as u32,
    )
}

#[test]
fn apollo_moments_equal_their_twin() {
    let cases = [
        (1, 8, 1),
        (15, 9, 2),
        (16, 8, 1),
        (17, 10, 3),
        (300, 64, 19),
        (4099, 11, 1),
    ]
    .map(moments);
    check(
        &cases,
        BOUND,
        ("(projected[at] * gate.factor)", "projected[at]"),
    );
    check(
        &cases,
        BOUND,
        (
            "squares[lane + 32u] + squares[lane + 48u]",
            "squares[lane + 32u]",
        ),
    );
    check(
        &cases,
        BOUND,
        ("lengths[part * channels + c]", "lengths[c]"),
    );
}

pub(super) fn combine(channels: usize, mini: bool, norm: f32) -> Case {
    let params = apollo_combine::Params {
        channels,
        mini,
        front: 2.0,
        threshold: 0.5,
        gamma: 1.01,
    };
    let stats = noise(4 * channels, 1)
        .into_iter()
        .map(|x| x.abs() + 0.1)
        .collect::<Vec<f32>>();
    Case::new(
        &apollo_combine::KERNEL,
        [words(&stats), open(1.0)],
        [vec![norm.to_bits()], poisoned(2)],
        &params,
        1,
    )
}

pub(super) fn apply((rows, cols): (usize, usize), by_row: bool, mini: bool, rounding: u32) -> Case {
    let n = rows * cols;
    let params = apollo_apply::Params {
        n,
        cols,
        channels_are_rows: by_row,
        mini,
        front: 2.0,
        back: 3.0,
        d: 0.999,
        alpha: 0.01,
        noise: place(rounding),
    };
    let p = if rounding == 0 {
        words(&noise(n, 2))
    } else {
        packed(&noise(n, 2)).0
    };
    let channels = if by_row { rows } else { cols };
    let read = [
        words(&noise(n, 1)),
        words(&noise(4 * channels, 3)),
        words(&[0.7, 1.25]),
        open(0.5),
    ];
    Case::new(
        &apollo_apply::KERNEL,
        read,
        [p],
        &params,
        (n as u32).div_ceil(512),
    )
}

#[test]
fn apollo_project_equals_its_twin() {
    let cases: Vec<Case> = SHAPES
        .into_iter()
        .flat_map(|shape| [project(shape, false), project(shape, true)])
        .collect();
    check(&cases, BOUND, ("pair.y & 0x7fffffffu", "pair.y"));
    check(
        &cases,
        BOUND,
        ("whole(r[j], zero) * gate.factor", "whole(r[j], zero)"),
    );
}

/// Two entries of each channel at the bound of 1e15 cancel: the remaining sum must keep the digits of the other entries.
#[test]
fn apollo_project_keeps_what_large_entries_hide() {
    let shape = (300, 17, 1, true);
    let mut case = project(shape, true);
    let largest = f32::MAX.to_bits();
    for channel in case.buffers[0].chunks_mut(shape.1) {
        channel
            .iter_mut()
            .for_each(|g| *g = (f32::from_bits(*g) * 1e-4).to_bits());
        (channel[3], channel[8]) = (largest, largest | 1 << 31);
    }
    case.buffers[1][8] = case.buffers[1][3];
    check(
        &[case],
        BOUND,
        ("two_sum(sum.y, a.y, zero)", "vec2<f32>(sum.y + a.y, 0.0)"),
    );
}

#[test]
fn apollo_combine_equals_its_twin() {
    let cases: Vec<Case> = [1, 255, 256, 257, 4099]
        .into_iter()
        .flat_map(|n| {
            [
                combine(n, false, 1.0),
                combine(n, true, 1.0),
                combine(n, false, 0.1),
            ]
        })
        .collect();
    check(
        &cases,
        BOUND,
        ("norm[0] >= params.threshold", "norm[0] < params.threshold"),
    );
    check(
        &cases,
        BOUND,
        ("select(own * own, length,", "select(own, length,"),
    );
}

/// With R = 0 and entries of 1e15, s = ‖R̃‖/1e-8, and the square of s·‖g‖ exceeds f32.
#[test]
fn apollo_combine_takes_what_a_projector_misses() {
    let mut case = combine(300, false, 1.0);
    (case.buffers[0][7], case.buffers[0][307]) = (2e8f32.to_bits(), 3e30f32.to_bits());
    check(
        &[case],
        BOUND,
        ("SMALL: f32 = 0x1p-40f", "SMALL: f32 = 1.0"),
    );
}

#[test]
fn apollo_apply_equals_its_twin() {
    let shapes = [(1, 1), (3, 5), (16, 16), (257, 3), (3, 1367)];
    let cases: Vec<Case> = shapes
        .into_iter()
        .flat_map(|s| {
            [
                apply(s, true, false, 0),
                apply(s, false, false, 0),
                apply(s, true, true, 0),
            ]
        })
        .collect();
    check(&cases, BOUND, ("/ factors[1]", "* factors[1]"));
    let cases: Vec<Case> = shapes
        .into_iter()
        .flat_map(|s| [apply(s, true, false, 1), apply(s, false, false, 2)])
        .collect();
    check(&cases, 0.0, ("words.z", "words.x"));
}
