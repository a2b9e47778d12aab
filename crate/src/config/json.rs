//! Reads settings from JSON: lays the given keys over previous settings, expands presets and groups, and reports every fault at once.

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{
    AdapterConfig, BlockCoordinateConfig, Columns, GroupConfig, OptimizerConfig, ScheduleConfig,
    TrainConfig,
};
use crate::error::{Error, Fault, Result};

/// Name of the preset [`GroupConfig::no_decay`], accepted in place of a list of groups.
const NO_DECAY: &str = "no_decay";
/// Maximum number of characters of a value shown in a message.
const MAX_SHOWN: usize = 80;

type Object = Map<String, Value>;

/// Returns `under` with the keys of `over` on top, at any depth. A different `type` replaces the whole object.
pub fn overlay(under: Value, over: Value) -> Value {
    match (under, over) {
        (Value::Object(mut under), Value::Object(over)) => {
            if over
                .get("type")
                .is_some_and(|kind| under.get("type").is_some_and(|old| old != kind))
            {
                return Value::Object(over);
            }
            for (key, value) in over {
                let slot = under.entry(key).or_insert(Value::Null);
                *slot = overlay(slot.take(), value);
            }
            Value::Object(under)
        }
        (_, over) => over,
    }
}

impl TrainConfig {
    /// Returns these settings with the `given` keys on top, validated. `groups` may be the name of a preset, and the optimizer of a group
    /// is laid over that of the run. A cosine or linear schedule without `total_steps` spans the whole run, and one that did so still does
    /// if `given` changes only `steps`.
    ///
    /// # Errors
    /// `config.invalid`, listing all unknown keys, values of the wrong type and values that cannot work.
    pub fn overlaid(&self, given: Value) -> Result<Self> {
        if !given.is_object() {
            return Err(Error::invalid("settings", "an object", shown(&given)));
        }
        let mut collector = FaultCollector::default();
        let mut saved = value(self)?;
        one_length(&mut saved, &given);
        whole_tables(&mut saved, &given);
        recompute(&mut saved, &given);
        whole_run(&mut saved, &given);
        if given["steps"].is_u64() {
            if given["epochs"].is_number() {
                collector.faults.push(Fault::new(
                    "epochs",
                    "steps or epochs, not both",
                    shown(&given["epochs"]),
                ));
            }
            saved["epochs"] = Value::Null;
        }
        let mut settings = match overlay(saved, given) {
            Value::Object(settings) => settings,
            _ => Object::new(),
        };
        collector.settings(&mut settings)?;
        let config: Self = serde_json::from_value(Value::Object(settings)).map_err(unreadable)?;
        let faults = collector.with_rules(config.faults());
        Error::of_faults(faults)?;
        Ok(config)
    }
}

/// Lets `annealing_steps` replace `tau` and vice versa, since an annealing has one of them.
fn one_length(saved: &mut Value, given: &Value) {
    let given = |key: &str| {
        given["schedule"]
            .get(key)
            .is_some_and(|value| !value.is_null() && *value != 0)
    };
    for (one, other, absent) in [
        ("annealing_steps", "tau", Value::Null),
        ("tau", "annealing_steps", Value::from(0)),
    ] {
        if given(one)
            && let Some(old) = saved["schedule"].get_mut(other)
        {
            *old = absent;
        }
    }
}

/// Lets a given table replace the saved one as a whole, since its keys are data; likewise columns, which belong together.
fn whole_tables(saved: &mut Value, given: &Value) {
    if given["columns"].is_object() {
        saved["columns"] = Value::Null;
    }
    for table in ["rank_pattern", "alpha_pattern"]
        .into_iter()
        .filter(|table| given["adapter"].get(table).is_some())
    {
        if let Some(old) = saved["adapter"].get_mut(table) {
            *old = Value::Null;
        }
    }
}

/// Turns on recomputation for a run that gets an adapter or trains a few blocks at a time; `given` may override it.
fn recompute(saved: &mut Value, given: &Value) {
    if ["adapter", "block_coordinate"]
        .iter()
        .any(|key| given[key].is_object() && saved[key].is_null())
    {
        saved["gradient_checkpointing"] = true.into();
    }
}

/// Keeps a schedule that spans the whole run spanning it if only `steps` is given.
fn whole_run(saved: &mut Value, given: &Value) {
    if given["steps"].is_u64() && saved["schedule"]["total_steps"] == saved["steps"] {
        saved["schedule"]["total_steps"] = given["steps"].clone();
    }
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::invalid("settings", "the keys of TrainConfig", error)
}

fn value(of: &impl Serialize) -> Result<Value> {
    serde_json::to_value(of).map_err(unreadable)
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= MAX_SHOWN {
        text
    } else {
        text.chars().take(MAX_SHOWN - 1).chain(['…']).collect()
    }
}

/// Translates serde's expectations into plain words. The range of a `usize` is that of the browser, with 32 bits; a native build takes
/// more.
fn expected(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text
        .rsplit_once("expected ")
        .map_or(text.as_str(), |(_, rule)| rule)
    {
        "u64" => "an integer ≥ 0".into(),
        "usize" => "an integer from 0 to 4294967295".into(),
        "i64" => "an integer".into(),
        "f64" => "a number".into(),
        "a boolean" => "true or false".into(),
        "string or map" => "a word".into(),
        rule => rule.replace('`', "\""),
    }
}

/// Removes unreadable values from settings and records a fault for each, so that the rest can be read.
#[derive(Default)]
struct FaultCollector {
    faults: Vec<Fault>,
    /// Keys whose value has the wrong type; a default takes its place.
    replaced: Vec<String>,
}

impl FaultCollector {
    fn refuse(&mut self, key: String, rule: impl Into<String>, found: impl Display) {
        self.faults.push(Fault::new(&key, rule, found));
        self.replaced.push(key);
    }

    fn settings(&mut self, settings: &mut Object) -> Result<()> {
        let steps = settings.get("steps").cloned().unwrap_or_default();
        let whole = steps.is_u64();
        if let Some(Value::Object(schedule)) = settings.get_mut("schedule")
            && ["cosine", "linear"]
                .iter()
                .any(|kind| schedule.get("type").is_some_and(|given| given == kind))
        {
            if whole {
                schedule.entry("total_steps").or_insert(steps);
            } else if !schedule.contains_key("total_steps") {
                self.replaced.push("schedule.total_steps".into());
            }
        }
        let schedule = self.tagged::<ScheduleConfig>(
            "schedule",
            settings.shift_remove("schedule").unwrap_or_default(),
        )?;
        let optimizer = self.tagged::<OptimizerConfig>(
            "optimizer",
            settings.shift_remove("optimizer").unwrap_or_default(),
        )?;
        let groups = self.groups(
            settings.shift_remove("groups").unwrap_or_default(),
            &optimizer,
        )?;
        let adapter = self.optional::<AdapterConfig>("adapter", settings)?;
        let blocks = self.optional::<BlockCoordinateConfig>("block_coordinate", settings)?;
        let columns = self.optional::<Columns>("columns", settings)?;
        self.known::<TrainConfig>("", settings, value(&TrainConfig::default())?)?;
        let read = [
            ("optimizer", optimizer),
            ("groups", groups),
            ("schedule", schedule),
            ("adapter", adapter),
            ("block_coordinate", blocks),
            ("columns", columns),
        ];
        settings.extend(read.map(|(key, of)| (key.into(), of)));
        Ok(())
    }

    /// Reads the object at `key`, which may be absent or null.
    fn optional<T: Serialize + DeserializeOwned + Default>(
        &mut self,
        key: &str,
        settings: &mut Object,
    ) -> Result<Value> {
        match settings.shift_remove(key).unwrap_or_default() {
            Value::Null => Ok(Value::Null),
            Value::Object(mut object) => {
                self.known::<T>(key, &mut object, value(&T::default())?)?;
                Ok(Value::Object(object))
            }
            other => {
                self.refuse(key.into(), "an object, or null", shown(&other));
                Ok(Value::Null)
            }
        }
    }

    fn groups(&mut self, given: Value, run: &Value) -> Result<Value> {
        let groups = match given {
            Value::Array(groups) => groups,
            Value::String(name) if name == NO_DECAY => return value(&GroupConfig::no_decay()),
            other => {
                self.refuse(
                    "groups".into(),
                    format!("a list of groups, or \"{NO_DECAY}\""),
                    shown(&other),
                );
                Vec::new()
            }
        };
        groups
            .into_iter()
            .enumerate()
            .map(|(index, group)| self.group(&format!("groups[{index}]"), group, run))
            .collect()
    }

    /// Reads a group; its optimizer, if it has one, is laid over that of the run.
    fn group(&mut self, path: &str, given: Value, run: &Value) -> Result<Value> {
        let everything = value(&GroupConfig::new("*"))?;
        let Value::Object(mut group) = given else {
            self.refuse(path.into(), "an object", shown(&given));
            return Ok(everything);
        };
        let optimizer = match group.shift_remove("optimizer").unwrap_or_default() {
            Value::Null => Value::Null,
            given => self.tagged::<OptimizerConfig>(
                &format!("{path}.optimizer"),
                overlay(run.clone(), given),
            )?,
        };
        if !group.contains_key("pattern") {
            self.refuse(format!("{path}.pattern"), "a string", "nothing");
        }
        self.known::<GroupConfig>(path, &mut group, everything)?;
        group.entry("pattern").or_insert("*".into());
        group.insert("optimizer".into(), optimizer);
        Ok(Value::Object(group))
    }

    /// Reads an object whose `type` determines which keys it has.
    fn tagged<T: Serialize + DeserializeOwned + Default>(
        &mut self,
        path: &str,
        given: Value,
    ) -> Result<Value> {
        let Value::Object(mut object) = given else {
            self.refuse(path.into(), "an object", shown(&given));
            return value(&T::default());
        };
        let kind = object.get("type").cloned().unwrap_or_default();
        match serde_json::from_value::<T>(json!({ "type": kind })) {
            Ok(default) => {
                self.known::<T>(path, &mut object, value(&default)?)?;
                Ok(Value::Object(object))
            }
            Err(_) => {
                // No kind has an empty name, so the error lists the existing names.
                let kinds = serde_json::from_value::<T>(json!({ "type": "" }))
                    .err()
                    .map_or_else(String::new, |error| expected(&error));
                self.refuse(format!("{path}.type"), kinds, shown(&kind));
                value(&T::default())
            }
        }
    }

    /// Keeps in `object` only keys of `default` whose value fits `T`. Each is tried alone, so that each gets its own fault.
    fn known<T: DeserializeOwned>(
        &mut self,
        path: &str,
        object: &mut Object,
        default: Value,
    ) -> Result<()> {
        for (key, given) in std::mem::take(object) {
            let at = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            let Some(known) = default.as_object().filter(|known| known.contains_key(&key)) else {
                let keys: Vec<&str> = default
                    .as_object()
                    .into_iter()
                    .flat_map(Map::keys)
                    .map(String::as_str)
                    .collect();
                self.faults.push(Fault::new(
                    at,
                    format!("one of {}", keys.join(", ")),
                    "an unknown key",
                ));
                continue;
            };
            let mut alone = known.clone();
            alone.insert(key.clone(), given.clone());
            match serde_json::from_value::<T>(Value::Object(alone)) {
                Ok(_) => _ = object.insert(key, given),
                Err(error) => self.refuse(at, expected(&error), shown(&given)),
            }
        }
        Ok(())
    }

    /// Returns all faults: the recorded ones, and those of rules that do not depend on a replaced value. Within `optimizer`, `schedule` and
    /// a group, rules combine keys; at the top level only the peak rate is combined with others.
    fn with_rules(mut self, rules: Vec<Fault>) -> Vec<Fault> {
        let section = |key: &str| {
            key.rsplit_once('.')
                .map_or_else(String::new, |(section, _)| section.to_string())
        };
        let rate = self.replaced.iter().any(|key| key == "learning_rate");
        let replaced = &self.replaced;
        let stands = |fault: &Fault| {
            let within = section(&fault.key);
            let near = |key: &String| {
                *key == fault.key
                    || (!within.is_empty() && (*key == within || section(key) == within))
            };
            let joined = rate
                && ["learning_rate", "learning_rate_scale", "weight_decay"]
                    .iter()
                    .any(|word| fault.key.ends_with(word));
            !(joined || replaced.iter().any(near))
        };
        self.faults.extend(rules.into_iter().filter(stands));
        self.faults
    }
}
