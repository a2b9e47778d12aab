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
use crate::optim::rule::{Layout, Rule, Stepped, Update};

/// The kernels of this folder.
pub(crate) static KERNELS: Kernels = &[
    &sums::KERNEL.all(),
    &moments::KERNEL.all(),
    &norm::KERNEL.all(),
    &apply::KERNEL.all(),
    &vector_moments::KERNEL.all(),
    &vector_apply::KERNEL.all(),
];

const MAX_LANES: usize = 256;

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
    fn binds_gate(&self) -> bool {
        true
    }

    fn layout(&self, parameter: &ParamInfo) -> Layout {
        Layout::of(&ADAFACTOR, parameter, None)
    }

    fn step(
        &mut self,
        u: &Update<'_>,
        p: Buffer,
        g: Buffer,
        state: Vec<Buffer>,
    ) -> Result<Stepped> {
        match u.parameter.matrix() {
            Some(shape) => matrix(&self.0, u, shape, p, g, state),
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

/// The parameters of the last pass, for a matrix or a vector.
fn applied(
    rule: &AdafactorConfig,
    u: &Update<'_>,
    (rows, cols): (usize, usize),
    lanes: usize,
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
        relative_step: rule.relative_step,
        noise: u.noise,
    }
}

fn matrix(
    rule: &AdafactorConfig,
    u: &Update<'_>,
    (rows, cols): (usize, usize),
    p: Buffer,
    g: Buffer,
    state: Vec<Buffer>,
) -> Result<Stepped> {
    let (across, down) = (
        cols.div_ceil(sums::TILE_COLS),
        rows.div_ceil(sums::TILE_ROWS),
    );
    let lanes = (across * down).min(MAX_LANES);
    let row_sums = p.floats_like([rows, across]);
    let col_sums = p.floats_like([down, cols]);
    let params = sums::Params {
        rows,
        cols,
        eps1: rule.eps1 as f32,
    };
    let groups = (across * down).div_ceil(sums::TILES) as u32;
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
        moments::KERNEL.groups(rows + cols),
    )?;
    let sums = p.floats_like([3 * lanes]);
    let params = norm::Params {
        rows,
        cols,
        lanes,
        relative_step: rule.relative_step,
        packed: u.parameter.dtype == DType::BF16,
    };
    let read = [
        g.clone(),
        p.clone(),
        row.clone(),
        col.clone(),
        u.gate.clone(),
    ];
    let [sums] = run(&norm::KERNEL, read, [sums], &params, lanes as u32)?;
    let params = applied(rule, u, (rows, cols), lanes);
    let groups = (rows * cols).div_ceil(2 * apply::PAIRS) as u32;
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
) -> Result<Stepped> {
    let n = u.parameter.elements();
    let lanes = n.div_ceil(vector_moments::CHUNK).min(MAX_LANES);
    let params = vector_moments::Params {
        n,
        lanes,
        eps1: rule.eps1 as f32,
        w: weight(rule, u.step),
        relative_step: rule.relative_step,
        packed: u.parameter.dtype == DType::BF16,
    };
    let [row] = u.state(state)?;
    let sums = p.floats_like([2 * lanes]);
    let [row, sums] = run(
        &vector_moments::KERNEL,
        [g.clone(), p.clone(), u.gate.clone()],
        [row, sums],
        &params,
        lanes as u32,
    )?;
    let params = applied(rule, u, (n, 1), lanes);
    let groups = n.div_ceil(2 * apply::PAIRS) as u32;
    let [p] = run(
        &vector_apply::KERNEL,
        [g, row.clone(), sums, u.given.clone(), u.gate.clone()],
        [p],
        &params,
        groups,
    )?;
    Ok((p, vec![row]))
}
