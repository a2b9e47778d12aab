//! Matrices as the kernels read them.

use burn::backend::TensorMetadata;

use crate::gpu::launch::rows_columns;
use crate::gpu::{StorageType, StoredMatrix};

/// A matrix as the kernels read it: a tensor, or the words of a packed matrix.
#[derive(Debug, Clone)]
pub struct Weights<T> {
    /// The buffer that is bound.
    pub words: T,
    /// Storage type and shape of the matrix.
    pub form: StoredMatrix,
}

impl<T: TensorMetadata> Weights<T> {
    /// Makes the matrix of a tensor, f32 or packed bf16; all dimensions except for the last are its rows.
    pub fn of(tensor: T) -> Self {
        let (rows, columns) = rows_columns(&tensor.shape());
        let form = StoredMatrix {
            storage: StorageType::of(tensor.dtype()),
            rows,
            columns,
        };
        Self {
            words: tensor,
            form,
        }
    }
}
