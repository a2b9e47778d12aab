//! Decides what a set of files forms, by their names and first bytes.

use super::files::{CONFIG, find, gguf_files, lower_name, named};
use crate::formats::{ByteSource, base_name};
use crate::state::OPTIMIZER_FILE;

/// Ending of the name of a JSON state dict.
pub(crate) const STATE_JSON: &str = ".state_dict.json";
/// Document that makes a folder a checkpoint.
pub(crate) const CHECKPOINT: &str = "checkpoint.json";

/// Kind of a set of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilesKind {
    /// A checkpoint of a run.
    Checkpoint,
    /// A Hugging Face folder.
    Folder,
    /// A GGUF file, or the parts of one.
    Gguf,
    /// A LoRA adapter.
    Adapter,
    /// State of an optimizer without the weights that it belongs to.
    Optimizer,
    /// A JSON state dict without a model's configuration: the file at this position.
    StateJson(usize),
    /// safetensors files without a model's configuration.
    Safetensors,
    /// None of these.
    Unknown,
}

impl FilesKind {
    /// Decides what `files` form.
    pub(crate) fn of<S: ByteSource>(files: &[S]) -> Self {
        if find(files, CHECKPOINT).is_some() {
            return Self::Checkpoint;
        }
        if let Some(model) = Self::of_model(files) {
            return model;
        }
        let (weights, documents) = (named(files, ".safetensors"), named(files, STATE_JSON));
        let is_optimizer = |at: &usize| base_name(files[*at].name()) == OPTIMIZER_FILE;
        if files.iter().any(|file| is_of_adapter(file)) {
            Self::Adapter
        } else if let Some(&document) = documents.first() {
            Self::StateJson(document)
        } else if weights.is_empty() {
            Self::Unknown
        } else if weights.iter().all(is_optimizer) {
            Self::Optimizer
        } else {
            Self::Safetensors
        }
    }

    /// Decides which form of a model `files` have: [`Self::Folder`] or [`Self::Gguf`]; `None` if they are no model.
    pub(super) fn of_model<S: ByteSource>(files: &[S]) -> Option<Self> {
        let has = |end: &str| !named(files, end).is_empty();
        if find(files, CONFIG).is_some() && (!has(".gguf") || has(".safetensors")) {
            return Some(Self::Folder);
        }
        (!gguf_files(files).is_empty()).then_some(Self::Gguf)
    }
}

/// True for a file of an adapter, by its name.
pub(super) fn is_of_adapter(file: &dyn ByteSource) -> bool {
    let name = lower_name(file);
    name == "adapter_config.json" || name.starts_with("adapter_model.")
}
