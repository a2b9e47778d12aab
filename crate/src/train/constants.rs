//! Plans how the constants of a model with an adapter will be stored on the device, and refuses tensors that are too large for it.

use crate::bundle::Bundle;
use crate::config::{BaseStorage, ModelConfig, TrainConfig};
use crate::device::DeviceLimits;
use crate::error::Result;
use crate::gpu::{StorageType, StoredMatrix};
use crate::model::{Adaptation, ParameterRequest, Plan, files_form};

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

    /// The largest tensor of a model, among those that a kernel has to bind as a whole. A trained tensor counts with its gradient,
    /// which is f32 whatever the weights are; a constant has none.
    pub fn largest(&self, plan: &Plan) -> LargestTensor {
        let bytes = |request: &ParameterRequest| {
            if request.trained {
                4 * request.elements() as u64
            } else {
                self.bytes(request)
            }
        };
        let all = plan.parameters.iter().map(|request| LargestTensor {
            name: request.name.clone(),
            bytes: bytes(request),
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

/// Checks that every tensor of a run can be bound to a kernel as a whole: each parameter with its gradient, each constant as the files of
/// `base` store it, and each activation.
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
    limits.check(
        constants
            .largest(&plan)
            .bytes
            .max(widest_activation(model, train)),
    )
}

/// Checks that every tensor of a model that is only run, with its attached adapter, can be bound to a kernel as a whole.
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
    limits.check(
        Constants {
            storage,
            stored: &files_form(Some(bundle)),
        }
        .largest(&plan)
        .bytes,
    )
}
