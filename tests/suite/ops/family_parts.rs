//! Parts that single families have: gated units of other kinds, partly rotated heads, factors, caps, windows. Each kernel agrees with its twin and has
//! mutants that must be caught; each operation is compared with its formula in float64.

use burn::tensor::{Tensor, TensorData};
use tabtune::ops::attention::kernels::WINDOW_STARTS;
use tabtune::ops::attention::params::WindowParams;
use tabtune::ops::rope::{PART, PartParams};
use tabtune::ops::{self, GateFunction, NormConstants, Pairing, Positions};
use tabtune::ops::{cap, elementwise, scale};
use tabtune_tests::kernels::{Case, check, noise, poisoned, words};
use tabtune_tests::tape::Var;

use super::truth::{Inputs, gelu, holds};

fn groups(threads: usize) -> u32 {
    (threads as u32).div_ceil(64)
}

/// Values from −4 to 4.
fn large(n: usize, seed: u32) -> Vec<u32> {
    words(&noise(n, seed).iter().map(|v| v * 4.0).collect::<Vec<_>>())
}

#[test]
fn geglu_agrees_with_its_definition() {
    const BOUND: f64 = 1e-5;
    let sizes = [1, 255, 257, 4099];
    let forward = |n: usize| {
        let params = elementwise::Params { n };
        let read = [large(n, 1), large(n, 2)];
        Case::new(
            &elementwise::GEGLU_FORWARD,
            read,
            [poisoned(n)],
            &params,
            groups(n),
        )
    };
    check(
        &sizes.map(forward),
        BOUND,
        ("half_tanh(gate[i]) * up[i]", "half_tanh(gate[i]) + up[i]"),
    );
    let backward = |n: usize| {
        let params = elementwise::Params { n };
        let written = [large(n, 2), large(n, 3)];
        Case::new(
            &elementwise::GEGLU_BACKWARD,
            [large(n, 1)],
            written,
            &params,
            groups(n),
        )
    };
    check(&sizes.map(backward), BOUND, ("dy[i] * x * h", "dy[i] * x"));
    check(
        &sizes.map(backward),
        BOUND,
        ("return h + slope", "return h - slope"),
    );
}

#[test]
fn swiglu_of_halves_agrees_with_its_definition() {
    const BOUND: f64 = 1e-5;
    let sizes = [(1, 1), (3, 85), (7, 64), (33, 171)];
    let params = |(n, width)| elementwise::HalvesParams { n, width };
    let forward = |(n, width): (usize, usize)| {
        let (read, written) = ([large(2 * n * width, 1)], [poisoned(n * width)]);
        let params = params((n, width));
        let kernel = &elementwise::SWIGLU_HALVES_FORWARD;
        Case::new(kernel, read, written, &params, groups(n * width))
    };
    check(&sizes.map(forward), BOUND, ("i / width * width", "0u"));
    let backward = |(n, width): (usize, usize)| {
        let (read, written) = ([large(n * width, 2)], [large(2 * n * width, 1)]);
        let params = params((n, width));
        let kernel = &elementwise::SWIGLU_HALVES_BACKWARD;
        Case::new(kernel, read, written, &params, groups(n * width))
    };
    check(&sizes.map(backward), BOUND, ("* (1.0 - s))", ")"));
}

#[test]
fn factors_and_caps_agree_with_their_definitions() {
    let sizes = [1, 63, 65, 4099];
    let scaled = |n: usize| {
        let params = scale::NumberParams { n, factor: -0.3 };
        Case::new(
            &scale::BY_NUMBER,
            [],
            [words(&noise(n, 1))],
            &params,
            groups(n),
        )
    };
    check(&sizes.map(scaled), 0.0, ("params.factor * x[i]", "x[i]"));
    for bound in [0.5, 2.0, 30.0] {
        let capped = |n: usize| {
            let params = cap::Params { n, cap: bound };
            Case::new(&cap::FORWARD, [], [large(n, 1)], &params, groups(n))
        };
        check(
            &sizes.map(capped),
            2e-6,
            ("* x2 - 3.33332819422e-1", "* x2 + 3.33332819422e-1"),
        );
        let slopes = |n: usize| {
            let params = cap::Params { n, cap: bound };
            let y = words(&noise(n, 1).iter().map(|v| v * bound).collect::<Vec<_>>());
            Case::new(&cap::BACKWARD, [y], [large(n, 2)], &params, groups(n))
        };
        check(&sizes.map(slopes), 2e-6, ("1.0 - share", "1.0 + share"));
    }
}

/// (sequences, len, offset, heads, width of a head, pairs)
type Rotation = (usize, usize, usize, usize, usize, usize);

const ROTATIONS: [Rotation; 5] = [
    (1, 1, 0, 1, 2, 1),
    (2, 5, 3, 3, 20, 5),
    (1, 17, 0, 2, 18, 9),
    (3, 1, 40, 4, 16, 6),
    (2, 64, 7, 1, 40, 20),
];

#[test]
fn a_rotation_of_parts_agrees_with_its_definition() {
    let case =
        |(sequences, len, offset, heads, width, half): Rotation, adjacent, sign, documents| {
            let rows = sequences * len;
            let params = PartParams {
                pairs: rows * heads * half,
                heads,
                width,
                half,
                adjacent,
                len,
                offset,
                sign,
                documents,
            };
            let starts: Vec<u32> = (0..rows).map(|row| (row % len / 3 * 3) as u32).collect();
            let [cosines, sines] = [2, 3].map(|seed| words(&noise((offset + len) * half, seed)));
            let x = words(&noise(rows * heads * width, 1));
            let read = [cosines, sines, starts];
            Case::new(&PART, read, [x], &params, groups(params.pairs))
        };
    for (adjacent, sign, flip) in [
        (false, 1.0, ("a * c - b * s", "a * c + b * s")),
        (false, -1.0, ("* params.sign", "")),
        (
            false,
            1.0,
            (
                "select(half, 1u, adjacent)",
                "select(params.width / 2u, 1u, adjacent)",
            ),
        ),
        (true, 1.0, ("select(half, 1u, adjacent)", "half")),
        (true, 1.0, ("select(pair, 2u * pair, adjacent)", "pair")),
    ] {
        let case = |s| case(s, adjacent, sign, false);
        check(&ROTATIONS.map(case), 1e-6, flip);
    }
    let documents = |s| case(s, false, 1.0, true);
    check(
        &ROTATIONS.map(documents),
        1e-6,
        ("-= starts[row]", "+= 0u * starts[row]"),
    );
}

#[test]
fn a_window_begins_after_the_keys_that_it_hides() {
    // (sequences, len, offset, window)
    let case = |(sequences, len, offset, window): (usize, usize, usize, usize), documents| {
        let n = sequences * len;
        let params = WindowParams {
            n,
            len,
            offset,
            window,
            documents,
        };
        // Documents of five tokens.
        let starts = (0..n).map(|i| ((offset + i % len) / 5 * 5) as u32);
        Case::new(
            &WINDOW_STARTS,
            [starts.collect()],
            [poisoned(n)],
            &params,
            groups(n),
        )
    };
    let sizes = [(1, 1, 0, 1), (2, 17, 0, 3), (3, 5, 9, 8), (1, 130, 0, 64)];
    for documents in [false, true] {
        for flip in [("+ 1u;", ";"), ("max(start, ", "min(start, ")] {
            check(&sizes.map(|s| case(s, documents)), 0.0, flip);
        }
    }
}

/// Computes silu(gate) up.
fn swiglu<'t>(gate: Var<'t>, up: Var<'t>) -> Var<'t> {
    gate / (-gate).exp().affine(1.0, 1.0) * up
}

/// Computes silu(3 gate) 3 up for a row that has gate and up one after the other.
fn swiglu_of_row<'t>(row: &[Var<'t>]) -> Vec<Var<'t>> {
    let (gate, up) = row.split_at(row.len() / 2);
    let pairs = gate.iter().zip(up);
    pairs
        .map(|(gate, up)| swiglu(gate.affine(3.0, 0.0), up.affine(3.0, 0.0)))
        .collect()
}

#[test]
fn gated_units_are_true_to_float64() {
    for shape in [[1, 1], [3, 17], [5, 64]] {
        let ours = |i: &Inputs| ops::gated_unit(i[0].clone(), i[1].clone(), GateFunction::Gelu);
        holds("geglu", &[shape, shape], &ours, &|i| {
            let pairs = i[0].iter().zip(&i[1]);
            pairs.map(|(&gate, &up)| gelu(gate) * up).collect()
        });
        let [rows, width] = shape;
        let both = [rows, 2 * width];
        let ours = |i: &Inputs| ops::swiglu_of_halves(i[0].clone() * 3.0);
        holds("swiglu of halves", &[both], &ours, &|i| {
            i[0].chunks(2 * width).flat_map(swiglu_of_row).collect()
        });
    }
}

#[test]
fn factors_caps_and_offsets_are_true_to_float64() {
    let shape = [5, 33];
    let scaled = |i: &Inputs| ops::scaled(i[0].clone(), 0.22);
    holds("scaled", &[shape], &scaled, &|i| {
        i[0].iter()
            .map(|x| x.affine(f64::from(0.22_f32), 0.0))
            .collect()
    });
    for bound in [0.5, 5.0] {
        let capped = |i: &Inputs| ops::capped(i[0].clone() * 2.0, bound);
        holds("capped", &[shape], &capped, &|i| {
            i[0].iter()
                .map(|x| x.affine(2.0 / bound, 0.0).tanh().affine(bound, 0.0))
                .collect()
        });
    }
    let of = NormConstants {
        eps: 1e-5,
        offset: 1.0,
    };
    for width in [33, 64] {
        let ours = |i: &Inputs| ops::rms_norm(i[0].clone(), i[1].clone().reshape([width]), of);
        holds(
            "rms_norm of 1 + w",
            &[[5, width], [1, width]],
            &ours,
            &|i| {
                let weight: Vec<_> = i[1].iter().map(|w| w.affine(1.0, 1.0)).collect();
                let rows = i[0].chunks(width);
                rows.flat_map(|row| super::truth::rms_norm(row, &weight))
                    .collect()
            },
        );
    }
}

#[test]
fn a_rotation_of_parts_is_true_to_float64() {
    for (sequences, len, offset, heads, width, half) in ROTATIONS {
        for adjacent in [false, true] {
            let angle = |at: usize| {
                let frequency = 10_000_f64.powf(-((at % half) as f64) / half as f64);
                ((at / half) as f64 * frequency).sin_cos()
            };
            let places = 0..(offset + len) * half;
            let (sines, cosines): (Vec<f32>, Vec<f32>) = places
                .map(angle)
                .map(|(sin, cos)| (sin as f32, cos as f32))
                .unzip();
            let table = |values: &Vec<f32>, like: &Tensor<2>| {
                let data = TensorData::new(values.clone(), [offset + len, half]);
                Tensor::<2>::from_data(data, &like.device())
            };
            let ours = |i: &Inputs| {
                let (cos, sin) = (table(&cosines, &i[0]), table(&sines, &i[0]));
                let pairing = Pairing { width, adjacent };
                let positions = Positions { len, offset };
                ops::rope_of_part(i[0].clone(), [cos, sin], pairing, positions, None)
            };
            let shape = [sequences * len, heads * width];
            holds("rope of a part", &[shape], &ours, &|i| {
                let x = &i[0];
                let turned = |at: usize| {
                    let position = offset + at / shape[1] % len;
                    let (first, column) = (at - at % width, at % width);
                    if column >= 2 * half {
                        return x[at];
                    }
                    let (pair, second) = if adjacent {
                        (column / 2, column % 2 == 1)
                    } else {
                        (column % half, column >= half)
                    };
                    let (low, high) = if adjacent {
                        (first + 2 * pair, first + 2 * pair + 1)
                    } else {
                        (first + pair, first + pair + half)
                    };
                    let entry = position * half + pair;
                    let (cos, sin) = (f64::from(cosines[entry]), f64::from(sines[entry]));
                    if second {
                        x[high].affine(cos, 0.0) + x[low].affine(sin, 0.0)
                    } else {
                        x[low].affine(cos, 0.0) - x[high].affine(sin, 0.0)
                    }
                };
                (0..x.len()).map(turned).collect()
            });
        }
    }
}
