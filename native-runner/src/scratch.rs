//! A model from scratch: the shape in a `config.json`, and the size of its tokenizer.

use std::path::Path;

use serde_json::Value;
use tabtune::config::ModelConfig;
use tabtune::families::config_from_hf;
use tabtune::tokenizer::Tokenizer;

use crate::error::{Result, RunError};
use crate::files::read_json;

/// Makes the shape of a model with this tokenizer.
///
/// # Errors
/// `source.read`, `cli.json` for a file without an object, and refusals of the configuration.
pub fn plan(config: &Path, tokenizer: &Tokenizer) -> Result<ModelConfig> {
    let mut json = read_json(config)?;
    match &mut json {
        Value::Object(keys) => keys.insert("vocab_size".into(), tokenizer.vocab_size().into()),
        _ => {
            return Err(RunError::Json {
                name: config.display().to_string(),
                reason: "expected an object".into(),
            });
        }
    };
    let config = config_from_hf(&json)?;
    config.validate()?;
    Ok(config)
}
