//! Adafactor: four dispatches a matrix, two a vector (shaders/README.md, "Adafactor"). State: row and col in f32, or row alone.

use burn::tensor::DType;

use super::update::{Update, tensors};
use crate::config::AdafactorConfig;
use crate::error::Result;
use crate::kernels::{
    Buffer, adafactor_apply, adafactor_moments, adafactor_norm, adafactor_sums, adafactor_vector_apply, adafactor_vector_moments, run,
};

const MAX_LANES: u32 = 256;

/// The new parameter and state.
pub(super) fn step(rule: &AdafactorConfig, u: &Update<'_>, p: Buffer, g: Buffer, state: Vec<Buffer>) -> Result<(Buffer, Vec<Buffer>)> {
    match u.info.matrix() {
        Some((rows, cols)) => matrix(rule, u, (rows as u32, cols as u32), p, g, state),
        None => vector(rule, u, p, g, state),
    }
}

/// max(t^decay_rate, 1 − beta2_cap).
fn weight(rule: &AdafactorConfig, step: u64) -> f32 {
    (step as f64).powf(rule.decay_rate).max(1.0 - rule.beta2_cap) as f32
}

fn matrix(
    rule: &AdafactorConfig,
    u: &Update<'_>,
    (rows, cols): (u32, u32),
    p: Buffer,
    g: Buffer,
    state: Vec<Buffer>,
) -> Result<(Buffer, Vec<Buffer>)> {
    let (across, down) = (cols.div_ceil(adafactor_sums::TILE_COLS as u32), rows.div_ceil(adafactor_sums::TILE_ROWS as u32));
    let lanes = (across * down).min(MAX_LANES);
    let (scale, relative_step) = (u.scale, u32::from(rule.relative_step));
    let row_sums = p.empty_like([rows as usize, across as usize], DType::F32);
    let col_sums = p.empty_like([down as usize, cols as usize], DType::F32);
    let params = adafactor_sums::Params { rows, cols, scale, eps1: rule.eps1 as f32 };
    let groups = (across * down).div_ceil(adafactor_sums::TILES as u32);
    let [row_sums, col_sums] = run(&adafactor_sums::KERNEL, [g.clone()], [row_sums, col_sums], &params, groups)?;
    let params = adafactor_moments::Params { rows, cols, w: weight(rule, u.step) };
    let [row, col] = run(&adafactor_moments::KERNEL, [row_sums, col_sums], tensors(state), &params, (rows + cols).div_ceil(256))?;
    let sums = p.empty_like([3 * lanes as usize], DType::F32);
    let packed = u32::from(u.info.dtype == DType::BF16);
    let params = adafactor_norm::Params { rows, cols, lanes, scale, relative_step, packed };
    let read = [g.clone(), p.clone(), row.clone(), col.clone()];
    let [sums] = run(&adafactor_norm::KERNEL, read, [sums], &params, lanes)?;
    let ([key0, key1], [step_low, step_high]) = (u.key, u.step_words());
    let params = adafactor_apply::Params {
        rows,
        cols,
        lanes,
        scale,
        rate: u.rate as f32,
        decay: rule.weight_decay as f32,
        d: u.decay(rule.weight_decay),
        clip: rule.clip_threshold as f32,
        eps2: rule.eps2 as f32,
        relative_step,
        rounding: u.rounding.word(),
        key0,
        key1,
        step_low,
        step_high,
    };
    let groups = u.n().div_ceil(2).div_ceil(adafactor_apply::PAIRS as u32);
    let [p] = run(&adafactor_apply::KERNEL, [g, row.clone(), col.clone(), sums, u.noise.clone()], [p], &params, groups)?;
    Ok((p, vec![row, col]))
}

fn vector(rule: &AdafactorConfig, u: &Update<'_>, p: Buffer, g: Buffer, state: Vec<Buffer>) -> Result<(Buffer, Vec<Buffer>)> {
    let n = u.n();
    let lanes = n.div_ceil(adafactor_vector_moments::CHUNK as u32).min(MAX_LANES);
    let (scale, relative_step) = (u.scale, u32::from(rule.relative_step));
    let packed = u32::from(u.info.dtype == DType::BF16);
    let params =
        adafactor_vector_moments::Params { n, lanes, scale, eps1: rule.eps1 as f32, w: weight(rule, u.step), relative_step, packed };
    let [row] = tensors(state);
    let sums = p.empty_like([2 * lanes as usize], DType::F32);
    let [row, sums] = run(&adafactor_vector_moments::KERNEL, [g.clone(), p.clone()], [row, sums], &params, lanes)?;
    let ([key0, key1], [step_low, step_high]) = (u.key, u.step_words());
    let params = adafactor_vector_apply::Params {
        n,
        lanes,
        scale,
        rate: u.rate as f32,
        decay: rule.weight_decay as f32,
        d: u.decay(rule.weight_decay),
        clip: rule.clip_threshold as f32,
        eps2: rule.eps2 as f32,
        relative_step,
        rounding: u.rounding.word(),
        key0,
        key1,
        step_low,
        step_high,
    };
    let groups = n.div_ceil(2).div_ceil(adafactor_apply::PAIRS as u32);
    let [p] = run(&adafactor_vector_apply::KERNEL, [g, row.clone(), sums, u.noise.clone()], [p], &params, groups)?;
    Ok((p, vec![row]))
}
