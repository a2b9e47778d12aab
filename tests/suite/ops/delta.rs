use burn::tensor::{DType, Int, Tensor, TensorData};
use tabtune::gpu::{Kernel, KernelParams};
use tabtune::ops::delta::CHUNK;
use tabtune::ops::delta::kernels::{
    CROSS, DECAY, DOT, GATES, GATES_BACKWARD, INVERSE, MIX, PAIRS, READ, SCAN, SCAN_BACKWARD,
    THROUGH, UNIT, UNIT_BACKWARD, WRITTEN,
};
use tabtune::ops::delta::params::{
    DecayParams, DotParams, GateParams, InverseParams, MixParams, PairParams, ReadParams,
    ScanParams, ThroughParams, UnitBackwardParams, UnitParams, WrittenParams,
};
use tabtune::ops::{self, DeltaGates, DeltaShape};
use tabtune_tests::kernels::{Case, check, noise, poisoned, relative_l2, words};
use tabtune_tests::tape::{Var, dot};
use tabtune_tests::{block_on, devices};

use super::truth::{Inputs, holds_within};

/// f32 sums of at most some hundred products, relative to the RMS of the outputs, of which many are 0.
const BOUND: f64 = 8e-6;

/// Sequences, and the shape of their rows: one value, a short last chunk, grouped heads, several tiles of a state.
const SHAPES: [(usize, DeltaShape); 4] = [
    (1, shape(1, [1, 1, 1, 1])),
    (2, shape(65, [1, 2, 8, 5])),
    (1, shape(130, [2, 4, 20, 16])),
    (2, shape(63, [2, 2, 66, 9])),
];

const fn shape(seq_len: usize, [key_heads, heads, key_dim, value_dim]: [usize; 4]) -> DeltaShape {
    DeltaShape {
        seq_len,
        key_heads,
        heads,
        key_dim,
        value_dim,
    }
}

/// Starts of documents of 1, 22, 43, 64, … rows, so that they end inside chunks and at their borders.
fn starts(sequences: usize, len: usize) -> Vec<u32> {
    let mut of_one = Vec::new();
    while of_one.len() < len {
        let start = of_one.len();
        let rows = 1 + 21 * (start / 16 % 5);
        of_one.extend(std::iter::repeat_n(start as u32, rows));
    }
    of_one.truncate(len);
    of_one.repeat(sequences)
}

fn random(n: usize, seed: u32) -> Vec<u32> {
    words(&noise(n, seed))
}

/// Logarithms of decays, some of them beyond all digits, then β.
fn gates(n: usize, heads: usize) -> Vec<u32> {
    let mut gates = noise(n * 2 * heads, 5);
    for (i, gate) in gates.iter_mut().enumerate() {
        *gate = if i % (2 * heads) >= heads {
            0.5 + 0.49 * *gate
        } else if i % 17 == 3 {
            -200.0
        } else {
            -0.4 * (1.0 + *gate)
        };
    }
    words(&gates)
}

/// The sums of decays that a launch of their kernel makes, with the decays from and to the ends of chunks.
fn decays((sequences, of): (usize, DeltaShape), documents: bool) -> [Vec<u32>; 3] {
    let case = decay_case((sequences, of), documents);
    let mut made = case.twin().into_iter();
    [(); 3].map(|()| made.next().expect("three buffers"))
}

fn decay_case((sequences, of): (usize, DeltaShape), documents: bool) -> Case {
    let (n, heads) = (sequences * of.seq_len, of.heads);
    let params = DecayParams {
        n,
        len: of.seq_len,
        heads,
        documents,
    };
    let read = [gates(n, heads), starts(sequences, of.seq_len)];
    let written = [2, 1, 1].map(|values| poisoned(n * heads * values));
    let groups = DECAY.groups(sequences * of.seq_len.div_ceil(CHUNK) * heads);
    Case::new(&DECAY, read, written, &params, groups)
}

/// Weights within the chunks: a lower triangle with 0 above.
fn triangle((sequences, of): (usize, DeltaShape)) -> Vec<u32> {
    let mut values = noise(sequences * of.seq_len * of.heads * CHUNK, 8);
    for (i, value) in values.iter_mut().enumerate() {
        let t = i / CHUNK / of.heads % of.seq_len % CHUNK;
        *value = if i % CHUNK < t { 0.3 * *value } else { 0.0 };
    }
    words(&values)
}

/// Checks a kernel on every shape, with and without documents.
fn holds_for(case: impl Fn((usize, DeltaShape), bool) -> Case, flips: &[(&str, &str)]) {
    let cases: Vec<Case> = [false, true]
        .into_iter()
        .flat_map(|documents| SHAPES.map(|shape| case(shape, documents)))
        .collect();
    for flip in flips {
        check(&cases, BOUND, *flip);
    }
}

fn whole<P: KernelParams, const R: usize, const W: usize>(
    kernel: &'static Kernel<P, R, W>,
    read: [Vec<u32>; R],
    written: [Vec<u32>; W],
    params: &P,
    threads: usize,
) -> Case {
    Case::new(kernel, read, written, params, kernel.groups(threads))
}

#[test]
fn delta_gates_agree_with_their_definition() {
    let params = |(sequences, of): (usize, DeltaShape)| GateParams {
        n: sequences * of.seq_len,
        heads: of.heads,
    };
    let many = |n: usize, seed| {
        let values: Vec<f32> = noise(n, seed).iter().map(|v| 12.0 * v).collect();
        words(&values)
    };
    let forward = |s, _| {
        let p = params(s);
        let n = p.n * p.heads;
        let read = [
            many(n, 1),
            many(n, 2),
            random(p.heads, 3),
            random(p.heads, 4),
        ];
        whole(&GATES, read, [poisoned(2 * n)], &p, n)
    };
    holds_for(
        forward,
        &[
            ("-exp(log_rates[h])", "-log_rates[h]"),
            ("+ bias[h]", "- bias[h]"),
        ],
    );
    let backward = |s, _| {
        let p = params(s);
        let n = p.n * p.heads;
        let read = [
            many(n, 1),
            random(p.heads, 3),
            random(p.heads, 4),
            random(n, 5),
        ];
        whole(&GATES_BACKWARD, read, [poisoned(n), poisoned(n)], &p, n)
    };
    holds_for(backward, &[("slope * softplus(x)", "slope")]);
}

#[test]
fn delta_unit_rows_agree_with_their_definition() {
    let forward = |(sequences, of): (usize, DeltaShape), _| {
        let n = sequences * of.seq_len;
        let params = UnitParams {
            n,
            width: of.width(),
            heads: of.key_heads,
            dim: of.key_dim,
        };
        let keys = n * of.key_heads * of.key_dim;
        let written = [poisoned(2 * keys), poisoned(keys)];
        let threads = n * 2 * of.key_heads;
        whole(
            &UNIT,
            [random(n * of.width(), 1)],
            written,
            &params,
            threads,
        )
    };
    holds_for(forward, &[("if (is_query)", "if (!is_query)")]);
    let backward = |(sequences, of): (usize, DeltaShape), _| {
        let n = sequences * of.seq_len;
        let params = UnitBackwardParams {
            n,
            key_heads: of.key_heads,
            heads: of.heads,
            key_dim: of.key_dim,
            value_dim: of.value_dim,
        };
        let (keys, values) = (n * of.heads * of.key_dim, n * of.heads * of.value_dim);
        let all = n * of.width();
        let read = [
            random(all, 1),
            random(keys, 2),
            random(keys, 3),
            random(values, 4),
        ];
        let threads = n * (2 * of.key_heads + of.heads);
        whole(&UNIT_BACKWARD, read, [poisoned(all)], &params, threads)
    };
    holds_for(
        backward,
        &[
            ("- x[at + c] * back", ""),
            ("head * readers + k", "head + k"),
        ],
    );
}

#[test]
fn delta_decays_agree_with_their_definition() {
    let flips = [
        ("rest -= carry", "rest -= 0.0"),
        ("starts[base + t] >= first", "starts[base + t] > first"),
        (
            "first + t < starts[base + rows - 1u]",
            "first + t < starts[base + t]",
        ),
    ];
    holds_for(decay_case, &flips);
}

#[test]
fn delta_pairs_agree_with_their_definition() {
    for (strict, weighted) in [(false, false), (true, true)] {
        let case = |(sequences, of): (usize, DeltaShape), documents| {
            let (n, keys) = (sequences * of.seq_len, of.key_heads * of.key_dim);
            let params = PairParams {
                n,
                len: of.seq_len,
                heads: of.heads,
                dim: of.key_dim,
                own: of.key_heads,
                x_width: 2 * keys,
                x_first: keys,
                z_width: keys,
                strict,
                weighted,
                documents,
                times: false,
            };
            let [sums, ..] = decays((sequences, of), documents);
            let read = [
                random(n * 2 * keys, 1),
                random(n * keys, 2),
                sums,
                gates(n, of.heads),
                starts(sequences, of.seq_len),
            ];
            let written = [poisoned(n * of.heads * CHUNK)];
            let threads = sequences * of.seq_len.div_ceil(CHUNK) * of.heads * CHUNK / 4 * CHUNK;
            whole(&PAIRS, read, written, &params, threads)
        };
        let flips = [
            ("exp(-((sums[to] - sums[at])", "exp(-((sums[to] + sums[at])"),
            ("first + s >= starts[row]", "first + s + 1u >= starts[row]"),
            ("s + params.strict <= t", "s <= t + params.strict"),
        ];
        holds_for(case, &flips[..2 + usize::from(strict)]);
    }
}

#[test]
fn delta_inverse_agrees_with_its_definition() {
    let case = |(sequences, of): (usize, DeltaShape), documents| {
        let n = sequences * of.seq_len;
        let params = InverseParams {
            n,
            len: of.seq_len,
            heads: of.heads,
        };
        let [_, start, _] = decays((sequences, of), documents);
        let read = [triangle((sequences, of)), gates(n, of.heads), start];
        let written = [(); 2].map(|()| poisoned(n * of.heads * CHUNK));
        let groups = sequences * of.seq_len.div_ceil(CHUNK) * of.heads;
        Case::new(&INVERSE, read, written, &params, groups as u32)
    };
    holds_for(
        case,
        &[
            ("value -= pairs", "value += pairs"),
            ("value * carried", "value"),
        ],
    );
}

#[test]
fn delta_mix_agrees_with_its_definition() {
    for (turned, add) in [(false, false), (true, true)] {
        let case = |(sequences, of): (usize, DeltaShape), _| {
            let n = sequences * of.seq_len;
            let params = MixParams {
                n,
                len: of.seq_len,
                heads: of.heads,
                dim: of.value_dim,
                width: of.width(),
                own: of.heads,
                first: of.width() - of.heads * of.value_dim,
                turned,
                add,
                factor: -0.5,
            };
            let size = n * of.heads * of.value_dim;
            let read = [triangle((sequences, of)), random(n * of.width(), 2)];
            let written = [if add { random(size, 3) } else { poisoned(size) }];
            let chunks = sequences * of.seq_len.div_ceil(CHUNK);
            let threads = chunks * CHUNK / 4 * of.heads * of.value_dim;
            whole(&MIX, read, written, &params, threads)
        };
        let flips = [("m[at.x + s]", "m[at.y + s]"), ("m[at + 1u]", "m[at]")];
        holds_for(case, &flips[usize::from(turned)..][..1]);
    }
}

#[test]
fn delta_read_agrees_with_its_definition() {
    for (turned, add) in [(false, true), (true, false)] {
        let case = |(sequences, of): (usize, DeltaShape), documents| {
            let n = sequences * of.seq_len;
            let (dim, inner, own) = if turned {
                (of.key_dim, of.value_dim, of.heads)
            } else {
                (of.value_dim, of.key_dim, of.key_heads)
            };
            let chunks = of.seq_len.div_ceil(CHUNK);
            let params = ReadParams {
                n,
                len: of.seq_len,
                heads: of.heads,
                dim,
                inner,
                width: own * inner,
                own,
                first: 0,
                states: chunks + 1,
                turned,
                add,
                factor: -2.0,
            };
            let [_, start, _] = decays((sequences, of), documents);
            let states = sequences * (chunks + 1) * of.heads * dim * inner;
            let read = [random(n * own * inner, 1), random(states, 2), start];
            let size = n * of.heads * dim;
            let written = [if add { random(size, 3) } else { poisoned(size) }];
            let threads = sequences * chunks * CHUNK / 4 * of.heads * dim;
            whole(&READ, read, written, &params, threads)
        };
        holds_for(case, &[("* w[row]", "+ w[row]")]);
    }
}

#[test]
fn delta_scans_agree_with_their_definition() {
    let params = |(sequences, of): (usize, DeltaShape), carried| ScanParams {
        n: sequences * of.seq_len,
        len: of.seq_len,
        key_heads: of.key_heads,
        heads: of.heads,
        key_dim: of.key_dim,
        value_dim: of.value_dim,
        carried,
    };
    let small = |n: usize, seed| {
        let values: Vec<f32> = noise(n, seed).iter().map(|v| 0.2 * v).collect();
        words(&values)
    };
    let groups = |(sequences, of): (usize, DeltaShape)| {
        (sequences * of.heads * of.value_dim.div_ceil(8)) as u32
    };
    for carried in [false, true] {
        let forward = |(sequences, of): (usize, DeltaShape), documents| {
            let n = sequences * of.seq_len;
            let [_, start, end] = decays((sequences, of), documents);
            let state = of.heads * of.key_dim * of.value_dim;
            let read = [
                small(n * of.heads * of.key_dim, 1),
                small(n * of.key_heads * of.key_dim, 2),
                start,
                end,
                random(sequences * state, 3),
            ];
            let all = sequences * (of.seq_len.div_ceil(CHUNK) + 1) * state;
            let written = [random(n * of.heads * of.value_dim, 4), poisoned(all)];
            let s = (sequences, of);
            Case::new(&SCAN, read, written, &params(s, carried), groups(s))
        };
        let flips = [
            ("sum += end[at] * y", "sum -= end[at] * y"),
            ("decay * states[at_s + c]", "states[at_s + c]"),
        ];
        holds_for(forward, &flips);
    }
    let backward = |(sequences, of): (usize, DeltaShape), documents| {
        let n = sequences * of.seq_len;
        let [_, start, end] = decays((sequences, of), documents);
        let keys = of.key_heads * of.key_dim;
        let values = n * of.heads * of.value_dim;
        let read = [
            small(n * of.heads * of.key_dim, 1),
            small(n * 2 * keys, 2),
            start,
            end,
            random(values, 3),
        ];
        let chunks = of.seq_len.div_ceil(CHUNK);
        let states = sequences * chunks * of.heads * of.key_dim * of.value_dim;
        let s = (sequences, of);
        let written = [random(values, 4), poisoned(states)];
        Case::new(&SCAN_BACKWARD, read, written, &params(s, false), groups(s))
    };
    holds_for(
        backward,
        &[
            ("sum -= y[column]", "sum += y[column]"),
            ("decay * dstates[at_s + c]", "dstates[at_s + c]"),
        ],
    );
}

#[test]
fn delta_pairs_are_multiplied_by_products() {
    let case = |(sequences, of): (usize, DeltaShape), documents| {
        let (n, keys) = (sequences * of.seq_len, of.key_heads * of.key_dim);
        let params = PairParams {
            n,
            len: of.seq_len,
            heads: of.heads,
            dim: of.key_dim,
            own: of.key_heads,
            x_width: 2 * keys,
            x_first: 0,
            z_width: keys,
            strict: false,
            weighted: false,
            documents,
            times: true,
        };
        let [sums, ..] = decays((sequences, of), documents);
        let read = [
            random(n * 2 * keys, 1),
            random(n * keys, 2),
            sums,
            gates(n, of.heads),
            starts(sequences, of.seq_len),
        ];
        let threads = sequences * of.seq_len.div_ceil(CHUNK) * of.heads * CHUNK / 4 * CHUNK;
        let written = [triangle((sequences, of))];
        whole(&PAIRS, read, written, &params, threads)
    };
    holds_for(case, &[("*= dots[k]", "+= dots[k]")]);
}

#[test]
fn delta_products_of_heads_agree_with_their_definition() {
    for add in [false, true] {
        let dot = |(sequences, of): (usize, DeltaShape), _| {
            let n = sequences * of.seq_len * of.heads;
            let params = DotParams {
                n,
                dim: of.value_dim,
                add,
                factor: -0.5,
            };
            let size = n * of.value_dim;
            let read = [random(size, 1), random(size, 2)];
            let written = [if add { random(n, 3) } else { poisoned(n) }];
            whole(&DOT, read, written, &params, n)
        };
        holds_for(dot, &[("params.factor * sum", "sum")]);
    }
    let written = |(sequences, of): (usize, DeltaShape), _| {
        let n = sequences * of.seq_len;
        let params = WrittenParams {
            n,
            heads: of.heads,
            dim: of.value_dim,
        };
        let size = n * of.heads * of.value_dim;
        let read = [random(size, 1), random(size, 2), gates(n, of.heads)];
        let made = [poisoned(n * of.heads)];
        whole(&WRITTEN, read, made, &params, n * of.heads)
    };
    holds_for(written, &[("(1.0 - weight) * ", "")]);
}

#[test]
fn delta_gradients_of_decays_agree_with_their_definition() {
    let through = |(sequences, of): (usize, DeltaShape), documents| {
        let size = of.key_dim * of.value_dim;
        let params = ThroughParams {
            n: sequences * of.seq_len,
            len: of.seq_len,
            heads: of.heads,
            size,
        };
        let chunks = of.seq_len.div_ceil(CHUNK);
        let [_, start, _] = decays((sequences, of), documents);
        let read = [
            random(sequences * (chunks + 1) * of.heads * size, 2),
            random(sequences * chunks * of.heads * size, 3),
            start,
        ];
        let places = sequences * chunks * of.heads;
        let written = [poisoned(places)];
        Case::new(&THROUGH, read, written, &params, places as u32)
    };
    holds_for(through, &[("total += sums[k]", "total += 0.5 * sums[k]")]);
    let cross = |(sequences, of): (usize, DeltaShape), _| {
        let n = sequences * of.seq_len;
        let params = InverseParams {
            n,
            len: of.seq_len,
            heads: of.heads,
        };
        let places = sequences * of.seq_len.div_ceil(CHUNK) * of.heads;
        let read = [
            triangle((sequences, of)),
            random(n * of.heads * CHUNK, 2),
            random(n * of.heads, 3),
            random(n * of.heads, 4),
            random(places, 5),
        ];
        let written = [poisoned(n * of.heads)];
        whole(&CROSS, read, written, &params, n * of.heads)
    };
    let flips = [
        ("var t = r;", "var t = r + 1u;"),
        ("s < r; s++) {\n    sum", "s <= r; s++) {\n    sum"),
        ("- v[at", "+ v[at"),
    ];
    holds_for(cross, &flips);
}

fn int(ids: &[u32], like: &Tensor<2>) -> Tensor<1, Int> {
    let ids: Vec<i32> = ids.iter().map(|&id| id as i32).collect();
    let n = ids.len();
    Tensor::from_data(TensorData::new(ids, [n]), (&like.device(), DType::I32))
}

/// The shapes of x, a, b, A and the bias of a.
fn inputs((sequences, of): (usize, DeltaShape)) -> [[usize; 2]; 5] {
    let n = sequences * of.seq_len;
    [
        [n, of.width()],
        [n, of.heads],
        [n, of.heads],
        [1, of.heads],
        [1, of.heads],
    ]
}

fn gates_of(i: &Inputs, heads: usize) -> DeltaGates {
    DeltaGates {
        a: i[1].clone(),
        b: i[2].clone(),
        log_rates: i[3].clone().reshape([heads]),
        bias: i[4].clone().reshape([heads]),
    }
}

/// Computes the rule row by row, as its definition is written.
fn stepwise<'t>(i: &[Vec<Var<'t>>], of: DeltaShape, firsts: &[u32]) -> Vec<Var<'t>> {
    let (d, e) = (of.key_dim, of.value_dim);
    let sigmoid = |x: Var<'t>| (-x).exp().affine(1.0, 1.0).ln().affine(-1.0, 0.0).exp();
    let unit = |x: &[Var<'t>]| -> Vec<Var<'t>> {
        let length = dot(x.iter().copied().zip(x.iter().copied()))
            .affine(1.0, 1e-6)
            .sqrt();
        x.iter().map(|&x| x / length).collect()
    };
    let rows = i[1].len() / of.heads;
    let mut output = vec![None; rows * of.heads * e];
    for h in 0..of.heads {
        let key_head = h * of.key_heads / of.heads;
        let mut state: Vec<Vec<Var<'t>>> = Vec::new();
        for row in 0..rows {
            let x = &i[0][row * of.width()..][..of.width()];
            let q = unit(&x[key_head * d..][..d]);
            let k = unit(&x[(of.key_heads + key_head) * d..][..d]);
            let v = &x[2 * of.key_heads * d + h * e..][..e];
            let at = row * of.heads + h;
            let soft = (i[1][at] + i[4][h]).exp().affine(1.0, 1.0).ln();
            let decay = (-(i[3][h].exp() * soft)).exp();
            let weight = sigmoid(i[2][at]);
            let begins = firsts[row] as usize == row % of.seq_len;
            state = (0..e)
                .map(|c| {
                    let old: Vec<_> = (0..d)
                        .map(|l| {
                            if begins {
                                v[c].affine(0.0, 0.0)
                            } else {
                                decay * state[c][l]
                            }
                        })
                        .collect();
                    let read = dot(old.iter().copied().zip(k.iter().copied()));
                    let change = weight * (v[c] - read);
                    let pairs = old.iter().zip(&k);
                    pairs.map(|(&s, &k)| s + change * k).collect()
                })
                .collect();
            for c in 0..e {
                let read = dot(state[c].iter().copied().zip(q.iter().copied()));
                output[at * e + c] = Some(read.affine((d as f64).powf(-0.5), 0.0));
            }
        }
    }
    output
        .into_iter()
        .map(|value| value.expect("every value"))
        .collect()
}

#[test]
fn delta_rule_is_true_to_float64() {
    for (sequences, of) in [
        (1, shape(1, [1, 1, 2, 2])),
        (1, shape(63, [1, 2, 6, 5])),
        (2, shape(64, [1, 1, 4, 9])),
        (1, shape(65, [2, 4, 8, 3])),
        (1, shape(300, [1, 2, 5, 4])),
    ] {
        for documents in [false, true] {
            let firsts = if documents {
                starts(sequences, of.seq_len)
            } else {
                vec![0; sequences * of.seq_len]
            };
            let ours = |i: &Inputs| {
                let starts = documents.then(|| int(&firsts, &i[0]));
                ops::delta_rule(i[0].clone(), gates_of(i, of.heads), starts, of)
            };
            let shapes = inputs((sequences, of));
            let bounds = |input: usize| [2e-6, 2e-6, 2e-6, 5e-6, 5e-6][input];
            holds_within(&bounds, "delta_rule", &shapes, &ours, &|i| {
                stepwise(i, of, &firsts)
            });
        }
    }
}

#[test]
fn delta_rule_of_pieces_is_that_of_the_whole() {
    for len in [1, 63, 64, 65, 300] {
        let of = shape(len, [2, 4, 16, 12]);
        for device in devices() {
            let of_shape = |(rows, seed): (&[usize; 2], u32)| {
                let values = noise(rows[0] * rows[1], seed);
                Tensor::<2>::from_data(TensorData::new(values, *rows), &device.inner())
            };
            let i: Inputs = inputs((2, of)).iter().zip(20..).map(of_shape).collect();
            let whole = ops::delta_rule(i[0].clone(), gates_of(&i, 4), None, of);
            let piece = |x: &Tensor<2>, first: usize, rows: usize| {
                let width = x.dims()[1];
                let x = x.clone().reshape([2, len, width]);
                x.narrow(1, first, rows).reshape([2 * rows, width])
            };
            let (mut state, mut made, mut first) = (None, Vec::new(), 0);
            // Pieces of 1, 2, 3, … rows, as a prompt and its answer are computed.
            for rows in 1.. {
                let rows = rows.min(len - first);
                if rows == 0 {
                    break;
                }
                let gates = DeltaGates {
                    a: piece(&i[1], first, rows),
                    b: piece(&i[2], first, rows),
                    ..gates_of(&i, 4)
                };
                let of = DeltaShape {
                    seq_len: rows,
                    ..of
                };
                let x = piece(&i[0], first, rows);
                let (o, last) = ops::delta_rule_from(x, gates, state.take(), of);
                made.push(o.reshape([2, rows, 48]));
                (state, first) = (Some(last), first + rows);
            }
            let made = Tensor::cat(made, 1).reshape([2 * len, 48]);
            let values = |x: Tensor<2>| {
                let data = block_on(x.into_data_async()).unwrap();
                data.try_to_vec::<f32>().unwrap()
            };
            let whole: Vec<f64> = values(whole).into_iter().map(f64::from).collect();
            let off = relative_l2(&values(made), &whole);
            assert!(off <= 1e-6, "T {len}: the pieces are off by {off:e}");
        }
    }
}
