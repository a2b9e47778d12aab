//! A tensor of an opened model: its position in a file, and the order of its elements there.

use std::rc::Rc;

use super::adapter::Merge;
use crate::error::{Refusal, Result, word};
use crate::formats::{Encoding, FileTensor};
use crate::state::Reordering;

/// A tensor of an opened model, and its tensor in a file.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: String,
    /// The tensor in its file.
    pub(super) stored: FileTensor,
    pub(super) dtype: String,
    pub(super) encoding: Option<Encoding>,
    /// Shape in Hugging Face's layout.
    pub(super) shape: Vec<usize>,
    pub(super) source: usize,
    pub(super) order: Reordering,
    /// Pair of an adapter that is added to the values.
    pub(super) merge: Option<Rc<Merge>>,
    /// The base's own tensor, if an adapter replaced it.
    pub(super) replaced: Option<Rc<Entry>>,
}

impl Entry {
    /// Describes the tensor `name` of a model, which lies in this order in the file `artifact`, number `source` of the model's files.
    ///
    /// # Errors
    /// `source.too-large` for a shape that this machine cannot address.
    pub(super) fn new(
        name: String,
        stored: FileTensor,
        order: Reordering,
        source: usize,
        artifact: &str,
    ) -> Result<Self> {
        let mut shape = narrow(&stored.shape, &stored.name, artifact)?;
        if order == Reordering::Transposed {
            shape.reverse();
        }
        let (dtype, encoding) = (stored.dtype.clone(), Encoding::of_dtype(&stored.dtype));
        Ok(Self {
            name,
            stored,
            dtype,
            encoding,
            shape,
            source,
            order,
            merge: None,
            replaced: None,
        })
    }

    /// Returns whether the values are exactly those of the stored bytes.
    pub(super) fn is_verbatim(&self) -> bool {
        self.stored.bytes.is_some() && self.merge.is_none()
    }
}

/// Converts the shape to `usize`; it is refused if this machine cannot address it.
pub(super) fn narrow(shape: &[u64], name: &str, artifact: &str) -> Result<Vec<usize>> {
    let too_large = || {
        Refusal::new(word!("source.too-large"))
            .of(artifact)
            .subject(name)
            .found(format!("{shape:?}"))
    };
    shape
        .iter()
        .map(|&dim| usize::try_from(dim).map_err(|_| too_large().into()))
        .collect()
}
