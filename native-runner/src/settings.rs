//! A run's settings: the file of `--train-config`, overridden by options; or a checkpoint's, contradicted by neither.

use serde_json::{Map, Value, json};
use tabtune::Error;
use tabtune::config::TrainConfig;
use tabtune::error::Fault;

use crate::args::TrainArgs;
use crate::error::{Result, RunError};
use crate::files::read_json;

/// The settings that the user gave, as a JSON object of TrainConfig's keys; what was not said is absent.
pub fn given(args: &TrainArgs) -> Result<Map<String, Value>> {
    let mut keys = match &args.train_config {
        None => Map::new(),
        Some(path) => match read_json(path)? {
            Value::Object(keys) => keys,
            _ => return Err(RunError::Json { name: path.display().to_string(), reason: "expected an object of settings".into() }),
        },
    };
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            keys.insert(key.to_string(), value);
        }
    };
    set("steps", args.steps.map(Value::from));
    set("batch_size", args.batch_size.map(Value::from));
    set("seq_len", args.seq_len.map(Value::from));
    set("gradient_accumulation_steps", args.gradient_accumulation_steps.map(Value::from));
    set("learning_rate", args.learning_rate.map(|x| number("learning-rate", x)).transpose()?);
    set("max_grad_norm", args.max_grad_norm.map(|x| number("max-grad-norm", x)).transpose()?);
    set("validation_fraction", args.validation_fraction.map(|x| number("validation-fraction", x)).transpose()?);
    set("seed", args.seed.map(Value::from));
    set("precision", args.precision.clone().map(Value::from));
    set("gradient_checkpointing", args.gradient_checkpointing.then_some(Value::Bool(true)));
    if let Some(name) = &args.optimizer {
        retype(&mut keys, "optimizer", name);
    }
    if let Some(steps) = args.warmup_steps {
        entry(&mut keys, "schedule", "constant").insert("warmup_steps".into(), steps.into());
    }
    Ok(keys)
}

/// JSON has no NaN or infinity: they would silently become null.
fn number(option: &str, x: f64) -> Result<Value> {
    if x.is_finite() { Ok(json!(x)) } else { Err(RunError::Usage(format!("--{option}: expected a finite number, found {x}"))) }
}

/// Sets `key.type`; the other keys of another type would not fit and go.
fn retype(keys: &mut Map<String, Value>, key: &str, name: &str) {
    let same = keys.get(key).and_then(|v| v.get("type")).and_then(Value::as_str) == Some(name);
    if !same {
        keys.insert(key.into(), json!({ "type": name }));
    }
}

fn entry<'a>(keys: &'a mut Map<String, Value>, key: &str, kind: &str) -> &'a mut Map<String, Value> {
    let value = keys.entry(key).or_insert_with(|| json!({ "type": kind }));
    if !value.is_object() {
        *value = json!({ "type": kind });
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

/// The settings of a new run.
pub fn fresh(given: Map<String, Value>) -> Result<TrainConfig> {
    let config: TrainConfig = serde_json::from_value(Value::Object(given)).map_err(refused)?;
    config.validate()?;
    Ok(config)
}

fn refused(error: serde_json::Error) -> RunError {
    RunError::Json { name: "training settings".into(), reason: error.to_string() }
}

/// Refuses every given setting that differs from the checkpoint's.
pub fn contradictions(given: &Map<String, Value>, saved: &TrainConfig) -> Result<()> {
    // Through the type, so that defaults of nested keys are filled in before comparing.
    let wanted: TrainConfig = serde_json::from_value(Value::Object(given.clone())).map_err(refused)?;
    let wanted = serde_json::to_value(wanted).map_err(refused)?;
    let saved = serde_json::to_value(saved).map_err(refused)?;
    let mut faults = Vec::new();
    for (key, said) in given {
        compare(key, said, &wanted[key], &saved[key], &mut faults);
    }
    if faults.is_empty() { Ok(()) } else { Err(Error::ResumeMismatch(faults).into()) }
}

/// Only keys that were said are compared, to any depth.
fn compare(path: &str, said: &Value, wanted: &Value, saved: &Value, faults: &mut Vec<Fault>) {
    if let (Value::Object(said), Value::Object(_), Value::Object(_)) = (said, wanted, saved) {
        for (key, inner) in said {
            compare(&format!("{path}.{key}"), inner, &wanted[key], &saved[key], faults);
        }
    } else if wanted != saved {
        faults.push(Fault::new(path, saved, wanted));
    }
}
