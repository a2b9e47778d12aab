use burn::tensor::{DType, Int, Tensor, TensorData};
use tabtune::ops::causal_conv::{FORWARD, INPUT, Params, WEIGHT, WeightParams};
use tabtune::ops::column_sum;
use tabtune::ops::sigmoid::{self, GATE_BACKWARD, GATE_FORWARD, SILU_BACKWARD, SILU_FORWARD};
use tabtune::ops::{self, ConvShape};
use tabtune_tests::kernels::{Case, check, noise, poisoned, words};
use tabtune_tests::tape::dot;

use super::truth::{Inputs, holds};

/// f32 sums of a few products, relative to the RMS of the outputs.
const BOUND: f64 = 3e-6;

/// (sequences, len, channels, taps)
type Shape = (usize, usize, usize, usize);

const SHAPES: [Shape; 5] = [
    (1, 1, 1, 4),
    (2, 5, 7, 3),
    (1, 70, 33, 4),
    (3, 2, 64, 4),
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

#[test]
fn causal_conv_agrees_with_its_definition() {
    for documents in [true, false] {
        let params = |(sequences, len, width, taps): Shape| Params {
            n: sequences * len,
            width,
            taps,
            len,
            documents,
        };
        let rows = |s: Shape, seed| words(&noise(s.0 * s.1 * s.2, seed));
        let taps = |s: Shape| words(&noise(s.2 * s.3, 2));
        let forward = |s: Shape| {
            let n = s.0 * s.1 * s.2;
            let read = [rows(s, 1), taps(s), starts(s)];
            Case::new(&FORWARD, read, [poisoned(n)], &params(s), groups(n))
        };
        let input = |s: Shape| {
            let n = s.0 * s.1 * s.2;
            let read = [taps(s), starts(s), rows(s, 3)];
            Case::new(&INPUT, read, [poisoned(n)], &params(s), groups(n))
        };
        let weight = |s: Shape| {
            let (n, width, taps) = (s.0 * s.1, s.2, s.3);
            let cut = column_sum::Params::cut(n, width * taps);
            let params = WeightParams {
                n,
                width,
                taps,
                len: s.1,
                documents,
                rows: cut.rows,
                parts: cut.parts,
            };
            let read = [rows(s, 1), starts(s), rows(s, 3)];
            let size = cut.parts * width * taps;
            Case::new(&WEIGHT, read, [poisoned(size)], &params, groups(size))
        };
        let flips = |border: (&'static str, &'static str), order| {
            if documents {
                vec![border, order]
            } else {
                vec![order]
            }
        };
        let seen = ("t - back >= first", "true");
        for flip in flips(seen, ("params.taps - 1u - k", "k")) {
            check(&SHAPES.map(forward), BOUND, flip);
        }
        for flip in flips(
            ("first <= t", "true"),
            ("params.taps - 1u - later", "later"),
        ) {
            check(&SHAPES.map(input), BOUND, flip);
        }
        for flip in flips(seen, ("(row - back) * width", "row * width")) {
            check(&SHAPES.map(weight), BOUND, flip);
        }
    }
}

#[test]
fn causal_conv_is_true_to_float64() {
    for (s, documents) in SHAPES.into_iter().flat_map(|s| [(s, false), (s, true)]) {
        let (sequences, len, width, taps) = s;
        let firsts: Vec<i32> = starts(s).into_iter().map(|start| start as i32).collect();
        let ours = |i: &Inputs| {
            let data = TensorData::new(firsts.clone(), [firsts.len()]);
            let starts = Tensor::<1, Int>::from_data(data, (&i[0].device(), DType::I32));
            let shape = ConvShape { seq_len: len, taps };
            let taps = i[1].clone().reshape([width * taps]);
            ops::causal_conv(i[0].clone(), taps, documents.then_some(starts), shape)
        };
        let shapes = [[sequences * len, width], [width, taps]];
        holds("causal_conv", &shapes, &ours, &|i| {
            let element = |at: usize| {
                let (row, c) = (at / width, at % width);
                let first = if documents { firsts[row] as usize } else { 0 };
                let seen = (0..taps).filter(|k| row % len + k + 1 >= taps + first);
                dot(seen.map(|k| (i[1][c * taps + k], i[0][(row + k + 1 - taps) * width + c])))
            };
            (0..sequences * len * width).map(element).collect()
        });
    }
}

#[test]
fn sigmoid_gates_agree_with_their_definition() {
    const SIZES: [usize; 4] = [1, 7, 64, 1000];
    let wide = |n: usize, seed| {
        let values: Vec<f32> = noise(n, seed).iter().map(|v| 20.0 * v).collect();
        words(&values)
    };
    let gate = |n: usize| {
        let (read, params) = ([wide(n, 1), wide(n, 2)], sigmoid::Params { n });
        Case::new(&GATE_FORWARD, read, [poisoned(n)], &params, groups(n))
    };
    check(&SIZES.map(gate), BOUND, ("-gate[i]", "gate[i]"));
    let gate_backward = |n: usize| {
        let (written, params) = ([wide(n, 1), wide(n, 2)], sigmoid::Params { n });
        Case::new(&GATE_BACKWARD, [wide(n, 3)], written, &params, groups(n))
    };
    check(&SIZES.map(gate_backward), BOUND, ("* (1.0 - s)", ""));
    let silu = |n: usize| {
        let params = sigmoid::Params { n };
        Case::new(
            &SILU_FORWARD,
            [wide(n, 1)],
            [poisoned(n)],
            &params,
            groups(n),
        )
    };
    check(&SIZES.map(silu), BOUND, ("-x[i]", "x[i]"));
    let silu_backward = |n: usize| {
        let params = sigmoid::Params { n };
        Case::new(
            &SILU_BACKWARD,
            [wide(n, 3)],
            [wide(n, 1)],
            &params,
            groups(n),
        )
    };
    check(&SIZES.map(silu_backward), BOUND, ("1.0 + v", "1.0"));
    for shape in [[1, 1], [17, 33], [16, 64]] {
        holds(
            "sigmoid_gate",
            &[shape, shape],
            &|i| ops::sigmoid_gate(i[0].clone(), i[1].clone()),
            &|i| {
                let pairs = i[0].iter().zip(&i[1]);
                pairs
                    .map(|(&x, &g)| x / (-g).exp().affine(1.0, 1.0))
                    .collect()
            },
        );
        holds("silu", &[shape], &|i| ops::silu(i[0].clone()), &|i| {
            i[0].iter()
                .map(|&x| x / (-x).exp().affine(1.0, 1.0))
                .collect()
        });
    }
}
