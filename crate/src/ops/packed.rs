//! Matrices that stay on the device as their file stores them, and the operations on them. They are constants without a gradient and without
//! an unpacked copy: products and lookups read the blocks. Each result has the bits of the unpacked operation on the decoded weights.

use burn::tensor::kind::Autodiff;
use burn::tensor::{Device, Int, Tensor};

use super::embedding::{embedding_of_words, embedding_onto};
use super::linear::product_of_words;
use crate::error::Result;
use crate::gpu::{PackedUpload, StorageType, StoredMatrix};
use crate::interrupt::Interrupt;

/// A matrix `[rows, columns]` on the device in the blocks of its file. Clones share the memory.
#[derive(Debug, Clone)]
pub struct PackedMatrix {
    /// Raw words, in a tensor of f32 that is never computed with, or the elements of a tensor; without autodiff.
    words: Tensor<1>,
    form: StoredMatrix,
}

impl PackedMatrix {
    /// Uploads a matrix from all of its blocks, in the order of the file: the rows one after another.
    ///
    /// # Errors
    ///
    /// As [`PackedUpload::put_bytes`] and [`PackedUpload::settle`].
    pub async fn upload(blocks: &[u8], form: StoredMatrix, device: &Device) -> Result<Self> {
        let mut upload = PackedUpload::new(form, device);
        upload.put_bytes(blocks)?;
        upload.settle(&Interrupt::none()).await?;
        Self::of(upload)
    }

    /// The matrix of an upload that has all of its bytes.
    ///
    /// # Errors
    ///
    /// As [`PackedUpload::finish`].
    pub fn of(upload: PackedUpload) -> Result<Self> {
        let form = upload.form();
        Ok(Self {
            words: upload.finish()?,
            form,
        })
    }

    /// The matrix of words that lie as `form` says.
    pub(crate) fn of_words(words: Tensor<1>, form: StoredMatrix) -> Self {
        Self { words, form }
    }

    /// The matrix of a tensor without autodiff, f32 or packed bf16.
    pub fn of_tensor(tensor: Tensor<2>) -> Self {
        let [rows, columns] = tensor.dims();
        let form = StoredMatrix {
            storage: StorageType::of(tensor.dtype()),
            rows,
            columns,
        };
        Self {
            words: tensor.reshape([rows * columns]),
            form,
        }
    }

    /// The storage type and shape of the matrix.
    pub fn form(&self) -> StoredMatrix {
        self.form
    }

    /// The shape `[rows, columns]`.
    pub fn shape(&self) -> [usize; 2] {
        [self.form.rows, self.form.columns]
    }

    /// The number of bytes on the device.
    pub fn bytes(&self) -> usize {
        4 * self.form.words()
    }

    /// Moves the matrix to another device.
    pub fn to_device(self, device: &Device) -> Self {
        Self {
            words: self.words.to_device(device),
            ..self
        }
    }

    /// The words for an operation with `x`, as a constant of the autodiff graph that x belongs to.
    fn beside<const E: usize, K: Autodiff>(&self, x: &Tensor<E, K>) -> Tensor<1> {
        let words = self.words();
        if x.is_autodiff() {
            Tensor::from_inner(words)
        } else {
            words
        }
    }

    /// The raw words on the device, `[words]`.
    pub fn words(&self) -> Tensor<1> {
        self.words.clone()
    }

    /// Decodes the weights to f32, `[rows, columns]`. For tests and comparisons; training does not need it.
    pub fn decoded(&self) -> Tensor<2> {
        let ids = Tensor::<1, Int>::arange(0..self.form.rows as i64, &self.words.device());
        packed_embedding(self, ids)
    }
}

/// Computes `x [n, k] · w [m, k]ᵀ → [n, m]`.
pub fn packed_linear(x: Tensor<2>, w: &PackedMatrix) -> Tensor<2> {
    let words = w.beside(&x);
    product_of_words(x, words, w.form, false)
}

/// Computes `x [n, k] · w [k, m] → [n, m]`, the layout of GPT-2's Conv1D.
pub fn packed_conv1d(x: Tensor<2>, w: &PackedMatrix) -> Tensor<2> {
    let words = w.beside(&x);
    product_of_words(x, words, w.form, true)
}

/// Looks up the rows of `w [V, C]` at `ids [n]` → `[n, C]`, f32; an id outside the table gives zeros.
pub fn packed_embedding(w: &PackedMatrix, ids: Tensor<1, Int>) -> Tensor<2> {
    embedding_of_words(w.beside(&ids), w.form, ids)
}

/// Looks up rows of a table that lies in parts, one after another, as [`packed_embedding`] does.
pub(crate) fn embedding_of_parts(table: &[PackedMatrix], ids: &Tensor<1, Int>) -> Tensor<2> {
    let (first, others) = table.split_first().expect("a table has rows");
    let (mut y, mut start) = (packed_embedding(first, ids.clone()), first.form.rows);
    for part in others {
        let own = ids.clone() - start as i64;
        y = embedding_onto(y, part.beside(ids), part.form, own);
        start += part.form.rows;
    }
    y
}
