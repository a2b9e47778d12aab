//! The parameters that a model requests, and how it gets their loaded values.

use std::collections::BTreeMap;

use burn::module::{Param, ParamId};
use burn::tensor::{Device, Tensor};

use super::layers::{Conv1d, Embedding, LayerNorm, Linear, RmsNorm};
use crate::config::ModelConfig;
use crate::error::{Error, Result};

/// What a matrix does, which decides its initial spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixRole {
    /// It reads the residual stream, or is a table.
    Inner,
    /// It writes to the residual stream.
    Residual,
}

/// Gives the parameters of a model by name.
pub trait WeightSource {
    /// A matrix of this shape.
    fn matrix(&mut self, name: &str, shape: [usize; 2], role: MatrixRole) -> Result<Param<Tensor<2>>>;
    /// A vector; `fresh` is its initial value in a new model.
    fn vector(&mut self, name: &str, len: usize, fresh: f32) -> Result<Param<Tensor<1>>>;
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

/// A parameter that a model requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// State-dict name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// What it is.
    pub kind: Kind,
}

/// What a parameter is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A matrix of this role.
    Matrix(MatrixRole),
    /// A vector that starts with this value.
    Vector(f32),
}

/// Records the requests of a model; its parameters are never made.
#[derive(Default)]
struct Plan {
    asked: Vec<Asked>,
}

impl Plan {
    fn note<const D: usize>(&mut self, name: &str, shape: [usize; D], kind: Kind) -> Param<Tensor<D>> {
        self.asked.push(Asked { name: name.to_string(), shape: shape.to_vec(), kind });
        let never = move |device: &Device, _| Tensor::zeros(shape, device);
        Param::uninitialized(ParamId::new(), never, Device::default(), true, shape.into())
    }
}

impl WeightSource for Plan {
    fn matrix(&mut self, name: &str, shape: [usize; 2], role: MatrixRole) -> Result<Param<Tensor<2>>> {
        Ok(self.note(name, shape, Kind::Matrix(role)))
    }

    fn vector(&mut self, name: &str, len: usize, fresh: f32) -> Result<Param<Tensor<1>>> {
        Ok(self.note(name, [len], Kind::Vector(fresh)))
    }
}

/// Every parameter of a model of this configuration, in the order of its requests.
pub fn asked_parameters(config: &ModelConfig) -> Result<Vec<Asked>> {
    let mut plan = Plan::default();
    super::Body::new(config, &mut plan)?;
    Ok(plan.asked)
}

/// Name and shape of every parameter of a model of this configuration.
pub fn planned_parameters(config: &ModelConfig) -> Result<Vec<(String, Vec<usize>)>> {
    Ok(asked_parameters(config)?.into_iter().map(|asked| (asked.name, asked.shape)).collect())
}

/// Parameters that are on the device already, flattened.
#[derive(Default)]
pub struct Loaded(pub BTreeMap<String, Tensor<1>>);

impl Loaded {
    fn take<const D: usize>(&mut self, name: &str, shape: [usize; D]) -> Result<Param<Tensor<D>>> {
        let tensor = self.0.remove(name).ok_or_else(|| Error::MissingTensors(vec![name.to_string()]))?;
        Ok(Param::from_tensor(tensor.reshape(shape)))
    }
}

impl WeightSource for Loaded {
    fn matrix(&mut self, name: &str, shape: [usize; 2], _role: MatrixRole) -> Result<Param<Tensor<2>>> {
        self.take(name, shape)
    }

    fn vector(&mut self, name: &str, len: usize, _fresh: f32) -> Result<Param<Tensor<1>>> {
        self.take(name, [len])
    }
}
