//! The head fused with cross entropy: logits and their gradient exist for some rows at a time. The loss ends the forward pass, so the gradients
//! of its inputs are computed there and only scaled in the backward pass.

use std::ops::Range;

use burn::backend::tensor::FloatTensor;
use burn::tensor::kind::{Autodiff, Basic};
use burn::tensor::{Int, Tensor};

use crate::gpu::launch::Launch;
use crate::ops::linear::parts;
use crate::ops::loss::cross_entropy;
use crate::ops::operation::operation;
use crate::ops::packed::PackedMatrix;
use crate::ops::scale::scale;
use crate::ops::tape::{Grads, Sum, Vjp};

/// A head `[V, C]`, or some of its rows where it lies in [parts].
#[derive(Debug, Clone)]
pub struct HeadRows {
    matrix: PackedMatrix,
    /// The tensor that gets a gradient.
    trained: Option<Tensor<2>>,
}

impl HeadRows {
    /// The rows of a tensor, f32 or packed bf16.
    pub fn of(w: Tensor<2>) -> Self {
        Self {
            matrix: PackedMatrix::of_tensor(untracked(&w)),
            trained: w.is_tracked().then_some(w),
        }
    }

    /// The rows of a constant.
    pub fn constant(w: &PackedMatrix) -> Self {
        Self {
            matrix: w.clone(),
            trained: None,
        }
    }
}

/// Returns a tensor without its place on a tape.
fn untracked<const D: usize, K: Autodiff>(x: &Tensor<D, K>) -> Tensor<D, K> {
    if x.is_autodiff() {
        x.clone().inner()
    } else {
        x.clone()
    }
}

/// The plan by which a head's loss is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadPlan {
    /// Maximum number of rows of logits that exist at once, at least 1.
    pub rows: usize,
}

/// Rows of the largest tiles. A run of a multiple of them has no tile with rows that are computed in vain.
const TILE: usize = 64;

impl HeadPlan {
    /// The number of rows of each run of `n` rows, except for the last: as few runs as the plan allows, of about equal length, in whole tiles
    /// if it allows that too.
    pub fn rows_of_a_run(self, n: usize) -> usize {
        let equal = n.div_ceil(n.div_ceil(self.rows).max(1)).max(1);
        let tiles = equal.next_multiple_of(TILE);
        if n <= equal || self.rows < TILE {
            equal
        } else if tiles <= self.rows {
            tiles
        } else {
            self.rows / TILE * TILE
        }
    }
}

operation! {
    /// Puts a loss `[1]` on the tape as a function of `x`, whose gradient was computed for an upstream gradient of 1.
    fn with_gradient(loss: Tensor<1>, x: Tensor<2>, gradient: Tensor<2>) -> Tensor<1> {
        let ([loss, x], nodes) = B::parts([loss, x]);
        drop(x);
        B::record(nodes, loss, Known { gradient: B::constant(gradient) })
    }
}

/// The backward pass of a loss whose gradient is known but for the factor from upstream.
#[derive(Debug, Clone)]
struct Known<T> {
    gradient: T,
}

impl<B: Launch> Vjp<B, 2> for Known<FloatTensor<B>> {
    fn backward(self, g: FloatTensor<B>, _needs: [bool; 2], _: Sum<'_, B>) -> Grads<B, 2> {
        [Some(g.clone()), Some(scale::<B>(self.gradient, g))]
    }
}

/// The runs of rows that go through the head one after another.
fn runs(n: usize, rows: usize) -> impl Iterator<Item = Range<usize>> {
    let rows = HeadPlan { rows: rows.max(1) }.rows_of_a_run(n);
    (0..n)
        .step_by(rows)
        .map(move |start| start..n.min(start + rows))
}

/// The rows `run` of x `[n, C]`.
fn rows_of(x: &Tensor<2>, run: &Range<usize>) -> Tensor<2> {
    let [n, width] = x.dims();
    if run.len() == n {
        return x.clone();
    }
    x.clone().slice([run.clone(), 0..width])
}

/// The targets `run` of `[n]`.
fn targets_of(targets: &Tensor<1, Int>, run: &Range<usize>) -> Tensor<1, Int> {
    if run.len() == targets.dims()[0] {
        return targets.clone();
    }
    targets.clone().slice([run.clone()])
}

/// Computes the logits of the rows of x, in rows that may be longer than the vocabulary.
fn logits(x: Tensor<2>, head: &[PackedMatrix], cap: Option<f64>) -> Tensor<2> {
    let logits = parts::product(x, head);
    match cap {
        Some(cap) => crate::ops::capped(logits, cap),
        None => logits,
    }
}

fn joined<const D: usize, K: Basic>(mut runs: Vec<Tensor<D, K>>) -> Option<Tensor<D, K>> {
    if runs.len() > 1 {
        Some(Tensor::cat(runs, 0))
    } else {
        runs.pop()
    }
}

/// Sums at least one tensor `[1]`.
fn summed(runs: Vec<Tensor<1>>) -> Tensor<1> {
    let sums = joined(runs).expect("a batch has at least one row");
    if sums.dims() == [1] { sums } else { sums.sum() }
}

/// Computes `Σ loss` in nats, `[1]`, of the rows of `x [n, C]` under the head `w [V, C]` (f32 or packed bf16) with targets `[n]`. Targets that are
/// not an id (IGNORE_INDEX) do not count. At most `rows` rows of the logits, and of their gradient, exist at once. With `cap` c, a logit l is
/// replaced by c tanh(l / c).
pub fn head_loss(
    x: Tensor<2>,
    w: Tensor<2>,
    targets: Tensor<1, Int>,
    rows: usize,
    cap: Option<f64>,
) -> Tensor<1> {
    head_loss_of(x, &[HeadRows::of(w)], targets, rows, cap)
}

/// Computes `Σ loss` in nats, `[1]`, of the rows of `x [n, C]` under the head `w [V, C]` with targets `[n]`, as [`head_loss`].
/// At most `rows` rows of logits exist at once.
pub fn packed_head_loss(
    x: Tensor<2>,
    w: &PackedMatrix,
    targets: Tensor<1, Int>,
    rows: usize,
    cap: Option<f64>,
) -> Tensor<1> {
    head_loss_of(x, &[HeadRows::constant(w)], targets, rows, cap)
}

/// Computes [`head_loss`] under a head that may lie in parts, one after another.
pub fn head_loss_of(
    x: Tensor<2>,
    head: &[HeadRows],
    targets: Tensor<1, Int>,
    rows: usize,
    cap: Option<f64>,
) -> Tensor<1> {
    let (values, targets) = (untracked(&x), untracked(&targets));
    let matrix: Vec<PackedMatrix> = head.iter().map(|rows| rows.matrix.clone()).collect();
    let vocab = parts::rows_of(&matrix);
    let needs: Vec<bool> = head.iter().map(|rows| rows.trained.is_some()).collect();
    let (needs_x, needs_w) = (x.is_tracked(), needs.contains(&true));
    let (mut losses, mut inputs) = (Vec::new(), Vec::new());
    let mut weights: Vec<Option<Tensor<2>>> = head.iter().map(|_| None).collect();
    let n = values.dims()[0];
    for run in runs(n, rows) {
        let (part, ids) = (rows_of(&values, &run), targets_of(&targets, &run));
        let logits = logits(part.clone(), &matrix, cap);
        let stats = cross_entropy::statistics(logits.clone(), vocab, ids.clone());
        losses.push(cross_entropy::total(stats.clone()));
        if !needs_x && !needs_w {
            continue;
        }
        let dy = cross_entropy::slope(logits, stats, vocab, cap, ids);
        if let ([whole], true) = (
            matrix.as_slice(),
            needs_x && needs_w && run.len() == n && dy.dims()[1] == vocab,
        ) {
            // With a single run both gradients are one dispatch, where the vocabulary is small.
            let [dx, dw] = parts::both(dy, part, whole);
            inputs.push(dx);
            weights = vec![Some(dw)];
            continue;
        }
        if needs_x {
            inputs.push(parts::input_gradient(dy.clone(), &matrix));
        }
        if needs_w {
            parts::weight_gradients(dy, &part, &matrix, &needs, &mut weights);
        }
    }
    let mut loss = summed(losses);
    if !x.is_autodiff() {
        return loss;
    }
    loss = Tensor::from_inner(loss);
    let constant = Tensor::from_inner;
    if let Some(dx) = joined(inputs) {
        loss = with_gradient(loss, x, constant(dx));
    }
    for (rows, dw) in head.iter().zip(weights) {
        if let (Some(w), Some(dw)) = (&rows.trained, dw) {
            loss = with_gradient(loss, w.clone(), constant(dw));
        }
    }
    loss
}

/// Computes `[Σ loss in nats, number of targets that are the arg max of their logits, the lowest id of equal ones] → [2]`, from the arguments of
/// [`head_loss_of`]. Not differentiable.
pub(crate) fn head_evaluation(
    x: &Tensor<2>,
    head: &[HeadRows],
    targets: &Tensor<1, Int>,
    rows: usize,
    cap: Option<f64>,
) -> Tensor<1> {
    let (values, targets) = (untracked(x), untracked(targets));
    let matrix: Vec<PackedMatrix> = head.iter().map(|rows| rows.matrix.clone()).collect();
    let vocab = parts::rows_of(&matrix);
    let (mut losses, mut hits) = (Vec::new(), Vec::new());
    for run in runs(values.dims()[0], rows) {
        let (part, ids) = (rows_of(&values, &run), targets_of(&targets, &run));
        let logits = logits(part, &matrix, cap);
        let (stats, hit) = cross_entropy::statistics_and_hits(logits, vocab, ids);
        losses.push(cross_entropy::total(stats));
        hits.push(cross_entropy::total(hit));
    }
    Tensor::cat(vec![summed(losses), summed(hits)], 0)
}
