//! How the constants beside an adapter are stored on the device, before they are there, and what is too large for one.

use crate::bundle::Bundle;
use crate::config::{BaseStorage, ModelConfig, TrainConfig};
use crate::device::DeviceLimits;
use crate::error::Result;
use crate::gpu::{StorageType, StoredMatrix};
use crate::model::{Adaptation, Asked, Plan, files_form};

/// The form in which the files of a base have a matrix, if the kernels read that; `None` for what is f32 on the device.
pub type StoredForms<'a> = dyn Fn(&Asked) -> Option<StoredMatrix> + 'a;

/// A matrix of plain elements.
fn plain(storage: StorageType, asked: &Asked) -> Option<StoredMatrix> {
    StoredMatrix::new(storage, [1, elements(asked)])
}

fn elements(asked: &Asked) -> usize {
    asked.shape.iter().product()
}

/// The constants of a model.
pub(super) struct Constants<'a> {
    pub storage: BaseStorage,
    pub stored: &'a StoredForms<'a>,
}

impl Constants<'_> {
    /// The form of a constant on the device, if it is not f32.
    fn form(&self, asked: &Asked) -> Option<StoredMatrix> {
        match self.storage {
            _ if !asked.kind.is_matrix() => None,
            BaseStorage::F32 => None,
            BaseStorage::Bf16 => plain(StorageType::Bf16, asked),
            BaseStorage::Stored => (self.stored)(asked),
        }
    }

    /// Bytes of a constant on the device.
    pub fn bytes(&self, asked: &Asked) -> u64 {
        4 * self.form(asked).map_or(elements(asked), StoredMatrix::words) as u64
    }

    /// Whether a constant is read as its file stores it, neither f32 nor bf16.
    pub fn packed(&self, asked: &Asked) -> bool {
        self.form(asked).is_some_and(|form| form.storage != StorageType::Bf16)
    }

    /// The largest tensor of a model, of those that a kernel has to see whole. Gradients are f32, whatever the weights are; a constant has
    /// none.
    pub fn largest(&self, plan: &Plan) -> LargestTensor {
        let bytes = |asked: &Asked| if asked.trained { 4 * elements(asked) as u64 } else { self.bytes(asked) };
        let all = plan.parameters.iter().map(|asked| LargestTensor { name: asked.name.clone(), bytes: bytes(asked) });
        all.max_by_key(|tensor| tensor.bytes).unwrap_or_default()
    }
}

/// The tensor that takes most bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct LargestTensor {
    /// State-dict name.
    pub name: String,
    /// Its bytes on the device, or those of its gradient.
    pub bytes: u64,
}

/// Bytes of the widest activation of a step: a row for each token.
pub(super) fn widest_activation(model: &ModelConfig, train: &TrainConfig) -> u64 {
    let heads = model.num_attention_heads * model.head_dim;
    let width = model.hidden_size.max(model.intermediate_size).max(heads);
    4 * train.batch_size as u64 * train.seq_len as u64 * width as u64
}

/// Refuses a run one of whose tensors cannot be bound to a kernel as a whole: a parameter with its gradient, a constant beside an adapter as
/// the files of the `base` store it, or an activation.
///
/// # Errors
/// [`Error::LimitExceeded`](crate::Error::LimitExceeded), and those of [`Adaptation::of_run`].
pub fn check_limits(model: &ModelConfig, train: &TrainConfig, base: Option<&Bundle>, limits: DeviceLimits) -> Result<()> {
    let plan = Plan::of(model, Adaptation::of_run(train, model)?.as_ref())?;
    let constants = Constants { storage: train.base_storage, stored: &files_form(base) };
    limits.check(constants.largest(&plan).bytes.max(widest_activation(model, train)))
}

/// Refuses a model that is only run, with the adapter beside it, if one of its tensors cannot be bound to a kernel as a whole.
///
/// # Errors
/// [`Error::LimitExceeded`](crate::Error::LimitExceeded), and those of [`Adaptation::attached`].
pub fn check_inference_limits(bundle: &Bundle, storage: BaseStorage, limits: DeviceLimits) -> Result<()> {
    let plan = Plan::of(&bundle.config, Some(&Adaptation::attached(bundle)?.unwrap_or_default()))?;
    limits.check(Constants { storage, stored: &files_form(Some(bundle)) }.largest(&plan).bytes)
}
