//! Data that accompany a state and are no tensors.

use serde_json::Value;

use crate::bundle::{Bundle, ModelAssets, PortableTokenizerBinding};
use crate::config::ModelConfig;
use crate::error::Warning;
use crate::state::Base;

/// Configuration, tokenizer and origin of a state.
#[derive(Debug, Clone, Default)]
pub struct ModelMetadata {
    /// Shape of the model, if tabtune has such models.
    pub config: Option<ModelConfig>,
    /// `config.json` byte for byte, if it is present.
    pub config_json: Option<Vec<u8>>,
    /// `generation_config.json` byte for byte, if it is present.
    pub generation_config_json: Option<Vec<u8>>,
    /// Tokenizer, if there is one and it was not refused.
    pub tokenizer: Option<PortableTokenizerBinding>,
    /// Model that training started from.
    pub base: Option<Base>,
    /// Free JSON of at most 64 KiB, passed on unchanged.
    pub profile_contract: Option<Value>,
    /// Names of formats, the preferred one first, passed on unchanged.
    pub preferred_formats: Option<Vec<String>>,
    /// Documents that are written next to the weights of a folder or in the metadata of a GGUF file; imports of whole models have them.
    pub assets: Option<ModelAssets>,
    /// Unusual but allowed properties.
    pub warnings: Vec<Warning>,
}

/// A tokenizer, if there is one, with its warnings.
pub(super) type Bound = Option<(PortableTokenizerBinding, Vec<Warning>)>;

impl ModelMetadata {
    /// Collects the companions of the weights of an opened model.
    pub(super) fn of_model(bundle: &Bundle, bound: Bound) -> Self {
        let (tokenizer, told) = bound.map_or((None, Vec::new()), |(binding, warnings)| {
            (Some(binding), warnings)
        });
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
