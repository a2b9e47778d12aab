//! Every operation compared with its formula in float64, value and gradients, at the sizes at which kernels have edges: one, a prime, one past
//! a block, one token, grouped heads. Each runs twice and must give the same bits.

use burn::tensor::{DType, Int, Tensor, TensorData};
use tabtune::ops::{self, AttentionShape, NormConstants, Positions};
use tabtune_tests::kernels::noise;
use tabtune_tests::tape::{Tape, Var, dot};
use tabtune_tests::{block_on, devices};

/// Relative L2 distance of values: f32 sums of at most some hundred terms.
const VALUES: f64 = 2e-6;
/// Relative L2 distance of gradients, which go through two such sums.
const GRADIENTS: f64 = 1e-5;

pub(super) type Inputs = Vec<Tensor<2>>;

/// A norm whose weight is used as it is stored.
const PLAIN: NormConstants = NormConstants {
    eps: 1e-5,
    offset: 0.0,
};
pub(super) type Formula<'a> = dyn for<'t> Fn(&[Vec<Var<'t>>]) -> Vec<Var<'t>> + 'a;

/// Returns the output and the gradients of `Σ output · noise` with `op`, as f32.
fn found(
    device: &burn::tensor::Device,
    shapes: &[[usize; 2]],
    op: &dyn Fn(&Inputs) -> Tensor<2>,
) -> Vec<Vec<f32>> {
    let values = |tensor: Tensor<2>| {
        block_on(tensor.into_data_async())
            .unwrap()
            .try_to_vec::<f32>()
            .unwrap()
    };
    let input = |(&shape, seed): (&[usize; 2], u32)| {
        Tensor::<2>::from_data(
            TensorData::new(noise(shape[0] * shape[1], seed), shape),
            device,
        )
        .require_grad()
    };
    let inputs: Inputs = shapes.iter().zip(10..).map(input).collect();
    let output = op(&inputs);
    let [rows, columns] = output.dims();
    let weights = Tensor::<2>::from_data(
        TensorData::new(noise(rows * columns, 99), [rows, columns]),
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

/// Returns the output and the gradients of `Σ output · noise` with `formula`, in f64.
fn truth(shapes: &[[usize; 2]], formula: &Formula<'_>) -> Vec<Vec<f64>> {
    let tape = Tape::default();
    let input = |(&shape, seed): (&[usize; 2], u32)| -> Vec<Var<'_>> {
        noise(shape[0] * shape[1], seed)
            .into_iter()
            .map(|v| tape.var(f64::from(v)))
            .collect()
    };
    let inputs: Vec<Vec<Var<'_>>> = shapes.iter().zip(10..).map(input).collect();
    let output = formula(&inputs);
    let weights = noise(output.len(), 99);
    let mut all = vec![output.iter().map(|v| v.value()).collect()];
    all.extend(
        inputs
            .iter()
            .map(|input| tape.gradients(&output, &weights, input)),
    );
    all
}

/// Returns the relative L2 distance. The gradient through a softmax of one key is zero: then the error is relative to a hundredth of the inputs'
/// size.
fn distance(found: &[f32], truth: &[f64]) -> f64 {
    let off: f64 = found
        .iter()
        .zip(truth)
        .map(|(&f, t)| (f64::from(f) - t).powi(2))
        .sum();
    let size: f64 = truth.iter().map(|t| t * t).sum();
    assert!(found.len() == truth.len() && off.is_finite());
    (off / size.max(1e-4 * truth.len() as f64)).sqrt()
}

pub(super) fn holds(
    name: &str,
    shapes: &[[usize; 2]],
    op: &dyn Fn(&Inputs) -> Tensor<2>,
    formula: &Formula<'_>,
) {
    holds_within(&|_| GRADIENTS, name, shapes, op, formula);
}

/// Checks an operation with a bound of its own for the gradient of each input.
pub(super) fn holds_within(
    bounds: &dyn Fn(usize) -> f64,
    name: &str,
    shapes: &[[usize; 2]],
    op: &dyn Fn(&Inputs) -> Tensor<2>,
    formula: &Formula<'_>,
) {
    let truth = truth(shapes, formula);
    for device in devices() {
        let adapter = &device.info().adapter;
        let once = found(&device.autodiff(), shapes, op);
        for (i, (found, truth)) in once.iter().zip(&truth).enumerate() {
            let (distance, bound) = (
                distance(found, truth),
                if i == 0 { VALUES } else { bounds(i - 1) },
            );
            assert!(
                distance <= bound,
                "{name} {shapes:?} on {adapter}: result {i} is off by {distance:e}"
            );
        }
        let bits = |results: &[Vec<f32>]| {
            results
                .concat()
                .iter()
                .map(|v| v.to_bits())
                .collect::<Vec<_>>()
        };
        let again = found(&device.autodiff(), shapes, op);
        assert!(
            bits(&once) == bits(&again),
            "{name} {shapes:?} on {adapter}: another run has other bits"
        );
    }
}

/// Rows and columns for operations on rows.
const ROWS: [[usize; 2]; 6] = [[1, 1], [1, 7], [16, 16], [17, 33], [33, 17], [131, 64]];

/// n, m, k: blocks of 4, 8 and 16 and one past them, with widths that are multiples of 4 and others; the last uses the large blocks.
const PRODUCTS: [(usize, usize, usize); 10] = [
    (1, 1, 1),
    (1, 16, 17),
    (7, 13, 11),
    (16, 16, 16),
    (17, 17, 17),
    (33, 20, 36),
    (17, 36, 20),
    (2, 33, 64),
    (97, 101, 67),
    (97, 100, 68),
];

/// Computes x [n, k] · w [m, k]ᵀ.
fn product<'t>(x: &[Var<'t>], w: &[Var<'t>], k: usize) -> Vec<Var<'t>> {
    x.chunks(k)
        .flat_map(|row| {
            w.chunks(k)
                .map(|column| dot(row.iter().copied().zip(column.iter().copied())))
        })
        .collect()
}

#[test]
fn linear_and_conv1d_are_true_to_float64() {
    for (n, m, k) in PRODUCTS {
        holds(
            "linear",
            &[[n, k], [m, k]],
            &|i| ops::linear(i[0].clone(), i[1].clone()),
            &|i| product(&i[0], &i[1], k),
        );
        holds(
            "conv1d",
            &[[n, k], [k, m]],
            &|i| ops::conv1d(i[0].clone(), i[1].clone()),
            &|i| {
                let turned: Vec<_> = (0..m * k).map(|at| i[1][at % k * m + at / k]).collect();
                product(&i[0], &turned, k)
            },
        );
    }
}

#[test]
fn sums_are_true_to_float64() {
    for shape in ROWS {
        let width = shape[1];
        holds(
            "residual_add",
            &[shape, shape],
            &|i| ops::residual_add(i[0].clone(), i[1].clone()),
            &|i| i[0].iter().zip(&i[1]).map(|(&a, &b)| a + b).collect(),
        );
        holds(
            "bias_add",
            &[shape, [1, width]],
            &|i| ops::bias_add(i[0].clone(), i[1].clone().reshape([width])),
            &|i| {
                i[0].iter()
                    .enumerate()
                    .map(|(at, &a)| a + i[1][at % width])
                    .collect()
            },
        );
    }
}

/// Computes x (1 + tanh(√(2/π)(x + 0.044715x³)))/2.
pub(super) fn gelu(x: Var<'_>) -> Var<'_> {
    let inner =
        (x + (x * x * x).affine(0.044715, 0.0)).affine((2.0 / std::f64::consts::PI).sqrt(), 0.0);
    x * inner.tanh().affine(0.5, 0.5)
}

#[test]
fn activations_are_true_to_float64() {
    for shape in ROWS {
        holds(
            "swiglu",
            &[shape, shape],
            &|i| ops::gated_unit(i[0].clone(), i[1].clone(), ops::GateFunction::Silu),
            &|i| {
                i[0].iter()
                    .zip(&i[1])
                    .map(|(&gate, &up)| gate / (-gate).exp().affine(1.0, 1.0) * up)
                    .collect()
            },
        );
        holds("gelu", &[shape], &|i| ops::gelu(i[0].clone() * 3.0), &|i| {
            i[0].iter().map(|x| gelu(x.affine(3.0, 0.0))).collect()
        });
    }
}

/// Computes x / √(mean(x²) + eps) ⊙ w for a row.
pub(super) fn rms_norm<'t>(x: &[Var<'t>], w: &[Var<'t>]) -> Vec<Var<'t>> {
    let scale = dot(x.iter().copied().zip(x.iter().copied()))
        .affine(1.0 / x.len() as f64, f64::from(1e-5_f32))
        .sqrt();
    x.iter().zip(w).map(|(&x, &w)| x / scale * w).collect()
}

/// Computes (x − mean(x)) / √(var(x) + eps) ⊙ w + b for a row.
fn layer_norm<'t>(x: &[Var<'t>], w: &[Var<'t>], b: &[Var<'t>]) -> Vec<Var<'t>> {
    let mean = x
        .iter()
        .copied()
        .reduce(|a, b| a + b)
        .expect("a row has an element")
        .affine(1.0 / x.len() as f64, 0.0);
    let centred: Vec<_> = x.iter().map(|&x| x - mean).collect();
    rms_norm(&centred, w)
        .into_iter()
        .zip(b)
        .map(|(y, &b)| y + b)
        .collect()
}

#[test]
fn norms_are_true_to_float64() {
    // A row of one element equals its norm: its gradient is a difference of equal terms, all rounding.
    for shape in ROWS.into_iter().filter(|shape| shape[1] > 1) {
        let width = shape[1];
        let one = [1, width];
        let flat = |x: &Tensor<2>| x.clone().reshape([width]);
        holds(
            "rms_norm",
            &[shape, one],
            &|i| ops::rms_norm(i[0].clone(), flat(&i[1]), PLAIN),
            &|i| {
                i[0].chunks(width)
                    .flat_map(|row| rms_norm(row, &i[1]))
                    .collect()
            },
        );
        let both = |i: &Inputs| {
            let (sum, normed) = ops::add_rms_norm(i[0].clone(), i[1].clone(), flat(&i[2]), PLAIN);
            Tensor::cat(vec![sum, normed], 0)
        };
        holds("add_rms_norm", &[shape, shape, one], &both, &|i| {
            let sum: Vec<_> = i[0].iter().zip(&i[1]).map(|(&a, &b)| a + b).collect();
            let normed: Vec<_> = sum
                .chunks(width)
                .flat_map(|row| rms_norm(row, &i[2]))
                .collect();
            [sum, normed].concat()
        });
        let ours = |i: &Inputs| ops::layer_norm(i[0].clone(), flat(&i[1]), flat(&i[2]), 1e-5);
        holds("layer_norm", &[shape, one, one], &ours, &|i| {
            i[0].chunks(width)
                .flat_map(|row| layer_norm(row, &i[1], &i[2]))
                .collect()
        });
    }
}

#[test]
fn rope_is_true_to_float64() {
    for (batch, len, offset, heads, half) in [
        (1, 1, 0, 1_usize, 1),
        (2, 1, 3, 3, 32),
        (1, 17, 0, 9, 32),
        (2, 5, 2, 3, 40),
    ] {
        let angle = |at: usize| {
            ((at / half) as f64 * 10_000_f64.powf(-((at % half) as f64) / half as f64)).sin_cos()
        };
        let table = |of: fn((f64, f64)) -> f64| -> Vec<f32> {
            (0..(offset + len) * half)
                .map(|at| of(angle(at)) as f32)
                .collect()
        };
        // The tables are f32 on both sides.
        let (sines, cosines) = (table(|pair| pair.0), table(|pair| pair.1));
        let tensor = |values: &[f32], like: &Tensor<2>| {
            Tensor::<2>::from_data(
                TensorData::new(values.to_vec(), [offset + len, half]),
                &like.device(),
            )
        };
        let kv_heads = heads.div_ceil(3);
        let ours = |i: &Inputs| {
            let tables = [&cosines, &sines].map(|table| tensor(table, &i[0]));
            let [cosines, sines] = tables;
            let (q, k) = ops::rope(
                i[0].clone(),
                i[1].clone(),
                cosines,
                sines,
                Positions { len, offset },
            );
            Tensor::cat(vec![q, k], 1)
        };
        let shapes = [heads, kv_heads].map(|heads| [batch * len, heads * 2 * half]);
        holds("rope", &shapes, &ours, &|i| {
            let turned = |which: usize, at: usize| {
                let x = &i[which];
                let (position, column) = (offset + at / shapes[which][1] % len, at % (2 * half));
                let entry = position * half + column % half;
                let (cos, sin) = (f64::from(cosines[entry]), f64::from(sines[entry]));
                if column < half {
                    x[at].affine(cos, 0.0) - x[at + half].affine(sin, 0.0)
                } else {
                    x[at].affine(cos, 0.0) + x[at - half].affine(sin, 0.0)
                }
            };
            let places = |row: usize| {
                [0, 1].map(|which| {
                    (0..shapes[which][1])
                        .map(move |column| (which, row * shapes[which][1] + column))
                })
            };
            let row = |row: usize| {
                places(row)
                    .into_iter()
                    .flatten()
                    .map(|(which, at)| turned(which, at))
                    .collect::<Vec<_>>()
            };
            (0..batch * len).flat_map(row).collect()
        });
    }
}

/// Computes attention for query t of a head over the keys that it sees, those from `start` of its row on, row by row as in a textbook.
fn attention<'t>(
    i: &[Vec<Var<'t>>],
    s: AttentionShape,
    start: impl Fn(usize) -> usize,
) -> Vec<Var<'t>> {
    let (d, keys) = (s.head_dim, s.offset + s.seq_len);
    let mut output = Vec::new();
    for (row, head) in
        (0..s.batch_size * s.seq_len).flat_map(|row| (0..s.heads).map(move |head| (row, head)))
    {
        let (sequence, t) = (row / s.seq_len, row % s.seq_len);
        let query = &i[0][(row * s.heads + head) * d..][..d];
        let place =
            |key: usize| ((sequence * keys + key) * s.kv_heads + head / (s.heads / s.kv_heads)) * d;
        let scale = s.scale.unwrap_or(1.0 / (d as f64).sqrt());
        let score = |key: usize| {
            let score = dot(query
                .iter()
                .copied()
                .zip(i[1][place(key)..][..d].iter().copied()))
            .affine(scale, 0.0);
            let capped = s
                .cap
                .map(|cap| score.affine(1.0 / cap, 0.0).tanh().affine(cap, 0.0));
            capped.unwrap_or(score).exp()
        };
        let seen = start(row)..=s.offset + t;
        let weights: Vec<_> = seen.clone().map(score).collect();
        let sum = weights.iter().copied().reduce(|a, b| a + b).unwrap();
        output.extend((0..d).map(|c| {
            dot(weights
                .iter()
                .enumerate()
                .map(|(key, &w)| (w, i[2][place(seen.start() + key) + c])))
                / sum
        }));
    }
    output
}

#[test]
fn attention_is_true_to_float64() {
    // batch, T, offset, heads, heads of keys, H: one token, grouped 9 to 3, after a cache, past the blocks of 8 and the tiles of 32.
    for (batch_size, seq_len, offset, heads, kv_heads, head_dim) in [
        (1, 1, 0, 1, 1, 1),
        (1, 1, 0, 9, 3, 64),
        (1, 1, 16, 9, 3, 80),
        (1, 17, 0, 9, 3, 64),
        (1, 33, 0, 9, 3, 80),
        (1, 31, 3, 2, 1, 20),
        (2, 32, 0, 3, 3, 64),
        (1, 65, 0, 2, 1, 128),
        (2, 16, 0, 2, 2, 32),
        (2, 7, 10, 2, 1, 6),
    ] {
        let s = AttentionShape {
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
        let (rows, keys) = (batch_size * seq_len, batch_size * (offset + seq_len));
        let shapes = [
            [rows, heads * head_dim],
            [keys, kv_heads * head_dim],
            [keys, kv_heads * head_dim],
        ];
        holds(
            "attention",
            &shapes,
            &|i| ops::attention(i[0].clone(), i[1].clone(), i[2].clone(), None, s),
            &|i| attention(i, s, |_| 0),
        );
    }
}

/// Caps that bend most scores and one as in Gemma 2, windows with and without a cache, heads of more than 128, by the kernels for few products,
/// for software adapters and for GPUs.
#[test]
fn attention_with_caps_and_windows_is_true_to_float64() {
    // batch, T, offset, heads, heads of keys, H; factor and bound of the scores; keys that a query sees.
    for ((batch_size, seq_len, offset, heads, kv_heads, head_dim), scale, cap, window) in [
        ((1, 33, 0, 4, 2, 64), Some(0.4), Some(1.0), None),
        ((2, 17, 0, 2, 1, 80), None, Some(50.0), Some(4)),
        ((1, 70, 3, 2, 1, 20), Some(0.5), Some(1.0), Some(34)),
        ((2, 5, 4, 2, 1, 8), Some(0.7), Some(1.0), Some(3)),
        ((1, 67, 0, 2, 2, 16), None, None, Some(2)),
        ((1, 33, 0, 4, 2, 256), None, None, None),
        ((1, 35, 5, 2, 1, 160), Some(0.3), Some(1.5), Some(7)),
        ((1, 2, 16, 2, 1, 256), Some(0.2), Some(1.5), Some(5)),
    ] {
        let s = AttentionShape {
            batch_size,
            seq_len,
            offset,
            heads,
            kv_heads,
            head_dim,
            window,
            scale,
            cap,
        };
        let (rows, keys) = (batch_size * seq_len, batch_size * (offset + seq_len));
        let shapes = [
            [rows, heads * head_dim],
            [keys, kv_heads * head_dim],
            [keys, kv_heads * head_dim],
        ];
        let start = |row: usize| {
            window.map_or(0, |window| {
                (offset + row % seq_len + 1).saturating_sub(window)
            })
        };
        holds(
            "attention",
            &shapes,
            &|i| ops::attention(i[0].clone(), i[1].clone(), i[2].clone(), None, s),
            &|i| attention(i, s, start),
        );
    }
}

fn int(ids: &[i32], like: &Tensor<2>) -> Tensor<1, Int> {
    Tensor::from_data(
        TensorData::new(ids.to_vec(), [ids.len()]),
        (&like.device(), DType::I32),
    )
}

#[test]
fn embedding_is_true_to_float64() {
    for (n, vocab, width) in [(1, 1, 1), (17, 33, 16), (131, 7, 33)] {
        let ids: Vec<i32> = (0..n).map(|r| (r * r + r / 3) % vocab).collect();
        let (vocab, width) = (vocab as usize, width as usize);
        holds(
            "embedding",
            &[[vocab, width]],
            &|i| ops::embedding(i[0].clone(), int(&ids, &i[0])),
            &|i| {
                ids.iter()
                    .flat_map(|&id| i[0][id as usize * width..][..width].to_vec())
                    .collect()
            },
        );
    }
}

/// Computes −log softmax of the target's logit.
fn loss<'t>(logits: &[Var<'t>], target: usize) -> Var<'t> {
    logits
        .iter()
        .map(|l| l.exp())
        .reduce(|a, b| a + b)
        .expect("a row has a logit")
        .ln()
        - logits[target]
}

#[test]
fn head_loss_is_true_to_float64() {
    for (n, vocab, width) in [
        (1, 2, 1),
        (1, 33, 16),
        (17, 17, 17),
        (33, 101, 20),
        (97, 100, 68),
    ] {
        let targets: Vec<i32> = (0..n)
            .map(|r| {
                if r % 5 == 3 {
                    -100
                } else {
                    (r * r + 1) % vocab
                }
            })
            .collect();
        let (n, vocab, width) = (n as usize, vocab as usize, width as usize);
        // Several runs of rows, one run of all rows, one larger than all.
        for rows in [7, n, n + 1] {
            let ours = |i: &Inputs| {
                ops::head_loss(i[0].clone(), i[1].clone(), int(&targets, &i[0]), rows, None)
                    .reshape([1, 1])
            };
            holds("head_loss", &[[n, width], [vocab, width]], &ours, &|i| {
                let logits = product(&i[0], &i[1], width);
                let rows = logits
                    .chunks(vocab)
                    .zip(&targets)
                    .filter(|(_, target)| **target >= 0);
                vec![
                    rows.map(|(row, &target)| loss(row, target as usize))
                        .reduce(|a, b| a + b)
                        .unwrap(),
                ]
            });
        }
    }
}
