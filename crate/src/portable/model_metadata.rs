//! What goes with a state and is no tensor.

use serde_json::Value;

use crate::bundle::{Bundle, ModelAssets, PortableTokenizerBinding};
use crate::config::ModelConfig;
use crate::formats::Warning;
use crate::state::Base;

/// Configuration, tokenizer and origin of a state.
#[derive(Debug, Clone, Default)]
pub struct ModelMetadata {
    /// Shape of the model, if it is one that tabtune has.
    pub config: Option<ModelConfig>,
    /// `config.json` byte for byte, if it is there.
    pub config_json: Option<Vec<u8>>,
    /// `generation_config.json` byte for byte, if it is there.
    pub generation_config_json: Option<Vec<u8>>,
    /// The tokenizer, if there is one and it was not refused.
    pub tokenizer: Option<PortableTokenizerBinding>,
    /// What training started from.
    pub base: Option<Base>,
    /// Free JSON of at most 64 KiB, carried.
    pub profile_contract: Option<Value>,
    /// Names of formats, best first, carried.
    pub preferred_formats: Option<Vec<String>>,
    /// What is written beside the weights of a folder or in the metadata of a GGUF file; imports of whole models have it.
    pub assets: Option<ModelAssets>,
    /// What is unusual but allowed.
    pub warnings: Vec<Warning>,
}

/// A tokenizer, if there is one, and what is unusual about it.
pub(super) type Bound = Option<(PortableTokenizerBinding, Vec<Warning>)>;

impl ModelMetadata {
    /// What goes with the weights of an opened model.
    pub(super) fn of_model(bundle: &Bundle, bound: Bound) -> Self {
        let (tokenizer, told) = bound.map_or((None, Vec::new()), |(binding, warnings)| (Some(binding), warnings));
        let mut warnings = bundle.warnings.clone();
        warnings.extend(told);
        Self {
            config: Some(bundle.config.clone()),
            config_json: bundle.config_json.clone(),
            generation_config_json: bundle.generation_config_json.clone(),
            tokenizer,
            base: Some(Base::of_bundle(bundle)),
            profile_contract: None,
            preferred_formats: None,
            assets: Some(ModelAssets::of_bundle(bundle)),
            warnings,
        }
    }
}
