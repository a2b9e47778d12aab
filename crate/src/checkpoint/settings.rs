//! Checks which settings of a run a resume changes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::corrupt;
use crate::config::{GroupConfig, ScheduleConfig, TrainConfig};
use crate::error::{Error, Fault, Result};
use crate::schedule;

/// Override for every setting that can be overridden; other data need [`DATA`] as well.
const ALL: &str = "all";
/// Override that allows other data.
pub(super) const DATA: &str = "data";
/// Override that allows settings that resolve to other groups than the saved ones.
pub(super) const GROUPS: &str = "groups";
/// Key of the length of a schedule that decays over the whole run.
const TOTAL_STEPS: &str = "schedule.total_steps";
/// Settings that the saved state or the data order depends on.
const FIXED: [&str; 9] = [
    "base_storage",
    "data_weights",
    "on_long",
    "packing",
    "precision",
    "seed",
    "seq_len",
    "validation_fraction",
    "validation_rows",
];

fn is_fixed(key: &str) -> bool {
    FIXED.contains(&key) || key.starts_with("adapter") || key.ends_with("optimizer.type")
}

/// True if the new value of `key`, as a refused resume lists it, can be allowed by naming it.
pub fn can_override(key: &str) -> bool {
    !is_fixed(key)
}

/// True if `name` is `key` or a parent of it: `groups` and `groups[0]` cover `groups[0].weight_decay`.
fn covers(name: &str, key: &str) -> bool {
    key.strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// True if `overrides` allows the groups of the settings.
pub(crate) fn takes_groups(overrides: &[String]) -> bool {
    overrides
        .iter()
        .any(|name| matches!(name.as_str(), GROUPS | ALL))
}

/// True if a resume sets the learning rate, by another value or by name: it then replaces a rate set by hand.
pub(super) fn sets_rate(saved: &TrainConfig, given: &TrainConfig, overrides: &[String]) -> bool {
    saved.learning_rate != given.learning_rate
        || overrides.iter().any(|name| name == "learning_rate")
}

/// The settings of the rate that a resume changes, as `key: old, now new`.
pub(super) fn changes_of_rate(saved: &TrainConfig, given: &TrainConfig) -> Result<Vec<String>> {
    let [old, new] = leaves(saved, given)?;
    // A parameter's rate is that of its group: the first whose pattern matches.
    let of_group = |key: &str| {
        key.starts_with("groups[")
            && [".learning_rate_scale", ".pattern"]
                .iter()
                .any(|end| key.ends_with(end))
    };
    let of_rate = |key: &&String| {
        matches!(key.as_str(), "steps" | "learning_rate")
            || key.starts_with("schedule.")
            || of_group(key)
    };
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).filter(of_rate).collect();
    let shown =
        |value: Option<&Value>| value.map_or_else(|| "absent".to_string(), Value::to_string);
    let changed = keys
        .into_iter()
        .map(|key| (key, old.get(key), new.get(key)))
        .filter(|(_, old, new)| old != new)
        .map(|(key, old, new)| format!("{key}: {}, now {}", shown(old), shown(new)));
    Ok(changed.collect())
}

/// True if the steps of `given` are made by other settings than those of `saved`. Neither their number nor the end of a schedule that
/// is still to come changes those that were made.
pub(super) fn changed(saved: &TrainConfig, given: &TrainConfig) -> Result<bool> {
    let [old, new] = leaves(saved, given)?.map(|mut leaves| {
        leaves.retain(|key, _| {
            !matches!(key.as_str(), "steps" | "epochs")
                && !schedule::is_config_only(&given.schedule, key)
        });
        leaves
    });
    Ok(old != new)
}

/// Accepts `given`, if it differs from `saved` only in keys that a resume takes from the new settings or that `overrides` names.
///
/// # Errors
/// `optim.resume-mismatch` with all other differences; `config.invalid` for settings that are impossible or an unknown name in `overrides`.
pub(crate) fn accept_settings(
    saved: &TrainConfig,
    given: TrainConfig,
    overrides: &[String],
) -> Result<TrainConfig> {
    accept(saved, given, overrides, Vec::new())
}

/// Accepts `given`, if it differs from `saved` only in keys that a resume takes from the new settings or that `overrides` names. `other` are
/// differences outside the settings; they are listed too.
pub(super) fn accept(
    saved: &TrainConfig,
    given: TrainConfig,
    overrides: &[String],
    other: Vec<Fault>,
) -> Result<TrainConfig> {
    given.validate()?;
    let [old, new] = leaves(saved, &given)?;
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let known = |name: &&String| {
        matches!(name.as_str(), ALL | DATA | GROUPS) || keys.iter().any(|key| covers(name, key))
    };
    let unknown = |name| Fault::new("override", "a key of the settings, all, or data", name);
    let others = overrides.iter().filter(|name| !known(name));
    Error::of_faults(others.map(unknown).collect())?;
    // A schedule that spans the whole run, before and after, follows from `steps`.
    let whole = |leaves: &BTreeMap<String, Value>| leaves.get(TOTAL_STEPS) == leaves.get("steps");
    let follows = |key: &str| key == TOTAL_STEPS && whole(&old) && whole(&new);
    let mut faults = Vec::new();
    for key in keys
        .into_iter()
        .filter(|key| !schedule::is_config_only(&given.schedule, key))
    {
        let [old, new] = [&old, &new].map(|leaves| leaves.get(key).unwrap_or(&Value::Null));
        let named = overrides
            .iter()
            .any(|name| name == ALL || covers(name, key) || (name == "steps" && follows(key)));
        if old == new || (named && !is_fixed(key)) {
            continue;
        }
        let fixed = if is_fixed(key) {
            ", which cannot be overridden"
        } else {
            ""
        };
        faults.push(Fault::new(key, format!("{old}{fixed}"), new));
    }
    faults.extend(other);
    if faults.is_empty() {
        Ok(given)
    } else {
        Err(Error::ResumeMismatch(faults))
    }
}

/// Brings `config` into a normal form, so that settings with the same effect are equal. A group spells out the values
/// that it inherits from the run if the group of `other` has values of its own.
fn settled(config: &TrainConfig, other: &TrainConfig) -> Result<Value> {
    // The time at which reports are read has no other effect.
    let mut settled = TrainConfig {
        optimizer: config.optimizer.clone().in_force(),
        report_every: 1,
        ..config.clone()
    };
    if let ScheduleConfig::Infinite(schedule) = &mut settled.schedule
        && schedule.cooldown_steps == 0
    {
        // The constant rate can only be the peak rate.
        schedule.constant_learning_rate = None;
    }
    if settled.groups.is_empty() && !other.groups.is_empty() {
        settled.groups.push(GroupConfig::new("*"));
    }
    let no_group = GroupConfig::new("");
    for index in 0..settled.groups.len().max(other.groups.len()) {
        if index == settled.groups.len() {
            settled.groups.push(no_group.clone());
        }
        let (ours, theirs) = (
            &mut settled.groups[index],
            other.groups.get(index).unwrap_or(&no_group),
        );
        let rule = ours.rule(&config.optimizer);
        let decay = rule.weight_decay();
        if ours.optimizer.is_some() || theirs.optimizer.is_some() {
            ours.optimizer = Some(rule.in_force());
        }
        if ours.weight_decay.is_some() || theirs.weight_decay.is_some() {
            ours.weight_decay = Some(decay);
            // It replaces the decay of the optimizer, which is therefore set to 0.
            ours.optimizer = ours
                .optimizer
                .take()
                .map(|rule| rule.with_weight_decay(0.0));
        }
    }
    serde_json::to_value(settled).map_err(|error| corrupt("train", error))
}

/// The leaves of both settings, each settled with regard to the other.
fn leaves(saved: &TrainConfig, given: &TrainConfig) -> Result<[BTreeMap<String, Value>; 2]> {
    let mut leaves = [BTreeMap::new(), BTreeMap::new()];
    let pairs = [(saved, given), (given, saved)];
    for (leaves, (config, other)) in leaves.iter_mut().zip(pairs) {
        add_leaves(String::new(), settled(config, other)?, leaves);
    }
    Ok(leaves)
}

/// Adds path → value of every leaf of a configuration: `optimizer.beta1`, `groups[0].pattern`.
fn add_leaves(path: String, value: Value, into: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            let dot = if path.is_empty() { "" } else { "." };
            for (key, value) in fields {
                add_leaves(format!("{path}{dot}{key}"), value, into);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.into_iter().enumerate() {
                add_leaves(format!("{path}[{index}]"), value, into);
            }
        }
        leaf => {
            into.insert(path, leaf);
        }
    }
}
