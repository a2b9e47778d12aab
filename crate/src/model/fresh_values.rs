//! Values of new parameters, drawn from a seed.

use super::parameter_request::{Kind, ParameterRequest};
use super::part::Role;
use crate::config::ModelConfig;
use crate::error::Result;
use crate::gpu::transfer::{RUN_BYTES, Upload};
use crate::interrupt::Interrupt;
use crate::random;

/// The sum of eight uniforms on (0, 1) minus its mean 4; its variance is 8/12.
fn near_normal(words: [u32; 4]) -> f64 {
    let halves: u32 = words.iter().map(|w| (w & 0xFFFF) + (w >> 16)).sum();
    (f64::from(halves) + 4.0) / 65536.0 - 4.0
}

/// Computes one new value of a matrix from four words of noise.
type Draw = Box<dyn Fn([u32; 4]) -> f32>;

/// Draws nearly normal values with this standard deviation.
fn normal(deviation: f64) -> Draw {
    let scale = deviation / (8.0f64 / 12.0).sqrt();
    Box::new(move |words| (near_normal(words) * scale) as f32)
}

/// Draws uniform values in ±bound.
fn uniform(bound: f64) -> Draw {
    Box::new(move |[word, ..]| (((f64::from(word) + 0.5) / 2f64.powi(31) - 1.0) * bound) as f32)
}

/// Adds a new tensor to the upload: constant, or drawn by Philox from the seed, the tensor's name and each element's index.
pub(super) async fn give_fresh(
    request: &ParameterRequest,
    seed: u64,
    config: &ModelConfig,
    upload: &mut Upload,
    interrupt: &Interrupt,
) -> Result<()> {
    let draw = match (request.kind, request.shape.as_slice()) {
        (Kind::Vector(fresh), _) => {
            return upload.put(&vec![fresh; request.elements()]);
        }
        (Kind::Rates, _) => {
            let heads = request.elements();
            let rate = |head: usize| 16.0 * (head as f64 + 0.5) / heads as f64;
            let logarithms: Vec<f32> = (0..heads).map(|head| rate(head).ln() as f32).collect();
            return upload.put(&logarithms);
        }
        (Kind::Zero, _) => Box::new(|_| 0.0),
        (Kind::Uniform, [.., input]) => uniform(1.0 / (*input as f64).sqrt()),
        (Kind::Gaussian, [rank, ..]) => normal(1.0 / *rank as f64),
        (Kind::Matrix(Role::Residual), _) => {
            normal(config.initializer_range / (2.0 * config.num_hidden_layers as f64).sqrt())
        }
        _ => normal(config.initializer_range),
    };
    let key = random::key("init:", seed, &request.name);
    let elements = request.shape.iter().map(|&dim| dim as u64).product();
    let mut at: u64 = 0;
    while at < elements {
        let end = elements.min(at + (RUN_BYTES / 4) as u64);
        let values: Vec<f32> = (at..end)
            .map(|i| draw(random::philox([i as u32, (i >> 32) as u32, 0, 0], key)))
            .collect();
        upload.put(&values)?;
        upload.settle(interrupt).await?;
        at = end;
    }
    Ok(())
}
