//! The parts of a delta rule: what is computed for all chunks at once, and what goes from chunk to chunk.

use burn::backend::tensor::FloatTensor;

use super::kernels::{CROSS, DECAY, DOT, GATES, INVERSE, MIX, PAIRS, READ, SCAN, THROUGH, UNIT};
use super::params::{
    DecayParams, DotParams, GateParams, InverseParams, MixParams, PairParams, ReadParams,
    ScanParams, ThroughParams, UnitParams,
};
use super::{CHUNK, DeltaShape};
use crate::gpu::launch::Launch;

/// Rows of a state that one workgroup of a scan has.
const STATE_ROWS: usize = 8;

/// The tensors that a delta rule reads.
#[derive(Debug, Clone)]
pub(super) struct Rows<T> {
    /// Queries, keys and values.
    pub x: T,
    pub a: T,
    pub b: T,
    pub log_rates: T,
    pub bias: T,
    pub starts: T,
}

/// Results of the rows of a chunk that do not depend on its state.
#[derive(Debug, Clone)]
pub(super) struct Within<T> {
    pub gates: T,
    pub starts: T,
    /// Queries and keys of length 1.
    pub qk: T,
    /// The keys alone.
    pub keys: T,
    pub sums: T,
    pub start: T,
    pub end: T,
}

/// Heads in the rows of a tensor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heads {
    /// Width of a row.
    width: usize,
    /// Place of the first head.
    first: usize,
    /// Number of heads.
    count: usize,
    /// Width of a head.
    dim: usize,
}

/// Shape of an operation with its rows and documents.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Number of rows.
    pub n: usize,
    /// True if each row has a first row of its own, that of its document.
    pub documents: bool,
    pub of: DeltaShape,
}

impl Plan {
    pub fn queries(self) -> Heads {
        Heads {
            width: self.of.keys(),
            first: 0,
            count: self.of.key_heads,
            dim: self.of.key_dim,
        }
    }

    /// Keys in the rows of queries and keys.
    pub fn keys_beside(self) -> Heads {
        Heads {
            first: self.of.key_heads * self.of.key_dim,
            ..self.queries()
        }
    }

    /// Rows of keys alone.
    pub fn keys(self) -> Heads {
        Heads {
            width: self.of.keys() / 2,
            ..self.queries()
        }
    }

    /// Values in the rows of queries, keys and values.
    pub fn given_values(self) -> Heads {
        Heads {
            width: self.of.width(),
            first: self.of.keys(),
            count: self.of.heads,
            dim: self.of.value_dim,
        }
    }

    /// Rows with a value for each value head.
    pub fn values(self) -> Heads {
        Heads {
            width: self.of.heads * self.of.value_dim,
            first: 0,
            ..self.given_values()
        }
    }

    /// Number of heads of all chunks.
    pub fn places(self) -> usize {
        self.n / self.of.seq_len * self.of.chunks() * self.of.heads
    }

    fn pair_params(self, [of_x, of_z]: [Heads; 2]) -> PairParams {
        PairParams {
            n: self.n,
            len: self.of.seq_len,
            heads: self.of.heads,
            dim: of_x.dim,
            own: of_x.count,
            x_width: of_x.width,
            x_first: of_x.first,
            z_width: of_z.width,
            strict: false,
            weighted: false,
            documents: self.documents,
            times: false,
        }
    }

    fn launch_pairs<B: Launch>(
        self,
        [x, z]: [FloatTensor<B>; 2],
        params: &PairParams,
        within: &Within<FloatTensor<B>>,
        y: FloatTensor<B>,
    ) -> FloatTensor<B> {
        let Within {
            gates,
            starts,
            sums,
            ..
        } = within.clone();
        let groups = PAIRS.groups(self.places() * CHUNK / 4 * CHUNK);
        let [y] = B::launch(&PAIRS, [x, z, sums, gates, starts], [y], params, groups);
        y
    }

    /// Multiplies the rows of a chunk with each other, and with the decays between them.
    pub fn pairs<B: Launch>(
        self,
        [(x, of_x), (z, of_z)]: [(FloatTensor<B>, Heads); 2],
        strict: bool,
        weighted: bool,
        within: &Within<FloatTensor<B>>,
    ) -> FloatTensor<B> {
        let params = PairParams {
            strict,
            weighted,
            ..self.pair_params([of_x, of_z])
        };
        let y = B::floats(&x, [self.n, self.of.heads * CHUNK]);
        self.launch_pairs::<B>([x, z], &params, within, y)
    }

    /// Multiplies pairs of rows by the products of other rows.
    pub fn times<B: Launch>(
        self,
        y: FloatTensor<B>,
        [(x, of_x), (z, of_z)]: [(FloatTensor<B>, Heads); 2],
        within: &Within<FloatTensor<B>>,
    ) -> FloatTensor<B> {
        let params = PairParams {
            times: true,
            ..self.pair_params([of_x, of_z])
        };
        self.launch_pairs::<B>([x, z], &params, within, y)
    }

    /// Multiplies the heads of values; adds the result to `y` if it is given.
    pub fn dot<B: Launch>(
        self,
        read: [FloatTensor<B>; 2],
        factor: f32,
        y: Option<FloatTensor<B>>,
    ) -> FloatTensor<B> {
        let heads = self.n * self.of.heads;
        let params = DotParams {
            n: heads,
            dim: self.of.value_dim,
            add: y.is_some(),
            factor,
        };
        let y = y.unwrap_or_else(|| B::floats(&read[0], [self.n, self.of.heads]));
        let [y] = B::launch(&DOT, read, [y], &params, DOT.groups(heads));
        y
    }

    /// Computes the shares of states in the states after them.
    pub fn through<B: Launch>(self, read: [FloatTensor<B>; 3]) -> FloatTensor<B> {
        let params = ThroughParams {
            n: self.n,
            len: self.of.seq_len,
            heads: self.of.heads,
            size: self.of.state(),
        };
        let y = B::floats(&read[0], [self.places()]);
        let [y] = B::launch(&THROUGH, read, [y], &params, self.places() as u32);
        y
    }

    /// Adds up the shares that each decay multiplies.
    pub fn cross<B: Launch>(
        self,
        [w, v]: [FloatTensor<B>; 2],
        [before, after, through]: [FloatTensor<B>; 3],
    ) -> FloatTensor<B> {
        let params = InverseParams {
            n: self.n,
            len: self.of.seq_len,
            heads: self.of.heads,
        };
        let read = [w, v, before, after, through];
        let heads = self.n * self.of.heads;
        B::made(&CROSS, read, [self.n, self.of.heads], &params, heads)
    }

    /// Mixes rows, and adds the result to `y` if it is given.
    pub fn mix<B: Launch>(
        self,
        m: FloatTensor<B>,
        turned: bool,
        (x, of_x): (FloatTensor<B>, Heads),
        factor: f32,
        y: Option<FloatTensor<B>>,
    ) -> FloatTensor<B> {
        let params = MixParams {
            n: self.n,
            len: self.of.seq_len,
            heads: self.of.heads,
            dim: of_x.dim,
            width: of_x.width,
            own: of_x.count,
            first: of_x.first,
            turned,
            add: y.is_some(),
            factor,
        };
        let y = y.unwrap_or_else(|| B::floats(&m, [self.n, self.of.heads * of_x.dim]));
        let threads = self.places() * CHUNK / 4 * of_x.dim;
        let [y] = B::launch(&MIX, [m, x], [y], &params, MIX.groups(threads));
        y
    }

    /// Reads states by rows; adds the result to `y` if it is given. `turned` reads them by values.
    pub fn read<B: Launch>(
        self,
        (x, of_x): (FloatTensor<B>, Heads),
        (s, states): (FloatTensor<B>, usize),
        turned: bool,
        weights: FloatTensor<B>,
        factor: f32,
        y: Option<FloatTensor<B>>,
    ) -> FloatTensor<B> {
        let dim = self.of.state() / of_x.dim;
        let params = ReadParams {
            n: self.n,
            len: self.of.seq_len,
            heads: self.of.heads,
            dim,
            inner: of_x.dim,
            width: of_x.width,
            own: of_x.count,
            first: of_x.first,
            states,
            turned,
            add: y.is_some(),
            factor,
        };
        let y = y.unwrap_or_else(|| B::floats(&x, [self.n, self.of.heads * dim]));
        let threads = self.places() * CHUNK / 4 * dim;
        let [y] = B::launch(&READ, [x, s, weights], [y], &params, READ.groups(threads));
        y
    }

    pub fn scan_params(self, carried: bool) -> ScanParams {
        ScanParams {
            n: self.n,
            len: self.of.seq_len,
            key_heads: self.of.key_heads,
            heads: self.of.heads,
            key_dim: self.of.key_dim,
            value_dim: self.of.value_dim,
            carried,
        }
    }

    /// Number of workgroups of a scan.
    pub fn scans(self) -> u32 {
        let tiles = self.of.value_dim.div_ceil(STATE_ROWS);
        (self.n / self.of.seq_len * self.of.heads * tiles) as u32
    }

    /// Computes what does not depend on the states.
    pub fn within<B: Launch>(self, rows: &Rows<FloatTensor<B>>) -> Within<FloatTensor<B>> {
        let (n, of, starts) = (self.n, self.of, rows.starts.clone());
        let of_gates = GateParams { n, heads: of.heads };
        let read = [&rows.a, &rows.b, &rows.log_rates, &rows.bias].map(Clone::clone);
        let shape = [n, 2 * of.heads];
        let gates = B::made(&GATES, read, shape, &of_gates, n * of.heads);
        let of_unit = UnitParams {
            n,
            width: of.width(),
            heads: of.key_heads,
            dim: of.key_dim,
        };
        let threads = n * 2 * of.key_heads;
        let written = [of.keys(), of.keys() / 2].map(|width| B::floats(&gates, [n, width]));
        let groups = UNIT.groups(threads);
        let [qk, keys] = B::launch(&UNIT, [rows.x.clone()], written, &of_unit, groups);
        let of_decay = DecayParams {
            n,
            len: of.seq_len,
            heads: of.heads,
            documents: self.documents,
        };
        let written = [2 * of.heads, of.heads, of.heads].map(|width| B::floats(&qk, [n, width]));
        let read = [gates.clone(), starts.clone()];
        let groups = DECAY.groups(self.places());
        let [sums, start, end] = B::launch(&DECAY, read, written, &of_decay, groups);
        Within {
            gates,
            starts,
            qk,
            keys,
            sums,
            start,
            end,
        }
    }

    /// Computes the inverse of 1 + A times β, and W.
    pub fn solved<B: Launch>(self, within: &Within<FloatTensor<B>>) -> [FloatTensor<B>; 2] {
        let keys = (within.keys.clone(), self.keys());
        let beside = (within.qk.clone(), self.keys_beside());
        let triangle = self.pairs::<B>([beside, keys.clone()], true, true, within);
        let params = InverseParams {
            n: self.n,
            len: self.of.seq_len,
            heads: self.of.heads,
        };
        let shape = [self.n, self.of.heads * CHUNK];
        let written = [(), ()].map(|()| B::floats(&triangle, shape));
        let read = [triangle, within.gates.clone(), within.start.clone()];
        let groups = self.places() as u32;
        let [for_values, for_keys] = B::launch(&INVERSE, read, written, &params, groups);
        let w = self.mix::<B>(for_keys, false, keys, 1.0, None);
        [for_values, w]
    }

    /// Computes the weights of δ in o.
    pub fn attention<B: Launch>(self, within: &Within<FloatTensor<B>>) -> FloatTensor<B> {
        let queries = (within.qk.clone(), self.queries());
        let keys = (within.keys.clone(), self.keys());
        self.pairs::<B>([queries, keys], false, false, within)
    }

    /// Computes o, δ and the states between chunks.
    pub fn forward<B: Launch>(
        self,
        rows: &Rows<FloatTensor<B>>,
        initial: FloatTensor<B>,
        carried: bool,
    ) -> [FloatTensor<B>; 3] {
        let within = self.within::<B>(rows);
        let [for_values, w] = self.solved::<B>(&within);
        let values = (rows.x.clone(), self.given_values());
        let u = self.mix::<B>(for_values, false, values, 1.0, None);
        let (of, sequences) = (self.of, self.n / self.of.seq_len);
        let states = B::floats(&u, [sequences * (of.chunks() + 1), of.heads * of.state()]);
        let Within {
            keys, start, end, ..
        } = within.clone();
        let read = [w, keys, start.clone(), end, initial];
        let params = self.scan_params(carried);
        let [delta, states] = B::launch(&SCAN, read, [u, states], &params, self.scans());
        let queries = (within.qk.clone(), self.queries());
        let all = (states.clone(), of.chunks() + 1);
        let o = self.read::<B>(queries, all, false, start, 1.0, None);
        let weights = self.attention::<B>(&within);
        let changes = (delta.clone(), self.values());
        let o = self.mix::<B>(weights, false, changes, 1.0, Some(o));
        [o, delta, states]
    }
}
