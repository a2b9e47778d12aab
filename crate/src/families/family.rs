//! Description of a family: its words in files, how its configurations are read and written, and what its layers are made of.

use std::borrow::Cow;

use serde_json::Value;

use super::gguf_values::Keys as GgufKeys;
use super::hf_keys::{Keys, Taken};
use super::hf_rules::Rule;
use crate::config::{ModelConfig, Norm, PeftNames, Slot, Stack, TensorNames};
use crate::error::Result;
use crate::formats::GgufValue;
use crate::state::Reordering;

/// Name of the head, if it is not the input embedding.
pub(crate) const HEAD: &str = "lm_head.weight";

/// Name of the weight of the last norm in the GGUF files of most families.
pub(super) const LAST_NORM: &str = "output_norm.weight";

/// Effect of a key on the arithmetic of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It is read, and honoured or refused by its value.
    Read,
    /// It changes nothing: it repeats what the tensors show, or belongs to a feature that is refused by another key.
    Nothing,
    /// It changes results, unless it is 0, false or empty.
    UnlessZero,
    /// It changes results, unless it is 1, or 0 for none.
    UnlessOne,
}

/// A part of a model that GGUF cannot describe: its key, and the values that it can.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unsaid {
    pub key: &'static str,
    pub expected: &'static str,
}

impl Unsaid {
    /// Refuses a model unless GGUF can describe a part of it.
    pub fn unless(
        holds: bool,
        key: &'static str,
        expected: &'static str,
    ) -> std::result::Result<(), Self> {
        if holds {
            Ok(())
        } else {
            Err(Self { key, expected })
        }
    }
}

/// The word of an architecture of GGUF, or the reason why there is none.
pub(crate) type Described = std::result::Result<&'static str, Unsaid>;

/// A family of models. A new one is a file with one of these, and its row in `mod.rs`.
pub(super) struct Family {
    /// Names of its models in lists for people.
    pub titles: &'static [&'static str],
    /// Words of `model_type` in a `config.json`.
    pub model_types: &'static [&'static str],
    /// Words of `general.architecture` in a GGUF file.
    pub gguf: &'static [&'static str],
    /// Names of the tensors in Hugging Face's files.
    pub names: &'static TensorNames,
    /// Names by which PEFT knows its modules.
    pub peft: &'static PeftNames,
    /// True if the head is the input embedding where a `config.json` does not state it.
    pub tied: bool,
    /// The norm after the last block.
    pub last_norm: fn(&ModelConfig) -> Norm,
    /// Describes the layers of a model.
    pub stack: fn(&ModelConfig) -> Stack,
    /// Keys of a `config.json` that the family reads, though the shared rules refuse them.
    pub hf_reads: &'static [&'static str],
    /// The rules of the family's own keys of a `config.json` with this `model_type`.
    pub hf_rules: fn(&str) -> &'static [Rule],
    /// Reads a `config.json` with this `model_type`; keys with a default of the family's publication are noted.
    pub read_hf: fn(&Keys<'_>, &str, &mut Taken) -> Result<ModelConfig>,
    /// Writes a `config.json`.
    pub write_hf: fn(&ModelConfig) -> Value,
    /// Reads the metadata of a GGUF file; the flag is true if the head is the input embedding.
    pub read_gguf: fn(&GgufKeys<'_>, bool) -> Result<ModelConfig>,
    /// The word of `general.architecture` for a model, or the reason why GGUF has none.
    pub gguf_word: fn(&ModelConfig) -> Described,
    /// The model that GGUF describes in place of one of this family, whose matrix of gate and up is two there; `None` for the model itself.
    pub gguf_form: fn(&ModelConfig) -> Option<ModelConfig>,
    /// Name of the weight of the last norm in a GGUF file.
    pub gguf_last_norm: &'static str,
    /// Names of modules of a block in GGUF files that differ from those of other families.
    pub gguf_parts: &'static [(Slot, &'static str)],
    /// Whole names of tensors of a block in GGUF files, after its number, with those of Hugging Face's files.
    pub gguf_whole: &'static [(&'static str, &'static str)],
    /// The keys below the architecture that only this family has, in the order of a file.
    pub gguf_keys: fn(&ModelConfig) -> Vec<(&'static str, GgufValue)>,
    /// Effects of keys below the architecture that differ from those in `gguf_keys.rs`.
    pub gguf_effects: &'static [(&'static str, Effect)],
    /// The order of the elements of `blk.<n>.<part>.<end>`, or outside the blocks of `<part>.<end>`, in a GGUF file of this architecture.
    pub order: fn(&str, &str, &str, &ModelConfig) -> Reordering,
    /// The full name of a tensor of a folder; `None` for buffers that hold nothing trained.
    pub full_name: fn(&str) -> Option<Cow<'_, str>>,
}
