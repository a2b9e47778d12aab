//! APOLLO: three dispatches a matrix (shaders/README.md, "APOLLO"). State: m, v [r, channels], norm, all f32. The projector is a function
//! of (seed, name, refresh), not state.

use burn::tensor::{DType, Tensor, TensorData};

use super::ParamInfo;
use super::update::{Update, tensors};
use crate::config::{ApolloConfig, OptimizerConfig, ProjectorKind};
use crate::error::Result;
use crate::kernels::noise::{self, PROJECTOR};
use crate::kernels::{Buffer, apollo_apply, apollo_combine, apollo_project, run};

/// Growth that the limiter allows from one step to the next.
const GAMMA: f64 = 1.01;

/// How a matrix is cut into channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Side {
    /// The channels are the rows (side right), else the columns (side left).
    pub by_row: bool,
    /// Length of a channel: what is projected.
    pub dim: usize,
    /// Number of channels.
    pub channels: usize,
}

impl Side {
    /// The longer side gives the channels; a square matrix is cut by rows.
    pub fn of((rows, cols): (usize, usize)) -> Self {
        if rows < cols { Self { by_row: false, dim: rows, channels: cols } } else { Self { by_row: true, dim: cols, channels: rows } }
    }
}

/// The rule of a parameter: APOLLO, or AdamW where there is nothing to project: no two dimensions, or a shorter side of at most the rank.
pub(super) fn resolve(rule: &OptimizerConfig, info: &ParamInfo) -> OptimizerConfig {
    match (rule, info.matrix()) {
        (OptimizerConfig::Apollo(apollo), None) => OptimizerConfig::Adamw(apollo.fallback()),
        (OptimizerConfig::Apollo(apollo), Some((a, b))) if a.min(b) <= apollo.rank() => OptimizerConfig::Adamw(apollo.fallback()),
        _ => rule.clone(),
    }
}

/// The orthogonal projector P [dim, rank], rank < dim: columns of signs, orthonormalised in f64 (shaders/README.md, "APOLLO projectors"). A
/// column that the ones before span, as short ones may be, gives way to the first unit vector that they do not.
pub fn orthogonal(key: [u32; 2], refresh: u64, dim: usize, rank: usize) -> Vec<f32> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b);
    let mut columns: Vec<Vec<f64>> = Vec::with_capacity(rank);
    for j in 0..rank {
        let signs = (0..dim).map(|i| f64::from(apollo_project::signs(key, (i * rank + j) as u64, refresh))).collect();
        let axes = (0..dim).map(|axis| (0..dim).map(|i| f64::from(u8::from(i == axis))).collect());
        let apart = std::iter::once(signs).chain(axes).find_map(|mut column: Vec<f64>| {
            let length = dot(&column, &column).sqrt();
            for q in columns.iter().chain(&columns) {
                let along = dot(q, &column);
                column.iter_mut().zip(q).for_each(|(x, q)| *x -= along * q);
            }
            let norm = dot(&column, &column).sqrt();
            column.iter_mut().for_each(|x| *x /= norm);
            (norm > 1e-6 * length).then_some(column)
        });
        columns.extend(apart);
    }
    (0..dim * rank).map(|e| columns[e % rank][e / rank] as f32).collect()
}

/// An orthogonal projector on the device, kept until the next refresh. It is a function of (seed, name, refresh) and not state: it is never
/// saved.
#[derive(Debug)]
pub(super) struct Held {
    pub refresh: u64,
    pub matrix: Buffer,
}

/// Bytes of the projector that a rule keeps on the device in addition to its state.
pub(super) fn held_bytes(rule: &OptimizerConfig, info: &ParamInfo) -> u64 {
    match (rule, info.matrix()) {
        (OptimizerConfig::Apollo(rule), Some(matrix)) if rule.projector == ProjectorKind::Orthogonal => {
            4 * (Side::of(matrix).dim * rule.rank()) as u64
        }
        _ => 0,
    }
}

/// The new parameter and state; `held` is the projector of the previous step on entry, and of this step on return.
pub(super) fn step(
    rule: &ApolloConfig,
    u: &Update<'_>,
    p: Buffer,
    g: Buffer,
    state: Vec<Buffer>,
    held: &mut Option<Held>,
) -> Result<(Buffer, Vec<Buffer>)> {
    let (rows, cols) = u.info.matrix().unwrap_or((1, u.info.elements()));
    let Side { by_row, dim, channels } = Side::of((rows, cols));
    let rank = rule.rank();
    let refresh = (u.step - 1) / rule.update_steps.max(1);
    let key = noise::key(PROJECTOR, u.seed, &u.info.name);
    let projector = match (&u.projector, rule.projector) {
        (Some(matrix), _) => Some(matrix.clone()),
        (None, ProjectorKind::Orthogonal) => {
            let present = held.take().filter(|held| held.refresh == refresh);
            let made = || {
                let matrix = TensorData::new(orthogonal(key, refresh, dim, rank), [dim * rank]);
                Held { refresh, matrix: Tensor::<1>::from_data(matrix, (u.device, DType::F32)).into() }
            };
            Some(held.insert(present.unwrap_or_else(made)).matrix.clone())
        }
        (None, ProjectorKind::Normal) => None,
    };
    let (root, mini) = ((rule.scale().sqrt()) as f32, u32::from(rule.mini));
    let (front, back) = if rule.scale_front { (root, 1.0) } else { (1.0, root) };
    let project = apollo_project::Params {
        channels: channels as u32,
        dim: dim as u32,
        rank: rank as u32,
        channel_stride: if by_row { cols as u32 } else { 1 },
        dim_stride: if by_row { 1 } else { cols as u32 },
        given: u32::from(projector.is_some()),
        sigma: (dim as f64 / rank as f64).sqrt() as f32,
        unit: apollo_project::unit(dim),
        w1: (1.0 - rule.beta1) as f32,
        w2: (1.0 - rule.beta2) as f32,
        eps: rule.eps as f32,
        scale: u.scale,
        key0: key[0],
        key1: key[1],
        refresh_low: refresh as u32,
        refresh_high: (refresh >> 32) as u32,
    };
    let stats = p.empty_like([4, channels], DType::F32);
    let [m, v, norm] = tensors(state);
    let read = [g.clone(), projector.unwrap_or_else(|| u.unread.clone())];
    let [m, v, stats] = run(&apollo_project::KERNEL, read, [m, v, stats], &project, (channels as u32).div_ceil(256))?;
    let threshold = 0.01 * ((rank * channels) as f64).sqrt() * if rule.scale_front { rule.scale().sqrt() } else { 1.0 };
    let combine = apollo_combine::Params { channels: channels as u32, mini, front, threshold: threshold as f32, gamma: GAMMA as f32 };
    let factors = p.empty_like([2], DType::F32);
    let [norm, factors] = run(&apollo_combine::KERNEL, [stats.clone()], [norm, factors], &combine, 1)?;
    let ([key0, key1], [step_low, step_high]) = (u.key, u.step_words());
    let apply = apollo_apply::Params {
        n: u.n(),
        cols: cols as u32,
        channels_are_rows: u32::from(by_row),
        mini,
        front,
        back,
        d: u.decay(rule.weight_decay),
        alpha: u.alpha(rule.beta1, rule.beta2),
        scale: u.scale,
        rounding: u.rounding.word(),
        key0,
        key1,
        step_low,
        step_high,
    };
    let [p] = run(&apollo_apply::KERNEL, [g, stats, factors], [p], &apply, u.groups(2))?;
    Ok((p, vec![m, v, norm]))
}
