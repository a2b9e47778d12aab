//! Description of a family in files: its words, and how its configurations are read and written.

use std::borrow::Cow;

use serde_json::Value;

use super::gguf_values::Keys as GgufKeys;
use super::hf_keys::{Keys, Taken};
use super::layout::Layout;
use crate::config::ModelConfig;
use crate::error::Result;
use crate::formats::GgufValue;

/// Name of the head, if it is not the input embedding.
pub(crate) const HEAD: &str = "lm_head.weight";

/// Names of tensors, GGUF's and those of Hugging Face.
pub(super) struct Names {
    /// Whole names outside the blocks.
    pub(super) outer: &'static [(&'static str, &'static str)],
    /// Text that Hugging Face puts in front of the number of a block.
    pub(super) blocks: &'static str,
    /// Parts of a block, without the text after the last dot.
    pub(super) parts: &'static [(&'static str, &'static str)],
}

/// A family of models. A new one is a file with one of these, and its row in `table.rs`.
pub(super) struct Family {
    /// Words of `model_type` in a `config.json`.
    pub(super) model_types: &'static [&'static str],
    /// Words of `general.architecture` in a GGUF file.
    pub(super) gguf: &'static [&'static str],
    /// Names of the tensors.
    pub(super) names: Names,
    /// Name of the input embedding.
    pub(super) embedding: &'static str,
    /// Reads a `config.json` with this `model_type`; keys with a default of the family's publication are noted.
    pub(super) read_hf: fn(&Keys<'_>, &str, &mut Taken) -> Result<ModelConfig>,
    /// Writes a `config.json`.
    pub(super) write_hf: fn(&ModelConfig) -> Value,
    /// Reads the metadata of a GGUF file; the flag is true if the head is the input embedding.
    pub(super) read_gguf: fn(&GgufKeys<'_>, bool) -> Result<ModelConfig>,
    /// Returns the word of `general.architecture` for a model, if GGUF can describe it.
    pub(super) gguf_word: fn(&ModelConfig) -> Option<&'static str>,
    /// Returns the keys below the architecture that only this family has, in the order of a file.
    pub(super) gguf_keys: fn(&ModelConfig) -> Vec<(&'static str, GgufValue)>,
    /// Returns the layout of `blk.<n>.<part>.<end>` in a GGUF file of this architecture.
    pub(super) layout: fn(&str, &str, &str, &ModelConfig) -> Layout,
    /// Returns the full name of a tensor of a folder; `None` for buffers that hold nothing trained.
    pub(super) full_name: fn(&str) -> Option<Cow<'_, str>>,
}
