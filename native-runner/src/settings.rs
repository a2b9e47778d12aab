//! Settings of a run: the defaults or those of a checkpoint, overridden by the file of `--train-config`, overridden by the options.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use tabtune::bundle::Bundle;
use tabtune::config::{BaseStorage, TrainConfig, overlay};
use tabtune::model::attached_settings;
use tabtune::tokenizer::{Date, Tokenizer};

use crate::args::{ReadingArgs, SettingsArgs};
use crate::error::{Result, RunError};
use crate::files::read_json;

/// Returns today's date if the model's chat template asks for one.
pub fn today(tokenizer: Option<&Tokenizer>) -> Option<Date> {
    tokenizer.filter(|tokenizer| tokenizer.asks_for_date())?;
    Date::of_unix_secs(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// Adds the day on which a run begins to the settings, if the model's chat template asks for it.
pub fn dated(config: TrainConfig, tokenizer: Option<&Tokenizer>) -> TrainConfig {
    let chat_date = config.chat_date.clone().or_else(|| today(tokenizer).map(|date| date.to_string()));
    TrainConfig { chat_date, ..config }
}

/// Reads a file of settings.
///
/// # Errors
/// `source.read`; `cli.json` if the file is not a JSON object.
pub fn from_file(path: &Path) -> Result<Map<String, Value>> {
    match read_json(path)? {
        Value::Object(keys) => Ok(keys),
        _ => Err(RunError::Json { name: path.display().to_string(), reason: "expected an object of settings".into() }),
    }
}

/// Collects the settings that the user gave, as a JSON object with keys of TrainConfig; other keys are absent.
///
/// # Errors
/// Errors of [`from_file`] and [`reading`]; `cli.usage` for a number that is not finite.
pub fn given(args: &SettingsArgs) -> Result<Map<String, Value>> {
    let mut keys = args.train_config.as_deref().map(from_file).transpose()?.unwrap_or_default();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            keys.insert(key.to_string(), value);
        }
    };
    set("steps", args.steps.map(|steps| json!(steps.count)));
    set("epochs", args.epochs.map(|x| number("epochs", x)).transpose()?);
    set("packing", args.no_packing.then_some(Value::Bool(false)));
    set("on_long", args.on_long.clone().map(Value::from));
    for (key, value) in reading(&args.reading)? {
        set(&key, Some(value));
    }
    set("batch_size", args.batch_size.map(Value::from));
    set("seq_len", args.seq_len.map(Value::from));
    set("gradient_accumulation_steps", args.gradient_accumulation_steps.map(Value::from));
    set("learning_rate", args.learning_rate.map(|x| number("learning-rate", x)).transpose()?);
    set("max_grad_norm", args.max_grad_norm.map(|x| number("max-grad-norm", x)).transpose()?);
    set("validation_fraction", args.validation_fraction.map(|x| number("validation-fraction", x)).transpose()?);
    set("validation_rows", args.validation_rows.clone().map(Value::from));
    set("data_weights", (!args.data_weights.is_empty()).then(|| json!(args.data_weights)));
    set("seed", args.seed.map(Value::from));
    set("groups", args.groups.clone().map(Value::from));
    set("precision", args.precision.clone().map(Value::from));
    set("gradient_checkpointing", args.gradient_checkpointing.then_some(Value::Bool(true)));
    set("gradient_release", args.gradient_release.then_some(Value::Bool(true)));
    set("report_every", args.report_every.map(Value::from));
    set("document_mask", args.document_mask.then_some(Value::Bool(true)));
    set("base_storage", args.base_storage.map(|storage| json!(BaseStorage::from(storage))));
    if args.lora {
        let given = keys.remove("adapter").filter(|given| !given.is_null());
        keys.insert("adapter".into(), given.unwrap_or_else(|| json!({})));
    }
    let min_learning_rate = args.min_learning_rate.map(|x| number("min-learning-rate", x)).transpose()?;
    let lora_alpha = args.lora_alpha.map(|x| number("lora-alpha", x)).transpose()?;
    let lora_dropout = args.lora_dropout.map(|x| number("lora-dropout", x)).transpose()?;
    for (key, inner, value) in [
        ("adapter", "r", args.lora_r.map(Value::from)),
        ("adapter", "alpha", lora_alpha),
        ("adapter", "target_modules", args.lora_targets.as_deref().map(targets)),
        ("adapter", "dropout", lora_dropout),
        ("adapter", "rslora", args.rslora.then_some(Value::Bool(true))),
        ("block_coordinate", "blocks", args.block_coordinate.map(Value::from)),
        ("block_coordinate", "interval", args.block_interval.map(Value::from)),
        ("block_coordinate", "order", args.block_order.clone().map(Value::from)),
        ("optimizer", "type", args.optimizer.clone().map(Value::from)),
        ("schedule", "type", args.schedule.clone().map(Value::from)),
        ("schedule", "warmup_steps", args.warmup_steps.map(Value::from)),
        ("schedule", "min_learning_rate", min_learning_rate),
    ] {
        if let Some(value) = value {
            let under = keys.remove(key).unwrap_or_else(|| json!({}));
            keys.insert(key.into(), overlay(under, json!({ inner: value })));
        }
    }
    Ok(keys)
}

/// Collects the settings that control how data is read.
///
/// # Errors
/// `cli.json` if `--columns` is not JSON.
pub fn reading(args: &ReadingArgs) -> Result<Map<String, Value>> {
    let columns = args
        .columns
        .as_deref()
        .map(|text| serde_json::from_str::<Value>(text).map_err(|e| RunError::Json { name: "--columns".into(), reason: e.to_string() }));
    let given = [
        ("form", args.form.clone().map(Value::from)),
        ("columns", columns.transpose()?),
        ("on_bad_row", args.on_bad_row.clone().map(Value::from)),
        ("loss_on", args.loss_on.clone().map(Value::from)),
        ("chat_date", args.chat_date.clone().map(Value::from)),
    ];
    Ok(given.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?))).collect())
}

/// Parses the value of `--lora-targets` and `--targets`: a list of names, or one text if it is `all-linear` or has a sign of a regular expression.
pub fn targets(text: &str) -> Value {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ',');
    if text == "all-linear" || !text.chars().all(plain) { json!(text) } else { json!(text.split(',').collect::<Vec<_>>()) }
}

/// Refuses NaN and infinity: JSON has neither, so they would silently become null.
fn number(option: &str, x: f64) -> Result<Value> {
    if x.is_finite() { Ok(json!(x)) } else { Err(RunError::Usage(format!("--{option}: expected a finite number, found {x}"))) }
}

/// Merges the settings of a run: those of `saved` for a resume, otherwise the defaults, overridden by the `given` ones.
///
/// # Errors
/// The crate's refusal of unknown keys and impossible values.
pub fn settle(given: Map<String, Value>, saved: Option<&TrainConfig>) -> Result<TrainConfig> {
    Ok(saved.unwrap_or(&TrainConfig::default()).overlaid(Value::Object(given))?)
}

/// Adds the settings of the adapter that was opened with `bundle` and is trained further, if there is one.
///
/// # Errors
/// The crate's refusal of settings that contradict the adapter's files.
pub fn with_files_of_adapter(config: TrainConfig, given: &Map<String, Value>, bundle: &Bundle) -> Result<TrainConfig> {
    let Some(saved) = attached_settings(bundle)? else { return Ok(config) };
    let adapter = saved.continued(given.get("adapter").unwrap_or(&Value::Object(Map::new())))?;
    Ok(TrainConfig {
        adapter: Some(adapter),
        gradient_checkpointing: given.get("gradient_checkpointing").is_none_or(|given| given == true),
        ..config
    })
}
