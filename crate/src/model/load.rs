//! Plans the parameters of a model, and provides their loaded values.

use std::collections::BTreeMap;

use burn::module::{Param, ParamId};
use burn::tensor::{Device, Tensor};

use super::adaptation::Adaptation;
use super::body::Body;
use super::builder::WeightSource;
use super::layers::{Matrix, Weight};
use super::parameter_request::{Kind, ParameterRequest};
use super::part::{Place, Role};
use super::rope::Ropes;
use super::saved_activations::SavedActivations;
use crate::bundle::{Bundle, StoredRows};
use crate::config::{ModelConfig, Slot, Stack};
use crate::error::{Error, Result};
use crate::families::stack;
use crate::gpu::{StorageType, StoredMatrix};

/// Records the requests of a model; its parameters are never initialized.
struct Requests<'a> {
    request: Vec<ParameterRequest>,
    adaptation: Option<&'a Adaptation>,
}

impl Requests<'_> {
    fn note<const D: usize>(
        &mut self,
        name: &str,
        shape: [usize; D],
        place: Place,
        kind: Kind,
    ) -> Param<Tensor<D>> {
        let trained = kind.is_factor()
            || self
                .adaptation
                .is_none_or(|adaptation| adaptation.saves(name));
        self.request.push(ParameterRequest {
            name: name.to_string(),
            shape: shape.to_vec(),
            part: place.part,
            slot: place.slot,
            kind,
            trained,
        });
        let never = move |device: &Device, _| Tensor::zeros(shape, device);
        Param::uninitialized(ParamId::new(), never, Device::default(), true, shape.into())
    }
}

impl WeightSource for Requests<'_> {
    fn matrix(
        &mut self,
        name: &str,
        shape: [usize; 2],
        place: Place,
        role: Role,
    ) -> Result<Matrix> {
        Ok(self.note(name, shape, place, Kind::Matrix(role)).into())
    }

    fn vector(&mut self, name: &str, len: usize, place: Place, kind: Kind) -> Result<Weight<1>> {
        Ok(self.note(name, [len], place, kind).into())
    }

    fn taps(&mut self, name: &str, shape: [usize; 3], place: Place) -> Result<Weight<3>> {
        Ok(self.note(name, shape, place, Kind::Taps).into())
    }

    fn factor(
        &mut self,
        name: &str,
        shape: [usize; 2],
        place: Place,
        kind: Kind,
    ) -> Result<Param<Tensor<2>>> {
        Ok(self.note(name, shape, place, kind))
    }

    fn adaptation(&self) -> Option<&Adaptation> {
        self.adaptation
    }
}

/// Plan of a model: its description and its parameters, before they have values.
#[derive(Debug)]
pub struct Plan {
    /// The layers of the model.
    pub stack: Stack,
    /// Every parameter, in the order in which the family's files have them.
    pub parameters: Vec<ParameterRequest>,
    kept: Vec<SavedActivations>,
}

impl Plan {
    /// Plans a model of this configuration, with the factors of an adapter if it has one.
    ///
    /// # Errors
    /// The errors of [`ModelConfig::validate`] and of [`stack`].
    pub fn of(config: &ModelConfig, adaptation: Option<&Adaptation>) -> Result<Self> {
        let stack = stack(config)?;
        let mut requests = Requests {
            request: Vec::new(),
            adaptation,
        };
        Body::new(config, &stack, &mut requests)?;
        let mut parameters = requests.request;
        parameters.sort_by_key(|request| {
            (
                request.part.block().unwrap_or(usize::MAX),
                stack.names.position(request.slot),
            )
        });
        let kept = stack
            .layers
            .iter()
            .map(|layer| SavedActivations::of(layer, config.hidden_size))
            .collect();
        Ok(Self {
            stack,
            parameters,
            kept,
        })
    }

    /// The number of values in the tables of rotary positions of a model of this context, for texts of `length` tokens.
    pub fn rotary_values(&self, length: usize, context: usize) -> usize {
        let kinds = self.stack.ropes().into_iter();
        kinds
            .map(|(rope, _)| Ropes::values(&rope, length, context))
            .sum()
    }

    /// The number of values of a sequence of `len` tokens that each block keeps for its backward pass if only the layers that `needs`
    /// selects need their inputs.
    pub fn kept_by_blocks(&self, len: usize, needs: impl Fn(Slot) -> bool) -> Vec<usize> {
        let kept = self.kept.iter();
        kept.map(|kept| kept.where_needed(len, &needs)).collect()
    }
}

/// The rows of a constant that stays packed on the device, as its file stores it, if the kernels can read that, and the form of the
/// matrix. `None` if it does not stay packed.
pub(crate) fn packed_rows<'a>(
    bundle: &'a Bundle,
    request: &ParameterRequest,
) -> Option<(StoredMatrix, StoredRows<'a>)> {
    if request.trained || !request.kind.is_matrix() {
        return None;
    }
    let rows = bundle.stored_rows(&request.name)?;
    let storage = StorageType::of_ggml(rows.id)
        .filter(|storage| !matches!(storage, StorageType::F32 | StorageType::Bf16))?;
    Some((StoredMatrix::new(storage, rows.shape)?, rows))
}

/// The form of each matrix in the files of a `base`, for plans. `None` means f32 on the device, which is also assumed without
/// files.
pub fn files_form(base: Option<&Bundle>) -> impl Fn(&ParameterRequest) -> Option<StoredMatrix> {
    move |request| {
        let base = base?;
        let halves = || StoredMatrix::new(StorageType::Bf16, [1, request.elements()]);
        let bf16 = request.kind.is_matrix() && base.dtype(&request.name).as_deref() == Some("BF16");
        let packed = packed_rows(base, request).map(|(form, _)| form);
        packed.or_else(|| halves().filter(|_| bf16))
    }
}

/// Returns name and shape of every parameter of a model of this configuration.
///
/// # Errors
/// The errors of [`ModelConfig::validate`].
pub fn planned_parameters(config: &ModelConfig) -> Result<Vec<(String, Vec<usize>)>> {
    Ok(Plan::of(config, None)?
        .parameters
        .into_iter()
        .map(|request| (request.name, request.shape))
        .collect())
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
        let tensor = self
            .tensors
            .remove(name)
            .ok_or_else(|| Error::MissingTensors(vec![name.to_string()]))?;
        Ok(tensor.reshape(shape))
    }

    fn weight<const D: usize>(&mut self, name: &str, shape: [usize; D]) -> Result<Weight<D>> {
        let tensor = self.take(name, shape)?;
        let trained = self
            .adaptation
            .is_none_or(|adaptation| adaptation.saves(name));
        Ok(if trained {
            Param::from_tensor(tensor).into()
        } else {
            Weight::Frozen(tensor)
        })
    }
}

impl WeightSource for Loaded<'_> {
    fn matrix(
        &mut self,
        name: &str,
        shape: [usize; 2],
        _place: Place,
        _role: Role,
    ) -> Result<Matrix> {
        match self.as_stored.remove(name) {
            Some(matrix) => Ok(matrix),
            None => Ok(Matrix::Dense {
                weight: self.weight(name, shape)?,
                transposed: false,
            }),
        }
    }

    fn vector(&mut self, name: &str, len: usize, _place: Place, _kind: Kind) -> Result<Weight<1>> {
        self.weight(name, [len])
    }

    fn taps(&mut self, name: &str, shape: [usize; 3], _place: Place) -> Result<Weight<3>> {
        self.weight(name, shape)
    }

    fn factor(
        &mut self,
        name: &str,
        shape: [usize; 2],
        _place: Place,
        _kind: Kind,
    ) -> Result<Param<Tensor<2>>> {
        Ok(Param::from_tensor(self.take(name, shape)?))
    }

    fn adaptation(&self) -> Option<&Adaptation> {
        self.adaptation
    }
}
