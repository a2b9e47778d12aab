//! Data that accompany a state and are no tensors.

use serde_json::Value;

use crate::bundle::{ModelAssets, PortableTokenizerBinding};
use crate::config::ModelConfig;
use crate::error::Warning;
use crate::state::{Base, TrainingRecord};

/// Configuration, tokenizer and origin of a state ([example](crate::portable)).
#[derive(Debug, Clone, Default)]
pub struct ModelMetadata {
    /// Shape of the model, if tabtune has such models.
    pub config: Option<ModelConfig>,
    /// Tokenizer, if there is one and it was not refused.
    pub tokenizer: Option<PortableTokenizerBinding>,
    /// Model that training started from.
    pub base: Option<Base>,
    /// Record of its training, if it is a checkpoint.
    pub training: Option<TrainingRecord>,
    /// Free JSON of at most 64 KiB, passed on unchanged.
    pub profile_contract: Option<Value>,
    /// Names of formats, the preferred one first, passed on unchanged.
    pub preferred_formats: Option<Vec<String>>,
    /// Documents that are written next to the weights of a folder or in the metadata of a GGUF file; imports of whole models have them.
    pub assets: Option<ModelAssets>,
    /// Unusual but allowed properties.
    pub warnings: Vec<Warning>,
}
