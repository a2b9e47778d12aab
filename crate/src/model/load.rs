//! Where a model's parameters come from: files, or a seed.

use burn::module::{Param, ParamId};
use burn::tensor::{DType, Device, Tensor, TensorData};
use half::bf16;

use super::layers::{Conv1d, Embedding, LayerNorm, Linear, RmsNorm};
use crate::bundle::Bundle;
use crate::config::{ModelConfig, Precision};
use crate::error::{Error, Result};
use crate::kernels::noise;

/// What a matrix does, which decides its initial spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixRole {
    /// Reads the residual stream, or is a table.
    Inner,
    /// Writes to the residual stream.
    Residual,
}

/// Gives the parameters of a model by name.
pub trait WeightSource {
    /// A matrix of this shape.
    fn matrix(&mut self, name: &str, shape: [usize; 2], role: MatrixRole) -> Result<Param<Tensor<2>>>;
    /// A vector; `fresh` is what a new model starts with.
    fn vector(&mut self, name: &str, len: usize, fresh: f32) -> Result<Param<Tensor<1>>>;
}

/// A matrix on the device, f32 or rounded to nearest and packed.
fn store_matrix(values: Vec<f32>, shape: [usize; 2], precision: Precision, device: &Device) -> Param<Tensor<2>> {
    Param::from_tensor(match precision {
        Precision::F32 => Tensor::from_data(TensorData::new(values, shape), device),
        Precision::Bf16 => {
            let values: Vec<bf16> = values.into_iter().map(bf16::from_f32).collect();
            Tensor::from_data(TensorData::new(values, shape), (device, DType::BF16))
        }
    })
}

/// A vector on the device, always f32.
fn store_vector(values: Vec<f32>, device: &Device) -> Param<Tensor<1>> {
    let len = values.len();
    Param::from_tensor(Tensor::from_data(TensorData::new(values, [len]), device))
}

impl dyn WeightSource + '_ {
    /// `<name>.weight` [out, input] and, with `bias`, `<name>.bias` [out].
    pub fn linear(&mut self, name: &str, out: usize, input: usize, bias: bool) -> Result<Linear> {
        let role = if name.ends_with("o_proj") || name.ends_with("down_proj") { MatrixRole::Residual } else { MatrixRole::Inner };
        Ok(Linear {
            weight: self.matrix(&format!("{name}.weight"), [out, input], role)?,
            bias: if bias { Some(self.vector(&format!("{name}.bias"), out, 0.0)?) } else { None },
        })
    }

    /// `<name>.weight` [input, out] and `<name>.bias` [out].
    pub fn conv1d(&mut self, name: &str, input: usize, out: usize) -> Result<Conv1d> {
        let role = if name.ends_with("c_proj") { MatrixRole::Residual } else { MatrixRole::Inner };
        Ok(Conv1d {
            weight: self.matrix(&format!("{name}.weight"), [input, out], role)?,
            bias: self.vector(&format!("{name}.bias"), out, 0.0)?,
        })
    }

    /// `<name>.weight` [rows, width].
    pub fn embedding(&mut self, name: &str, rows: usize, width: usize) -> Result<Embedding> {
        Ok(Embedding { weight: self.matrix(&format!("{name}.weight"), [rows, width], MatrixRole::Inner)? })
    }

    /// `<name>.weight` [width].
    pub fn rms_norm(&mut self, name: &str, width: usize) -> Result<RmsNorm> {
        Ok(RmsNorm { weight: self.vector(&format!("{name}.weight"), width, 1.0)? })
    }

    /// `<name>.weight` and `<name>.bias` [width].
    pub fn layer_norm(&mut self, name: &str, width: usize) -> Result<LayerNorm> {
        Ok(LayerNorm {
            weight: self.vector(&format!("{name}.weight"), width, 1.0)?,
            bias: self.vector(&format!("{name}.bias"), width, 0.0)?,
        })
    }
}

/// Parameters read from files, one tensor at a time.
pub struct BundleWeights<'a> {
    bundle: &'a Bundle,
    precision: Precision,
    device: Device,
    unread: std::collections::BTreeSet<String>,
}

impl<'a> BundleWeights<'a> {
    /// Reads from `bundle`.
    pub fn new(bundle: &'a Bundle, precision: Precision, device: &Device) -> Self {
        Self { bundle, precision, device: device.clone(), unread: bundle.names().into_iter().collect() }
    }

    /// Refuses tensors that the model calls for and the files lack; all are listed.
    pub fn check(&self, config: &ModelConfig) -> Result<()> {
        let planned = planned_parameters(config)?;
        let missing: Vec<String> = planned.into_iter().map(|(name, _)| name).filter(|name| !self.unread.contains(name)).collect();
        if missing.is_empty() { Ok(()) } else { Err(Error::MissingTensors(missing)) }
    }

    /// Refuses tensors that were left over: the model has no place for them.
    pub fn finish(self) -> Result<()> {
        // Buffers that some exporters write beside the weights; they hold nothing trained.
        let ignored =
            |name: &String| name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with("rotary_emb.inv_freq");
        let unexpected: Vec<String> = self.unread.into_iter().filter(|name| !ignored(name)).collect();
        if unexpected.is_empty() { Ok(()) } else { Err(Error::UnexpectedTensors(unexpected)) }
    }

    fn read(&mut self, name: &str, expected: &[usize]) -> Result<Vec<f32>> {
        let found = self.bundle.shape(name).ok_or_else(|| Error::MissingTensors(vec![name.to_string()]))?;
        if found != expected {
            return Err(Error::TensorShape { name: name.to_string(), expected: expected.to_vec(), found });
        }
        self.unread.remove(name);
        self.bundle.read_f32(name)
    }
}

impl WeightSource for BundleWeights<'_> {
    fn matrix(&mut self, name: &str, shape: [usize; 2], _role: MatrixRole) -> Result<Param<Tensor<2>>> {
        Ok(store_matrix(self.read(name, &shape)?, shape, self.precision, &self.device))
    }

    fn vector(&mut self, name: &str, len: usize, _fresh: f32) -> Result<Param<Tensor<1>>> {
        Ok(store_vector(self.read(name, &[len])?, &self.device))
    }
}

/// Parameters of a new model, a pure function of the seed and each parameter's name: norms 1, biases 0, matrices with mean 0 and standard
/// deviation `initializer_range`, divided by √(2·layers) where they write to the residual stream (GPT-2's rule). A value is the sum of eight
/// uniform 16-bit draws, scaled: near normal, and bit-identical on every machine.
pub struct FreshWeights {
    config: ModelConfig,
    precision: Precision,
    seed: u64,
    device: Device,
}

impl FreshWeights {
    /// Weights for `config` from `seed`.
    pub fn new(config: &ModelConfig, seed: u64, precision: Precision, device: &Device) -> Self {
        Self { config: config.clone(), precision, seed, device: device.clone() }
    }
}

/// Sum of eight uniforms on (0, 1) less its mean 4: variance 8/12.
fn near_normal(words: [u32; 4]) -> f64 {
    let halves: u32 = words.iter().map(|w| (w & 0xFFFF) + (w >> 16)).sum();
    (f64::from(halves) + 4.0) / 65536.0 - 4.0
}

impl WeightSource for FreshWeights {
    fn matrix(&mut self, name: &str, shape: [usize; 2], role: MatrixRole) -> Result<Param<Tensor<2>>> {
        let spread = match role {
            MatrixRole::Inner => self.config.initializer_range,
            MatrixRole::Residual => self.config.initializer_range / (2.0 * self.config.num_hidden_layers as f64).sqrt(),
        };
        let scale = spread / (8.0f64 / 12.0).sqrt();
        let key = noise::key("init:", self.seed, name);
        let value = |i: u64| (near_normal(noise::philox([i as u32, (i >> 32) as u32, 0, 0], key)) * scale) as f32;
        let values = (0..(shape[0] * shape[1]) as u64).map(value).collect();
        Ok(store_matrix(values, shape, self.precision, &self.device))
    }

    fn vector(&mut self, _name: &str, len: usize, fresh: f32) -> Result<Param<Tensor<1>>> {
        Ok(store_vector(vec![fresh; len], &self.device))
    }
}

/// Notes what a model asks for; its parameters are never made.
#[derive(Default)]
struct Plan {
    shapes: Vec<(String, Vec<usize>)>,
}

impl Plan {
    fn note<const D: usize>(&mut self, name: &str, shape: [usize; D]) -> Param<Tensor<D>> {
        self.shapes.push((name.to_string(), shape.to_vec()));
        let never = move |device: &Device, _| Tensor::zeros(shape, device);
        Param::uninitialized(ParamId::new(), never, Device::default(), true, shape.into())
    }
}

impl WeightSource for Plan {
    fn matrix(&mut self, name: &str, shape: [usize; 2], _role: MatrixRole) -> Result<Param<Tensor<2>>> {
        Ok(self.note(name, shape))
    }

    fn vector(&mut self, name: &str, len: usize, _fresh: f32) -> Result<Param<Tensor<1>>> {
        Ok(self.note(name, [len]))
    }
}

/// Name and shape of every parameter of a model of this configuration.
pub fn planned_parameters(config: &ModelConfig) -> Result<Vec<(String, Vec<usize>)>> {
    let mut plan = Plan::default();
    super::Body::new(config, &mut plan)?;
    Ok(plan.shapes)
}
