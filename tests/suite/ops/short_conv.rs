use burn::tensor::{DType, Int, Tensor, TensorData};
use tabtune::ops::column_sum;
use tabtune::ops::short_conv::{FORWARD, INPUT, Params, WEIGHT, WeightParams};
use tabtune::ops::{self, ConvShape};
use tabtune_tests::kernels::{Case, check, noise, poisoned, words};
use tabtune_tests::tape::dot;

use super::truth::{Inputs, holds};

/// f32 sums of a few products, relative to the RMS of the outputs.
const BOUND: f64 = 2e-6;

/// (sequences, len, channels, taps)
type Shape = (usize, usize, usize, usize);

const SHAPES: [Shape; 5] = [
    (1, 1, 1, 3),
    (2, 5, 7, 3),
    (1, 70, 33, 4),
    (3, 2, 64, 3),
    (1, 130, 5, 1),
];

fn groups(threads: usize) -> u32 {
    (threads as u32).div_ceil(64)
}

/// Documents of four tokens.
fn starts((sequences, len, ..): Shape) -> Vec<u32> {
    (0..sequences * len)
        .map(|row| (row % len / 4 * 4) as u32)
        .collect()
}

fn params((sequences, len, width, taps): Shape, documents: bool) -> Params {
    Params {
        n: sequences * len,
        width,
        taps,
        len,
        documents,
    }
}

fn inputs(s: Shape) -> [Vec<u32>; 3] {
    let (rows, width, taps) = (s.0 * s.1, s.2, s.3);
    [
        words(&noise(rows * 3 * width, 1)),
        words(&noise(width * taps, 2)),
        starts(s),
    ]
}

#[test]
fn short_conv_agrees_with_its_definition() {
    for documents in [false, true] {
        let forward = |s: Shape| {
            let n = s.0 * s.1 * s.2;
            let params = params(s, documents);
            Case::new(&FORWARD, inputs(s), [poisoned(n)], &params, groups(n))
        };
        check(&SHAPES.map(forward), BOUND, ("params.taps - 1u - k", "k"));
        let backward = |s: Shape| {
            let (rows, width) = (s.0 * s.1, s.2);
            let [x, w, starts] = inputs(s);
            let read = [x, w, starts, words(&noise(rows * width, 3))];
            let written = [poisoned(rows * 3 * width)];
            let params = params(s, documents);
            Case::new(&INPUT, read, written, &params, groups(rows * width))
        };
        let flips = [
            ("params.taps - 1u - j", "j"),
            ("dz * x[at + 2u * width]", "dz * x[at]"),
        ];
        for flip in flips {
            check(&SHAPES.map(backward), BOUND, flip);
        }
        let weight = |s: Shape| {
            let (rows, width, taps) = (s.0 * s.1, s.2, s.3);
            let cut = column_sum::Params::cut(rows, width * taps);
            let params = WeightParams {
                n: rows,
                width,
                taps,
                len: s.1,
                documents,
                rows: cut.rows,
                parts: cut.parts,
            };
            let [x, _, starts] = inputs(s);
            let read = [x, starts, words(&noise(rows * width, 3))];
            let n = cut.parts * width * taps;
            Case::new(&WEIGHT, read, [poisoned(n)], &params, groups(n))
        };
        check(&SHAPES.map(weight), BOUND, ("t >= back && ", ""));
    }
    let documents = |s: Shape| {
        let n = s.0 * s.1 * s.2;
        Case::new(
            &FORWARD,
            inputs(s),
            [poisoned(n)],
            &params(s, true),
            groups(n),
        )
    };
    check(&SHAPES.map(documents), BOUND, ("t - back >= first", "true"));
}

#[test]
fn short_conv_is_true_to_float64() {
    for (s, documents) in SHAPES.into_iter().flat_map(|s| [(s, false), (s, true)]) {
        let (sequences, len, width, taps) = s;
        let firsts: Vec<i32> = starts(s).into_iter().map(|start| start as i32).collect();
        let ours = |i: &Inputs| {
            let data = TensorData::new(firsts.clone(), [firsts.len()]);
            let starts = Tensor::<1, Int>::from_data(data, (&i[0].device(), DType::I32));
            let shape = ConvShape { seq_len: len, taps };
            let taps = i[1].clone().reshape([width * taps]);
            ops::short_conv(i[0].clone(), taps, documents.then_some(starts), shape)
        };
        let shapes = [[sequences * len, 3 * width], [width, taps]];
        holds("short_conv", &shapes, &ours, &|i| {
            let value = |row: usize, part: usize, c: usize| i[0][(row * 3 + part) * width + c];
            let element = |at: usize| {
                let (row, c) = (at / width, at % width);
                let first = if documents { firsts[row] as usize } else { 0 };
                let t = row % len;
                let seen = (0..taps).filter(|k| t + k + 1 >= taps + first);
                let pairs = seen.map(|k| {
                    let other = row + k + 1 - taps;
                    (i[1][c * taps + k], value(other, 0, c) * value(other, 2, c))
                });
                value(row, 1, c) * dot(pairs)
            };
            (0..sequences * len * width).map(element).collect()
        });
    }
}
