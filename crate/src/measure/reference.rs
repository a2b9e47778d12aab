//! Reference computations: products, attention, norms and updates at fixed shapes, and how each is launched.

use burn::tensor::{DType, Tensor};

use crate::config::TrainConfig;
use crate::device::Device;
use crate::error::Result;
use crate::gpu::trace::{self, Launched};
use crate::gpu::transfer::zeros;
use crate::gpu::{AnyKernel, KernelParams, copy, fma};
use crate::ops::{self, AttentionShape};
use crate::optim::{Gate, Optim, ParamInfo};

/// Number of heads of SmolLM2-135M, of its heads for keys and values, and their width.
const HEADS: [usize; 3] = [9, 3, 64];

/// Number of columns of the matrix that is updated.
const COLUMNS: usize = 2048;

/// Rounds per thread of `fma`: 65,536 operations.
const ROUNDS: u32 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    Forward,
    Backward,
}

/// One of the three products of a linear layer `y [n, m] = x [n, k] wᵀ`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    Forward,
    Input,
    Weight,
}

/// Computation to measure, at its whole shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Work {
    /// Multiply-adds of this many threads.
    Fma { threads: usize },
    /// A copy of this many words.
    Copy { words: usize },
    /// `[n, k, m]`.
    Linear(Product, [usize; 3]),
    /// One causal sequence of this many tokens.
    Attention(Pass, usize),
    /// `[rows, C]`.
    RmsNorm(Pass, [usize; 2]),
    /// A matrix of this many rows.
    Adamw(DType, usize),
}

/// A row of the report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    pub name: &'static str,
    pub work: Work,
    /// Number of times that a step of SmolLM2-135M computes it; 0 if it is not one of that step's products.
    pub in_step: u64,
}

const fn reference(name: &'static str, work: Work) -> Reference {
    Reference {
        name,
        work,
        in_step: 0,
    }
}

pub const SQUARE: [usize; 3] = [2048; 3];
const ROWS: [usize; 2] = [16_384, 576];

/// Computations that are measured everywhere. The two that the others are compared with come first.
pub const REFERENCE: &[Reference] = &[
    reference("multiply-adds", Work::Fma { threads: 1 << 22 }),
    reference("copy", Work::Copy { words: 1 << 24 }),
    reference("linear forward", Work::Linear(Product::Forward, SQUARE)),
    reference("linear dX", Work::Linear(Product::Input, SQUARE)),
    reference("linear dW", Work::Linear(Product::Weight, SQUARE)),
    reference(
        "attention forward, 512",
        Work::Attention(Pass::Forward, 512),
    ),
    reference(
        "attention backward, 512",
        Work::Attention(Pass::Backward, 512),
    ),
    reference(
        "attention forward, 2048",
        Work::Attention(Pass::Forward, 2048),
    ),
    reference(
        "attention backward, 2048",
        Work::Attention(Pass::Backward, 2048),
    ),
    reference("RMS norm forward", Work::RmsNorm(Pass::Forward, ROWS)),
    reference("RMS norm backward", Work::RmsNorm(Pass::Backward, ROWS)),
    reference("AdamW f32", Work::Adamw(DType::F32, 4096)),
    reference("AdamW bf16", Work::Adamw(DType::BF16, 4096)),
];

/// Creates the reference of a product in the layers of SmolLM2-135M, for one sequence of 512 tokens.
const fn of_step(
    name: &'static str,
    product: Product,
    [k, m]: [usize; 2],
    in_step: u64,
) -> Reference {
    Reference {
        name,
        work: Work::Linear(product, [512, k, m]),
        in_step,
    }
}

const Q_O: [usize; 2] = [576, 576];
const K_V: [usize; 2] = [576, 192];
const GATE_UP: [usize; 2] = [576, 1536];
const DOWN: [usize; 2] = [1536, 576];
const HEAD: [usize; 2] = [576, 49_152];

/// Products of a step of SmolLM2-135M: 30 layers and the head.
pub const LINEAR_OF_STEP: &[Reference] = &[
    of_step("q, o forward", Product::Forward, Q_O, 60),
    of_step("q, o dX", Product::Input, Q_O, 60),
    of_step("q, o dW", Product::Weight, Q_O, 60),
    of_step("k, v forward", Product::Forward, K_V, 60),
    of_step("k, v dX", Product::Input, K_V, 60),
    of_step("k, v dW", Product::Weight, K_V, 60),
    of_step("gate, up forward", Product::Forward, GATE_UP, 60),
    of_step("gate, up dX", Product::Input, GATE_UP, 60),
    of_step("gate, up dW", Product::Weight, GATE_UP, 60),
    of_step("down forward", Product::Forward, DOWN, 30),
    of_step("down dX", Product::Input, DOWN, 30),
    of_step("down dW", Product::Weight, DOWN, 30),
    of_step("head forward", Product::Forward, HEAD, 1),
    of_step("head dX", Product::Input, HEAD, 1),
    of_step("head dW", Product::Weight, HEAD, 1),
];

/// The number of operations of the product of this name at its whole shape.
pub fn whole_flops(name: &str) -> f64 {
    LINEAR_OF_STEP
        .iter()
        .find(|of| of.name == name)
        .and_then(|of| of.work.flops(1))
        .unwrap_or(0.0)
}

fn launched(
    kernel: &'static AnyKernel,
    words: Vec<usize>,
    params: Vec<u32>,
    groups: u32,
) -> Vec<Launched> {
    vec![Launched {
        kernel,
        words,
        params,
        groups,
    }]
}

/// The launches that `work` makes.
fn traced<T>(work: impl FnOnce() -> T) -> Vec<Launched> {
    trace::start();
    work();
    trace::finish()
}

/// Traces one pass of an operation.
fn traced_pass<const D: usize>(pass: Pass, forward: impl FnOnce() -> Tensor<D>) -> Vec<Launched> {
    let mut y = None;
    let launches = traced(|| y = Some(forward()));
    match (pass, y) {
        (Pass::Backward, Some(y)) => traced(|| y.backward()),
        _ => launches,
    }
}

impl Work {
    /// The launch of a copy of `words`.
    pub fn copy_of(words: usize) -> Vec<Launched> {
        let kernel = &copy::KERNEL;
        launched(
            kernel.any(),
            vec![words; 2],
            copy::Params::whole(words).words(),
            kernel.groups(words),
        )
    }

    /// The numbers by which its shape may be divided, from 1 on.
    pub fn divisors(self) -> impl DoubleEndedIterator<Item = usize> {
        let most = if matches!(self, Self::Fma { .. }) {
            12
        } else {
            4
        };
        (0..=most).map(|power| 1 << power)
    }

    /// Describes the shape in words.
    pub fn shape(self, divisor: usize) -> String {
        match self {
            Self::Fma { threads } => format!("{} threads", threads / divisor),
            Self::Copy { words } => format!("{} words", words / divisor),
            Self::Linear(_, dims) => {
                let [n, k, m] = dims.map(|dim| dim / divisor);
                format!("{n} × {k} → {m}")
            }
            Self::Attention(_, len) => format!(
                "{} tokens, {} heads of {}",
                len / divisor,
                HEADS[0],
                HEADS[2]
            ),
            Self::RmsNorm(_, [rows, width]) => format!("{} × {width}", rows / divisor),
            Self::Adamw(_, rows) => format!("{} × {COLUMNS}", rows / divisor),
        }
    }

    /// The floating point operations of the formula, even if a kernel computes some of them twice; `None` for work that is bound by
    /// memory.
    pub fn flops(self, divisor: usize) -> Option<f64> {
        match self {
            Self::Fma { threads } => Some(fma::Params::of(threads / divisor, ROUNDS).flops()),
            Self::Linear(_, dims) => Some(
                dims.iter()
                    .map(|&dim| (dim / divisor) as f64)
                    .product::<f64>()
                    * 2.0,
            ),
            // Forward: two products of half a square; backward: their gradients, and the scores again.
            Self::Attention(pass, len) => {
                let (products, len) = (
                    if pass == Pass::Forward { 2.0 } else { 5.0 },
                    (len / divisor) as f64,
                );
                Some(products * (HEADS[0] * HEADS[2]) as f64 * len * (len + 1.0))
            }
            Self::Copy { .. } | Self::RmsNorm(..) | Self::Adamw(..) => None,
        }
    }

    /// The bytes that have to be read and written, counting each value once.
    pub fn bytes(self, divisor: usize) -> f64 {
        let [heads, kv_heads, width] = HEADS;
        let bytes = match self {
            Self::Fma { threads } => 8 * (threads / divisor),
            Self::Copy { words } => 8 * (words / divisor),
            Self::Linear(_, dims) => {
                let [n, k, m] = dims.map(|dim| dim / divisor);
                4 * (n * k + m * k + n * m)
            }
            // q, k, v → y; q, k, v, y, dy → dq, dk, dv.
            Self::Attention(Pass::Forward, len) => 8 * (len / divisor) * width * (heads + kv_heads),
            Self::Attention(Pass::Backward, len) => {
                16 * (len / divisor) * width * (heads + kv_heads)
            }
            // x → y; x, dy → dx.
            Self::RmsNorm(Pass::Forward, [rows, width]) => 8 * (rows / divisor) * width,
            Self::RmsNorm(Pass::Backward, [rows, width]) => 12 * (rows / divisor) * width,
            // g, and p, m, v in place.
            Self::Adamw(DType::BF16, rows) => 16 * (rows / divisor) * COLUMNS,
            Self::Adamw(_, rows) => 28 * (rows / divisor) * COLUMNS,
        };
        bytes as f64
    }

    /// The quantity that the time of a pass grows with.
    pub fn amount(self, divisor: usize) -> f64 {
        self.flops(divisor).unwrap_or_else(|| self.bytes(divisor))
    }

    /// The launches that this device makes for it.
    ///
    /// # Errors
    /// The errors of the optimizer and of the device.
    pub fn launches(self, divisor: usize, device: &Device) -> Result<Vec<Launched>> {
        let plain = device.inner();
        let tracked = |rows: usize, columns: usize| {
            Tensor::<2>::ones([rows, columns], &device.autodiff()).require_grad()
        };
        let constant =
            |rows: usize, columns: usize| Tensor::<2>::ones([rows, columns], &device.autodiff());
        Ok(match self {
            Self::Fma { threads } => {
                let (threads, kernel) = (threads / divisor, &fma::KERNEL);
                launched(
                    kernel.any(),
                    vec![threads; 2],
                    fma::Params::of(threads, ROUNDS).words(),
                    kernel.groups(threads),
                )
            }
            Self::Copy { words } => Self::copy_of(words / divisor),
            Self::Linear(product, dims) => {
                let [n, k, m] = dims.map(|dim| dim / divisor);
                match product {
                    Product::Forward => traced(|| {
                        ops::linear(Tensor::ones([n, k], &plain), Tensor::ones([m, k], &plain))
                    }),
                    Product::Input => traced_pass(Pass::Backward, || {
                        ops::linear(tracked(n, k), constant(m, k))
                    }),
                    Product::Weight => traced_pass(Pass::Backward, || {
                        ops::linear(constant(n, k), tracked(m, k))
                    }),
                }
            }
            Self::Attention(pass, len) => {
                let (seq_len, [heads, kv_heads, head_dim]) = (len / divisor, HEADS);
                let shape = AttentionShape {
                    batch_size: 1,
                    seq_len,
                    offset: 0,
                    heads,
                    kv_heads,
                    head_dim,
                    window: None,
                    scale: None,
                    cap: None,
                };
                let [q, k, v] =
                    [heads, kv_heads, kv_heads].map(|heads| tracked(seq_len, heads * head_dim));
                traced_pass(pass, || ops::attention(q, k, v, None, shape))
            }
            Self::RmsNorm(pass, [rows, width]) => {
                let (x, w) = (
                    tracked(rows / divisor, width),
                    Tensor::<1>::ones([width], &device.autodiff()).require_grad(),
                );
                traced_pass(pass, || {
                    ops::rms_norm(
                        x,
                        w,
                        ops::NormConstants {
                            eps: 1e-5,
                            offset: 0.0,
                        },
                    )
                })
            }
            Self::Adamw(dtype, rows) => {
                let n = rows / divisor * COLUMNS;
                let info = ParamInfo {
                    name: "matrix".into(),
                    shape: vec![rows / divisor, COLUMNS],
                    dtype,
                    outside_blocks: false,
                };
                let mut optim = Optim::new(&TrainConfig::default(), std::slice::from_ref(&info))?;
                let gate = Gate::open(1.0, &plain);
                let mut step = |p| {
                    optim.step_param(
                        "matrix",
                        p,
                        Some(Tensor::<1>::ones([n], &plain)),
                        1e-3,
                        &gate,
                    )
                };
                // The first step makes the state.
                let p = step(zeros(n, dtype, &plain)?)?;
                let mut second = None;
                let launches = traced(|| second = Some(step(p)));
                second.transpose()?;
                launches
            }
        })
    }
}
