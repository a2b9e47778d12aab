//! Projection of a gradient to APOLLO's low rank, by sums or by an ordinary product.

use super::{Side, moments, prepare, project};
use crate::config::ApolloConfig;
use crate::error::Result;
use crate::gpu::{Buffer, run};
use crate::ops;
use crate::optim::rule::Update;

/// The projection of a gradient in a step.
pub(super) struct Projection<'a> {
    pub rule: &'a ApolloConfig,
    pub u: &'a Update<'a>,
    pub side: Side,
    pub cols: usize,
    pub key: [u32; 2],
    pub refresh: u64,
    /// P `[dim, r]`; `None` if the kernel makes it from the key.
    pub projector: Option<Buffer>,
}

impl Projection<'_> {
    /// The gradient, and m, v and the stats of the channels, computed by sums that keep their digits where terms cancel; `like` is on their
    /// device.
    pub fn exact(
        self,
        like: &Buffer,
        g: Buffer,
        [m, v]: [Buffer; 2],
    ) -> Result<(Buffer, [Buffer; 3])> {
        let (rule, u, cols) = (self.rule, self.u, self.cols);
        let Side {
            by_row,
            dim,
            channels,
        } = self.side;
        let params = project::Params {
            channels,
            dim,
            rank: rule.rank(dim),
            channel_stride: if by_row { cols } else { 1 },
            dim_stride: if by_row { 1 } else { cols },
            given: self.projector.is_some(),
            sigma: self.sigma(),
            unit: project::unit(dim),
            w1: (1.0 - rule.beta1) as f32,
            w2: (1.0 - rule.beta2) as f32,
            eps: rule.eps as f32,
            key0: self.key[0],
            key1: self.key[1],
            refresh_low: self.refresh as u32,
            refresh_high: (self.refresh >> 32) as u32,
        };
        let stats = like.floats_like([4, channels]);
        let read = [
            g.clone(),
            self.projector.unwrap_or_else(|| u.unread.clone()),
            u.gate.clone(),
        ];
        Ok((
            g,
            run(
                &project::KERNEL,
                read,
                [m, v, stats],
                &params,
                project::KERNEL.groups(channels),
            )?,
        ))
    }

    /// Does the same as [`Self::exact`] by an ordinary product with the projector, which is made once; the gradient is bounded in place.
    pub fn product(
        self,
        like: &Buffer,
        g: Buffer,
        [m, v]: [Buffer; 2],
    ) -> Result<(Buffer, [Buffer; 3])> {
        let (rule, u, cols) = (self.rule, self.u, self.cols);
        let Side {
            by_row,
            dim,
            channels,
        } = self.side;
        let (rank, rows) = (rule.rank(dim), u.parameter.elements() / cols);
        let params = prepare::Params {
            rows,
            cols,
            rank,
            by_row,
            lines: prepare::Params::lines_of(by_row, rows, cols),
            given: self.projector.is_some(),
            unit: project::unit(dim),
            key0: self.key[0],
            key1: self.key[1],
            refresh_low: self.refresh as u32,
            refresh_high: (self.refresh >> 32) as u32,
        };
        let [pt, lengths] =
            [[rank, dim], [params.parts(), channels]].map(|shape| like.floats_like(shape));
        let sigma = self.sigma();
        let read = [self.projector.unwrap_or_else(|| u.unread.clone())];
        let [g, pt, lengths] = run(
            &prepare::KERNEL,
            read,
            [g, pt, lengths],
            &params,
            params.groups(),
        )?;
        let (matrix, pt) = (
            g.clone().reshaped([rows, cols]).float::<2>(),
            pt.float::<2>(),
        );
        let projected = Buffer::from(if by_row {
            ops::linear(pt, matrix)
        } else {
            ops::conv1d(pt, matrix)
        });
        let params = moments::Params {
            channels,
            rank,
            parts: params.parts(),
            sigma,
            w1: (1.0 - rule.beta1) as f32,
            w2: (1.0 - rule.beta2) as f32,
            eps: rule.eps as f32,
        };
        let stats = like.floats_like([4, channels]);
        let groups = channels.div_ceil(moments::CHANNELS) as u32;
        Ok((
            g,
            run(
                &moments::KERNEL,
                [projected, lengths, u.gate.clone()],
                [m, v, stats],
                &params,
                groups,
            )?,
        ))
    }

    /// Returns σ = √(dim/r).
    fn sigma(&self) -> f32 {
        (self.side.dim as f64 / self.rule.rank(self.side.dim) as f64).sqrt() as f32
    }
}
