//! Rotary position tables (arXiv:2104.09864), computed on the host: GPU sin and cos are inexact beyond ±π.

use std::f64::consts::{PI, TAU};
use std::sync::{Arc, Mutex};

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
    /// Width of a head and its pairs.
    pairing: Pairing,
    /// True if whole heads of queries and keys are rotated alike, in half-split pairing.
    plain: bool,
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
        let plain = rope.rotated == head_dim && !rope.adjacent && growth.is_none();
        Self {
            tables: tables(&|_| rope.magnitude),
            of_queries: growth,
            pairing: Pairing {
                width: head_dim,
                adjacent: rope.adjacent,
            },
            plain,
        }
    }

    /// Returns the same tables as constants of an autodiff graph.
    fn tracked(&self) -> Self {
        let tracked = |tables: &Tables| tables.clone().map(Tensor::from_inner);
        Self {
            tables: tracked(&self.tables),
            of_queries: self.of_queries.as_ref().map(tracked),
            ..*self
        }
    }

    /// Returns the tables of cosines and sines, if whole heads of queries and keys are rotated by them in half-split pairing.
    pub fn plain_tables(&self) -> Option<Tables> {
        self.plain.then(|| self.tables.clone())
    }

    /// Rotates the heads of `q [B·T, heads·head_dim]` and `k [B·T, kv_heads·head_dim]` by the positions of `span`, which count from the start of a
    /// document if it matters by how much both are rotated (`absolute`).
    pub fn rotate(
        &self,
        q: Tensor<2>,
        k: Tensor<2>,
        span: Span<'_>,
        absolute: bool,
    ) -> (Tensor<2>, Tensor<2>) {
        let positions = Positions {
            len: span.seq_len,
            offset: span.offset,
        };
        let absolute = absolute || self.of_queries.is_some();
        let starts = span.document_starts.filter(|_| absolute);
        if self.plain && starts.is_none() {
            let [cosines, sines] = self.tables.clone();
            return ops::rope(q, k, cosines, sines, positions);
        }
        let part = |x, tables: &Tables| {
            ops::rope_of_part(x, tables.clone(), self.pairing, positions, starts.cloned())
        };
        let of_queries = self.of_queries.as_ref().unwrap_or(&self.tables);
        (part(q, of_queries), part(k, &self.tables))
    }
}

/// Number of positions that tables have at least, where the context has as many. Longer ones grow with the texts.
const FIRST_POSITIONS: usize = 8192;

/// Returns the number of positions in the tables of a model with this context, for texts of `length` tokens.
fn positions_for(length: usize, context: usize) -> usize {
    let grown = length.next_power_of_two();
    grown.max(FIRST_POSITIONS).min(context.max(length))
}

/// Tables of one kind of rotary positions, which grow with the texts.
#[derive(Debug, Clone)]
struct Grown {
    /// Length of a text by which frequencies are chosen.
    length: usize,
    /// Tables by their number of positions, in increasing order. The shorter ones stay: a recorded step reads the buffers that it was recorded with.
    tables: Arc<Mutex<Vec<(usize, Rope)>>>,
}

/// One kind of rotary positions.
#[derive(Debug, Clone)]
struct Kind {
    rope: config::Rope,
    head_dim: usize,
    /// Tables of all texts, or of those up to the original context of LongRoPE.
    short: Grown,
    /// Length above which texts have other tables, and these tables.
    long: Option<(usize, Grown)>,
}

/// Tables of the rotary positions of a model's layers, one for those that are equal.
#[derive(Debug, Clone)]
pub struct Ropes {
    kinds: Vec<Kind>,
    context: usize,
    device: Device,
    /// True if the tables are constants of an autodiff graph.
    tracked: bool,
}

/// The original context of LongRoPE, above which a model of this context has other tables.
fn longer_than(rope: &config::Rope, context: usize) -> Option<usize> {
    match rope.scaling {
        RopeScaling::LongRope {
            original_max_position_embeddings: original,
            ..
        } => Some(original).filter(|original| *original < context),
        _ => None,
    }
}

impl Ropes {
    /// Computes the first tables of every layer of `stack`, a model of this context.
    pub fn new(stack: &Stack, context: usize, device: &Device) -> Self {
        let kind = |(rope, head_dim): (config::Rope, usize)| {
            let grown = |length, tables| Grown {
                length,
                tables: Arc::new(Mutex::new(tables)),
            };
            let made = |length, positions| {
                let tables = Rope::new(&rope, head_dim, positions, length, device);
                grown(length, vec![(positions, tables)])
            };
            let positions = positions_for(1, context);
            let long = longer_than(&rope, context);
            Kind {
                short: match long {
                    Some(original) => made(original, positions.min(original)),
                    None => made(context, positions),
                },
                long: long.map(|original| (original, grown(context, Vec::new()))),
                rope,
                head_dim,
            }
        };
        Self {
            kinds: stack.ropes().into_iter().map(kind).collect(),
            context,
            device: device.clone(),
            tracked: false,
        }
    }

    /// Returns the number of values in the tables of one kind of rotary positions, after texts of `length` tokens in a model of this context.
    pub fn values(rope: &config::Rope, length: usize, context: usize) -> usize {
        let first = positions_for(1, context);
        let grown = |first| {
            if length > first {
                positions_for(length, context)
            } else {
                0
            }
        };
        let positions = match longer_than(rope, context) {
            Some(original) if length > original => {
                first.min(original) + positions_for(length, context)
            }
            Some(original) => first.min(original) + grown(first.min(original)),
            None => first + grown(first),
        };
        let of_queries = if rope.query_growth.is_some() { 2 } else { 1 };
        positions * rope.rotated * of_queries
    }

    /// Returns the same tables as constants of an autodiff graph.
    pub fn tracked(&self) -> Self {
        Self {
            tracked: true,
            ..self.clone()
        }
    }

    /// Returns the tables of a layer's attention in a text of `length` tokens.
    pub fn of(&self, rope: &config::Rope, head_dim: usize, length: usize) -> Rope {
        let kind = self
            .kinds
            .iter()
            .find(|kind| kind.rope == *rope && kind.head_dim == head_dim)
            .expect("a model has the tables of its layers");
        let grown = match &kind.long {
            Some((above, long)) if length > *above => long,
            _ => &kind.short,
        };
        let mut tables = grown.tables.lock().expect("making tables does not panic");
        let long_enough = |(positions, _): &(usize, Rope)| *positions >= length;
        let at = tables.iter().position(long_enough).unwrap_or_else(|| {
            let positions = positions_for(length, self.context);
            let made = Rope::new(rope, head_dim, positions, grown.length, &self.device);
            tables.push((positions, made));
            tables.len() - 1
        });
        let (_, found) = &tables[at];
        if self.tracked {
            found.tracked()
        } else {
            found.clone()
        }
    }

    /// True if texts of these lengths have the same tables.
    pub fn are_equal_for(&self, one: usize, other: usize) -> bool {
        let mut limits = self.kinds.iter().filter_map(|kind| kind.long.as_ref());
        limits.all(|(above, _)| (one > *above) == (other > *above))
    }
}
