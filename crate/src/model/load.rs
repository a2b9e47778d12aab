//! Requests the parameters of a model, and provides their loaded values.

use std::collections::BTreeMap;

use burn::module::{Param, ParamId};
use burn::tensor::{Device, Tensor};

use super::adaptation::Adaptation;
use super::family::{Kept, Part, Role};
use super::layers::{Conv1d, Embedding, Factor, LayerNorm, Linear, LowRank, Matrix, RmsNorm, Weight};
use super::parameter_request::{Kind, ParameterRequest};
use crate::bundle::Bundle;
use crate::config::{BaseStorage, ModelConfig};
use crate::error::{Error, Result};
use crate::gpu::{StorageType, StoredMatrix};

/// Source of a model's parameters, by name.
pub trait WeightSource {
    /// Returns a matrix of this shape.
    fn matrix(&mut self, name: &str, shape: [usize; 2], part: Part, role: Role) -> Result<Matrix>;
    /// Returns a vector `[len]`; `fresh` is its initial value in a new model.
    fn vector(&mut self, name: &str, len: usize, part: Part, fresh: f32) -> Result<Weight<1>>;
    /// Returns a factor of an adapter.
    fn factor(&mut self, name: &str, shape: [usize; 2], part: Part, kind: Kind) -> Result<Param<Tensor<2>>>;
    /// Returns the adapter of the model, if it has one.
    fn adaptation(&self) -> Option<&Adaptation>;
}

/// Requests the layers of one part of a model, whose names have a common prefix. A request fails as its [`WeightSource`] does.
pub struct ParameterBuilder<'a> {
    pub weights: &'a mut dyn WeightSource,
    pub part: Part,
    pub prefix: String,
}

/// Additions of a target to its matrix: A, B, and how they are used.
type Factors = (Option<Factor>, Option<Factor>, Option<LowRank>);

impl ParameterBuilder<'_> {
    fn matrix(&mut self, name: &str, shape: [usize; 2], role: Role) -> Result<Matrix> {
        self.weights.matrix(&format!("{}{name}.weight", self.prefix), shape, self.part, role)
    }

    fn vector(&mut self, name: &str, len: usize, fresh: f32) -> Result<Weight<1>> {
        self.weights.vector(&format!("{}{name}", self.prefix), len, self.part, fresh)
    }

    /// Requests the factors of a matrix `[out, input]`, if it is a target.
    fn factors(&mut self, name: &str, shape: [usize; 2]) -> Result<Factors> {
        let module = format!("{}{name}", self.prefix);
        let Some(request) = self.weights.adaptation().and_then(|adaptation| adaptation.factors(&module, shape)) else {
            return Ok((None, None, None));
        };
        let mut factor = |(name, shape, kind): (String, [usize; 2], Kind)| -> Result<Option<Factor>> {
            Ok(Some(Factor { weight: self.weights.factor(&name, shape, self.part, kind)? }))
        };
        Ok((factor(request.a)?, factor(request.b)?, Some(request.low_rank)))
    }

    /// Requests `<name>.weight` `[out, input]` and, with `bias`, `<name>.bias` `[out]`.
    pub fn linear(&mut self, name: &str, [out, input]: [usize; 2], bias: bool, role: Role) -> Result<Linear> {
        let weight = self.matrix(name, [out, input], role)?;
        let bias = if bias { Some(self.vector(&format!("{name}.bias"), out, 0.0)?) } else { None };
        let (a, b, low_rank) = self.factors(name, [out, input])?;
        Ok(Linear { weight, bias, lora_A: a, lora_B: b, low_rank })
    }

    /// Requests `<name>.weight` `[input, out]` and `<name>.bias` `[out]`.
    pub fn conv1d(&mut self, name: &str, [input, out]: [usize; 2], role: Role) -> Result<Conv1d> {
        let weight = self.matrix(name, [input, out], role)?;
        let bias = self.vector(&format!("{name}.bias"), out, 0.0)?;
        let (a, b, low_rank) = self.factors(name, [out, input])?;
        Ok(Conv1d { weight, bias, lora_A: a, lora_B: b, low_rank })
    }

    /// Requests `<name>.weight` `[rows, width]`.
    pub fn embedding(&mut self, name: &str, [rows, width]: [usize; 2]) -> Result<Embedding> {
        Ok(Embedding { weight: self.matrix(name, [rows, width], Role::Inner)? })
    }

    /// Requests `<name>.weight` `[width]`.
    pub fn rms_norm(&mut self, name: &str, width: usize) -> Result<RmsNorm> {
        Ok(RmsNorm { weight: self.vector(&format!("{name}.weight"), width, 1.0)? })
    }

    /// Requests `<name>.weight` and `<name>.bias`, both `[width]`.
    pub fn layer_norm(&mut self, name: &str, width: usize) -> Result<LayerNorm> {
        let weight = self.vector(&format!("{name}.weight"), width, 1.0)?;
        Ok(LayerNorm { weight, bias: self.vector(&format!("{name}.bias"), width, 0.0)? })
    }
}

/// Records the requests of a model; its parameters are never initialized.
struct Requests<'a> {
    request: Vec<ParameterRequest>,
    adaptation: Option<&'a Adaptation>,
}

impl Requests<'_> {
    fn note<const D: usize>(&mut self, name: &str, shape: [usize; D], part: Part, kind: Kind) -> Param<Tensor<D>> {
        let trained = kind.is_factor() || self.adaptation.is_none_or(|adaptation| adaptation.saves(name));
        self.request.push(ParameterRequest { name: name.to_string(), shape: shape.to_vec(), part, kind, trained });
        let never = move |device: &Device, _| Tensor::zeros(shape, device);
        Param::uninitialized(ParamId::new(), never, Device::default(), true, shape.into())
    }
}

impl WeightSource for Requests<'_> {
    fn matrix(&mut self, name: &str, shape: [usize; 2], part: Part, role: Role) -> Result<Matrix> {
        Ok(self.note(name, shape, part, Kind::Matrix(role)).into())
    }

    fn vector(&mut self, name: &str, len: usize, part: Part, fresh: f32) -> Result<Weight<1>> {
        Ok(self.note(name, [len], part, Kind::Vector(fresh)).into())
    }

    fn factor(&mut self, name: &str, shape: [usize; 2], part: Part, kind: Kind) -> Result<Param<Tensor<2>>> {
        Ok(self.note(name, shape, part, kind))
    }

    fn adaptation(&self) -> Option<&Adaptation> {
        self.adaptation
    }
}

/// Plan of a model: its parameters, before they have values.
#[derive(Debug)]
pub struct Plan {
    /// Every parameter, in the order of the requests.
    pub parameters: Vec<ParameterRequest>,
    /// Number of values that a block keeps for its backward pass.
    pub kept: Kept,
    /// Number of values in the tables of rotary positions.
    pub rotary_values: usize,
}

impl Plan {
    /// Plans a model of this configuration, with the factors of an adapter if it has one.
    ///
    /// # Errors
    /// The errors of [`ModelConfig::validate`].
    pub fn of(config: &ModelConfig, adaptation: Option<&Adaptation>) -> Result<Self> {
        let mut requests = Requests { request: Vec::new(), adaptation };
        let body = super::Body::new(config, &mut requests)?;
        let family = body.family();
        let rotary_values = if family.rotates() { config.max_position_embeddings * config.head_dim } else { 0 };
        Ok(Self { parameters: requests.request, kept: family.kept(config), rotary_values })
    }
}

/// Returns the form in which a constant stays packed on the device: as its file stores it, if the kernels can read that. `None` if it does
/// not stay packed.
pub(crate) fn stored_form(bundle: &Bundle, request: &ParameterRequest, base_storage: BaseStorage) -> Option<StoredMatrix> {
    if request.trained || !request.kind.is_matrix() || base_storage != BaseStorage::Stored {
        return None;
    }
    let rows = bundle.stored_rows(&request.name)?;
    let storage = StorageType::of_ggml(rows.id).filter(|storage| !matches!(storage, StorageType::F32 | StorageType::Bf16))?;
    StoredMatrix::new(storage, rows.shape)
}

/// Returns the form of each matrix in the files of a `base`, for plans. `None` means f32 on the device, which is also assumed without
/// files.
pub fn files_form(base: Option<&Bundle>) -> impl Fn(&ParameterRequest) -> Option<StoredMatrix> {
    move |request| {
        let base = base?;
        let halves = || StoredMatrix::new(StorageType::Bf16, [1, request.shape.iter().product()]);
        let bf16 = request.kind.is_matrix() && base.dtype(&request.name).as_deref() == Some("BF16");
        stored_form(base, request, BaseStorage::Stored).or_else(|| halves().filter(|_| bf16))
    }
}

/// Returns name and shape of every parameter of a model of this configuration.
///
/// # Errors
/// The errors of [`ModelConfig::validate`].
pub fn planned_parameters(config: &ModelConfig) -> Result<Vec<(String, Vec<usize>)>> {
    Ok(Plan::of(config, None)?.parameters.into_iter().map(|request| (request.name, request.shape)).collect())
}

/// Parameters that are already on the device, flattened.
#[derive(Default)]
pub struct Loaded<'a> {
    /// Tensors by name.
    pub tensors: BTreeMap<String, Tensor<1>>,
    /// Constants that lie on the device as their file stores them, by name.
    pub as_stored: BTreeMap<String, Matrix>,
    /// Adapter of the model, if it has one.
    pub adaptation: Option<&'a Adaptation>,
}

impl Loaded<'_> {
    fn take<const D: usize>(&mut self, name: &str, shape: [usize; D]) -> Result<Tensor<D>> {
        let tensor = self.tensors.remove(name).ok_or_else(|| Error::MissingTensors(vec![name.to_string()]))?;
        Ok(tensor.reshape(shape))
    }

    fn weight<const D: usize>(&mut self, name: &str, shape: [usize; D]) -> Result<Weight<D>> {
        let tensor = self.take(name, shape)?;
        let trained = self.adaptation.is_none_or(|adaptation| adaptation.saves(name));
        Ok(if trained { Param::from_tensor(tensor).into() } else { Weight::Frozen(tensor) })
    }
}

impl WeightSource for Loaded<'_> {
    fn matrix(&mut self, name: &str, shape: [usize; 2], _part: Part, _role: Role) -> Result<Matrix> {
        match self.as_stored.remove(name) {
            Some(matrix) => Ok(matrix),
            None => Ok(Matrix::Dense { weight: self.weight(name, shape)?, transposed: false }),
        }
    }

    fn vector(&mut self, name: &str, len: usize, _part: Part, _fresh: f32) -> Result<Weight<1>> {
        self.weight(name, [len])
    }

    fn factor(&mut self, name: &str, shape: [usize; 2], _part: Part, _kind: Kind) -> Result<Param<Tensor<2>>> {
        Ok(Param::from_tensor(self.take(name, shape)?))
    }

    fn adaptation(&self) -> Option<&Adaptation> {
        self.adaptation
    }
}
