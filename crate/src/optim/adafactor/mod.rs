//! Adafactor: four dispatches per matrix, two per vector (shaders/README.md, "Adafactor"). Its state is row and col in f32, or row alone.

pub mod apply;
pub mod moments;
pub mod norm;
pub mod sums;
pub mod vector_apply;
pub mod vector_moments;

use burn::tensor::DType;

use crate::config::{ADAFACTOR, AdafactorConfig};
use crate::error::Result;
use crate::gpu::{Buffer, Kernels, run};
use crate::optim::ParamInfo;
use crate::optim::rule::{Layout, Rule, Update};

/// The kernels of this folder.
pub(crate) static KERNELS: Kernels = &[
    &sums::KERNEL.all(),
    &moments::KERNEL.all(),
    &norm::KERNEL.all(),
    &apply::KERNEL.all(),
    &vector_moments::KERNEL.all(),
    &vector_apply::KERNEL.all(),
];

const MAX_LANES: u32 = 256;

/// Adafactor without a first moment (arXiv:1804.04235).
#[derive(Debug)]
pub struct Adafactor(AdafactorConfig);

impl Adafactor {
    /// Makes the rule with these settings.
    pub fn new(config: AdafactorConfig) -> Self {
        Self(config)
    }
}

impl Rule for Adafactor {
    fn layout(&self, parameter: &ParamInfo) -> Layout {
        Layout::of(&ADAFACTOR, parameter, None)
    }

    fn step(
        &mut self,
        u: &Update<'_>,
        p: Buffer,
        g: Buffer,
        state: Vec<Buffer>,
    ) -> Result<(Buffer, Vec<Buffer>)> {
        match u.parameter.matrix() {
            Some((rows, cols)) => matrix(&self.0, u, (rows as u32, cols as u32), p, g, state),
            None => vector(&self.0, u, p, g, state),
        }
    }
}

/// Returns w = max(t^decay_rate, 1 − beta2_cap), the weight of step t in the moments.
fn weight(rule: &AdafactorConfig, step: u64) -> f32 {
    (step as f64)
        .powf(rule.decay_rate)
        .max(1.0 - rule.beta2_cap) as f32
}

/// Returns the parameters of the last pass, for a matrix or a vector.
fn applied(
    rule: &AdafactorConfig,
    u: &Update<'_>,
    (rows, cols): (u32, u32),
    lanes: u32,
) -> apply::Params {
    apply::Params {
        rows,
        cols,
        lanes,
        rate: u.rate as f32,
        decay: rule.weight_decay as f32,
        d: u.decay(rule.weight_decay),
        clip: rule.clip_threshold as f32,
        eps2: rule.eps2 as f32,
        relative_step: u32::from(rule.relative_step),
        noise: u.noise,
    }
}

fn matrix(
    rule: &AdafactorConfig,
    u: &Update<'_>,
    (rows, cols): (u32, u32),
    p: Buffer,
    g: Buffer,
    state: Vec<Buffer>,
) -> Result<(Buffer, Vec<Buffer>)> {
    let (across, down) = (
        cols.div_ceil(sums::TILE_COLS as u32),
        rows.div_ceil(sums::TILE_ROWS as u32),
    );
    let lanes = (across * down).min(MAX_LANES);
    let relative_step = u32::from(rule.relative_step);
    let row_sums = p.empty_like([rows as usize, across as usize], DType::F32);
    let col_sums = p.empty_like([down as usize, cols as usize], DType::F32);
    let params = sums::Params {
        rows,
        cols,
        eps1: rule.eps1 as f32,
    };
    let groups = (across * down).div_ceil(sums::TILES as u32);
    let [row_sums, col_sums] = run(
        &sums::KERNEL,
        [g.clone(), u.gate.clone()],
        [row_sums, col_sums],
        &params,
        groups,
    )?;
    let params = moments::Params {
        rows,
        cols,
        w: weight(rule, u.step),
    };
    let [row, col] = run(
        &moments::KERNEL,
        [row_sums, col_sums, u.gate.clone()],
        u.state(state)?,
        &params,
        (rows + cols).div_ceil(256),
    )?;
    let sums = p.empty_like([3 * lanes as usize], DType::F32);
    let packed = u32::from(u.parameter.dtype == DType::BF16);
    let params = norm::Params {
        rows,
        cols,
        lanes,
        relative_step,
        packed,
    };
    let read = [
        g.clone(),
        p.clone(),
        row.clone(),
        col.clone(),
        u.gate.clone(),
    ];
    let [sums] = run(&norm::KERNEL, read, [sums], &params, lanes)?;
    let params = applied(rule, u, (rows, cols), lanes);
    let groups = u.n().div_ceil(2).div_ceil(apply::PAIRS as u32);
    let [p] = run(
        &apply::KERNEL,
        [
            g,
            row.clone(),
            col.clone(),
            sums,
            u.given.clone(),
            u.gate.clone(),
        ],
        [p],
        &params,
        groups,
    )?;
    Ok((p, vec![row, col]))
}

fn vector(
    rule: &AdafactorConfig,
    u: &Update<'_>,
    p: Buffer,
    g: Buffer,
    state: Vec<Buffer>,
) -> Result<(Buffer, Vec<Buffer>)> {
    let n = u.n();
    let lanes = n.div_ceil(vector_moments::CHUNK as u32).min(MAX_LANES);
    let relative_step = u32::from(rule.relative_step);
    let packed = u32::from(u.parameter.dtype == DType::BF16);
    let params = vector_moments::Params {
        n,
        lanes,
        eps1: rule.eps1 as f32,
        w: weight(rule, u.step),
        relative_step,
        packed,
    };
    let [row] = u.state(state)?;
    let sums = p.empty_like([2 * lanes as usize], DType::F32);
    let [row, sums] = run(
        &vector_moments::KERNEL,
        [g.clone(), p.clone(), u.gate.clone()],
        [row, sums],
        &params,
        lanes,
    )?;
    let params = applied(rule, u, (n, 1), lanes);
    let groups = n.div_ceil(2).div_ceil(apply::PAIRS as u32);
    let [p] = run(
        &vector_apply::KERNEL,
        [g, row.clone(), sums, u.given.clone(), u.gate.clone()],
        [p],
        &params,
        groups,
    )?;
    Ok((p, vec![row]))
}
