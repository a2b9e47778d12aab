//! The containers that a state can come from.

use serde::{Deserialize, Serialize};

/// Container that a state was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceWord {
    /// A run of tabtune.
    Tabtune,
    /// One safetensors file, or shards with a manifest.
    Safetensors,
    /// A Hugging Face folder.
    HfFolder,
    /// A JSON state dict.
    TorchStateDictJson,
    /// A GGUF file.
    Gguf,
    /// A PEFT adapter.
    Peft,
    /// A checkpoint folder.
    Checkpoint,
}

impl SourceWord {
    /// Returns the word as it is in documents.
    pub fn text(self) -> &'static str {
        match self {
            Self::Tabtune => "tabtune",
            Self::Safetensors => "safetensors",
            Self::HfFolder => "hf_folder",
            Self::TorchStateDictJson => "torch_state_dict_json",
            Self::Gguf => "gguf",
            Self::Peft => "peft",
            Self::Checkpoint => "checkpoint",
        }
    }
}
