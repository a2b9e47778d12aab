//! Rotary position tables (arXiv:2104.09864), computed on the host: GPU sin and cos are inexact beyond ±π.

use std::f64::consts::{PI, TAU};

use burn::tensor::{Device, Tensor, TensorData};

use super::Span;
use crate::config::{self, RopeScaling, Stack};
use crate::ops::{self, Pairing, Positions};

/// Tables of cos and sin, each `[positions, rotated / 2]`.
type Tables = [Tensor<2>; 2];

/// Tables of one kind of rotary positions.
#[derive(Debug, Clone)]
pub struct Rope {
    tables: Tables,
    /// Tables of the queries, where they are others.
    of_queries: Option<Tables>,
    /// Width of a head and its pairs, where not the whole head is rotated in half-split pairing.
    pairing: Option<Pairing>,
}

/// Returns the angular frequency of each pair of dimensions, rotated / 2 values, in sequences of `length` tokens.
pub fn frequencies(rope: &config::Rope, length: usize) -> Vec<f64> {
    let (dims, base) = (rope.rotated as f64, rope.base);
    let plain = |i: usize| base.powf(-(2.0 * i as f64) / dims);
    let pairs = 0..rope.rotated / 2;
    match &rope.scaling {
        RopeScaling::Default => pairs.map(plain).collect(),
        RopeScaling::Linear { factor } => pairs.map(|i| plain(i) / factor).collect(),
        RopeScaling::Llama3 {
            factor,
            low_freq_factor,
            high_freq_factor,
            original_max_position_embeddings,
        } => {
            let stretched = |i: usize| {
                let frequency = plain(i);
                let rotations = *original_max_position_embeddings as f64 * frequency / (2.0 * PI);
                let smooth = ((rotations - low_freq_factor) / (high_freq_factor - low_freq_factor))
                    .clamp(0.0, 1.0);
                (1.0 - smooth) * frequency / factor + smooth * frequency
            };
            pairs.map(stretched).collect()
        }
        RopeScaling::Yarn {
            factor,
            original_max_position_embeddings,
            beta_fast,
            beta_slow,
            truncate,
            ..
        } => {
            // The dimension with n rotations in the original context.
            let dimension = |rotations: f64| {
                let positions = *original_max_position_embeddings as f64;
                dims * (positions / (TAU * rotations)).ln() / (2.0 * base.ln())
            };
            let (mut low, mut high) = (dimension(*beta_fast), dimension(*beta_slow));
            if *truncate {
                (low, high) = (low.floor(), high.ceil());
            }
            (low, high) = (low.max(0.0), high.min(dims - 1.0));
            if low == high {
                high += 0.001;
            }
            let stretched = |i: usize| {
                let ramp = ((i as f64 - low) / (high - low)).clamp(0.0, 1.0);
                plain(i) * (1.0 - ramp) + plain(i) / factor * ramp
            };
            pairs.map(stretched).collect()
        }
        RopeScaling::LongRope {
            short_factor,
            long_factor,
            original_max_position_embeddings,
            ..
        } => {
            let long = length > *original_max_position_embeddings;
            let factors = if long { long_factor } else { short_factor };
            let stretched = |i: usize| plain(i) / factors.get(i).copied().unwrap_or(1.0);
            pairs.map(stretched).collect()
        }
        RopeScaling::Dynamic { alpha } => {
            let base = base * alpha.powf(dims / (dims - 2.0));
            pairs.map(|i| base.powf(-(2.0 * i as f64) / dims)).collect()
        }
    }
}

impl Rope {
    /// Computes tables for this number of positions, for sequences of `length` tokens and heads of `head_dim` dimensions.
    fn new(
        rope: &config::Rope,
        head_dim: usize,
        positions: usize,
        length: usize,
        device: &Device,
    ) -> Self {
        let half = rope.rotated / 2;
        let frequencies = frequencies(rope, length);
        // The reference computes the angle in f32 before it takes sin and cos; this does the same in the same order.
        let angle = |i: usize| f64::from((i / half) as f32 * frequencies[i % half] as f32);
        let tables = |factor: &dyn Fn(usize) -> f64| {
            [f64::cos, f64::sin].map(|f: fn(f64) -> f64| {
                let value = |i: usize| (f(angle(i)) * factor(i / half)) as f32;
                let values: Vec<f32> = (0..positions * half).map(value).collect();
                Tensor::from_data(TensorData::new(values, [positions, half]), device)
            })
        };
        let growth = rope.query_growth.map(|growth| {
            tables(&|position| {
                let periods = (position / growth.original.max(1)) as f64;
                rope.magnitude * (1.0 + growth.beta * periods.ln_1p())
            })
        });
        let whole = rope.rotated == head_dim && !rope.adjacent && growth.is_none();
        Self {
            tables: tables(&|_| rope.magnitude),
            of_queries: growth,
            pairing: (!whole).then_some(Pairing {
                width: head_dim,
                adjacent: rope.adjacent,
            }),
        }
    }

    /// Returns the same tables as constants of an autodiff graph.
    fn tracked(&self) -> Self {
        let tracked = |tables: &Tables| tables.clone().map(Tensor::from_inner);
        Self {
            tables: tracked(&self.tables),
            of_queries: self.of_queries.as_ref().map(tracked),
            pairing: self.pairing,
        }
    }

    /// Returns the tables of cosines and sines, if whole heads of queries and keys are rotated by them in half-split pairing.
    pub fn plain_tables(&self) -> Option<Tables> {
        self.pairing.is_none().then(|| self.tables.clone())
    }

    /// Rotates the heads of `q [B·T, heads·head_dim]` and `k [B·T, kv_heads·head_dim]` by the positions of `span`.
    pub fn rotate(&self, q: Tensor<2>, k: Tensor<2>, span: Span<'_>) -> (Tensor<2>, Tensor<2>) {
        let positions = Positions {
            len: span.seq_len,
            offset: span.offset,
        };
        let Some(pairing) = self.pairing else {
            let [cosines, sines] = self.tables.clone();
            return ops::rope(q, k, cosines, sines, positions);
        };
        let part = |x, tables: &Tables| {
            let [cosines, sines] = tables.clone();
            ops::rope_of_part(x, cosines, sines, pairing, positions)
        };
        let of_queries = self.of_queries.as_ref().unwrap_or(&self.tables);
        (part(q, of_queries), part(k, &self.tables))
    }
}

/// Tables of one kind of rotary positions, for short and for long sequences.
#[derive(Debug, Clone)]
struct Kind {
    rope: config::Rope,
    head_dim: usize,
    short: Rope,
    /// Length above which sequences have other tables, and these tables.
    long: Option<(usize, Rope)>,
}

/// Tables of the rotary positions of a model's layers, one for those that are equal.
#[derive(Debug, Clone)]
pub struct Ropes(Vec<Kind>);

impl Ropes {
    /// Computes the tables of every layer of `stack`, for this number of positions.
    pub fn new(stack: &Stack, positions: usize, device: &Device) -> Self {
        let kind = |(rope, head_dim): (config::Rope, usize)| {
            let tables = |positions, length| Rope::new(&rope, head_dim, positions, length, device);
            match rope.scaling {
                RopeScaling::LongRope {
                    original_max_position_embeddings: original,
                    ..
                } => {
                    let long =
                        (positions > original).then(|| (original, tables(positions, positions)));
                    let short = tables(positions.min(original), original);
                    Kind {
                        short,
                        long,
                        rope,
                        head_dim,
                    }
                }
                _ => Kind {
                    short: tables(positions, positions),
                    long: None,
                    rope,
                    head_dim,
                },
            }
        };
        Self(stack.ropes().into_iter().map(kind).collect())
    }

    /// Returns the number of values in the tables of one kind of rotary positions.
    pub fn values(rope: &config::Rope, positions: usize) -> usize {
        let short = match rope.scaling {
            RopeScaling::LongRope {
                original_max_position_embeddings: original,
                ..
            } if positions > original => original,
            _ => 0,
        };
        let of_queries = if rope.query_growth.is_some() { 2 } else { 1 };
        (short + positions) * rope.rotated * of_queries
    }

    /// Returns the same tables as constants of an autodiff graph.
    pub fn tracked(&self) -> Self {
        let kind = |kind: &Kind| Kind {
            short: kind.short.tracked(),
            long: kind
                .long
                .as_ref()
                .map(|(above, tables)| (*above, tables.tracked())),
            ..kind.clone()
        };
        Self(self.0.iter().map(kind).collect())
    }

    /// Returns the tables of a layer's attention in sequences of `length` tokens.
    pub fn of(&self, rope: &config::Rope, head_dim: usize, length: usize) -> &Rope {
        let found = self
            .0
            .iter()
            .find(|kind| kind.rope == *rope && kind.head_dim == head_dim)
            .expect("a model has the tables of its layers");
        match &found.long {
            Some((above, tables)) if length > *above => tables,
            _ => &found.short,
        }
    }

    /// True if sequences of these lengths have the same tables.
    pub fn are_equal_for(&self, one: usize, other: usize) -> bool {
        let long = |length: usize| {
            let above = self.0.iter().filter_map(|kind| kind.long.as_ref());
            above.map(|(above, _)| length > *above).collect::<Vec<_>>()
        };
        long(one) == long(other)
    }
}
