//! The twins of the linear kernels, written from the formulas with sums in f64.

use super::params::{BlockParams, TileParams};
use crate::gpu::Words;

/// Computes `y[r, c] = Σ_i x[r, i] w[c, i]`; rows of y are `stride` elements apart.
pub fn forward([w, x]: [&[u32]; 2], y: &mut [u32], [n, m, k]: [usize; 3], stride: usize) {
    for r in 0..n {
        for c in 0..m {
            let sum: f64 = (0..k).map(|i| x.wide(r * k + i) * w.wide(c * k + i)).sum();
            y.set(r * stride + c, sum);
        }
    }
}

/// Computes `y[first + r, column + c] = before + Σ_i x[r, 4 first4 + i] w[c, i]`.
pub fn block([w, x]: [&[u32]; 2], y: &mut [u32], p: &BlockParams) {
    let [n, k] = [p.n, p.k4 * 4];
    let rows = x
        .floats()
        .chunks(p.stride4 * 4)
        .map(|row| &row[p.first4 * 4..][..k]);
    for (x, y) in rows
        .zip(y.floats_mut()[p.first * p.width..].chunks_mut(p.width))
        .take(n)
    {
        for (w, y) in w.floats().chunks(k).zip(&mut y[p.column..][..p.m]) {
            let before = if p.add { f64::from(*y) } else { 0.0 };
            *y = (before
                + x.iter()
                    .zip(w)
                    .map(|(&x, &w)| f64::from(x) * f64::from(w))
                    .sum::<f64>()) as f32;
        }
    }
}

/// Computes `dx[s, r, i] = Σ_c dy[r, c] w[c, i]` over the columns c of slice s.
pub fn backward_input([w, dy]: [&[u32]; 2], dx: &mut [u32], [n, m, k]: [usize; 3], slice: usize) {
    for from in (0..m).step_by(slice) {
        for r in 0..n {
            for i in 0..k {
                let columns = from..m.min(from + slice);
                let sum: f64 = columns
                    .map(|c| dy.wide(r * m + c) * w.wide(c * k + i))
                    .sum();
                dx.set((from / slice * n + r) * k + i, sum);
            }
        }
    }
}

/// Computes `dw[c, i] = before + Σ_r dy[r, c] x[r, i]`.
pub fn backward_weight([dy, x]: [&[u32]; 2], dw: &mut [u32], [n, m, k]: [usize; 3], add: bool) {
    for c in 0..m {
        for i in 0..k {
            let sum: f64 = (0..n).map(|r| dy.wide(r * m + c) * x.wide(r * k + i)).sum();
            let before = if add { dw.wide(c * k + i) } else { 0.0 };
            dw.set(c * k + i, before + sum);
        }
    }
}

/// Computes `dx[s, r, i] (+)= Σ_c dy[r, c] w[c, i]` over the columns c of slice s if there are workgroups for it, and
/// `dw[c, i] (+)= scale Σ_r dy[r, c] x[r, i]` if dw is not a placeholder.
pub fn tile([w, dy, x]: [&[u32]; 3], [dx, dw]: [&mut [u32]; 2], p: &TileParams) {
    let shape = [p.n, p.m, p.k4 * 4];
    // The columns of dy that count.
    let rows = dy.chunks(p.stride4.max(1) * 4);
    let dy = &rows
        .flat_map(|row| &row[4 * p.first4..][..p.m])
        .copied()
        .collect::<Vec<u32>>();
    if p.input > 0 {
        let before = if p.add & 1 == 1 {
            dx.floats().to_vec()
        } else {
            vec![0.0; dx.len()]
        };
        backward_input([w, dy], dx, shape, p.slice4 * 4);
        dx.floats_mut()
            .iter_mut()
            .zip(before)
            .for_each(|(dx, before)| *dx += before);
    }
    if dw.len() == shape[1] * shape[2] {
        let before = if p.add & 2 == 2 {
            dw.floats().to_vec()
        } else {
            vec![0.0; dw.len()]
        };
        backward_weight([dy, x], dw, shape, false);
        dw.floats_mut()
            .iter_mut()
            .zip(before)
            .for_each(|(dw, before)| *dw = before + p.scale * *dw);
    }
}
