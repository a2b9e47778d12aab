//! f32 → Q4_K and Q6_K, whose scales are searched for. The search without an importance matrix differs between versions of ggml: this
//! one has the bits of libgguf 0.2.2. All sums are f32, in the order of the elements.

use super::legacy_quants::half_of;

/// Rounds to the nearest integer, half to even: a float at 1.5·2²³ has steps of 1, so the sum is rounded and its low bits are the integer.
///
/// This holds up to 2²². Q4_K can meet a larger `v`, in a run that is far narrower than the rounding of its minimum; then the level is
/// arbitrary, but the same as in ggml.
fn near(v: f32) -> i32 {
    ((v + 12_582_912.0).to_bits() & 0x7f_ffff) as i32 - 0x40_0000
}

/// Values of Q4_K that share a scale and a minimum.
const RUN: usize = 32;

/// One run, encoded: `x ≈ scale·level − min`.
struct Fit {
    scale: f32,
    min: f32,
    levels: [u8; RUN],
}

/// Weighted squared error of a run: Σ w·(s·l + m − x)²
fn weighted_error(
    x: &[f32; RUN],
    weights: &[f32; RUN],
    levels: &[u8; RUN],
    scale: f32,
    min: f32,
) -> f32 {
    x.iter()
        .zip(weights)
        .zip(levels)
        .fold(0.0, |sum, ((x, w), &l)| {
            let off = scale * f32::from(l) + min - x;
            sum + w * (off * off)
        })
}

/// Searches scale and minimum with the least error, weighted by `w = √(mean x²) + |x|`: levels of 22 widths are tried, and for each of them
/// scale and minimum follow from least squares.
fn fit(x: &[f32; RUN]) -> Fit {
    let root = (x.iter().fold(0.0, |sum, x| sum + x * x) / RUN as f32).sqrt();
    let weights = x.map(|x| root + x.abs());
    let max = x.iter().copied().fold(x[0], f32::max);
    let mut min = x.iter().copied().fold(0.0, f32::min);
    if max == min {
        return Fit {
            scale: 0.0,
            min: -min,
            levels: [0; RUN],
        };
    }
    // near(steps/(max − min)·(x − min)) in 0..15
    let levels_of = |steps: f32, min: f32| {
        let inverse = steps / (max - min);
        x.map(|x| near(inverse * (x - min)).clamp(0, 15) as u8)
    };
    let sum_w = weights.iter().fold(0.0, |sum, w| sum + w);
    let sum_x = x.iter().zip(&weights).fold(0.0, |sum, (x, w)| sum + w * x);
    let mut levels = levels_of(15.0, min);
    let mut scale = 1.0 / (15.0 / (max - min));
    let mut least = weighted_error(x, &weights, &levels, scale, min);
    for t in 0u8..=20 {
        // Starts from the best minimum so far, not from the first one.
        let tried = levels_of(-1.0 + 0.1 * f32::from(t) + 15.0, min);
        let (mut sum_l, mut sum_l2, mut sum_xl) = (0.0, 0.0, 0.0);
        for ((x, w), &l) in x.iter().zip(&weights).zip(&tried) {
            let l = f32::from(l);
            sum_l += w * l;
            sum_l2 += w * l * l;
            sum_xl += w * l * x;
        }
        let determinant = sum_w * sum_l2 - sum_l * sum_l;
        if determinant > 0.0 {
            let mut s = (sum_w * sum_xl - sum_x * sum_l) / determinant;
            let mut m = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
            if m > 0.0 {
                (s, m) = (sum_xl / sum_l2, 0.0);
            }
            let error = weighted_error(x, &weights, &tried, s, m);
            if error < least {
                (least, scale, min, levels) = (error, s, m, tried);
            }
        }
    }
    Fit {
        scale,
        min: -min,
        levels,
    }
}

/// Largest value above 0, or 0. Unlike `f32::max` it never gives −0, which has other bits.
fn largest(values: impl Iterator<Item = f32>) -> f32 {
    values.fold(0.0, |most, value| if value > most { value } else { most })
}

// d = largest scale / 63, e = largest minimum / 63, six bits for each scale and minimum.
// Then l = near((x + e·mn)/(d·sc)) in 0..15 from what is stored.
pub(crate) fn q4_k(x: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let runs = x.as_chunks::<RUN>().0;
    let mut fits: [Fit; 8] = std::array::from_fn(|j| fit(&runs[j]));
    // Sums of very large values overflow; ggml would then write arbitrary scales.
    if !fits
        .iter()
        .all(|fit| fit.scale.is_finite() && fit.min.is_finite())
    {
        return None;
    }
    let (scale, min) = (
        largest(fits.iter().map(|fit| fit.scale)),
        largest(fits.iter().map(|fit| fit.min)),
    );
    let six_bits = |value: f32, most: f32| {
        let inverse = if most > 0.0 { 63.0 / most } else { 0.0 };
        (near(inverse * value) as u8).min(63)
    };
    let sc: [u8; 8] = std::array::from_fn(|j| six_bits(fits[j].scale, scale));
    let mn: [u8; 8] = std::array::from_fn(|j| six_bits(fits[j].min, min));
    let (d, e) = (half_of(scale / 63.0)?, half_of(min / 63.0)?);
    out.extend_from_slice(&d.to_le_bytes());
    out.extend_from_slice(&e.to_le_bytes());
    out.extend((0..4).map(|k| sc[k] | sc[k + 4] >> 4 << 6));
    out.extend((0..4).map(|k| mn[k] | mn[k + 4] >> 4 << 6));
    out.extend((4..8).map(|k| sc[k] & 15 | mn[k] << 4));
    for (j, fit) in fits.iter_mut().enumerate() {
        let (d, e) = (d.to_f32() * f32::from(sc[j]), e.to_f32() * f32::from(mn[j]));
        if d != 0.0 {
            fit.levels = runs[j].map(|x| near((x + e) / d).clamp(0, 15) as u8);
        }
    }
    for pair in fits.as_chunks::<2>().0 {
        out.extend(
            pair[0]
                .levels
                .iter()
                .zip(&pair[1].levels)
                .map(|(low, high)| low | high << 4),
        );
    }
    Some(())
}

/// Values of Q6_K that share a scale.
const SMALL_RUN: usize = 16;

/// Magnitude below which a run of Q6_K counts as zero.
const NOTHING: f32 = 1e-15;

/// Searches a scale with `x ≈ scale·(level − 32)` and the levels: of 19 widths the one with the least error, weighted by x².
fn scale_of(x: &[f32; SMALL_RUN]) -> (f32, [u8; SMALL_RUN]) {
    let a = x
        .iter()
        .fold(0.0, |a: f32, &x| if x.abs() > a.abs() { x } else { a });
    if a.abs() < NOTHING {
        return (0.0, [0; SMALL_RUN]);
    }
    // Levels near(−steps/a·x) in −32..31 with Σ w·x·l and Σ w·l²
    let at = |steps: f32| {
        let inverse = -steps / a;
        let levels = x.map(|x| near(inverse * x).clamp(-32, 31));
        let (mut sum_xl, mut sum_l2) = (0.0, 0.0);
        for (x, &l) in x.iter().zip(&levels) {
            let (w, l) = (x * x, l as f32);
            sum_xl += w * x * l;
            sum_l2 += w * l * l;
        }
        (levels.map(|l| (l + 32) as u8), sum_xl, sum_l2)
    };
    let (mut levels, sum_xl, sum_l2) = at(32.0);
    let mut scale = if sum_l2 == 0.0 { 0.0 } else { sum_xl / sum_l2 };
    // The error is least where (Σ w·x·l)² / Σ w·l² is largest.
    let mut best = scale * sum_xl;
    for t in (-9i8..=9).filter(|t| *t != 0) {
        let (tried, sum_xl, sum_l2) = at(32.0 + 0.1 * f32::from(t));
        if sum_l2 > 0.0 && sum_xl * sum_xl > best * sum_l2 {
            levels = tried;
            scale = sum_xl / sum_l2;
            best = scale * sum_xl;
        }
    }
    (scale, levels)
}

// S = the scale of largest magnitude, d = 1/(−128/S), s = min(127, near(scale·(−128/S))).
// Then l = near(x/(d·s)) in −32..31 from what is stored.
pub(crate) fn q6_k(x: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let runs = x.as_chunks::<SMALL_RUN>().0;
    let mut fits: [(f32, [u8; SMALL_RUN]); 16] = std::array::from_fn(|j| scale_of(&runs[j]));
    // Sums of very large values overflow; ggml would then make the run zero.
    if !fits.iter().all(|(scale, _)| scale.is_finite()) {
        return None;
    }
    let most = fits.iter().fold(0.0, |most: f32, (scale, _)| {
        if scale.abs() > most.abs() {
            *scale
        } else {
            most
        }
    });
    if most.abs() < NOTHING {
        out.extend_from_slice(&[0; 210]);
        return Some(());
    }
    let inverse = -128.0 / most;
    let d = half_of(1.0 / inverse)?;
    let scales: [i8; 16] = std::array::from_fn(|j| near(inverse * fits[j].0).min(127) as i8);
    let mut levels = [0u8; 256];
    for (j, (_, searched)) in fits.iter_mut().enumerate() {
        let d = d.to_f32() * f32::from(scales[j]);
        if d != 0.0 {
            *searched = runs[j].map(|x| (near(x / d).clamp(-32, 31) + 32) as u8);
        }
        levels[SMALL_RUN * j..][..SMALL_RUN].copy_from_slice(searched);
    }
    for half in levels.as_chunks::<128>().0 {
        out.extend((0..64).map(|l| half[l] & 15 | half[l + 64] << 4));
    }
    for half in levels.as_chunks::<128>().0 {
        out.extend((0..32).map(|l| {
            half[l] >> 4 | half[l + 32] >> 4 << 2 | half[l + 64] >> 4 << 4 | half[l + 96] >> 4 << 6
        }));
    }
    out.extend(scales.map(|s| s as u8));
    out.extend_from_slice(&d.to_le_bytes());
    Some(())
}
