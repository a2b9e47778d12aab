//! Storage of the matrices of a GGUF file that does not exist yet.

use super::gguf_types::{GgufTypes, is_plain};
use crate::config::ModelConfig;
use crate::families::to_gguf;
use crate::gpu::{StorageType, StoredMatrix};
use crate::model::ParameterRequest;
use crate::state::Reordering;

impl GgufTypes {
    /// The form in which a device holds a matrix of a GGUF file whose matrices have these types, by the rules of an export; `None` for
    /// a matrix that is f32 there, and for the types of an unknown base.
    pub fn planned_form(
        self,
        request: &ParameterRequest,
        model: &ModelConfig,
    ) -> Option<StoredMatrix> {
        let (name, order) = to_gguf(&request.name, &model.model_type, model)?;
        let &[rows, columns] = request.shape.as_slice() else {
            return None;
        };
        let [rows, columns] = if order == Reordering::Transposed {
            [columns, rows]
        } else {
            [rows, columns]
        };
        if is_plain(&name, &[rows as u64, columns as u64]) {
            return None;
        }
        let own = self.of_matrix(&name, model)?.for_width(columns as u64);
        let storage =
            StorageType::of_ggml(own.ggml().id).filter(|storage| *storage != StorageType::F32)?;
        StoredMatrix::new(storage, [rows, columns])
    }
}
