//! `config.json` ⇄ [`ModelConfig`]. Features that tabtune does not have are refused by their key.

use serde_json::Value;

use super::config_check::check;
use super::hf_keys::{Keys, PublishedValue, Taken, missing, wrong};
use super::hf_rules;
use super::refusal::unsupported;
use super::{FAMILIES, family, model_types};
use crate::config::ModelConfig;
use crate::error::Result;

/// Returns the model that a Hugging Face `config.json` describes, which must state its context.
///
/// # Errors
/// `bundle.config.key-missing`, `model.config.*`, `model.arch.unsupported` and `model.config.unsupported`, the first one that applies.
pub fn config_from_hf(json: &Value) -> Result<ModelConfig> {
    let part = text_part(json);
    let (config, taken) = config_of_weights(part.as_ref().unwrap_or(json))?;
    match taken
        .iter()
        .find(|(_, published)| matches!(published, PublishedValue::Length(_)))
    {
        Some((key, _)) => Err(missing(key)),
        None => Ok(config),
    }
}

/// Returns the configuration of the text model that a configuration of several parts holds, if it is one. What the part does not state of ids, dtypes
/// and the head is taken from the whole.
pub(crate) fn text_part(json: &Value) -> Option<Value> {
    const SHARED: [&str; 6] = [
        "tie_word_embeddings",
        "bos_token_id",
        "eos_token_id",
        "pad_token_id",
        "torch_dtype",
        "dtype",
    ];
    let mut part = json.get("text_config")?.as_object()?.clone();
    for key in SHARED {
        let stated = json.get(key).filter(|value| !value.is_null());
        if let (None, Some(value)) = (part.get(key), stated) {
            part.insert(key.to_owned(), value.clone());
        }
    }
    Some(Value::Object(part))
}

/// Returns the model that a `config.json` next to weights describes, and the absent keys that have a default in the family's publication, with
/// that default: early files have no context.
pub(crate) fn config_of_weights(json: &Value) -> Result<(ModelConfig, Taken)> {
    let keys = Keys(
        json.as_object()
            .ok_or_else(|| wrong("config.json", "an object", json))?,
    );
    let mut taken = Vec::new();
    let model_type = keys
        .text("model_type")?
        .ok_or_else(|| missing("model_type"))?;
    let family = FAMILIES
        .iter()
        .find(|family| family.model_types.contains(&model_type));
    // A feature says more than the name of an unknown family.
    let own = family.map_or(&[][..], |family| (family.hf_rules)(model_type));
    hf_rules::check(&keys, family.map_or(&[], |family| family.hf_reads), own)?;
    let family =
        family.ok_or_else(|| unsupported("model_type", model_type, &model_types().join(", ")))?;
    let config = (family.read_hf)(&keys, model_type, &mut taken)?;
    check(&config)?;
    Ok((config, taken))
}

/// Writes the model as a `config.json`.
pub fn config_to_hf(config: &ModelConfig) -> Value {
    (family(config.architecture).write_hf)(config)
}
