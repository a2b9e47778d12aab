//! The constants of a model with an adapter, as they lie on the device.

use std::collections::{BTreeMap, BTreeSet};

use super::matrix::Matrix;
use crate::gpu::StorageType;

/// Constants of a model with an adapter, as the device holds them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrozenWeights {
    /// Number of matrices, by the name of their storage type.
    pub matrices: BTreeMap<String, usize>,
    /// Size of all constants in bytes.
    pub bytes: u64,
    /// Stored types of matrices that no kernel reads, so that they are f32 on the device.
    pub widened: BTreeSet<String>,
}

impl FrozenWeights {
    /// Counts a constant of this size, by its storage type if it is a matrix.
    pub(super) fn add(&mut self, storage: Option<StorageType>, bytes: usize) {
        self.bytes += bytes as u64;
        if let Some(storage) = storage {
            *self
                .matrices
                .entry(storage.name().to_uppercase())
                .or_default() += 1;
        }
    }

    /// Counts a packed constant.
    pub(super) fn count(&mut self, matrix: &Matrix) {
        match matrix {
            Matrix::Packed { matrix, .. } => {
                self.add(Some(matrix.form().storage), matrix.bytes());
            }
            Matrix::Parts(parts) => {
                let packed = parts.iter().filter_map(|part| match &part.matrix {
                    Matrix::Packed { matrix, .. } => Some(matrix),
                    _ => None,
                });
                let (mut storage, mut bytes) = (None, 0);
                for matrix in packed {
                    storage = Some(matrix.form().storage);
                    bytes += matrix.bytes();
                }
                self.add(storage, bytes);
            }
            Matrix::Dense { .. } => {}
        }
    }
}
