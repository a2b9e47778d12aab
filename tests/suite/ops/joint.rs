//! Operations that combine several others in fewer dispatches: products of one input with several matrices, and the operations between products in
//! GPT-2's blocks.

use burn::tensor::{Device as TensorDevice, Tensor, TensorData};
use tabtune::gpu::StorageType::{Bf16, F32};
use tabtune::gpu::counter::dispatches;
use tabtune::gpu::{StorageType, Stored};
use tabtune::ops::linear::joint::{self, BackwardParams, ForwardParams};
use tabtune::ops::{self, AttentionShape, Positions};
use tabtune_tests::kernels::{Case, check, noise, poisoned, relative_l2, words};
use tabtune_tests::{as_a_gpu, block_on, cpu};

use super::linear::weights;

/// Sums of up to a few hundred products in f32 compared with f64.
const BOUND: f64 = 1e-5;

/// Rows, columns of each output, columns of x.
type Shape = (usize, [usize; 3], usize);

/// Parts that end inside a tile, a part smaller than a tile, many tiles, no third part.
const SHAPES: [Shape; 6] = [
    (1, [4, 4, 4], 4),
    (33, [64, 32, 32], 64),
    (65, [36, 4, 100], 68),
    (64, [132, 60, 8], 36),
    (130, [64, 68, 0], 132),
    (40, [8, 300, 0], 20),
];

fn tiles(small: bool, rows: usize, columns: usize) -> u32 {
    let size = if small { 32 } else { 64 };
    (rows.div_ceil(size) * columns.div_ceil(size)) as u32
}

/// Makes the weights of each matrix that has rows; the others are one vector.
fn matrices(m: [usize; 3], k: usize, storage: StorageType) -> [Vec<u32>; 3] {
    m.map(|m| {
        if m == 0 {
            vec![0; 4]
        } else {
            weights([m, k], storage).0
        }
    })
}

fn forward((n, m, k): Shape, storage: StorageType, small: bool) -> Case {
    let kernel = if small {
        &joint::FORWARD_TILE_SMALL
    } else {
        &joint::FORWARD_TILE
    };
    let [w0, w1, w2] = matrices(m, k, storage);
    let all: usize = m.iter().sum();
    let params = ForwardParams {
        n,
        m: all,
        k4: k / 4,
        m0: m[0],
        m1: m[1],
    };
    let ys = m.map(|m| poisoned((n * m).max(1)));
    Case::new(
        kernel.of(storage),
        [w0, w1, w2, words(&noise(n * k, 1))],
        ys,
        &params,
        tiles(small, n, all),
    )
}

fn params((n, m, k): Shape, small: bool, add: bool) -> (BackwardParams, [Vec<u32>; 2], u32) {
    let all: usize = m.iter().sum();
    let (m4, input) = (all / 4, tiles(small, n, k));
    let params = BackwardParams {
        n,
        m4,
        k4: k / 4,
        slice4: m4,
        input: input as usize,
        add,
        m0: m[0],
        m1: m[1],
    };
    let dx = if add {
        words(&noise(n * k, 3))
    } else {
        poisoned(n * k)
    };
    (
        params,
        [dx, poisoned(all * k)],
        input + tiles(small, all, k),
    )
}

fn three(shape: Shape, storage: StorageType, small: bool, add: bool) -> Case {
    let (n, m, k) = shape;
    let kernel = if small {
        &joint::BACKWARD_THREE_TILE_SMALL
    } else {
        &joint::BACKWARD_THREE_TILE
    };
    let ([w0, w1, w2], (params, outputs, groups)) =
        (matrices(m, k, storage), params(shape, small, add));
    let dy = words(&noise(n * m.iter().sum::<usize>(), 5));
    Case::new(
        kernel.of(storage),
        [w0, w1, w2, dy, words(&noise(n * k, 1))],
        outputs,
        &params,
        groups,
    )
}

fn two(shape: Shape, storage: StorageType, small: bool, add: bool) -> Case {
    let (n, m, k) = shape;
    let kernel: &'static Stored<BackwardParams, 5, 2, 2> = if small {
        &joint::BACKWARD_TWO_TILE_SMALL
    } else {
        &joint::BACKWARD_TWO_TILE
    };
    let ([w0, w1, _], (params, outputs, groups)) =
        (matrices(m, k, storage), params(shape, small, add));
    let [dy0, dy1] = [(m[0], 5), (m[1], 6)].map(|(m, seed)| words(&noise(n * m, seed)));
    Case::new(
        kernel.of(storage),
        [w0, w1, dy0, dy1, words(&noise(n * k, 1))],
        outputs,
        &params,
        groups,
    )
}

#[test]
fn several_products_are_each_their_own() {
    for small in [false, true] {
        check(
            &SHAPES.map(|s| forward(s, F32, small)),
            BOUND,
            ("column - m0 - m1", "column - m0"),
        );
        check(
            &SHAPES.map(|s| forward(s, F32, small)),
            BOUND,
            ("row < m0 + m1", "row < m0"),
        );
        check(
            &SHAPES.map(|s| forward(s, Bf16, small)),
            BOUND,
            ("(row - m0) * k4", "row * k4"),
        );
    }
}

#[test]
fn gradients_of_several_products_are_their_sum_and_their_own() {
    let of_two = || SHAPES.into_iter().filter(|(_, m, _)| m[2] == 0);
    for small in [false, true] {
        let gradients = |storage, add| SHAPES.map(|s| three(s, storage, small, add));
        check(
            &gradients(F32, false),
            BOUND,
            ("params.n * before", "params.n * c"),
        );
        check(
            &gradients(F32, true),
            BOUND,
            ("(params.add & 1u) == 1u", "params.add == 2u"),
        );
        check(
            &gradients(Bf16, false),
            BOUND,
            ("(row - m0 - m1) * k4", "(row - m0) * k4"),
        );
        let gradients = |storage, add| {
            of_two()
                .map(|s| two(s, storage, small, add))
                .collect::<Vec<_>>()
        };
        check(
            &gradients(F32, false),
            BOUND,
            ("(params.m4 - first) + c - first", "params.m4 + c - first"),
        );
        check(
            &gradients(F32, true),
            BOUND,
            ("(params.add & 1u) == 1u", "params.add == 2u"),
        );
        check(
            &gradients(Bf16, false),
            BOUND,
            ("(row - m0) * k4", "row * k4"),
        );
    }
}

/// Returns the value of `op` and the gradients of its inputs, which have these shapes.
fn gradients(
    device: &TensorDevice,
    shapes: &[[usize; 2]],
    op: impl Fn(&[Tensor<2>]) -> Tensor<2>,
) -> (Vec<Vec<f32>>, u64) {
    let read = |tensor: Tensor<2>| {
        block_on(tensor.into_data_async())
            .unwrap()
            .try_to_vec::<f32>()
            .unwrap()
    };
    let value = |(&[n, m], seed): (&[usize; 2], u32)| {
        Tensor::<2>::from_data(TensorData::new(noise(n * m, seed), [n, m]), device).mul_scalar(0.2)
    };
    let inputs: Vec<_> = shapes
        .iter()
        .zip(10..)
        .map(|input| value(input).require_grad())
        .collect();
    let before = dispatches();
    let output = op(&inputs);
    let weights = value((&output.dims(), 99));
    let grads = (output.clone() * weights).sum().backward();
    let launched = dispatches() - before;
    let found = inputs
        .iter()
        .map(|input| read(input.grad(&grads).expect("every input has a gradient")));
    (
        [read(output.inner())].into_iter().chain(found).collect(),
        launched,
    )
}

/// Compares `joint` with single operations on the CPU. Returns the number of its launches if a GPU's kernels are chosen.
fn compare(
    shapes: &[[usize; 2]],
    joint: impl Fn(&[Tensor<2>]) -> Tensor<2>,
    single: impl Fn(&[Tensor<2>]) -> Tensor<2>,
) -> Option<u64> {
    let (expected, _) = gradients(&cpu().autodiff(), shapes, single);
    let mut launched = None;
    for device in [Some(cpu()), as_a_gpu()].into_iter().flatten() {
        let (found, count) = gradients(&device.autodiff(), shapes, &joint);
        launched = Some(count);
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let expected: Vec<f64> = expected.iter().map(|&v| f64::from(v)).collect();
            let distance = relative_l2(found, &expected);
            assert!(
                distance <= 2e-6,
                "result {at} on {device:?} is off by {distance:e}"
            );
        }
    }
    launched.filter(|_| as_a_gpu().is_some())
}

#[test]
fn self_attention_is_its_parts() {
    // Heads of 64 that share, heads of 16, and heads of 12, which have no joint gradient.
    for (heads, kv_heads, head_dim, joint) in [
        (4, 2, 64, true),
        (3, 3, 64, true),
        (4, 1, 16, true),
        (4, 2, 12, false),
    ] {
        let (batch_size, seq_len, c) = (2, 40, 64);
        let shape = AttentionShape {
            batch_size,
            seq_len,
            offset: 0,
            heads,
            kv_heads,
            head_dim,
            window: None,
            scale: None,
            cap: None,
        };
        let half = head_dim / 2;
        let tables = |x: &Tensor<2>| {
            [3, 4].map(|seed| {
                Tensor::<2>::from_data(
                    TensorData::new(noise(seq_len * half, seed), [seq_len, half]),
                    &x.device(),
                )
            })
        };
        let (q, kv) = (heads * head_dim, kv_heads * head_dim);
        let shapes = [[batch_size * seq_len, c], [q, c], [kv, c], [kv, c]];
        let launched = compare(
            &shapes,
            |i| {
                ops::self_attention(
                    i[0].clone() * 1.0,
                    [i[1].clone(), i[2].clone(), i[3].clone()],
                    tables(&i[0]),
                    None,
                    shape,
                )
            },
            |i| {
                let [q, k, v] = [1, 2, 3].map(|at| ops::linear(i[0].clone(), i[at].clone()));
                let [cosines, sines] = tables(&i[0]);
                let (q, k) = ops::rope(
                    q,
                    k,
                    cosines,
                    sines,
                    Positions {
                        len: seq_len,
                        offset: 0,
                    },
                );
                ops::attention(q, k, v, None, shape)
            },
        );
        // Products, rotation, attention; attention twice, rotation, gradients.
        assert!(
            launched.is_none_or(|launched| (launched == 7) == joint),
            "{heads} heads of {head_dim}: {launched:?}"
        );
    }
}

#[test]
fn gated_products_are_their_parts() {
    for (n, f, c, joint) in [
        (40, 96, 64, true),
        (64, 100, 20, false),
        (33, 64, 8, true),
        (40, 2100, 64, false),
    ] {
        let launched = compare(
            &[[n, c], [f, c], [f, c]],
            |i| {
                ops::gated(
                    i[0].clone() * 1.0,
                    [i[1].clone(), i[2].clone()],
                    ops::GateFunction::Silu,
                )
            },
            |i| {
                ops::gated_unit(
                    ops::linear(i[0].clone(), i[1].clone()),
                    ops::linear(i[0].clone(), i[2].clone()),
                    ops::GateFunction::Silu,
                )
            },
        );
        assert!(
            launched.is_none_or(|launched| (launched == 4) == joint),
            "{n} rows of {f}: {launched:?}"
        );
    }
}

#[test]
fn attention_of_packed_qkv_is_its_parts() {
    for (heads, head_dim) in [(2, 16), (3, 5)] {
        let (batch_size, seq_len, c) = (2, 40, heads * head_dim);
        let shape = AttentionShape {
            batch_size,
            seq_len,
            offset: 0,
            heads,
            kv_heads: heads,
            head_dim,
            window: None,
            scale: None,
            cap: None,
        };
        compare(
            &[[batch_size * seq_len, 3 * c], [1, 3 * c]],
            |i| {
                ops::attention_of_packed_qkv(
                    i[0].clone() * 1.0,
                    i[1].clone().reshape([3 * c]),
                    None,
                    shape,
                )
            },
            |i| {
                let x = i[0].clone() + i[1].clone();
                let [q, k, v] = [0, 1, 2].map(|third| x.clone().narrow(1, third * c, c));
                ops::attention(q, k, v, None, shape)
            },
        );
    }
}

#[test]
fn sum_with_a_bias_and_its_norm_are_their_parts() {
    for (n, c, biased) in [(70, 64, true), (33, 20, false), (7, 5, true)] {
        compare(
            &[[n, c], [n, c], [1, c], [1, c], [1, c]],
            |i| {
                let [bias, w, b] = [2, 3, 4].map(|at| i[at].clone().reshape([c]));
                let (sum, normed) = ops::add_layer_norm(
                    i[0].clone() * 1.0,
                    i[1].clone() * 1.0,
                    biased.then_some(bias.clone()),
                    [w, b],
                    1e-5,
                );
                // If the bias is not used, it is added separately, so that it still has a gradient.
                let sum = if biased {
                    sum
                } else {
                    ops::bias_add(sum, bias)
                };
                ops::residual_add(sum, normed)
            },
            |i| {
                let [bias, w, b] = [2, 3, 4].map(|at| i[at].clone());
                let before = i[0].clone() + i[1].clone();
                let sum = before.clone() + bias;
                let x = if biased { sum.clone() } else { before };
                let x = x.clone() - x.mean_dim(1);
                sum + x.clone() / (x.powi_scalar(2).mean_dim(1) + 1e-5).sqrt() * w + b
            },
        );
    }
}

#[test]
fn gelu_of_a_biased_input_is_its_parts() {
    compare(
        &[[70, 11], [1, 11]],
        |i| ops::gelu_bias(i[0].clone() * 1.0, i[1].clone().reshape([11])),
        |i| ops::gelu(i[0].clone() + i[1].clone()),
    );
}
