//! Converts settings of optimizers and schedules to the plain data of a group, and back.

use serde_json::{Map, Value};

use crate::config::{self, Hyperparameter, OptimizerConfig, ScheduleConfig};
use crate::error::{Error, Refusal, Result, Word, word};
use crate::state::{OptimizerRecord, SchedulerAccount};

/// Name of the hyperparameter that is the run's peak rate and not a setting of an update rule.
pub const LEARNING_RATE: &str = config::LEARNING_RATE.key;
/// Key of a setting's kind in its JSON.
const KIND: &str = "type";
/// Bound below which every integer is exact in an f64.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Converts `optimizer` and the run's `learning_rate` to plain data: every setting under its public name, 0 and 1 for switches, a number
/// for each word and for null, and nothing for a setting that is not set.
///
/// # Errors
/// `config.invalid` for a number that is not finite.
pub fn optimizer_record(
    optimizer: &OptimizerConfig,
    learning_rate: f64,
) -> Result<OptimizerRecord> {
    let (kind, settings) = split(optimizer)?;
    let mut account = OptimizerRecord {
        kind,
        hyperparameters: [(LEARNING_RATE.to_string(), learning_rate)].into(),
    };
    for (key, value) in settings {
        let number = match &value {
            Value::Bool(switch) => f64::from(u8::from(*switch)),
            Value::Number(number) => number.as_f64().ok_or_else(|| not_finite(&key))?,
            Value::Null | Value::String(_) if is_optional(&key) => continue,
            word => {
                let number = words_of(&key)
                    .iter()
                    .find(|(_, of)| *of == word.as_str() && word.is_null() == of.is_none());
                number.ok_or_else(|| not_finite(&key))?.0
            }
        };
        account.hyperparameters.insert(key, number);
    }
    Ok(account)
}

/// The settings of an update rule that its plain data describe.
///
/// # Errors
/// `state.group.kind` for a kind that tabtune does not train, `state.group.hyperparameter` for a value that is absent, unknown, not finite
/// or out of its range.
pub fn optimizer_config(account: &OptimizerRecord) -> Result<OptimizerConfig> {
    let empty: Map<String, Value> = [(KIND.to_string(), account.kind.as_str().into())]
        .into_iter()
        .collect();
    let defaults: OptimizerConfig = serde_json::from_value(empty.into())
        .map_err(|_| refuse(word!("state.group.kind"), &account.kind))?;
    let (_, mut settings) = split(&defaults)?;
    for (key, value) in &account.hyperparameters {
        let wrong = || refuse(word!("state.group.hyperparameter"), key).found(value);
        match settings.get_mut(key) {
            Some(slot) => *slot = setting(key, slot, *value).ok_or_else(wrong)?,
            None if key == LEARNING_RATE && value.is_finite() => {}
            None => return Err(wrong().into()),
        }
    }
    let given = |key: &str| account.hyperparameters.contains_key(key);
    let required = settings
        .keys()
        .map(String::as_str)
        .filter(|key| !is_optional(key))
        .chain([LEARNING_RATE]);
    if let Some(absent) = required.into_iter().find(|key| !given(key)) {
        return Err(refuse(word!("state.group.hyperparameter"), absent)
            .found("nothing")
            .into());
    }
    let config: OptimizerConfig = joined(&account.kind, settings)?;
    // The run checks whether the decay fits the rate, because its groups scale the rate.
    match config.faults(0.0).first() {
        None => Ok(config),
        Some(fault) => Err(refuse(word!("state.group.hyperparameter"), &fault.key)
            .expected(&fault.rule)
            .found(&fault.value)
            .into()),
    }
}

/// Converts `schedule` to plain data; `start` is the step at which its decay begins, if that is decided.
///
/// # Errors
/// `config.invalid` for a number that is not finite.
pub fn scheduler_account(
    schedule: &ScheduleConfig,
    start: Option<u64>,
) -> Result<SchedulerAccount> {
    let (kind, config) = split(schedule)?;
    Ok(SchedulerAccount {
        kind,
        config: config.into(),
        start,
    })
}

/// The settings of a schedule that its plain data describe.
///
/// # Errors
/// `state.group.kind` for a kind that tabtune does not have, `state.group.hyperparameter` for settings that are not its own or of the wrong
/// type.
pub fn schedule_config(account: &SchedulerAccount) -> Result<ScheduleConfig> {
    let wrong = || refuse(word!("state.group.hyperparameter"), &account.kind);
    let known: Result<ScheduleConfig> = joined(&account.kind, Map::new());
    known.map_err(|_| refuse(word!("state.group.kind"), &account.kind))?;
    let settings = account.config.as_object().ok_or_else(wrong)?.clone();
    if settings.contains_key(KIND) {
        return Err(wrong().into());
    }
    joined(&account.kind, settings)
}

/// Splits a tagged configuration into kind and settings.
fn split(config: &impl serde::Serialize) -> Result<(String, Map<String, Value>)> {
    let value = serde_json::to_value(config)
        .map_err(|error| Error::invalid("settings", "finite numbers", error))?;
    let Value::Object(mut settings) = value else {
        return Err(not_finite(KIND));
    };
    let kind = settings
        .remove(KIND)
        .and_then(|kind| kind.as_str().map(String::from))
        .ok_or_else(|| not_finite(KIND))?;
    Ok((kind, settings))
}

/// Builds the configuration of this kind with these settings.
fn joined<T: serde::de::DeserializeOwned>(
    kind: &str,
    mut settings: Map<String, Value>,
) -> Result<T> {
    settings.insert(KIND.to_string(), kind.into());
    let wrong =
        |error: serde_json::Error| refuse(word!("state.group.hyperparameter"), kind).found(error);
    serde_json::from_value(settings.into()).map_err(|error| wrong(error).into())
}

/// Returns whether a setting may be absent; its value then follows from the parameter.
fn is_optional(key: &str) -> bool {
    Hyperparameter::of_key(key).is_some_and(|known| known.optional)
}

/// The words that a setting may have, or null, with the numbers that represent them.
fn words_of(key: &str) -> &'static [(f64, Option<&'static str>)] {
    Hyperparameter::of_key(key).map_or(&[], |known| known.words)
}

/// The value of the setting `key` that `number` represents, in the type of `default`.
fn setting(key: &str, default: &Value, number: f64) -> Option<Value> {
    let integral = number.fract() == 0.0 && number.abs() < EXACT;
    let word = words_of(key).iter().find(|(of, _)| *of == number);
    match default {
        _ if !number.is_finite() => None,
        _ if word.is_some() => word.map(|(_, word)| word.map_or(Value::Null, Value::from)),
        Value::Bool(_) => [0.0, 1.0]
            .iter()
            .position(|&value| value == number)
            .map(|switch| Value::Bool(switch == 1)),
        Value::String(_) if !is_optional(key) => None,
        // An integral number becomes an integer, because settings that count accept nothing else.
        _ if integral => serde_json::from_str(&number.to_string()).ok(),
        _ => Some(number.into()),
    }
}

fn refuse(code: Word, subject: &str) -> Refusal {
    Refusal::new(code).subject(subject)
}

fn not_finite(key: &str) -> Error {
    Error::invalid(
        key,
        "a finite number, a switch or a known word",
        "something else",
    )
}
