//! The inputs of every rule for one step of one parameter.

use burn::tensor::Device;

use super::ParamInfo;
use crate::kernels::Buffer;
use crate::kernels::noise::Rounding;

/// Recorded randomness for one step.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub noise: Option<Buffer>,
    pub projector: Option<Buffer>,
}

/// One step of one parameter.
pub(super) struct Update<'a> {
    pub info: &'a ParamInfo,
    pub device: &'a Device,
    pub seed: u64,
    /// Philox key of the rounding noise.
    pub key: [u32; 2],
    /// t, counted from 1.
    pub step: u64,
    /// η with the group's scale.
    pub rate: f64,
    /// Factor of the gradient.
    pub scale: f32,
    pub rounding: Rounding,
    pub noise: Buffer,
    pub projector: Option<Buffer>,
    pub unread: Buffer,
}

impl Update<'_> {
    /// Number of elements; it fits, as was checked when the optimizer was made.
    pub fn n(&self) -> u32 {
        self.info.elements() as u32
    }

    /// t as low and high word.
    pub fn step_words(&self) -> [u32; 2] {
        [self.step as u32, (self.step >> 32) as u32]
    }

    /// 1 − ηλ.
    pub fn decay(&self, weight_decay: f64) -> f32 {
        (1.0 - self.rate * weight_decay) as f32
    }

    /// η·√(1 − β2ᵗ)/(1 − β1ᵗ).
    pub fn alpha(&self, beta1: f64, beta2: f64) -> f32 {
        let t = self.step as f64;
        (self.rate * (1.0 - beta2.powf(t)).sqrt() / (1.0 - beta1.powf(t))) as f32
    }

    /// Number of workgroups of 256 threads, for `per_thread` elements per thread.
    pub fn groups(&self, per_thread: u32) -> u32 {
        self.n().div_ceil(per_thread).div_ceil(256)
    }
}

/// The state of a rule whose layout has `N` tensors.
pub(super) fn tensors<const N: usize>(state: Vec<Buffer>) -> [Buffer; N] {
    state.try_into().unwrap_or_else(|state: Vec<Buffer>| unreachable!("a layout of {N} tensors, a state of {}", state.len()))
}
