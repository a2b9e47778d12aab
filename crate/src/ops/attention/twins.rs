//! The twins of the attention kernels, written from the formulas with sums in f64.

use super::params::{BlockParams, HeadSumParams, Params};
use crate::gpu::Words;

/// Number of queries, or of keys, per thread of the block kernels.
const BLOCK: usize = 8;

impl BlockParams {
    fn width(&self) -> usize {
        self.width4 * 4
    }

    /// The score of a query and a key with this product, and its slope.
    fn score(&self, product: f64) -> (f64, f64) {
        let (scale, cap) = (f64::from(self.scale), f64::from(self.cap));
        if cap == 0.0 {
            return (scale * product, scale);
        }
        let tanh = (scale * product / cap).tanh();
        (cap * tanh, scale * (1.0 - tanh * tanh))
    }

    /// The index of query `t` of head `h` of sequence `b`, counted in rows of the width of a head.
    fn query(&self, b: usize, t: usize, h: usize) -> usize {
        (b * self.len + t) * self.heads + h
    }

    /// The index of key `j` for head `h` of sequence `b`, counted in rows of the width of a head.
    fn key(&self, b: usize, j: usize, h: usize) -> usize {
        let group = self.heads / self.kv_heads;
        (b * (self.offset + self.len) + j) * self.kv_heads + h / group
    }

    /// The index in the stats at which the first key of query `t` of sequence `b` is stored.
    fn first_at(&self, b: usize, t: usize) -> usize {
        (2 * self.batch * self.heads + b) * self.len + t
    }

    /// The first key that query `t` of sequence `b` sees, as the stats have it.
    fn first_key(&self, stats: &[f32], b: usize, t: usize) -> usize {
        if self.documents {
            stats[self.first_at(b, t)] as usize
        } else {
            0
        }
    }

    /// Iterates over all queries as (sequence, time, head).
    fn queries(self) -> impl Iterator<Item = (usize, usize, usize)> {
        let (len, heads) = (self.len, self.heads);
        (0..self.batch * len * heads).map(move |i| (i / heads / len, i / heads % len, i % heads))
    }

    /// The number of keys that the last query of the block of query `t` sees.
    fn keys_of_block(&self, t: usize) -> usize {
        self.offset + (t / BLOCK * BLOCK + BLOCK).min(self.len)
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(&a, &b)| f64::from(a) * f64::from(b))
        .sum()
}

fn add(sums: &mut [f64], factor: f64, row: &[f32]) {
    for (sum, &value) in sums.iter_mut().zip(row) {
        *sum += factor * f64::from(value);
    }
}

fn store(floats: &mut [f32], row: usize, values: &[f64]) {
    let width = values.len();
    for (slot, &value) in floats[row * width..][..width].iter_mut().zip(values) {
        *slot = value as f32;
    }
}

fn row(floats: &[f32], row: usize, width: usize) -> &[f32] {
    &floats[row * width..][..width]
}

/// The sums of a row so far in f64: zeros if `fresh`.
fn held(floats: &[f32], at: usize, width: usize, fresh: bool) -> Vec<f64> {
    row(floats, at, width)
        .iter()
        .map(|&v| if fresh { 0.0 } else { f64::from(v) })
        .collect()
}

/// A value below every score: the maximum of a row before its first key.
const LOWEST: f64 = f32::MIN as f64;

/// Adds the keys of a part. Before the last key of a block, y holds the sums and stats the maximum and the total; after it they hold the results.
fn forward(
    [q, k, v, starts]: [&[u32]; 4],
    written: [&mut [u32]; 2],
    p: BlockParams,
    keys_of_block: impl Fn(usize) -> usize,
) {
    let [q, k, v] = [q, k, v].map(Words::floats);
    let [y, stats] = written.map(Words::floats_mut);
    let width = p.width();
    for (b, t, h) in p.queries() {
        if p.first >= keys_of_block(t) {
            continue;
        }
        let at = p.query(b, t, h);
        let last = p.offset + t;
        if p.documents {
            let start = starts[b * p.len + t] as usize;
            stats[p.first_at(b, t)] = start.min(last) as f32;
        }
        let first = p.first_key(stats, b, t);
        let fresh = p.first == 0;
        let (top, total) = (f64::from(stats[2 * at]), f64::from(stats[2 * at + 1]));
        let (top, total) = if fresh { (LOWEST, 0.0) } else { (top, total) };
        let keys = p.first.max(first)..p.end.min(last + 1);
        let score = |j: usize| {
            p.score(dot(row(q, at, width), row(k, p.key(b, j, h), width)))
                .0
        };
        let next = keys.clone().map(score).fold(top, f64::max);
        let old = (top - next).exp();
        let mut sums: Vec<f64> = held(y, at, width, fresh)
            .iter()
            .map(|sum| sum * old)
            .collect();
        for j in keys.clone() {
            add(
                &mut sums,
                (score(j) - next).exp(),
                row(v, p.key(b, j, h), width),
            );
        }
        let total = total * old + keys.map(|j| (score(j) - next).exp()).sum::<f64>();
        let done = keys_of_block(t) <= p.end;
        sums.iter_mut()
            .filter(|_| done)
            .for_each(|sum| *sum /= total);
        store(y, at, &sums);
        stats[2 * at] = (if done { next + total.ln() } else { next }) as f32;
        stats[2 * at + 1] = if done { 0.0 } else { total as f32 };
    }
}

pub fn forward_twin(read: [&[u32]; 4], written: [&mut [u32]; 2], p: &Params) {
    forward(read, written, p.whole(), |_| usize::MAX);
}

pub fn forward_block_twin(read: [&[u32]; 4], written: [&mut [u32]; 2], p: &BlockParams) {
    forward(read, written, *p, |t| p.keys_of_block(t));
}

fn backward_query(read: [&[u32]; 5], written: [&mut [u32]; 2], p: BlockParams) {
    let [q, k, v, y, dy] = read.map(Words::floats);
    let [stats, dq] = written.map(Words::floats_mut);
    let width = p.width();
    for (b, t, h) in p.queries() {
        let at = p.query(b, t, h);
        let end = p.end.min(p.offset + t + 1);
        if p.first >= end {
            continue;
        }
        let delta = dot(row(dy, at, width), row(y, at, width));
        let lse = f64::from(stats[2 * at]);
        let mut sums = held(dq, at, width, p.first == 0);
        for j in p.first.max(p.first_key(stats, b, t))..end {
            let key = p.key(b, j, h);
            let (score, slope) = p.score(dot(row(q, at, width), row(k, key, width)));
            let weight = (score - lse).exp();
            let ds = weight * (dot(row(dy, at, width), row(v, key, width)) - delta);
            add(&mut sums, slope * ds, row(k, key, width));
        }
        store(dq, at, &sums);
        stats[2 * at + 1] = delta as f32;
    }
}

pub fn backward_query_twin(read: [&[u32]; 5], written: [&mut [u32]; 2], p: &Params) {
    backward_query(read, written, p.whole());
}

pub fn backward_query_block_twin(read: [&[u32]; 5], written: [&mut [u32]; 2], p: &BlockParams) {
    backward_query(read, written, *p);
}

/// Sums over the queries of a part. `slot` gives the place of a sum, one of `slots`, for a sequence, a key and a query head.
fn backward_key_value(
    read: [&[u32]; 5],
    written: [&mut [u32]; 2],
    p: BlockParams,
    slots: usize,
    slot: impl Fn(usize, usize, usize) -> usize,
) {
    let [q, k, v, dy, stats] = read.map(Words::floats);
    let [dk, dv] = written.map(Words::floats_mut);
    let width = p.width();
    let begin = |sums: &[f32]| {
        (0..slots)
            .flat_map(|i| held(sums, i, width, p.first == 0))
            .collect::<Vec<f64>>()
    };
    let (mut key_sums, mut value_sums) = (begin(dk), begin(dv));
    for (b, t, h) in p.queries().filter(|(_, t, _)| (p.first..p.end).contains(t)) {
        let at = p.query(b, t, h);
        let (lse, delta) = (f64::from(stats[2 * at]), f64::from(stats[2 * at + 1]));
        for j in p.first_key(stats, b, t)..=p.offset + t {
            let (key, slot) = (p.key(b, j, h), slot(b, j, h));
            let (score, slope) = p.score(dot(row(q, at, width), row(k, key, width)));
            let weight = (score - lse).exp();
            let ds = weight * (dot(row(dy, at, width), row(v, key, width)) - delta);
            add(
                &mut key_sums[slot * width..][..width],
                slope * ds,
                row(q, at, width),
            );
            add(
                &mut value_sums[slot * width..][..width],
                weight,
                row(dy, at, width),
            );
        }
    }
    for i in 0..slots {
        store(dk, i, &key_sums[i * width..][..width]);
        store(dv, i, &value_sums[i * width..][..width]);
    }
}

/// Computes dk and dv by query head.
pub fn backward_key_value_twin(read: [&[u32]; 5], written: [&mut [u32]; 2], p: &Params) {
    let (all, heads) = (p.offset + p.len, p.heads);
    let slot = |b, j, h| (b * all + j) * heads + h;
    let slots = p.batch * all * heads;
    backward_key_value(read, written, p.whole(), slots, slot);
}

/// Computes dk and dv by the head that query heads share.
fn backward_key_value_shared(read: [&[u32]; 5], written: [&mut [u32]; 2], p: BlockParams) {
    let slots = p.batch * (p.offset + p.len) * p.kv_heads;
    backward_key_value(read, written, p, slots, |b, j, h| p.key(b, j, h));
}

pub fn backward_key_value_shared_twin(read: [&[u32]; 5], written: [&mut [u32]; 2], p: &Params) {
    backward_key_value_shared(read, written, p.whole());
}

pub fn backward_key_value_block_twin(read: [&[u32]; 5], written: [&mut [u32]; 2], p: &BlockParams) {
    backward_key_value_shared(read, written, *p);
}

pub fn head_sum_twin(read: [&[u32]; 2], written: [&mut [u32]; 2], p: &HeadSumParams) {
    let (group, width) = (p.group, p.width4 * 4);
    for (from, to) in read.into_iter().zip(written) {
        for (i, sum) in to.floats_mut()[..p.n * width].iter_mut().enumerate() {
            let first = i / width * group * width + i % width;
            *sum = (0..group)
                .map(|g| from.wide(first + g * width))
                .sum::<f64>() as f32;
        }
    }
}
