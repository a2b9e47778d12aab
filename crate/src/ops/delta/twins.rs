//! Twins of the kernels that compute what is inside a chunk.

use super::CHUNK;
use super::params::{
    DecayParams, DotParams, GateParams, InverseParams, MixParams, PairParams, UnitBackwardParams,
    UnitParams, WrittenParams,
};
use crate::gpu::Words;

/// ε under the root of the length of a query or key.
const EPS: f64 = 1e-6;

/// One head of a chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Number of the sequence.
    pub sequence: usize,
    /// Number of the chunk in its sequence.
    pub chunk: usize,
    /// First row.
    pub base: usize,
    /// Number of rows.
    pub rows: usize,
    /// Value head.
    pub head: usize,
    /// Number of value heads.
    pub heads: usize,
}

impl Place {
    /// Lists the heads of all chunks of `n` rows, chunk by chunk.
    pub fn all(n: usize, len: usize, heads: usize) -> impl Iterator<Item = Self> {
        let chunks = len.div_ceil(CHUNK);
        (0..n / len * chunks * heads).map(move |i| {
            let (sequence, chunk) = (i / heads / chunks, i / heads % chunks);
            Self {
                sequence,
                chunk,
                base: sequence * len + chunk * CHUNK,
                rows: CHUNK.min(len - chunk * CHUNK),
                head: i % heads,
                heads,
            }
        })
    }

    /// Index of this head in row `t` of the chunk.
    pub fn at(self, t: usize) -> usize {
        (self.base + t) * self.heads + self.head
    }

    /// β of row `t`.
    pub fn weight(self, gates: &[u32], t: usize) -> f64 {
        gates.wide((self.base + t) * 2 * self.heads + self.heads + self.head)
    }

    /// True if the document of row `t` begins before the chunk.
    pub fn begins_before(self, starts: &[u32], documents: bool, t: usize) -> bool {
        !documents || (starts[self.base + t] as usize) < self.chunk * CHUNK
    }

    /// True if row `s` of the chunk belongs to the document of a row `t` after it.
    pub fn sees(self, starts: &[u32], documents: bool, t: usize, s: usize) -> bool {
        !documents || self.chunk * CHUNK + s >= starts[self.base + t] as usize
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

pub(super) fn gates(
    [a, b, log_rates, bias]: [&[u32]; 4],
    [gates]: [&mut [u32]; 1],
    p: &GateParams,
) {
    for i in 0..p.n * p.heads {
        let (row, h) = (i / p.heads, i % p.heads);
        let at = row * 2 * p.heads + h;
        gates.set(
            at,
            -log_rates.wide(h).exp() * softplus(a.wide(i) + bias.wide(h)),
        );
        gates.set(at + p.heads, sigmoid(b.wide(i)));
    }
}

pub(super) fn gates_backward(
    [a, log_rates, bias, dg]: [&[u32]; 4],
    [da, drates]: [&mut [u32]; 2],
    p: &GateParams,
) {
    for i in 0..p.n * p.heads {
        let h = i % p.heads;
        let x = a.wide(i) + bias.wide(h);
        let slope = -dg.wide(i) * log_rates.wide(h).exp();
        da.set(i, slope * sigmoid(x));
        drates.set(i, slope * softplus(x));
    }
}

pub(super) fn unit([x]: [&[u32]; 1], [y, keys]: [&mut [u32]; 2], p: &UnitParams) {
    let both = 2 * p.heads;
    for i in 0..p.n * both {
        let from = i / both * p.width + i % both * p.dim;
        let sum: f64 = (0..p.dim).map(|c| x.wide(from + c).powi(2)).sum();
        let of_query = if i % both < p.heads { p.dim } else { 1 };
        let scale = 1.0 / ((sum + EPS) * of_query as f64).sqrt();
        let key = (i % both).checked_sub(p.heads);
        for c in 0..p.dim {
            y.set(i * p.dim + c, x.wide(from + c) * scale);
            if let Some(key) = key {
                keys[(i / both * p.heads + key) * p.dim + c] = y[i * p.dim + c];
            }
        }
    }
}

pub(super) fn unit_backward(
    [x, dq, dk, dv]: [&[u32]; 4],
    [dx]: [&mut [u32]; 1],
    p: &UnitBackwardParams,
) {
    let readers = p.heads / p.key_heads;
    let keys = 2 * p.key_heads * p.key_dim;
    let width = keys + p.heads * p.value_dim;
    for row in 0..p.n {
        for head in 0..2 * p.key_heads {
            let (of, own) = if head < p.key_heads {
                (dq, head)
            } else {
                (dk, head - p.key_heads)
            };
            let gradient = |c: usize| -> f64 {
                let first = row * p.heads + own * readers;
                let each = (first..first + readers).map(|at| of.wide(at * p.key_dim + c));
                each.sum()
            };
            let at = row * width + head * p.key_dim;
            let along: f64 = (0..p.key_dim).map(|c| x.wide(at + c) * gradient(c)).sum();
            let sum: f64 = (0..p.key_dim).map(|c| x.wide(at + c).powi(2)).sum();
            let r = 1.0 / (sum + EPS).sqrt();
            let of_query = if head < p.key_heads { p.key_dim } else { 1 };
            let scale = r / (of_query as f64).sqrt();
            for c in 0..p.key_dim {
                dx.set(
                    at + c,
                    scale * (gradient(c) - x.wide(at + c) * along * r * r),
                );
            }
        }
        let values = p.heads * p.value_dim;
        for c in 0..values {
            dx[row * width + keys + c] = dv[row * values + c];
        }
    }
}

pub(super) fn decay(
    [gates, starts]: [&[u32]; 2],
    [sums, start, end]: [&mut [u32]; 3],
    p: &DecayParams,
) {
    for place in Place::all(p.n, p.len, p.heads) {
        let logarithm = |t: usize| gates.wide((place.base + t) * 2 * p.heads + place.head);
        let mut total = 0.0;
        let sum_to: Vec<f64> = (0..place.rows)
            .map(|t| {
                total += (-logarithm(t)).min(1e5);
                total
            })
            .collect();
        let last = place.rows - 1;
        for (t, &sum) in sum_to.iter().enumerate() {
            let at = place.at(t);
            sums.set(2 * at, sum.floor());
            sums.set(2 * at + 1, sum - sum.floor());
            let before = place.begins_before(starts, p.documents, t);
            start.set(at, if before { (-sum).exp() } else { 0.0 });
            let seen = place.sees(starts, p.documents, last, t);
            end.set(at, if seen { (sum - total).exp() } else { 0.0 });
        }
    }
}

pub(super) fn pairs(
    [x, z, sums, gates, starts]: [&[u32]; 5],
    [y]: [&mut [u32]; 1],
    p: &PairParams,
) {
    for place in Place::all(p.n, p.len, p.heads) {
        let head = place.head * p.own / p.heads * p.dim;
        let sum = |t: usize| {
            let at = 2 * place.at(t);
            sums.wide(at) + sums.wide(at + 1)
        };
        for t in 0..place.rows {
            let at_x = (place.base + t) * p.x_width + p.x_first + head;
            let weight = if p.weighted {
                place.weight(gates, t)
            } else {
                1.0
            };
            for s in 0..CHUNK {
                let at = place.at(t) * CHUNK + s;
                let dot = || -> f64 {
                    let at_z = (place.base + s) * p.z_width + head;
                    (0..p.dim)
                        .map(|c| x.wide(at_x + c) * z.wide(at_z + c))
                        .sum()
                };
                if p.times {
                    let factor = if s <= t { dot() } else { 0.0 };
                    y.set(at, y.wide(at) * factor);
                    continue;
                }
                let seen = s + usize::from(p.strict) <= t && place.sees(starts, p.documents, t, s);
                let value = if seen {
                    weight * (sum(s) - sum(t)).exp() * dot()
                } else {
                    0.0
                };
                y.set(at, value);
            }
        }
    }
}

pub(super) fn inverse(
    [pairs, gates, start]: [&[u32]; 3],
    [yv, yk]: [&mut [u32]; 2],
    p: &InverseParams,
) {
    for place in Place::all(p.n, p.len, p.heads) {
        for column in 0..CHUNK {
            let inside = column < place.rows;
            let weight = if inside {
                place.weight(gates, column)
            } else {
                0.0
            };
            let carried = if inside {
                weight * start.wide(place.at(column))
            } else {
                0.0
            };
            let mut values = vec![0.0; place.rows];
            for t in 0..place.rows {
                let at = place.at(t) * CHUNK;
                let solved: f64 = (column..t).map(|s| pairs.wide(at + s) * values[s]).sum();
                values[t] = f64::from(u8::from(t == column)) - solved;
                yv.set(at + column, values[t] * weight);
                yk.set(at + column, values[t] * carried);
            }
        }
    }
}

pub(super) fn mix([m, x]: [&[u32]; 2], [y]: [&mut [u32]; 1], p: &MixParams) {
    for place in Place::all(p.n, p.len, p.heads) {
        let head = p.first + place.head * p.own / p.heads * p.dim;
        for t in 0..place.rows {
            for c in 0..p.dim {
                let sum: f64 = (0..place.rows)
                    .map(|s| {
                        let weight = if p.turned {
                            place.at(s) * CHUNK + t
                        } else {
                            place.at(t) * CHUNK + s
                        };
                        m.wide(weight) * x.wide((place.base + s) * p.width + head + c)
                    })
                    .sum();
                let to = place.at(t) * p.dim + c;
                let before = if p.add { y.wide(to) } else { 0.0 };
                y.set(to, before + f64::from(p.factor) * sum);
            }
        }
    }
}

pub(super) fn dot([a, b]: [&[u32]; 2], [y]: [&mut [u32]; 1], p: &DotParams) {
    for i in 0..p.n {
        let parts = i * p.dim..(i + 1) * p.dim;
        let sum: f64 = parts.map(|at| a.wide(at) * b.wide(at)).sum();
        let before = if p.add { y.wide(i) } else { 0.0 };
        y.set(i, before + f64::from(p.factor) * sum);
    }
}

pub(super) fn written([dv, delta, gates]: [&[u32]; 3], [db]: [&mut [u32]; 1], p: &WrittenParams) {
    for i in 0..p.n * p.heads {
        let parts = i * p.dim..(i + 1) * p.dim;
        let sum: f64 = parts.map(|at| dv.wide(at) * delta.wide(at)).sum();
        let weight = gates.wide(i / p.heads * 2 * p.heads + p.heads + i % p.heads);
        let slope = (1.0 - weight) * sum / weight;
        db.set(i, if weight > 0.0 { slope } else { 0.0 });
    }
}

pub(super) fn cross(
    [w, v, before, after, through]: [&[u32]; 5],
    [dg]: [&mut [u32]; 1],
    p: &InverseParams,
) {
    for (number, place) in Place::all(p.n, p.len, p.heads).enumerate() {
        for r in 0..place.rows {
            let left: f64 = (0..r).map(|s| after.wide(place.at(s))).sum();
            let entered: f64 = (r..place.rows).map(|t| before.wide(place.at(t))).sum();
            let pairs = (r..place.rows).flat_map(|t| (0..r).map(move |s| (t, s)));
            let inside: f64 = pairs
                .map(|(t, s)| place.at(t) * CHUNK + s)
                .map(|at| w.wide(at) - v.wide(at))
                .sum();
            dg.set(place.at(r), through.wide(number) + left + entered + inside);
        }
    }
}
