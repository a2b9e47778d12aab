//! Plans how the constants of a model with an adapter will be stored on the device, and refuses tensors that are too large for it.

use burn::tensor::DType;

use crate::bundle::Bundle;
use crate::config::{BaseStorage, ModelConfig, TrainConfig};
use crate::device::DeviceLimits;
use crate::error::Result;
use crate::gpu::{StorageType, StoredMatrix};
use crate::model::{Adaptation, ParameterRequest, Plan, files_form};
use crate::optim::{ParamInfo, stepped_in_parts};

/// Function that returns the form in which a base's files store a matrix, if the kernels can read that; `None` for one that is f32 on the
/// device.
pub type StoredForms<'a> = dyn Fn(&ParameterRequest) -> Option<StoredMatrix> + 'a;

/// The form of a matrix of plain elements.
fn plain(storage: StorageType, request: &ParameterRequest) -> Option<StoredMatrix> {
    StoredMatrix::new(storage, [1, request.elements()])
}

/// Constants of a model.
pub(super) struct Constants<'a> {
    pub storage: BaseStorage,
    pub stored: &'a StoredForms<'a>,
}

impl Constants<'_> {
    /// The form of a constant on the device; `None` if it is f32.
    fn form(&self, request: &ParameterRequest) -> Option<StoredMatrix> {
        match self.storage {
            _ if !request.kind.is_matrix() => None,
            BaseStorage::F32 => None,
            BaseStorage::Bf16 => plain(StorageType::Bf16, request),
            BaseStorage::Stored => (self.stored)(request),
        }
    }

    /// The size of a constant on the device in bytes.
    pub fn bytes(&self, request: &ParameterRequest) -> u64 {
        4 * self
            .form(request)
            .map_or(request.elements(), StoredMatrix::words) as u64
    }

    /// Returns whether a constant is read as its file stores it, neither f32 nor bf16.
    pub fn packed(&self, request: &ParameterRequest) -> bool {
        self.form(request)
            .is_some_and(|form| form.storage != StorageType::Bf16)
    }

    /// The bytes of the largest tensor that a kernel binds under this limit, with tables in parts where it needs that and `takes_parts` allows it.
    pub fn largest_bound(
        &self,
        plan: &Plan,
        limit: u64,
        takes_parts: &dyn Fn(&ParameterRequest) -> bool,
    ) -> u64 {
        let bound = |request: &ParameterRequest| {
            let columns = request.shape.last().copied().unwrap_or(1);
            let form = self.form(request).filter(|_| !request.trained);
            let bytes = |rows: usize| match form {
                Some(StoredMatrix { storage, .. }) => {
                    let part = StoredMatrix {
                        storage,
                        rows,
                        columns,
                    };
                    4 * part.words() as u64
                }
                None => 4 * (rows * columns) as u64,
            };
            let parts = request.cut(limit, &bytes).filter(|_| takes_parts(request));
            let largest = parts.and_then(|parts| parts.into_iter().map(bytes).max());
            largest.unwrap_or_else(|| self.bytes_with_gradient(request))
        };
        plan.parameters.iter().map(bound).max().unwrap_or(0)
    }

    /// The bytes of a tensor, or of its gradient, which is f32 whatever the weights are; a constant has none.
    fn bytes_with_gradient(&self, request: &ParameterRequest) -> u64 {
        if request.trained {
            4 * request.elements() as u64
        } else {
            self.bytes(request)
        }
    }

    /// The largest tensor of a model. A trained tensor counts with its gradient.
    pub fn largest(&self, plan: &Plan) -> LargestTensor {
        let all = plan.parameters.iter().map(|request| LargestTensor {
            name: request.name.clone(),
            bytes: self.bytes_with_gradient(request),
        });
        all.max_by_key(|tensor| tensor.bytes).unwrap_or_default()
    }
}

/// Tensor that takes the most bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct LargestTensor {
    /// State-dict name.
    pub name: String,
    /// Size on the device in bytes, or that of its gradient.
    pub bytes: u64,
}

/// The bytes of the widest activation of a step: one row per token.
pub(super) fn widest_activation(model: &ModelConfig, train: &TrainConfig) -> u64 {
    let heads = model.num_attention_heads * model.head_dim;
    let width = model.hidden_size.max(model.intermediate_size).max(heads);
    4 * train.batch_size as u64 * train.seq_len as u64 * width as u64
}

/// Returns whether a parameter of a run may lie in parts: a constant, or one whose update rule steps each element by itself.
///
/// # Errors
/// `optim.groups` for groups that do not cover the model.
pub(super) fn takes_parts(
    train: &TrainConfig,
    plan: &Plan,
) -> Result<impl Fn(&ParameterRequest) -> bool> {
    let trained = plan.parameters.iter().filter(|request| request.trained);
    let infos: Vec<ParamInfo> = trained
        .map(|request| ParamInfo {
            name: request.name.clone(),
            shape: request.shape.clone(),
            dtype: DType::F32,
            outside_blocks: request.part.block().is_none(),
        })
        .collect();
    let stepped = stepped_in_parts(train, &infos)?;
    Ok(move |request: &ParameterRequest| !request.trained || stepped.contains(&request.name))
}

/// Checks that every tensor of a run can be bound to a kernel: each parameter with its gradient, each constant as the files of `base` store it,
/// and each activation. Tables and heads may lie in parts.
///
/// # Errors
/// [`Error::LimitExceeded`](crate::Error::LimitExceeded), and the errors of [`Adaptation::of_run`].
pub fn check_limits(
    model: &ModelConfig,
    train: &TrainConfig,
    base: Option<&Bundle>,
    limits: DeviceLimits,
) -> Result<()> {
    let plan = Plan::of(model, Adaptation::of_run(train, model)?.as_ref())?;
    let constants = Constants {
        storage: train.base_storage,
        stored: &files_form(base),
    };
    let takes_parts = takes_parts(train, &plan)?;
    let largest = constants.largest_bound(&plan, limits.largest(), &takes_parts);
    limits.check(largest.max(widest_activation(model, train)))
}

/// Checks that every tensor of a model that is only run, with its attached adapter, can be bound to a kernel.
///
/// # Errors
/// [`Error::LimitExceeded`](crate::Error::LimitExceeded), and the errors of [`Adaptation::attached`].
pub fn check_inference_limits(
    bundle: &Bundle,
    storage: BaseStorage,
    limits: DeviceLimits,
) -> Result<()> {
    let plan = Plan::of(
        &bundle.config,
        Some(&Adaptation::attached(bundle)?.unwrap_or_default()),
    )?;
    let constants = Constants {
        storage,
        stored: &files_form(Some(bundle)),
    };
    limits.check(constants.largest_bound(&plan, limits.largest(), &|_| true))
}
