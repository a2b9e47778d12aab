//! Rules that hold for every configuration, whatever file it came from (crate/FORMATS.md, "The model").

use std::fmt::Display;

use crate::config::{Architecture, ModelConfig};
use crate::error::{Error, Refusal, Result, Word, word};

const MAX_LAYERS: usize = 512;
const MAX_CONTEXT: usize = 1 << 24;

/// Returns the refusal of a key whose value asks for something that tabtune does not have.
pub(crate) fn unsupported(what: &str, found: impl Display, supported: &str) -> Error {
    use crate::error::shown;
    Error::UnsupportedModel { what: shown(what), found: shown(&found.to_string()), supported: supported.to_string() }
}

/// Refuses impossible shapes.
pub(crate) fn check(config: &ModelConfig) -> Result<()> {
    let mut refusals = Vec::new();
    let mut refuse = |code: Word, key: &str, expected: String, found: usize| {
        refusals.push(Refusal::new(code).of("configuration").subject(key).expected(expected).found(found));
    };
    let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
    if heads == 0 || config.head_dim == 0 {
        refuse(word!("model.config.heads"), "num_attention_heads", "at least one head of at least one value".into(), heads);
    }
    if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
        refuse(word!("model.config.kv-heads"), "num_key_value_heads", format!("a divisor of {heads}"), kv_heads);
    }
    if !(1..=MAX_LAYERS).contains(&config.num_hidden_layers) {
        refuse(word!("model.config.layers"), "num_hidden_layers", format!("1 to {MAX_LAYERS}"), config.num_hidden_layers);
    }
    if !(1..=MAX_CONTEXT).contains(&config.max_position_embeddings) {
        refuse(word!("model.config.context"), "max_position_embeddings", format!("1 to {MAX_CONTEXT}"), config.max_position_embeddings);
    }
    if config.architecture == Architecture::Llama && !config.head_dim.is_multiple_of(2) {
        refuse(word!("model.config.rope"), "head_dim", "an even number".into(), config.head_dim);
    }
    if !refusals.is_empty() {
        return Err(Error::Refused(refusals));
    }
    config.validate()
}
