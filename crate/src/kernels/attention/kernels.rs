//! The records and twins of the attention kernels.

use crate::kernels::kernel::{Words, read, update, write};
use crate::{kernel_params, kernel_record};

kernel_params! {
    /// Shapes and the scale of the scores.
    pub struct Params {
        /// B.
        batch: u32,
        /// Heads of q.
        heads: u32,
        /// Heads of k and v; divides `heads`.
        kv_heads: u32,
        /// T, queries of a sequence.
        len: u32,
        /// Keys before the first query.
        offset: u32,
        /// Width of a head, divided by 4.
        width4: u32,
        /// Factor of the scores.
        scale: f32,
    }
}

kernel_params! {
    /// Shapes of a change of head width.
    pub struct PadParams {
        /// Heads in all.
        n: u32,
        /// Width of the input's heads.
        from_width: u32,
        /// Width of the output's heads.
        to_width: u32,
    }
}

kernel_record! {
    /// `y = softmax(scale q kᵀ) v` and the log-sum-exp.
    FORWARD, "attention_forward" in "../../../../shaders/",
    [read("q"), read("k"), read("v"), write("y"), write("stats")], Params, forward_twin
}
kernel_record! {
    /// `dq`, and `delta = dy y` into the stats.
    BACKWARD_QUERY, "attention_backward_query" in "../../../../shaders/",
    [read("q"), read("k"), read("v"), read("y"), read("dy"), update("stats"), write("dq")], Params, backward_query_twin
}
kernel_record! {
    /// `dk` and `dv`.
    BACKWARD_KEY_VALUE, "attention_backward_key_value" in "../../../../shaders/",
    [read("q"), read("k"), read("v"), read("dy"), read("stats"), write("dk"), write("dv")], Params, backward_key_value_twin
}
kernel_record! {
    /// Heads widened with zeros or cut back.
    HEAD_PAD, "head_pad" in "../../../../shaders/", [read("x"), write("y")], PadParams, |buffers, params| {
        let p = PadParams::from_words(params);
        let [x, y] = buffers else { return };
        let (from, to) = (p.from_width as usize, p.to_width as usize);
        for i in 0..p.n as usize * to {
            let column = i % to;
            y.words_mut()[i] = if column < from { x.words()[i / to * from + column] } else { 0 };
        }
    }
}

impl Params {
    fn width(&self) -> usize {
        self.width4 as usize * 4
    }

    /// First element of query `t` of head `h` of sequence `b`, divided by the width.
    fn query(&self, b: usize, t: usize, h: usize) -> usize {
        (b * self.len as usize + t) * self.heads as usize + h
    }

    /// First element of key `j` for head `h` of sequence `b`, divided by the width.
    fn key(&self, b: usize, j: usize, h: usize) -> usize {
        let group = (self.heads / self.kv_heads) as usize;
        (b * (self.offset + self.len) as usize + j) * self.kv_heads as usize + h / group
    }

    /// Every query: sequence, time, head.
    fn queries(self) -> impl Iterator<Item = (usize, usize, usize)> {
        let (len, heads) = (self.len as usize, self.heads as usize);
        (0..self.batch as usize * len * heads).map(move |i| (i / heads / len, i / heads % len, i % heads))
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

fn add(sums: &mut [f64], factor: f64, row: &[f32]) {
    for (sum, &value) in sums.iter_mut().zip(row) {
        *sum += factor * f64::from(value);
    }
}

fn store(words: &mut Words<'_>, row: usize, values: &[f64]) {
    let width = values.len();
    for (slot, &value) in words.floats_mut()[row * width..][..width].iter_mut().zip(values) {
        *slot = value as f32;
    }
}

fn row<'a>(words: &'a Words<'_>, row: usize, width: usize) -> &'a [f32] {
    &words.floats()[row * width..][..width]
}

fn forward_twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let p = Params::from_words(params);
    let [q, k, v, y, stats] = buffers else { return };
    let width = p.width();
    for (b, t, h) in p.queries() {
        let at = p.query(b, t, h);
        let keys = p.offset as usize + t + 1;
        let scores: Vec<f64> = (0..keys).map(|j| f64::from(p.scale) * dot(row(q, at, width), row(k, p.key(b, j, h), width))).collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lse = top + scores.iter().map(|s| (s - top).exp()).sum::<f64>().ln();
        let mut sums = vec![0.0; width];
        for (j, s) in scores.iter().enumerate() {
            add(&mut sums, (s - lse).exp(), row(v, p.key(b, j, h), width));
        }
        store(y, at, &sums);
        stats.floats_mut()[2 * at] = lse as f32;
        stats.floats_mut()[2 * at + 1] = 0.0;
    }
}

fn backward_query_twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let p = Params::from_words(params);
    let [q, k, v, y, dy, stats, dq] = buffers else { return };
    let width = p.width();
    for (b, t, h) in p.queries() {
        let at = p.query(b, t, h);
        let delta = dot(row(dy, at, width), row(y, at, width));
        let lse = f64::from(stats.floats()[2 * at]);
        let mut sums = vec![0.0; width];
        for j in 0..=p.offset as usize + t {
            let key = p.key(b, j, h);
            let weight = (f64::from(p.scale) * dot(row(q, at, width), row(k, key, width)) - lse).exp();
            let ds = weight * (dot(row(dy, at, width), row(v, key, width)) - delta);
            add(&mut sums, f64::from(p.scale) * ds, row(k, key, width));
        }
        store(dq, at, &sums);
        stats.floats_mut()[2 * at + 1] = delta as f32;
    }
}

fn backward_key_value_twin(buffers: &mut [Words<'_>], params: &[u32]) {
    let p = Params::from_words(params);
    let [q, k, v, dy, stats, dk, dv] = buffers else { return };
    let width = p.width();
    let all = p.batch as usize * (p.offset + p.len) as usize * p.kv_heads as usize;
    let (mut key_sums, mut value_sums) = (vec![0.0; all * width], vec![0.0; all * width]);
    for (b, t, h) in p.queries() {
        let at = p.query(b, t, h);
        let (lse, delta) = (f64::from(stats.floats()[2 * at]), f64::from(stats.floats()[2 * at + 1]));
        for j in 0..=p.offset as usize + t {
            let key = p.key(b, j, h);
            let weight = (f64::from(p.scale) * dot(row(q, at, width), row(k, key, width)) - lse).exp();
            let ds = weight * (dot(row(dy, at, width), row(v, key, width)) - delta);
            add(&mut key_sums[key * width..][..width], f64::from(p.scale) * ds, row(q, at, width));
            add(&mut value_sums[key * width..][..width], weight, row(dy, at, width));
        }
    }
    for i in 0..all {
        store(dk, i, &key_sums[i * width..][..width]);
        store(dv, i, &value_sums[i * width..][..width]);
    }
}
