//! Gated delta rule (Gated DeltaNet, arXiv:2412.06464), in chunks of 64 rows.
//!
//! For each value head there is a state S `[E, D]`, which each row changes: `S ← a S`, `S ← S + β (v − S k) kᵀ`, and then reads: `o = S q`.
//! Queries and keys have length 1. With the products of the decays inside a chunk, `r_ts = a_{s+1} … a_t` and G_t from before the chunk on, the
//! changes δ of the rows of a chunk solve a triangular system: `(1 + A) δ = β (v − G S k)`, `A_ts = β_t r_ts k_t·k_s` for s < t. With its inverse X,
//! `δ = X β v − W Sᵀ` for `W = X β G k`, so that only `S → S'` goes from chunk to chunk, and everything else is computed for all chunks at once.
//!
//! Backward, the gradient of a decay is the sum of all that it multiplies: pairs of a row before it and one from it on, and the states at the ends of
//! the chunk.

pub mod kernels;
pub mod params;
mod plan;
mod state_twins;
mod twins;

use burn::backend::tensor::FloatTensor;
use burn::tensor::{Int, Tensor};

use self::kernels::{GATES_BACKWARD, SCAN_BACKWARD, UNIT_BACKWARD, WRITTEN};
use self::params::{GateParams, UnitBackwardParams, WrittenParams};
use self::plan::{Plan, Rows};
use crate::gpu::launch::Launch;
use crate::ops::attention::given;
use crate::ops::column_sum::column_sum;
use crate::ops::operation::operation;
use crate::ops::tape::{Grads, Sum, Vjp};

/// Number of rows of a chunk.
pub const CHUNK: usize = 64;

/// The shape of a delta rule, which cannot be derived from its tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeltaShape {
    /// T, the number of rows of a sequence.
    pub seq_len: usize,
    /// G, the number of heads of queries and keys.
    pub key_heads: usize,
    /// M, the number of heads of values: a multiple of G.
    pub heads: usize,
    /// D, the width of a query or key.
    pub key_dim: usize,
    /// E, the width of a value.
    pub value_dim: usize,
}

impl DeltaShape {
    /// Width of the queries and keys of a row.
    fn keys(self) -> usize {
        2 * self.key_heads * self.key_dim
    }

    /// Width of a row of queries, keys and values.
    pub fn width(self) -> usize {
        self.keys() + self.heads * self.value_dim
    }

    /// Number of chunks of a sequence.
    fn chunks(self) -> usize {
        self.seq_len.div_ceil(CHUNK)
    }

    /// Number of values of a state of a head.
    fn state(self) -> usize {
        self.value_dim * self.key_dim
    }
}

/// The backward pass of a delta rule.
#[derive(Debug, Clone)]
struct Delta<T> {
    rows: Rows<T>,
    delta: T,
    states: T,
    plan: Plan,
}

impl<B: Launch> Vjp<B, 5> for Delta<FloatTensor<B>> {
    fn backward(self, dout: FloatTensor<B>, _: [bool; 5], _: Sum<'_, B>) -> Grads<B, 5> {
        let Self {
            rows,
            delta,
            states,
            plan,
        } = self;
        let (n, of) = (plan.n, plan.of);
        let within = plan.within::<B>(&rows);
        let [for_values, w] = plan.solved::<B>(&within);
        let (queries, keys) = (
            (within.qk.clone(), plan.queries()),
            (within.keys.clone(), plan.keys()),
        );
        let given = (dout.clone(), plan.values());
        let changes = (delta.clone(), plan.values());

        // dδ, and the gradients of the states.
        let weights = plan.attention::<B>(&within);
        let inside = plan.mix::<B>(weights, true, given.clone(), 1.0, None);
        let after = [n / of.seq_len * of.chunks(), of.heads * of.state()];
        let dstates = B::floats(&inside, after);
        let (start, end) = (within.start.clone(), within.end.clone());
        let read = [
            w,
            within.qk.clone(),
            start.clone(),
            end.clone(),
            dout.clone(),
        ];
        let params = plan.scan_params(false);
        let written = [inside, dstates];
        let [ddelta, dstates] = B::launch(&SCAN_BACKWARD, read, written, &params, plan.scans());
        let dv = plan.mix::<B>(for_values, true, (ddelta, plan.values()), 1.0, None);

        // Queries and keys.
        let written = (dv.clone(), plan.values());
        let of_outputs = plan.pairs::<B>([given.clone(), changes.clone()], false, false, &within);
        let of_changes = plan.pairs::<B>([written.clone(), changes.clone()], true, false, &within);
        let before = (states.clone(), of.chunks() + 1);
        let dq = plan.read::<B>(
            given.clone(),
            before.clone(),
            true,
            start.clone(),
            1.0,
            None,
        );
        let dq = plan.mix::<B>(of_outputs.clone(), false, keys.clone(), 1.0, Some(dq));
        let dk = plan.read::<B>(written, before.clone(), true, start.clone(), -1.0, None);
        let later = (dstates.clone(), of.chunks());
        let dk = plan.read::<B>(changes, later.clone(), true, end.clone(), 1.0, Some(dk));
        let dk = plan.mix::<B>(of_outputs.clone(), true, queries.clone(), 1.0, Some(dk));
        let dk = plan.mix::<B>(of_changes.clone(), false, keys.clone(), -1.0, Some(dk));
        let dk = plan.mix::<B>(of_changes.clone(), true, keys.clone(), -1.0, Some(dk));

        // Decays: shares of the state before a chunk in its rows, and of the rows in the state after it.
        let entered = plan.read::<B>(
            queries.clone(),
            before.clone(),
            false,
            start.clone(),
            1.0,
            None,
        );
        let entering = plan.dot::<B>([dout, entered], 1.0, None);
        let entered = plan.read::<B>(keys.clone(), before, false, start.clone(), 1.0, None);
        let entering = plan.dot::<B>([dv.clone(), entered], -1.0, Some(entering));
        let left = plan.read::<B>(keys.clone(), later, false, end, 1.0, None);
        let leaving = plan.dot::<B>([delta.clone(), left], 1.0, None);
        let through = plan.through::<B>([states, dstates, start]);
        let beside = (within.qk.clone(), plan.keys_beside());
        let shares = [
            plan.times::<B>(of_outputs, [queries, keys.clone()], &within),
            plan.times::<B>(of_changes, [beside, keys], &within),
        ];
        let dg = plan.cross::<B>(shares, [entering, leaving, through]);
        let of_written = WrittenParams {
            n,
            heads: of.heads,
            dim: of.value_dim,
        };
        let read = [dv.clone(), delta, within.gates];
        let db = B::made(&WRITTEN, read, [n, of.heads], &of_written, n * of.heads);
        let of_gates = GateParams { n, heads: of.heads };
        let read = [rows.a, rows.log_rates, rows.bias, dg];
        let made = [(), ()].map(|()| B::floats(&dv, [n, of.heads]));
        let groups = GATES_BACKWARD.groups(n * of.heads);
        let [da, drates] = B::launch(&GATES_BACKWARD, read, made, &of_gates, groups);
        let (of_rates, of_bias) = (column_sum::<B>(drates), column_sum::<B>(da.clone()));

        let of_rows = UnitBackwardParams {
            n,
            key_heads: of.key_heads,
            heads: of.heads,
            key_dim: of.key_dim,
            value_dim: of.value_dim,
        };
        let threads = n * (2 * of.key_heads + of.heads);
        let read = [rows.x, dq, dk, dv];
        let dx = B::made(&UNIT_BACKWARD, read, [n, of.width()], &of_rows, threads);
        [dx, da, db, of_rates, of_bias].map(Some)
    }
}

operation! {
    /// Computes [`delta_rule`]; `starts` is read only with documents.
    fn delta_of_rows(
        x: Tensor<2>, a: Tensor<2>, b: Tensor<2>, log_rates: Tensor<1>, bias: Tensor<1>;
        documents: bool, of: DeltaShape; starts: Tensor<1, Int>
    ) -> Tensor<2> {
        let ([x, a, b, log_rates, bias], nodes) = B::parts([x, a, b, log_rates, bias]);
        let starts = B::Inner::ids(B::integers(starts));
        let n = burn::backend::TensorMetadata::shape(&x)[0];
        let plan = Plan { n, documents, of };
        let rows = Rows { x, a, b, log_rates, bias, starts };
        let initial = rows.log_rates.clone();
        let [o, delta, states] = plan.forward::<B::Inner>(&rows, initial, false);
        B::record(nodes, o, Delta { rows, delta, states, plan })
    }
}

operation! {
    /// Computes [`delta_rule_from`]; `state` is read only if it is carried.
    fn delta_from_state(
        x: Tensor<2>, a: Tensor<2>, b: Tensor<2>, log_rates: Tensor<1>, bias: Tensor<1>, state: Tensor<2>;
        carried: bool, of: DeltaShape; starts: Tensor<1, Int>
    ) -> (Tensor<2>, Tensor<2>) {
        let starts = B::Inner::ids(B::integers(starts));
        let (x, a, b) = (B::constant(x), B::constant(a), B::constant(b));
        let (log_rates, bias) = (B::constant(log_rates), B::constant(bias));
        let n = burn::backend::TensorMetadata::shape(&x)[0];
        let plan = Plan { n, documents: false, of };
        let rows = Rows { x, a, b, log_rates, bias, starts };
        let [o, _, states] = plan.forward::<B::Inner>(&rows, B::constant(state), carried);
        (B::untracked(o), B::untracked(states))
    }
}

/// The parts of the gates of a delta rule: `g = −exp(A) softplus(a + bias)`, the decay's logarithm, and `β = σ(b)`.
#[derive(Debug, Clone)]
pub struct DeltaGates {
    /// a `[B·T, M]`.
    pub a: Tensor<2>,
    /// b `[B·T, M]`.
    pub b: Tensor<2>,
    /// A `[M]`.
    pub log_rates: Tensor<1>,
    /// Bias of a `[M]`.
    pub bias: Tensor<1>,
}

/// Computes the gated delta rule of rows `x [B·T, 2 G D + M E]`, which have queries, keys and values one after another → `[B·T, M E]`. Value head h
/// reads key head ⌊h G / M⌋. States begin with 0 at the first row of a sequence, or of each document with `starts`, which grows with t.
pub fn delta_rule(
    x: Tensor<2>,
    gates: DeltaGates,
    starts: Option<Tensor<1, Int>>,
    of: DeltaShape,
) -> Tensor<2> {
    let (documents, starts) = given(starts, &x.device());
    let DeltaGates {
        a,
        b,
        log_rates,
        bias,
    } = gates;
    delta_of_rows(x, a, b, log_rates, bias, documents, of, starts)
}

/// Computes [`delta_rule`] of rows that follow others, whose last states are `state [B, M E D]`, without gradients. Returns the rows and their last
/// states.
pub fn delta_rule_from(
    x: Tensor<2>,
    gates: DeltaGates,
    state: Option<Tensor<2>>,
    of: DeltaShape,
) -> (Tensor<2>, Tensor<2>) {
    let (_, starts) = given(None, &x.device());
    let DeltaGates {
        a,
        b,
        log_rates,
        bias,
    } = gates;
    let sequences = x.dims()[0] / of.seq_len;
    let carried = state.is_some();
    let state = state.unwrap_or_else(|| a.clone());
    let (o, states) = delta_from_state(x, a, b, log_rates, bias, state, carried, of, starts);
    let size = of.heads * of.state();
    let states = states.reshape([sequences, of.chunks() + 1, size]);
    let last = states.narrow(1, of.chunks(), 1);
    (o, last.reshape([sequences, size]))
}
