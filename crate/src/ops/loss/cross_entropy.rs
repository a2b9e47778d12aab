//! Cross entropy of logits against token ids, summed over the rows that count. The gradient replaces the logits in place.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use crate::gpu::launch::{Launch, rows_columns};
use crate::gpu::{Kernels, Words, groups_of_64};
use crate::ops::operation::operation;

/// Approximate number of elements of a row that one thread of the first pass covers.
const PART: usize = 256;

/// The kernels of this file.
pub(crate) static KERNELS: Kernels = &[
    &PARTIALS.all(),
    &FORWARD.all(),
    &BACKWARD.all(),
    &HITS.all(),
    &LOSS_SUM.all(),
];

crate::kernel! {
    /// Computes the maximum and the sum of exponentials of the parts of each row.
    pub PARTIALS = "cross_entropy_partials" [64], (logits) -> (partials),
    /// Shapes of the forward passes and of the hits.
    struct ForwardParams {
        /// Number of rows.
        n: usize,
        /// V, the number of columns that are logits.
        vocab: usize,
        /// Number of parts that a row is cut into.
        parts: usize,
        /// Elements from one row of the logits to the next.
        stride: usize,
    },
    twin partials_twin
}
crate::kernel! {
    /// Computes the loss and the log-sum-exp of each row.
    pub FORWARD = "cross_entropy_forward" [64], (logits, targets, partials) -> (stats), ForwardParams, twin forward_twin
}
crate::kernel! {
    /// Computes the gradient, in place of the logits.
    pub BACKWARD = "cross_entropy_backward" [64], (targets, stats) -> (mut logits),
    /// Shapes of the gradient.
    struct BackwardParams {
        /// Number of rows.
        n: usize,
        /// V, the number of columns that are logits.
        vocab: usize,
        /// Elements from one row of the logits to the next.
        stride: usize,
        /// Soft cap that made the logits; 0 for none.
        cap: f32,
    },
    twin backward_twin
}
crate::kernel! {
    /// Finds for each row whether its target is the arg max of the logits, and whether the target counts.
    pub HITS = "cross_entropy_hits" [64], (logits, targets, partials) -> (hits), ForwardParams, twin hits_twin
}
crate::kernel! {
    /// Computes `y = Σ loss`.
    pub LOSS_SUM = "loss_sum" [64], (stats) -> (y),
    /// The rows to add up.
    struct SumParams {
        /// Number of rows.
        n: usize,
    },
    twin |[stats], [y], p| {
        let sum: f64 = (0..p.n).map(|r| stats.wide(2 * r)).sum();
        y.set(0, sum);
    }
}

fn top_and_sum(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let top = values.clone().fold(f64::NEG_INFINITY, f64::max);
    (top, values.map(|v| (v - top).exp()).sum())
}

fn partials_twin([logits]: [&[u32]; 1], [partials]: [&mut [u32]; 1], p: &ForwardParams) {
    let [vocab, parts, stride] = [p.vocab, p.parts, p.stride];
    for i in 0..p.n * parts {
        let row = &logits.floats()[i / parts * stride..][..vocab];
        let (top, sum) = top_and_sum(
            row.iter()
                .skip(i % parts)
                .step_by(parts)
                .map(|&v| f64::from(v)),
        );
        partials.set(2 * i, top);
        partials.set(2 * i + 1, sum);
    }
}

fn forward_twin([logits, targets, _]: [&[u32]; 3], [stats]: [&mut [u32]; 1], p: &ForwardParams) {
    let (vocab, stride) = (p.vocab, p.stride);
    for r in 0..p.n {
        let row = &logits.floats()[r * stride..][..vocab];
        let (top, sum) = top_and_sum(row.iter().map(|&v| f64::from(v)));
        let lse = top + sum.ln();
        let target = usize::try_from(targets.ints()[r])
            .ok()
            .and_then(|id| row.get(id));
        stats.set(2 * r, target.map_or(0.0, |&v| lse - f64::from(v)));
        stats.set(2 * r + 1, lse);
    }
}

fn backward_twin([targets, stats]: [&[u32]; 2], [logits]: [&mut [u32]; 1], p: &BackwardParams) {
    let (vocab, stride) = (p.vocab, p.stride);
    for r in 0..p.n {
        let target = usize::try_from(targets.ints()[r])
            .ok()
            .filter(|&id| id < vocab);
        let lse = stats.wide(2 * r + 1);
        for (c, l) in logits.floats_mut()[r * stride..][..stride]
            .iter_mut()
            .enumerate()
        {
            let hit = f64::from(u8::from(target == Some(c)));
            let share = if p.cap > 0.0 {
                f64::from(*l / p.cap)
            } else {
                0.0
            };
            *l = if target.is_some() && c < vocab {
                (((f64::from(*l) - lse).exp() - hit) * (1.0 - share * share)) as f32
            } else {
                0.0
            };
        }
    }
}

fn hits_twin([logits, targets, _]: [&[u32]; 3], [hits]: [&mut [u32]; 1], p: &ForwardParams) {
    let (vocab, stride) = (p.vocab, p.stride);
    for r in 0..p.n {
        let row = &logits.floats()[r * stride..][..vocab];
        let target = usize::try_from(targets.ints()[r])
            .ok()
            .filter(|&id| id < vocab);
        let beaten = |id: usize| {
            row.iter()
                .enumerate()
                .any(|(c, &l)| l > row[id] || (l == row[id] && c < id))
        };
        hits.floats_mut()[2 * r] = f32::from(u8::from(target.is_some_and(|id| !beaten(id))));
        hits.floats_mut()[2 * r + 1] = f32::from(u8::from(target.is_some()));
    }
}

/// Computes the loss and log-sum-exp of each row: logits `[n, V]`, or longer rows that begin with them, targets `[n]` as words → `[n, 2]`.
pub fn stats<B: Launch>(
    logits: FloatTensor<B>,
    vocab: usize,
    targets: FloatTensor<B>,
) -> FloatTensor<B> {
    let (partials, params) = partials::<B>(&logits, vocab);
    let n = params.n;
    B::made(&FORWARD, [logits, targets, partials], [n, 2], &params, n)
}

fn partials<B: Launch>(logits: &FloatTensor<B>, vocab: usize) -> (FloatTensor<B>, ForwardParams) {
    let (n, stride) = rows_columns(&logits.shape());
    let parts = vocab.div_ceil(PART).clamp(1, 64);
    let params = ForwardParams {
        n,
        vocab,
        parts,
        stride,
    };
    let (read, shape) = ([logits.clone()], [n, parts, 2]);
    let partials = B::made(&PARTIALS, read, shape, &params, n * parts);
    (partials, params)
}

/// Computes [`stats`], and for each row `[n, 2]`: 1 if its target is the arg max of its logits (the lowest id of equal ones), else 0; and 1 if its
/// target counts, else 0.
pub(crate) fn stats_and_hits<B: Launch>(
    logits: FloatTensor<B>,
    vocab: usize,
    targets: FloatTensor<B>,
) -> [FloatTensor<B>; 2] {
    let (partials, params) = partials::<B>(&logits, vocab);
    let n = params.n;
    let hits = B::floats(&logits, [n, 2]);
    let read = [logits, targets, partials];
    let stats = B::made(&FORWARD, read.clone(), [n, 2], &params, n);
    let [hits] = B::launch(&HITS, read, [hits], &params, n as u32);
    [stats, hits]
}

/// Sums the first column of a result `[n, 2]` of [`stats`], or of the losses that an evaluation computes → `[1]`.
pub fn sum<B: Launch>(stats: FloatTensor<B>) -> FloatTensor<B> {
    let n = rows_columns(&stats.shape()).0;
    let y = B::floats(&stats, [1]);
    let [y] = B::launch(&LOSS_SUM, [stats], [y], &SumParams { n }, 1);
    y
}

/// Computes the gradient of `Σ loss` for the logits `[n, stride]`, in place if they are uniquely owned; it is 0 in the columns from V on. With
/// `cap` it is the gradient for the logits before this soft cap.
pub fn gradient<B: Launch>(
    logits: FloatTensor<B>,
    vocab: usize,
    targets: FloatTensor<B>,
    stats: FloatTensor<B>,
    cap: Option<f64>,
) -> FloatTensor<B> {
    let (n, stride) = rows_columns(&logits.shape());
    let params = BackwardParams {
        n,
        vocab,
        stride,
        cap: cap.unwrap_or(0.0) as f32,
    };
    let (read, groups) = ([targets, stats], groups_of_64(n * stride));
    let [logits] = B::launch(&BACKWARD, read, [logits], &params, groups);
    logits
}

operation! {
    /// Computes [`stats`] of logits `[n, stride]`. Not differentiable, as the others here.
    pub(super) fn statistics(logits: Tensor<2>; vocab: usize; targets: Tensor<1, Int>) -> Tensor<2> {
        B::untracked(stats::<B::Inner>(B::constant(logits), vocab, B::Inner::ids(B::integers(targets))))
    }
}

operation! {
    /// Computes [`stats_and_hits`].
    pub(super) fn statistics_and_hits(logits: Tensor<2>; vocab: usize; targets: Tensor<1, Int>) -> (Tensor<2>, Tensor<2>) {
        let [stats, hits] = stats_and_hits::<B::Inner>(B::constant(logits), vocab, B::Inner::ids(B::integers(targets)));
        (B::untracked(stats), B::untracked(hits))
    }
}

operation! {
    /// Computes [`sum`].
    pub(super) fn total(stats: Tensor<2>) -> Tensor<1> {
        B::untracked(sum::<B::Inner>(B::constant(stats)))
    }
}

operation! {
    /// Computes [`gradient`].
    pub(super) fn slope(logits: Tensor<2>, stats: Tensor<2>; vocab: usize, cap: Option<f64>; targets: Tensor<1, Int>) -> Tensor<2> {
        let (logits, stats) = (B::constant(logits), B::constant(stats));
        B::untracked(gradient::<B::Inner>(logits, vocab, B::Inner::ids(B::integers(targets)), stats, cap))
    }
}
