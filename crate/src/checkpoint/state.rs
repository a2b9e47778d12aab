//! The tensors of a checkpoint's files, described as those of a state dict.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Checkpoint;
use crate::bundle::ADAPTER_PREFIX;
use crate::error::Result;
use crate::formats::{ByteSource, FileTensor, SafetensorsFile};
use crate::optim::SavedState;
use crate::state::{OPTIMIZER_FILE, StateWord, Tensor, TensorRecord, TensorRole};

/// Opens a safetensors file of a checkpoint, whose values are read on demand.
pub(super) fn open_tensors(source: &Rc<dyn ByteSource>) -> Result<Vec<Tensor>> {
    let tensor = |mut record: FileTensor| {
        if let Some(name) = record.name.strip_prefix(ADAPTER_PREFIX) {
            record.name = name.to_string();
        }
        let mut tensor = Tensor::in_file(&record, source);
        tensor.role = TensorRole::of_name(&tensor.name);
        tensor
    };
    let file = SafetensorsFile::open(source)?;
    Ok(file.tensors.into_iter().map(tensor).collect())
}

/// The records of the tensors in `file`, by name.
pub(super) fn records<'a>(
    file: &'a str,
    tensors: &'a [Tensor],
) -> impl Iterator<Item = (String, TensorRecord)> + 'a {
    let record = |tensor: &Tensor| TensorRecord::new(tensor.manifest(), file);
    tensors
        .iter()
        .map(move |tensor| (tensor.name.clone(), record(tensor)))
}

/// The tensors as an optimizer reads them; each is readable without waiting ([`Tensor::readable`]).
pub(crate) fn saved_state(tensors: &[Tensor]) -> Vec<SavedState<'_>> {
    tensors.iter().map(saved).collect()
}

fn saved(tensor: &Tensor) -> SavedState<'_> {
    SavedState {
        name: tensor.name.clone(),
        dtype: tensor.dtype.clone(),
        shape: tensor.shape.clone(),
        bytes: tensor.len(),
        read: Box::new(|at, out| tensor.read_at(at, out)),
    }
}

#[doc(hidden)]
impl Checkpoint {
    /// The tensors of the files, as their headers and names describe them.
    pub(super) fn found(&self) -> BTreeMap<String, TensorRecord> {
        records(self.manifest.weights_file(), &self.weights)
            .chain(records(OPTIMIZER_FILE, &self.optimizer))
            .collect()
    }

    /// The tensors that the optimizer keeps.
    pub(crate) fn state_tensors(&self) -> &[Tensor] {
        &self.optimizer
    }

    /// The names of the tensors in the file of weights.
    pub(crate) fn weight_names(&self) -> Vec<String> {
        let weights = self.weights.iter();
        weights.map(|tensor| tensor.name.clone()).collect()
    }

    /// All tensors of its files.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.weights.iter().chain(&self.optimizer)
    }

    /// Reads the value of every U64 [] of the optimizer file whose name ends with `:step`.
    ///
    /// # Errors
    /// Errors of reading the file.
    pub fn steps(&self) -> Result<BTreeMap<String, u64>> {
        let counts = |tensor: &&Tensor| {
            tensor.name.ends_with(":step") && tensor.dtype == "U64" && tensor.shape.is_empty()
        };
        let step = |tensor: &Tensor| {
            let mut bytes = [0; 8];
            if let Some(span) = tensor.span() {
                span.source.read_at(span.begin, &mut bytes)?;
            }
            Ok((tensor.name.clone(), u64::from_le_bytes(bytes)))
        };
        self.optimizer.iter().filter(counts).map(step).collect()
    }

    /// The parameters that have a state tensor in the files.
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
