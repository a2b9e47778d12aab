//! The head fused with cross entropy: logits and their gradient exist for some rows at a time. The loss ends the forward pass, so the gradients
//! of its inputs are computed there and only scaled in the backward pass.

use std::ops::Range;

use burn::backend::TensorMetadata;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::tensor::{Int, Slice, Tensor};

use crate::gpu::StoredMatrix;
use crate::gpu::launch::{Launch, rows_columns};
use crate::ops::linear::{self, Linear};
use crate::ops::loss::cross_entropy;
use crate::ops::operation::operation;
use crate::ops::scale::scale;
use crate::ops::tape::{Grads, Sum, Vjp, gradients};
use crate::ops::weights::Weights;

/// The plan by which a head's loss is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadPlan {
    /// Maximum number of rows of logits that exist at once, at least 1.
    pub rows: usize,
    /// True for each of x and w that needs a gradient.
    pub needs: [bool; 2],
    /// Soft cap of the logits, if they have one.
    pub cap: Option<f64>,
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

/// The backward pass of a head's loss: its gradients, computed for an upstream gradient of 1.
#[derive(Debug, Clone)]
pub struct HeadLoss<T> {
    dx: Option<T>,
    dw: Option<T>,
}

/// Computes `Σ loss → [1]` of `x [n, C]` under the head `w [V, C]` with targets `[n]`, and the gradients that `plan` needs.
pub fn forward<B: Launch>(
    x: FloatTensor<B>,
    w: Weights<FloatTensor<B>>,
    targets: IntTensor<B>,
    plan: HeadPlan,
) -> (FloatTensor<B>, HeadLoss<FloatTensor<B>>) {
    let (n, vocab) = (rows_columns(&x.shape()).0, w.form.rows);
    let (mut losses, mut inputs, mut weight) = (Vec::new(), Vec::new(), None);
    let rows = plan.rows_of_a_run(n);
    for start in (0..n).step_by(rows) {
        let run = start..n.min(start + rows);
        let rows_of_run = run.len();
        let (part, ids) = part::<B>(&x, &targets, run);
        let logits = logits::<B>(part.clone(), w.clone(), plan.cap);
        let stats = cross_entropy::stats::<B>(logits.clone(), vocab, ids.clone());
        losses.push(cross_entropy::sum::<B>(stats.clone()));
        if plan.needs == [false; 2] {
            continue;
        }
        let dy = cross_entropy::gradient::<B>(logits, vocab, ids, stats, plan.cap);
        if plan.needs == [true; 2] && rows_of_run == n && vocab == rows_columns(&dy.shape()).1 {
            // With a single run both gradients are one dispatch, where the vocabulary is small.
            let vjp = Linear {
                x: part,
                w: w.clone(),
            };
            let [dx, dw] = gradients::<B, 2>(vjp, dy, [true; 2], None);
            inputs.extend(dx);
            weight = dw;
            continue;
        }
        if plan.needs[0] {
            inputs.push(linear::backward_input::<B>(dy.clone(), w.clone()));
        }
        if plan.needs[1] {
            weight = Some(linear::backward_weight::<B>(dy, part, vocab, weight));
        }
    }
    (
        summed::<B>(losses),
        HeadLoss {
            dx: joined::<B>(inputs),
            dw: weight,
        },
    )
}

/// Computes `[Σ loss, number of targets that are the arg max of their logits] → [2]` of `x [n, C]` under the head `w [V, C]` with targets `[n]`. At
/// most `rows` rows of logits exist at once.
pub fn evaluation<B: Launch>(
    x: FloatTensor<B>,
    w: Weights<FloatTensor<B>>,
    targets: IntTensor<B>,
    rows: usize,
    cap: Option<f64>,
) -> FloatTensor<B> {
    let (n, vocab) = (rows_columns(&x.shape()).0, w.form.rows);
    let (mut losses, mut hits) = (Vec::new(), Vec::new());
    let rows = HeadPlan {
        rows: rows.max(1),
        needs: [false; 2],
        cap,
    }
    .rows_of_a_run(n);
    for start in (0..n).step_by(rows) {
        let (part, ids) = part::<B>(&x, &targets, start..n.min(start + rows));
        let logits = logits::<B>(part, w.clone(), cap);
        let [stats, hit] = cross_entropy::stats_and_hits::<B>(logits, vocab, ids);
        losses.push(cross_entropy::sum::<B>(stats));
        hits.push(cross_entropy::sum::<B>(hit));
    }
    B::float_cat(vec![summed::<B>(losses), summed::<B>(hits)], 0)
}

/// Computes the logits of the rows of x, in rows that may be longer than the vocabulary.
fn logits<B: Launch>(
    x: FloatTensor<B>,
    w: Weights<FloatTensor<B>>,
    cap: Option<f64>,
) -> FloatTensor<B> {
    let logits = linear::padded::<B>(x, w);
    match cap {
        Some(cap) => crate::ops::cap::forward::<B>(logits, cap),
        None => logits,
    }
}

/// The rows `run` of x, and their targets as words.
fn part<B: Launch>(
    x: &FloatTensor<B>,
    targets: &IntTensor<B>,
    run: Range<usize>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let (n, width) = rows_columns(&x.shape());
    if run.len() == n {
        return (x.clone(), B::ids(targets.clone()));
    }
    let part = B::float_slice(
        x.clone(),
        &[Slice::from(run.clone()), Slice::from(0..width)],
    );
    (
        part,
        B::ids(B::int_slice(targets.clone(), &[Slice::from(run)])),
    )
}

fn joined<B: Launch>(mut parts: Vec<FloatTensor<B>>) -> Option<FloatTensor<B>> {
    if parts.len() > 1 {
        Some(B::float_cat(parts, 0))
    } else {
        parts.pop()
    }
}

/// Sums at least one tensor `[1]`.
fn summed<B: Launch>(parts: Vec<FloatTensor<B>>) -> FloatTensor<B> {
    let sums = joined::<B>(parts).expect("a batch has at least one row");
    if sums.shape().num_elements() == 1 {
        sums
    } else {
        B::float_sum(sums)
    }
}

impl<B: Launch> Vjp<B, 2> for HeadLoss<FloatTensor<B>> {
    fn backward(self, g: FloatTensor<B>, _needs: [bool; 2], _: Sum<'_, B>) -> Grads<B, 2> {
        [self.dx, self.dw].map(|part| part.map(|part| scale::<B>(part, g.clone())))
    }
}

operation! {
    /// Computes `Σ loss` of the rows of x under the head w.
    fn planned_loss(x: Tensor<2>, w: Tensor<2>; plan: HeadPlan; targets: Tensor<1, Int>) -> Tensor<1> {
        let ([x, w], nodes) = B::parts([x, w]);
        let (loss, vjp) = forward::<B::Inner>(x, Weights::of(w), B::integers(targets), plan);
        B::record(nodes, loss, vjp)
    }
}

operation! {
    /// Computes `Σ loss` of the rows of x under a packed head, which is a constant.
    pub(crate) fn planned_loss_of_words(
        x: Tensor<2>, words: Tensor<1>; form: StoredMatrix, plan: HeadPlan; targets: Tensor<1, Int>
    ) -> Tensor<1> {
        let ([x, words], nodes) = B::parts([x, words]);
        let (loss, vjp) = forward::<B::Inner>(x, Weights { words, form }, B::integers(targets), plan);
        B::record(nodes, loss, vjp)
    }
}

operation! {
    /// Computes `[Σ loss in nats, number of targets that are the arg max of their logits, the lowest id of equal ones] → [2]`, from the arguments
    /// of [`head_loss`]: `x [n, C]`, `w [V, C]`, targets `[n]`. Not differentiable.
    pub(crate) fn head_evaluation(x: Tensor<2>, w: Tensor<2>; rows: usize, cap: Option<f64>; targets: Tensor<1, Int>) -> Tensor<1> {
        B::untracked(evaluation::<B::Inner>(B::constant(x), Weights::of(B::constant(w)), B::integers(targets), rows, cap))
    }
}

operation! {
    /// Computes [`head_evaluation`] under a packed head.
    pub(crate) fn evaluation_of_words(
        x: Tensor<2>, words: Tensor<1>; form: StoredMatrix, rows: usize, cap: Option<f64>; targets: Tensor<1, Int>
    ) -> Tensor<1> {
        let w = Weights { words: B::constant(words), form };
        B::untracked(evaluation::<B::Inner>(B::constant(x), w, B::integers(targets), rows, cap))
    }
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
    let plan = HeadPlan {
        rows: rows.max(1),
        needs: [x.is_tracked(), w.is_tracked()],
        cap,
    };
    planned_loss(x, w, plan, targets)
}
