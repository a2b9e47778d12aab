//! The parameters that a model requests, and how it gets their loaded values.

use std::collections::BTreeMap;

use burn::module::{Param, ParamId};
use burn::tensor::{Device, Tensor};

use super::family::{Part, Role};
use super::layers::{Conv1d, Embedding, LayerNorm, Linear, RmsNorm};
use crate::config::ModelConfig;
use crate::error::{Error, Result};

/// Gives the parameters of a model by name.
pub trait WeightSource {
    /// A matrix of this shape.
    fn matrix(&mut self, name: &str, shape: [usize; 2], part: Part, role: Role) -> Result<Param<Tensor<2>>>;
    /// A vector; `fresh` is its initial value in a new model.
    fn vector(&mut self, name: &str, len: usize, part: Part, fresh: f32) -> Result<Param<Tensor<1>>>;
}

/// Requests the layers of one part of a model, whose names begin alike.
pub struct Site<'a> {
    pub weights: &'a mut dyn WeightSource,
    pub part: Part,
    pub prefix: String,
}

impl Site<'_> {
    fn matrix(&mut self, name: &str, shape: [usize; 2], role: Role) -> Result<Param<Tensor<2>>> {
        self.weights.matrix(&format!("{}{name}.weight", self.prefix), shape, self.part, role)
    }

    fn vector(&mut self, name: &str, len: usize, fresh: f32) -> Result<Param<Tensor<1>>> {
        self.weights.vector(&format!("{}{name}", self.prefix), len, self.part, fresh)
    }

    /// `<name>.weight` [out, input] and, with `bias`, `<name>.bias` [out].
    pub fn linear(&mut self, name: &str, [out, input]: [usize; 2], bias: bool, role: Role) -> Result<Linear> {
        Ok(Linear {
            weight: self.matrix(name, [out, input], role)?,
            bias: if bias { Some(self.vector(&format!("{name}.bias"), out, 0.0)?) } else { None },
        })
    }

    /// `<name>.weight` [input, out] and `<name>.bias` [out].
    pub fn conv1d(&mut self, name: &str, [input, out]: [usize; 2], role: Role) -> Result<Conv1d> {
        Ok(Conv1d { weight: self.matrix(name, [input, out], role)?, bias: self.vector(&format!("{name}.bias"), out, 0.0)? })
    }

    /// `<name>.weight` [rows, width].
    pub fn embedding(&mut self, name: &str, [rows, width]: [usize; 2]) -> Result<Embedding> {
        Ok(Embedding { weight: self.matrix(name, [rows, width], Role::Inner)? })
    }

    /// `<name>.weight` [width].
    pub fn rms_norm(&mut self, name: &str, width: usize) -> Result<RmsNorm> {
        Ok(RmsNorm { weight: self.vector(&format!("{name}.weight"), width, 1.0)? })
    }

    /// `<name>.weight` and `<name>.bias` [width].
    pub fn layer_norm(&mut self, name: &str, width: usize) -> Result<LayerNorm> {
        let weight = self.vector(&format!("{name}.weight"), width, 1.0)?;
        Ok(LayerNorm { weight, bias: self.vector(&format!("{name}.bias"), width, 0.0)? })
    }
}

/// A parameter that a model requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// State-dict name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Where it stands.
    pub part: Part,
    /// What it is.
    pub kind: Kind,
}

/// What a parameter is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A matrix of this role.
    Matrix(Role),
    /// A vector that starts with this value.
    Vector(f32),
}

/// Records the requests of a model; its parameters are never made.
#[derive(Default)]
struct Requests(Vec<Asked>);

impl Requests {
    fn note<const D: usize>(&mut self, name: &str, shape: [usize; D], part: Part, kind: Kind) -> Param<Tensor<D>> {
        self.0.push(Asked { name: name.to_string(), shape: shape.to_vec(), part, kind });
        let never = move |device: &Device, _| Tensor::zeros(shape, device);
        Param::uninitialized(ParamId::new(), never, Device::default(), true, shape.into())
    }
}

impl WeightSource for Requests {
    fn matrix(&mut self, name: &str, shape: [usize; 2], part: Part, role: Role) -> Result<Param<Tensor<2>>> {
        Ok(self.note(name, shape, part, Kind::Matrix(role)))
    }

    fn vector(&mut self, name: &str, len: usize, part: Part, fresh: f32) -> Result<Param<Tensor<1>>> {
        Ok(self.note(name, [len], part, Kind::Vector(fresh)))
    }
}

/// A model of some configuration before it has values.
#[derive(Debug)]
pub struct Plan {
    /// Every parameter, in the order of the requests.
    pub parameters: Vec<Asked>,
    /// Number of values per token that a block keeps for its backward pass.
    pub kept_per_token: usize,
    /// Values in tables of rotary positions.
    pub rotary_values: usize,
}

impl Plan {
    /// The plan of a model of this configuration.
    pub fn of(config: &ModelConfig) -> Result<Self> {
        let mut requests = Requests::default();
        let body = super::Body::new(config, &mut requests)?;
        let family = body.family();
        let rotary_values = if family.rotates() { config.max_position_embeddings * config.head_dim } else { 0 };
        Ok(Self { parameters: requests.0, kept_per_token: family.kept_per_token(config), rotary_values })
    }
}

/// Name and shape of every parameter of a model of this configuration.
pub fn planned_parameters(config: &ModelConfig) -> Result<Vec<(String, Vec<usize>)>> {
    Ok(Plan::of(config)?.parameters.into_iter().map(|asked| (asked.name, asked.shape)).collect())
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
    fn matrix(&mut self, name: &str, shape: [usize; 2], _part: Part, _role: Role) -> Result<Param<Tensor<2>>> {
        self.take(name, shape)
    }

    fn vector(&mut self, name: &str, len: usize, _part: Part, _fresh: f32) -> Result<Param<Tensor<1>>> {
        self.take(name, [len])
    }
}
