//! Values and gradients of the operations compared with compositions of Burn's own operations on the CPU.

use burn::tensor::activation::softmax;
use burn::tensor::{Device as TensorDevice, Distribution, Int, Tensor, TensorData};
use tabtune::ops::{self, AttentionShape, NormConstants, Positions};
use tabtune_tests::kernels::{noise, relative_l2};
use tabtune_tests::{block_on, cpu, devices};

/// Relative L2 distance of f32 sums of a few hundred terms in two orders.
pub(super) const BOUND: f64 = 2e-6;

pub(super) type Inputs = Vec<Tensor<2>>;

/// A norm whose weight is used as it is stored.
const PLAIN: NormConstants = NormConstants {
    eps: 1e-5,
    offset: 0.0,
};

fn values(tensor: Tensor<2>) -> Vec<f32> {
    block_on(tensor.into_data_async())
        .unwrap()
        .try_to_vec::<f32>()
        .unwrap()
}

/// Returns the output, and the gradient of `Σ output · noise` for each input, on `device`.
fn gradients(
    device: &TensorDevice,
    shapes: &[[usize; 2]],
    op: &dyn Fn(&Inputs) -> Tensor<2>,
) -> Vec<Vec<f32>> {
    let inputs: Inputs = shapes
        .iter()
        .zip(10..)
        .map(|(&shape, seed)| {
            Tensor::from_data(
                TensorData::new(noise(shape[0] * shape[1], seed), shape),
                device,
            )
            .require_grad()
        })
        .collect();
    let output = op(&inputs);
    let shape = output.dims();
    let weights = Tensor::<2>::from_data(
        TensorData::new(noise(shape[0] * shape[1], 99), shape),
        device,
    );
    let grads = (output.clone() * weights).sum().backward();
    let mut all = vec![values(output.inner())];
    all.extend(
        inputs
            .iter()
            .map(|input| values(input.grad(&grads).expect("every input has a gradient"))),
    );
    all
}

/// Asserts that `ours` on every device equals `stock` on the CPU.
fn compare(
    name: &str,
    shapes: &[[usize; 2]],
    ours: &dyn Fn(&Inputs) -> Tensor<2>,
    stock: &dyn Fn(&Inputs) -> Tensor<2>,
) {
    compare_within(BOUND, name, shapes, ours, stock);
}

pub(super) fn compare_within(
    bound: f64,
    name: &str,
    shapes: &[[usize; 2]],
    ours: &dyn Fn(&Inputs) -> Tensor<2>,
    stock: &dyn Fn(&Inputs) -> Tensor<2>,
) {
    let expected = gradients(&cpu().autodiff(), shapes, stock);
    for device in devices() {
        let found = gradients(&device.autodiff(), shapes, ours);
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let expected: Vec<f64> = expected.iter().map(|&v| f64::from(v)).collect();
            let distance = relative_l2(found, &expected);
            assert!(
                distance <= bound,
                "{name} on {}: result {i} is off by {distance:e}",
                device.info().adapter
            );
        }
    }
}

#[test]
fn linear_matches_matmul() {
    for (n, m, k) in [
        (1, 1, 1),
        (2, 12, 8),
        (13, 20, 36),
        (7, 341, 64),
        (130, 64, 341),
        (130, 72, 68),
        (17, 68, 128),
        (16, 16, 16),
        (17, 17, 17),
        (33, 33, 33),
    ] {
        compare(
            "linear",
            &[[n, k], [m, k]],
            &|i| ops::linear(i[0].clone(), i[1].clone()),
            &|i| i[0].clone().matmul(i[1].clone().transpose()),
        );
        compare(
            "conv1d",
            &[[n, k], [k, m]],
            &|i| ops::conv1d(i[0].clone(), i[1].clone()),
            &|i| i[0].clone().matmul(i[1].clone()),
        );
    }
}

#[test]
fn bias_and_residual_match_addition() {
    compare(
        "bias_add",
        &[[150, 7], [1, 7]],
        &|i| ops::bias_add(i[0].clone() * 2.0, i[1].clone().reshape([7])),
        &|i| i[0].clone() * 2.0 + i[1].clone(),
    );
    compare(
        "residual_add",
        &[[15, 7], [15, 7]],
        &|i| ops::residual_add(i[0].clone(), i[1].clone()),
        &|i| i[0].clone() + i[1].clone(),
    );
}

#[test]
fn rms_norm_matches_its_formula() {
    let shapes = [[1, 8], [16, 16], [17, 33], [200, 33]];
    for (shape, offset) in shapes
        .into_iter()
        .flat_map(|shape| [(shape, 0.0), (shape, 1.0)])
    {
        let of = NormConstants { eps: 1e-5, offset };
        compare(
            "rms_norm",
            &[shape, [1, shape[1]]],
            &|i| ops::rms_norm(i[0].clone(), i[1].clone().reshape([shape[1]]), of),
            &|i| {
                let x = i[0].clone();
                let rms = (x.clone().powi_scalar(2).mean_dim(1) + 1e-5).sqrt();
                x / rms * (i[1].clone() + offset)
            },
        );
    }
}

#[test]
fn add_rms_norm_matches_its_parts() {
    let norm =
        |x: Tensor<2>, w: Tensor<2>| x.clone() / (x.powi_scalar(2).mean_dim(1) + 1e-5).sqrt() * w;
    // The sum is used in addition to its norm: two operations add to its gradient.
    let ours = |i: &Inputs| {
        let (sum, normed) = ops::add_rms_norm(
            i[0].clone(),
            i[1].clone() * 1.0,
            i[2].clone().reshape([33]),
            PLAIN,
        );
        ops::residual_add(sum, normed)
    };
    compare(
        "add_rms_norm",
        &[[200, 33], [200, 33], [1, 33]],
        &ours,
        &|i| {
            let sum = i[0].clone() + i[1].clone();
            sum.clone() + norm(sum, i[2].clone())
        },
    );
}

#[test]
fn inputs_of_several_products_gather_their_gradients() {
    // The large block (64 rows and more) adds in place, the small one with another launch.
    for n in [9, 132] {
        let ours = |i: &Inputs| {
            let x = i[0].clone() * 2.0;
            let [a, b, c] = [1, 2, 3].map(|at| ops::linear(x.clone(), i[at].clone()));
            ops::residual_add(ops::residual_add(a, b), c)
        };
        compare(
            "linear thrice",
            &[[n, 64], [72, 64], [72, 64], [72, 64]],
            &ours,
            &|i| {
                let x = i[0].clone() * 2.0;
                x.clone()
                    .matmul((i[1].clone() + i[2].clone() + i[3].clone()).transpose())
            },
        );
    }
}

#[test]
fn layer_norm_matches_its_formula() {
    for shape in [[1, 8], [16, 16], [17, 33], [200, 33]] {
        let width = shape[1];
        let ours = |i: &Inputs| {
            ops::layer_norm(
                i[0].clone(),
                i[1].clone().reshape([width]),
                i[2].clone().reshape([width]),
                1e-5,
            )
        };
        compare(
            "layer_norm",
            &[shape, [1, width], [1, width]],
            &ours,
            &|i| {
                let x = i[0].clone() - i[0].clone().mean_dim(1);
                x.clone() / (x.powi_scalar(2).mean_dim(1) + 1e-5).sqrt() * i[1].clone()
                    + i[2].clone()
            },
        );
    }
}

#[test]
fn swiglu_and_gelu_match_their_formulas() {
    for shape in [[1, 1], [37, 11], [17, 33], [16, 16]] {
        compare(
            "swiglu",
            &[shape, shape],
            &|i| ops::gated_unit(i[0].clone(), i[1].clone(), ops::GateFunction::Silu),
            &|i| burn::tensor::activation::silu(i[0].clone()) * i[1].clone(),
        );
        compare("gelu", &[shape], &|i| ops::gelu(i[0].clone()), &|i| {
            let x = i[0].clone();
            let inner = (x.clone() + x.clone().powi_scalar(3) * 0.044_715) * 0.797_884_560_8;
            x * (inner.tanh() + 1.0) * 0.5
        });
    }
}

fn tables(device: &TensorDevice, positions: usize, half: usize) -> [Tensor<2>; 2] {
    let angle = |i: usize| (i / half) as f64 * 10_000_f64.powf(-((i % half) as f64) / half as f64);
    let table = |f: fn(f64) -> f64| -> Vec<f32> {
        (0..positions * half).map(|i| f(angle(i)) as f32).collect()
    };
    [f64::cos, f64::sin]
        .map(|f| Tensor::from_data(TensorData::new(table(f), [positions, half]), device))
}

/// Rotates by the formula. x [2·len, heads·2·half].
fn rotated(x: &Tensor<2>, (len, offset, heads, half): (usize, usize, usize, usize)) -> Tensor<2> {
    let [cos, sin] =
        tables(&x.device(), 7, half).map(|t| t.narrow(0, offset, len).reshape([1, len, 1, half]));
    let x = x.clone().reshape([2, len, heads, 2 * half]);
    let (a, b) = (
        x.clone().slice([0..2, 0..len, 0..heads, 0..half]),
        x.slice([0..2, 0..len, 0..heads, half..2 * half]),
    );
    let rotated = [
        a.clone() * cos.clone() - b.clone() * sin.clone(),
        b * cos + a * sin,
    ];
    Tensor::cat(rotated.to_vec(), 3).reshape([2 * len, heads * 2 * half])
}

#[test]
fn rope_matches_its_formula() {
    for (len, offset, heads, half) in [(5, 2, 3, 4), (1, 6, 9, 32), (7, 0, 3, 40)] {
        let kv_heads = usize::div_ceil(heads, 3);
        let ours = |i: &Inputs| {
            let [cos, sin] = tables(&i[0].device(), 7, half);
            let (q, k) = ops::rope(
                i[0].clone() * 1.0,
                i[1].clone() * 1.0,
                cos,
                sin,
                Positions { len, offset },
            );
            [q, k]
        };
        let shapes = [heads, kv_heads].map(|heads| [2 * len, heads * 2 * half]);
        let by_formula = |i: &Inputs| {
            [(0, heads), (1, kv_heads)]
                .map(|(which, heads)| rotated(&i[which], (len, offset, heads, half)))
        };
        compare(
            "rope",
            &shapes,
            &|i| Tensor::cat(ours(i).to_vec(), 1),
            &|i| Tensor::cat(by_formula(i).to_vec(), 1),
        );
        // If one of the two has no gradient, the other's must still pass.
        for used in [0, 1] {
            let one = |rotated: [Tensor<2>; 2], i: &Inputs| {
                Tensor::cat(vec![rotated[used].clone(), i[1 - used].clone()], 1)
            };
            compare("rope of one", &shapes, &|i| one(ours(i), i), &|i| {
                one(by_formula(i), i)
            });
        }
    }
}

/// Computes attention with all scores, as in a textbook; query t sees the keys from `starts[t]` on.
fn textbook(i: &Inputs, starts: &[i32], s: AttentionShape) -> Tensor<2> {
    let device = i[0].device();
    let (b, t, keys, d) = (s.batch_size, s.seq_len, s.offset + s.seq_len, s.head_dim);
    let q = i[0].clone().reshape([b, t, s.heads, d]).swap_dims(1, 2);
    let spread = |x: Tensor<2>| {
        let x = x
            .reshape([b, keys, s.kv_heads, d])
            .swap_dims(1, 2)
            .reshape([b, s.kv_heads, 1, keys * d]);
        x.expand([b, s.kv_heads, s.heads / s.kv_heads, keys * d])
            .reshape([b, s.heads, keys, d])
    };
    let (k, v) = (spread(i[1].clone()), spread(i[2].clone()));
    let seen = |row: usize, key: usize| key <= s.offset + row % t && key as i32 >= starts[row];
    let hidden: Vec<f32> = (0..b * t * keys)
        .map(|at| {
            if seen(at / keys, at % keys) {
                0.0
            } else {
                -1e9
            }
        })
        .collect();
    let mask = Tensor::<2>::from_data(TensorData::new(hidden, [b * t, keys]), &device)
        .reshape([b, 1, t, keys]);
    let weights = softmax(q.matmul(k.swap_dims(2, 3)) / (d as f64).sqrt() + mask, 3);
    weights
        .matmul(v)
        .swap_dims(1, 2)
        .reshape([b * t, s.heads * d])
}

#[test]
fn attention_matches_the_textbook() {
    let shape = |(batch_size, seq_len, offset, heads, kv_heads, head_dim)| AttentionShape {
        batch_size,
        seq_len,
        offset,
        heads,
        kv_heads,
        head_dim,
        window: None,
        scale: None,
        cap: None,
    };
    for s in [
        (1, 2, 0, 1, 1, 4),
        (2, 13, 0, 4, 4, 32),
        (1, 67, 0, 9, 3, 64),
        (1, 17, 0, 9, 3, 80),
        (1, 1, 16, 9, 3, 64),
        (2, 5, 0, 2, 1, 80),
        (1, 7, 11, 2, 2, 6),
        (2, 9, 0, 3, 1, 10),
    ]
    .map(shape)
    {
        let (q, k) = (
            s.batch_size * s.seq_len,
            s.batch_size * (s.offset + s.seq_len),
        );
        let shapes = [
            [q, s.heads * s.head_dim],
            [k, s.kv_heads * s.head_dim],
            [k, s.kv_heads * s.head_dim],
        ];
        let ours = |i: &Inputs, starts| {
            ops::attention(i[0].clone(), i[1].clone(), i[2].clone(), starts, s)
        };
        compare("attention", &shapes, &|i| ours(i, None), &|i| {
            textbook(i, &vec![0; q], s)
        });
        // Documents of 1, 2, 4 and more tokens, which begin at other places in each sequence.
        let start = |row: usize| {
            let key = (s.offset + row % s.seq_len) as i32;
            [2, 3, 5, 9 + (row / s.seq_len) as i32, 30]
                .into_iter()
                .filter(|&start| start <= key)
                .max()
                .unwrap_or(0)
        };
        let starts: Vec<i32> = (0..q).map(start).collect();
        let tensor = |device: &TensorDevice| {
            Tensor::<1, Int>::from_data(TensorData::new(starts.clone(), [q]), device)
        };
        compare(
            "attention in documents",
            &shapes,
            &|i| ours(i, Some(tensor(&i[0].device()))),
            &|i| textbook(i, &starts, s),
        );
    }
}

#[test]
fn embedding_and_head_loss_match_their_formulas() {
    let (n, vocab, width) = (70, 33, 12);
    let ids: Vec<i32> = (0..n as i32).map(|r| r * r % 31).collect();
    let int = |device: &TensorDevice, ids: &[i32]| {
        Tensor::<1, Int>::from_data(TensorData::new(ids.to_vec(), [ids.len()]), device)
    };
    compare(
        "embedding",
        &[[vocab, width]],
        &|i| ops::embedding(i[0].clone(), int(&i[0].device(), &ids)),
        &|i| i[0].clone().select(0, int(&i[0].device(), &ids)),
    );
    let targets: Vec<i32> = ids
        .iter()
        .enumerate()
        .map(|(r, &id)| if r % 4 == 3 { -100 } else { id })
        .collect();
    for rows in [1, 32, n, 1000] {
        // The factor acts as the upstream gradient.
        let ours = |i: &Inputs| {
            (ops::head_loss(
                i[0].clone(),
                i[1].clone(),
                int(&i[0].device(), &targets),
                rows,
                None,
            ) * 0.25)
                .reshape([1, 1])
        };
        compare("head_loss", &[[n, width], [vocab, width]], &ours, &|i| {
            let picked = (0..n * vocab).map(|at| {
                if targets[at / vocab] == (at % vocab) as i32 {
                    -0.25_f32
                } else {
                    0.0
                }
            });
            let picked = Tensor::<2>::from_data(
                TensorData::new(picked.collect::<Vec<_>>(), [n, vocab]),
                &i[0].device(),
            );
            let logits = i[0].clone().matmul(i[1].clone().transpose());
            (burn::tensor::activation::log_softmax(logits, 1) * picked)
                .sum()
                .reshape([1, 1])
        });
    }
}

#[test]
fn packed_weights_equal_their_widened_values_bitwise() {
    let bf16 = |values: &[f32]| {
        values
            .iter()
            .map(|&v| half::bf16::from_f32(v))
            .collect::<Vec<_>>()
    };
    for device in devices() {
        let device = device.autodiff();
        for (n, m, k) in [
            (1, 12, 8),
            (9, 12, 8),
            (5, 7, 9),
            (2, 5, 3),
            (70, 72, 68),
            (70, 71, 67),
        ] {
            let packed = bf16(&noise(m * k, 3));
            let wide: Vec<f32> = packed.iter().map(|v| v.to_f32()).collect();
            let run = |w: Tensor<2>| {
                let x = Tensor::<2>::from_data(TensorData::new(noise(n * k, 4), [n, k]), &device)
                    .require_grad();
                let w = w.require_grad();
                let y = ops::linear(x.clone(), w.clone());
                let grads = (y.clone() * y.clone()).sum().backward();
                [
                    values(y.inner()),
                    values(x.grad(&grads).unwrap()),
                    values(w.grad(&grads).unwrap()),
                ]
            };
            let from_packed = run(Tensor::from_data(
                TensorData::new(packed, [m, k]),
                (&device, burn::tensor::DType::BF16),
            ));
            assert_eq!(
                from_packed,
                run(Tensor::from_data(TensorData::new(wide, [m, k]), &device)),
                "{n} {m} {k}"
            );
        }
    }
}

#[test]
fn shared_inputs_are_not_overwritten() {
    for device in devices() {
        let x = Tensor::<2>::random([9, 8], Distribution::Default, &device.inner());
        let before = values(x.clone());
        let _ = ops::residual_add(x.clone(), x.clone());
        let _ = ops::bias_add(x.clone(), Tensor::ones([8], &device.inner()));
        assert_eq!(values(x), before);
    }
}

#[test]
fn operations_repeat_bit_for_bit() {
    for device in devices() {
        repeats(&device.autodiff());
    }
}

fn repeats(device: &burn::tensor::Device) {
    let shape = AttentionShape {
        batch_size: 1,
        seq_len: 67,
        offset: 0,
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        window: None,
        scale: None,
        cap: None,
    };
    let attention =
        |i: &Inputs| ops::attention(i[0].clone(), i[1].clone(), i[2].clone(), None, shape);
    let linear = |i: &Inputs| ops::linear(i[0].clone(), i[1].clone());
    let norm = |i: &Inputs| {
        ops::add_rms_norm(
            i[0].clone(),
            i[1].clone(),
            i[2].clone().reshape([33]),
            PLAIN,
        )
        .1
    };
    type Op<'a> = &'a dyn Fn(&Inputs) -> Tensor<2>;
    let ops: [(&[[usize; 2]], Op); 3] = [
        (&[[67, 576], [67, 192], [67, 192]], &attention),
        (&[[130, 72], [132, 72]], &linear),
        (&[[200, 33], [200, 33], [1, 33]], &norm),
    ];
    for (shapes, op) in ops {
        let bits = || {
            gradients(device, shapes, op)
                .concat()
                .iter()
                .map(|v| v.to_bits())
                .collect::<Vec<_>>()
        };
        let first = bits();
        assert!((0..3).all(|_| bits() == first), "{shapes:?}");
    }
}
