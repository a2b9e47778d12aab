//! APOLLO: three dispatches per matrix below rank 8, otherwise five (shaders/README.md, "APOLLO"). Its state is m, v `[r, channels]` and norm, all
//! f32. The projector is a function of (seed, name, refresh) and not state.

pub mod apply;
pub mod combine;
pub mod moments;
pub mod prepare;
pub mod project;
mod projection;
mod projector;

use burn::tensor::{DType, Tensor, TensorData};

use self::projection::Projection;
use self::projector::Maker;
pub use self::projector::ProjectorRequest;
use crate::config::{APOLLO, ApolloConfig, Projected, ProjectorKind};
use crate::error::Result;
use crate::gpu::{Buffer, Kernels, run};
use crate::ops::linear::SLICE;
use crate::optim::ParamInfo;
use crate::optim::rule::{Layout, Rule, Stepped, Update};
use crate::random::{self, PROJECTOR};

/// The kernels of this folder.
pub(crate) static KERNELS: Kernels = &[
    &project::KERNEL.all(),
    &prepare::KERNEL.all(),
    &moments::KERNEL.all(),
    &combine::KERNEL.all(),
    &apply::KERNEL.all(),
];

/// The rank from which the projection is an ordinary product. Below it, reading the gradient costs more than the sums do.
const PRODUCT_RANK: usize = 8;

/// The threshold of the limiter where updates are not limited: larger than every norm that a step can reach.
const NEVER: f32 = f32::MAX;

/// The cut of a matrix into channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Side {
    /// True if the channels are the rows (side right), else they are the columns (side left).
    by_row: bool,
    /// Length of a channel: the dimension that is projected.
    dim: usize,
    /// Number of channels.
    channels: usize,
}

impl Side {
    /// Cuts a matrix: the longer side gives the channels; a square matrix is cut by rows.
    fn of((rows, cols): (usize, usize)) -> Self {
        if rows < cols {
            Self {
                by_row: false,
                dim: rows,
                channels: cols,
            }
        } else {
            Self {
                by_row: true,
                dim: cols,
                channels: rows,
            }
        }
    }
}

/// Returns true if `parameter` is projected: a matrix of the blocks, or any matrix with [`Projected::All`], whose shorter side is above the
/// rank. AdamW moves the other parameters.
pub(super) fn projects(config: &ApolloConfig, parameter: &ParamInfo) -> bool {
    let meant = config.projected == Projected::All || !parameter.outside_blocks;
    meant
        && parameter
            .matrix()
            .is_some_and(|(rows, cols)| rows.min(cols) > config.rank(rows.min(cols)))
}

/// Makes the orthogonal projector P `[dim, rank]`, rank < dim: columns of signs, orthonormalised in f64 (shaders/README.md, "APOLLO projectors").
/// A column in the span of the earlier ones, as may happen with short columns, is replaced by the first unit vector outside it.
pub fn orthogonal(key: [u32; 2], refresh: u64, dim: usize, rank: usize) -> Vec<f32> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b);
    let mut columns: Vec<Vec<f64>> = Vec::with_capacity(rank);
    for j in 0..rank {
        let signs = (0..dim)
            .map(|i| f64::from(project::signs(key, (i * rank + j) as u64, refresh)))
            .collect();
        let axes = (0..dim).map(|axis| (0..dim).map(|i| f64::from(u8::from(i == axis))).collect());
        let apart = std::iter::once(signs)
            .chain(axes)
            .find_map(|mut column: Vec<f64>| {
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
    (0..dim * rank)
        .map(|e| columns[e % rank][e / rank] as f32)
        .collect()
}

/// An orthogonal projector on the device.
#[derive(Debug)]
struct Projector {
    refresh: u64,
    matrix: Buffer,
}

/// APOLLO and APOLLO-Mini (arXiv:2412.05270) for a parameter that is projected.
#[derive(Debug)]
pub struct Apollo {
    config: ApolloConfig,
    /// The orthogonal projector, kept until the next refresh. It is a function of (seed, name, refresh) and not state, so it is never saved.
    projector: Option<Projector>,
    /// Makes projectors in place of the seeded ones.
    maker: Option<Maker>,
}

impl Apollo {
    /// Makes the rule with these settings.
    pub fn new(config: ApolloConfig) -> Self {
        Self {
            config,
            projector: None,
            maker: None,
        }
    }

    /// The projector of a step: one given for it, one of the caller's maker, or an orthogonal one. The last two are kept until the next refresh.
    fn of_step(&mut self, u: &Update<'_>) -> Result<Option<Buffer>> {
        if let Some(given) = &u.projector {
            return Ok(Some(given.clone()));
        }
        if self.maker.is_none() && self.config.projector == ProjectorKind::Normal {
            return Ok(None);
        }
        let refresh = refresh(&self.config, u);
        if let Some(held) = self
            .projector
            .as_ref()
            .filter(|held| held.refresh == refresh)
        {
            return Ok(Some(held.matrix.clone()));
        }
        self.projector = None;
        let dim = side(u.parameter).dim;
        let rank = self.config.rank(dim);
        let values = match &self.maker {
            Some(maker) => maker.make(&ProjectorRequest {
                parameter: u.parameter,
                seed: u.seed,
                refresh,
                dim,
                rank,
            })?,
            None => orthogonal(key(u), refresh, dim, rank),
        };
        let values = TensorData::new(values, [dim * rank]);
        let matrix = Tensor::<1>::from_data(values, (u.device, DType::F32));
        let matrix = Buffer::from(matrix);
        self.projector = Some(Projector {
            refresh,
            matrix: matrix.clone(),
        });
        Ok(Some(matrix))
    }

    /// The orthogonal projector `[dim, rank]` on the device, flat, with its refresh index; `None` before the first step. Normal projectors
    /// are made in the kernel.
    pub fn projector(&self) -> Option<(u64, Tensor<1>)> {
        self.projector
            .as_ref()
            .map(|projector| (projector.refresh, projector.matrix.clone().float()))
    }
}

/// Cuts the parameter into channels; a vector is taken as one row.
fn side(parameter: &ParamInfo) -> Side {
    Side::of(parameter.matrix().unwrap_or((1, parameter.elements())))
}

impl Rule for Apollo {
    fn binds_gate(&self) -> bool {
        true
    }

    fn layout(&self, parameter: &ParamInfo) -> Layout {
        Layout::of(
            &APOLLO,
            parameter,
            Some(self.config.rank(side(parameter).dim)),
        )
    }

    fn side_bytes(&self, parameter: &ParamInfo) -> u64 {
        if self.maker.is_none() && self.config.projector == ProjectorKind::Normal {
            return 0;
        }
        let dim = side(parameter).dim;
        4 * (dim * self.config.rank(dim)) as u64
    }

    fn work_bytes(&self, parameter: &ParamInfo) -> u64 {
        let Side {
            by_row,
            dim,
            channels,
        } = side(parameter);
        let rank = self.config.rank(dim);
        let words = if rank < PRODUCT_RANK {
            4 * channels
        } else {
            // The projection, in slices where the product has them; the lengths; the projector, and later in its memory the scales.
            let (slices, parts) = if by_row {
                (1, 1)
            } else {
                (dim.div_ceil(SLICE), dim.div_ceil(prepare::PART))
            };
            (slices + usize::from(slices > 1)) * rank * channels
                + parts * channels
                + (rank * dim).max(4 * channels)
        };
        4 * words as u64
    }

    fn step(
        &mut self,
        u: &Update<'_>,
        p: Buffer,
        g: Buffer,
        state: Vec<Buffer>,
    ) -> Result<Stepped> {
        let projector = self.of_step(u)?;
        step(&self.config, projector, u, p, g, state)
    }
}

/// Index of the projector of a step.
fn refresh(rule: &ApolloConfig, u: &Update<'_>) -> u64 {
    (u.step - 1) / rule.update_steps.max(1)
}

/// The key of the seeded projectors.
fn key(u: &Update<'_>) -> [u32; 2] {
    random::key(PROJECTOR, u.seed, &u.parameter.name)
}

/// Computes the new parameter and state with this projector; `None` if the kernel makes it from the key.
fn step(
    rule: &ApolloConfig,
    projector: Option<Buffer>,
    u: &Update<'_>,
    p: Buffer,
    g: Buffer,
    state: Vec<Buffer>,
) -> Result<Stepped> {
    let cols = u
        .parameter
        .matrix()
        .map_or(u.parameter.elements(), |(_, cols)| cols);
    let Side {
        by_row,
        dim,
        channels,
    } = side(u.parameter);
    let (rank, root) = (rule.rank(dim), rule.scale(dim).sqrt());
    let (refresh, key) = (refresh(rule, u), key(u));
    let (front, back) = if rule.scale_front {
        (root, 1.0)
    } else {
        (1.0, root)
    };
    let [m, v, norm] = u.state(state)?;
    let projection = Projection {
        rule,
        u,
        side: side(u.parameter),
        cols,
        key,
        refresh,
        projector,
    };
    let work = if rank < PRODUCT_RANK {
        Projection::exact
    } else {
        Projection::product
    };
    let (g, [m, v, stats]) = work(projection, &p, g, [m, v])?;
    // With a threshold that no norm reaches, γ has no effect.
    let (threshold, gamma) = match rule.growth_limit {
        Some(limit) => (
            (0.01 * ((rank * channels) as f64).sqrt() * front) as f32,
            limit as f32,
        ),
        None => (NEVER, 1.0),
    };
    let combine = combine::Params {
        channels,
        mini: rule.mini,
        front: front as f32,
        threshold,
        gamma,
    };
    let factors = p.floats_like([2]);
    let [norm, factors] = run(
        &combine::KERNEL,
        [stats.clone(), u.gate.clone()],
        [norm, factors],
        &combine,
        1,
    )?;
    let apply = apply::Params {
        n: u.parameter.elements(),
        cols,
        channels_are_rows: by_row,
        mini: rule.mini,
        front: front as f32,
        back: back as f32,
        d: u.decay(rule.weight_decay),
        alpha: u.alpha(rule.beta1, rule.beta2),
        noise: u.noise,
    };
    let [p] = run(
        &apply::KERNEL,
        [g, stats, factors, u.gate.clone()],
        [p],
        &apply,
        u.groups(2),
    )?;
    Ok((p, vec![m, v, norm]))
}
