//! The tensors of a checkpoint's files, described as those of a state dict.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::write::record_of;
use super::{Checkpoint, OPTIMIZER, WEIGHTS};
use crate::bundle::{ADAPTER_PREFIX, ADAPTER_WEIGHTS};
use crate::error::Result;
use crate::formats::{ByteSource, FileTensor, SafetensorsFile, SourceSpan};
use crate::optim::SavedState;
use crate::state::{StateWord, TensorRecord, TensorRole};

/// A safetensors file of a checkpoint, whose values are read on demand.
pub(super) struct TensorFile {
    source: Rc<dyn ByteSource>,
    tensors: Vec<FileTensor>,
}

impl TensorFile {
    pub(super) fn open(source: Rc<dyn ByteSource>) -> Result<Self> {
        let mut tensors = SafetensorsFile::open(&source)?.tensors;
        for tensor in &mut tensors {
            if let Some(own) = tensor.name.strip_prefix(ADAPTER_PREFIX) {
                tensor.name = own.to_string();
            }
        }
        Ok(Self { source, tensors })
    }

    /// Returns the entries as an optimizer reads them.
    pub(super) fn saved_state(&self) -> Vec<SavedState<'_>> {
        let entry = |tensor: &FileTensor| {
            let begin = tensor.begin;
            SavedState {
                name: tensor.name.clone(),
                dtype: tensor.dtype.clone(),
                shape: tensor.shape.clone(),
                bytes: tensor.end() - begin,
                read: Box::new(move |at, buffer| self.source.read_at(begin + at, buffer)),
            }
        };
        self.tensors.iter().map(entry).collect()
    }

    fn span(&self, tensor: &FileTensor) -> SourceSpan {
        SourceSpan {
            source: Rc::clone(&self.source),
            begin: tensor.begin,
            bytes: tensor.end() - tensor.begin,
        }
    }
}

#[doc(hidden)]
impl Checkpoint {
    /// Returns the tensors of the files, as their headers and names describe them.
    pub(super) fn found(&self) -> BTreeMap<String, TensorRecord> {
        let of = |file: &TensorFile, name: &str| -> Vec<(String, TensorRecord)> {
            file.tensors
                .iter()
                .map(|tensor| {
                    (
                        tensor.name.clone(),
                        record_of(&tensor.name, &tensor.dtype, &tensor.shape, name),
                    )
                })
                .collect()
        };
        let weights = if self.manifest.train.adapter.is_some() {
            ADAPTER_WEIGHTS
        } else {
            WEIGHTS
        };
        of(&self.weights, weights)
            .into_iter()
            .chain(of(&self.optimizer, OPTIMIZER))
            .collect()
    }

    /// Returns name, dtype, shape and bytes of each state tensor.
    pub(crate) fn state_spans(&self) -> Vec<(String, String, Vec<usize>, SourceSpan)> {
        // The shapes are those of tensors on the device, or were refused.
        let shape = |tensor: &FileTensor| {
            tensor
                .shape
                .iter()
                .map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX))
                .collect()
        };
        let file = &self.optimizer;
        let one = |tensor: &FileTensor| {
            (
                tensor.name.clone(),
                tensor.dtype.clone(),
                shape(tensor),
                file.span(tensor),
            )
        };
        file.tensors.iter().map(one).collect()
    }

    /// Returns the names of the tensors in the file of weights.
    pub(crate) fn weight_names(&self) -> Vec<String> {
        self.weights
            .tensors
            .iter()
            .map(|tensor| tensor.name.clone())
            .collect()
    }

    /// Returns the positions of the stored bytes of each tensor.
    pub(crate) fn spans(&self) -> BTreeMap<String, SourceSpan> {
        let of = |file: &TensorFile| -> Vec<(String, SourceSpan)> {
            file.tensors
                .iter()
                .map(|tensor| (tensor.name.clone(), file.span(tensor)))
                .collect()
        };
        of(&self.weights)
            .into_iter()
            .chain(of(&self.optimizer))
            .collect()
    }

    /// Reads the value of every U64 [] of the optimizer file whose name ends with `:step`.
    ///
    /// # Errors
    /// Errors of reading the file.
    pub fn steps(&self) -> Result<BTreeMap<String, u64>> {
        let counts = |tensor: &&FileTensor| {
            tensor.name.ends_with(":step") && tensor.dtype == "U64" && tensor.shape.is_empty()
        };
        let step = |tensor: &FileTensor| {
            let mut bytes = [0; 8];
            self.optimizer.source.read_at(tensor.begin, &mut bytes)?;
            Ok((tensor.name.clone(), u64::from_le_bytes(bytes)))
        };
        self.optimizer
            .tensors
            .iter()
            .filter(counts)
            .map(step)
            .collect()
    }

    /// Returns the parameters that have a state tensor in the files.
    pub(super) fn stated_parameters(&self) -> Vec<String> {
        let parameter = |(key, record): (&String, &TensorRecord)| match record.role {
            TensorRole::State(StateWord::Step) => key
                .rsplit_once(':')
                .map(|(parameter, _)| parameter.to_string()),
            _ => None,
        };
        self.manifest.tensors.iter().filter_map(parameter).collect()
    }
}
