//! Settings of a run: the defaults or those of a checkpoint, overridden by the file of `--train-config`, overridden by the options.

use std::path::Path;

use chrono::Datelike;
use serde_json::{Map, Value};
use tabtune::bundle::Bundle;
use tabtune::config::{TrainConfig, overlay};
use tabtune::model::settings_on;
use tabtune::tokenizer::{Date, Tokenizer};

use crate::args::{SettingsArgs, has_settings};
use crate::error::{Result, RunError};
use crate::files::read_json;

/// Returns today's date, by the local clock, if the model's chat template asks for one.
pub fn today(tokenizer: Option<&Tokenizer>) -> Option<Date> {
    tokenizer.filter(|tokenizer| tokenizer.asks_for_date())?;
    let now = chrono::Local::now();
    Date::new(u32::try_from(now.year()).ok()?, now.month(), now.day())
}

/// Adds the day on which a run begins to the settings, if the model's chat template asks for it.
pub fn dated(config: TrainConfig, tokenizer: Option<&Tokenizer>) -> TrainConfig {
    let chat_date = config
        .chat_date
        .clone()
        .or_else(|| today(tokenizer).map(|date| date.to_string()));
    TrainConfig {
        chat_date,
        ..config
    }
}

/// Reads a file of settings.
///
/// # Errors
/// `source.read`; `cli.json` if the file is not a JSON object.
pub fn from_file(path: &Path) -> Result<Map<String, Value>> {
    match read_json(path)? {
        Value::Object(keys) => Ok(keys),
        _ => Err(RunError::Json {
            name: path.display().to_string(),
            reason: "expected an object of settings".into(),
        }),
    }
}

/// Returns the settings that the user gave in a file and by options, as a JSON object with keys of TrainConfig; other keys are absent.
///
/// # Errors
/// Errors of [`from_file`].
pub fn given(args: &SettingsArgs) -> Result<Map<String, Value>> {
    let mut keys = args
        .train_config
        .as_deref()
        .map(from_file)
        .transpose()?
        .unwrap_or_default();
    for (key, value) in &args.given {
        let under = keys
            .remove(key)
            .filter(|_| has_settings(key))
            .unwrap_or(Value::Null);
        keys.insert(key.clone(), overlay(under, value.clone()));
    }
    Ok(keys)
}

/// Merges the settings of a run: those of `saved` for a resume, otherwise the defaults, overridden by the `given` ones.
///
/// # Errors
/// The crate's refusal of unknown keys and impossible values.
pub fn resolve(given: Map<String, Value>, saved: Option<&TrainConfig>) -> Result<TrainConfig> {
    Ok(saved
        .unwrap_or(&TrainConfig::default())
        .overlaid(Value::Object(given))?)
}

/// Merges the settings of a new run on the model of `bundle`, with those of the adapter that was opened with it, if there is one.
///
/// # Errors
/// The crate's refusal of settings that are impossible or contradict the adapter's files.
pub fn resolve_on(bundle: &Bundle, given: Map<String, Value>) -> Result<TrainConfig> {
    Ok(settings_on(bundle, Value::Object(given))?)
}
