//! Rotary position tables (arXiv:2104.09864), computed on the host: GPU sin and cos are inexact beyond ±π.

use std::f64::consts::PI;

use burn::tensor::{Device, Tensor, TensorData};

use super::Span;
use crate::config::{self, RopeScaling, Stack};
use crate::ops::{self, Positions};

/// Tables of cos and sin, each `[positions, head_dim / 2]`.
#[derive(Debug, Clone)]
pub struct Rope {
    cos: Tensor<2>,
    sin: Tensor<2>,
}

/// Returns the angular frequency of each pair of dimensions, head_dim / 2 values.
pub fn frequencies(rope: &config::Rope) -> Vec<f64> {
    let half = rope.head_dim / 2;
    (0..half)
        .map(|i| {
            let frequency = rope.base.powf(-(2.0 * i as f64) / rope.head_dim as f64);
            match rope.scaling {
                RopeScaling::Default => frequency,
                RopeScaling::Linear { factor } => frequency / factor,
                RopeScaling::Llama3 {
                    factor,
                    low_freq_factor,
                    high_freq_factor,
                    original_max_position_embeddings,
                } => {
                    let rotations =
                        original_max_position_embeddings as f64 * frequency / (2.0 * PI);
                    let smooth = ((rotations - low_freq_factor)
                        / (high_freq_factor - low_freq_factor))
                        .clamp(0.0, 1.0);
                    (1.0 - smooth) * frequency / factor + smooth * frequency
                }
            }
        })
        .collect()
}

impl Rope {
    /// Computes tables for this number of positions.
    fn new(rope: &config::Rope, positions: usize, device: &Device) -> Self {
        let half = rope.head_dim / 2;
        let frequencies = frequencies(rope);
        // The reference computes the angle in f32 before it takes sin and cos; this does the same in the same order.
        let angle = |i: usize| f64::from((i / half) as f32 * frequencies[i % half] as f32);
        let table = |f: fn(f64) -> f64| {
            let values: Vec<f32> = (0..positions * half).map(|i| f(angle(i)) as f32).collect();
            Tensor::from_data(TensorData::new(values, [positions, half]), device)
        };
        Self {
            cos: table(f64::cos),
            sin: table(f64::sin),
        }
    }

    /// Returns the same tables as constants of an autodiff graph.
    fn tracked(&self) -> Self {
        Self {
            cos: Tensor::from_inner(self.cos.clone()),
            sin: Tensor::from_inner(self.sin.clone()),
        }
    }

    /// Returns the tables of cosines and sines.
    pub fn tables(&self) -> [Tensor<2>; 2] {
        [self.cos.clone(), self.sin.clone()]
    }

    /// Rotates the heads of `q [B·T, heads·head_dim]` and `k [B·T, kv_heads·head_dim]` by the positions of `span`.
    pub fn rotate(&self, q: Tensor<2>, k: Tensor<2>, span: Span<'_>) -> (Tensor<2>, Tensor<2>) {
        let [cosines, sines] = self.tables();
        ops::rope(
            q,
            k,
            cosines,
            sines,
            Positions {
                len: span.seq_len,
                offset: span.offset,
            },
        )
    }
}

/// Tables of the rotary positions of a model's layers, one for those that are equal.
#[derive(Debug, Clone)]
pub struct Ropes(Vec<(config::Rope, Rope)>);

impl Ropes {
    /// Computes the tables of every layer of `stack`, for this number of positions.
    pub fn new(stack: &Stack, positions: usize, device: &Device) -> Self {
        Self(
            stack
                .ropes()
                .into_iter()
                .map(|rope| (rope, Rope::new(&rope, positions, device)))
                .collect(),
        )
    }

    /// Returns the same tables as constants of an autodiff graph.
    pub fn tracked(&self) -> Self {
        Self(
            self.0
                .iter()
                .map(|(rope, tables)| (*rope, tables.tracked()))
                .collect(),
        )
    }

    /// Returns the tables of a layer.
    pub fn of(&self, rope: config::Rope) -> &Rope {
        self.0
            .iter()
            .find(|(other, _)| *other == rope)
            .map(|(_, tables)| tables)
            .expect("a model has the tables of its layers")
    }
}
