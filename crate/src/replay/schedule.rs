//! Replays learning-rate curves, resumes, and the truth table of a decay's start.

use serde_json::{Map, Value, json};

use super::Errors;
use crate::config::ScheduleConfig;
use crate::schedule::{is_config_only, learning_rate, resolve_start};

/// Tolerance of f64 curves: one rounding of the base rate.
const EXACT: f64 = 1e-15;
/// Tolerance of curves that the reference rounds to f32.
const ROUNDED: f64 = 4e-7;

/// Reads a schedule in our names, without its base rate.
fn ours(keys: &Value) -> Option<ScheduleConfig> {
    let mut keys = keys.as_object()?.clone();
    keys.remove("learning_rate");
    serde_json::from_value(Value::Object(keys)).ok()
}

/// Translates the reference's arguments into our names.
fn translated(scheduler: &str, args: &Value) -> Option<ScheduleConfig> {
    let kind = match scheduler {
        "InfiniteLRScheduler" => "infinite",
        "WSDScheduler" => "wsd",
        "CosineLRScheduler" => "cosine",
        _ => return None,
    };
    let harmonic = args["annealing_type"] == "rsqrt";
    let mut keys = Map::from_iter([("type".to_owned(), json!(kind))]);
    for (key, value) in args.as_object()? {
        let name = match key.as_str() {
            "constant_lr" => "constant_learning_rate",
            "min_lr" => "min_learning_rate",
            "checkpoint_step" => "annealing_start_step",
            "tau" if harmonic || args.get("annealing_steps").is_some() => continue,
            other => other,
        };
        keys.insert(name.to_owned(), value.clone());
    }
    ours(&Value::Object(keys))
}

fn fault_keys(schedule: &ScheduleConfig, base: f64) -> Vec<String> {
    schedule
        .faults(base)
        .into_iter()
        .map(|fault| fault.key.trim_start_matches("schedule.").to_owned())
        .collect()
}

fn start_of(value: &Value) -> Option<u64> {
    value.as_i64().and_then(|start| u64::try_from(start).ok())
}

/// A curve with everything that determines it.
struct Curve<'a> {
    name: &'a str,
    base: f64,
    schedule: &'a ScheduleConfig,
    start: Option<u64>,
    replay: &'a Value,
}

impl Curve<'_> {
    /// Checks that step n + 1 runs at the rate `expected`.
    fn check(&self, n: u64, expected: f64, errors: &mut Errors) {
        if n > self.replay["until"].as_u64().unwrap_or(u64::MAX) {
            return;
        }
        let found = learning_rate(n + 1, self.base, self.schedule, self.start);
        let bound = if self.replay["class"] == "f32" {
            ROUNDED * expected.abs()
        } else {
            EXACT * self.base
        };
        errors.bound(
            || {
                format!(
                    "{}, n = {n}: expected {expected:e}, found {found:e}:",
                    self.name
                )
            },
            (found - expected).abs(),
            bound,
        );
    }
}

/// Replays the file; `None` if it has another form.
pub(super) fn replay(root: &Value, errors: &mut Errors) -> Option<()> {
    if root["rows"].is_array() {
        return truth_table(root, errors);
    }
    for case in root["cases"].as_array()? {
        if case["schedule"].is_object() {
            golden(case, errors)?;
        } else if case["args_resume"].is_object() {
            resume(case, errors)?;
        } else {
            curve(case, errors)?;
        }
    }
    Some(())
}

fn golden(case: &Value, errors: &mut Errors) -> Option<()> {
    let (name, base, schedule) = (
        case["name"].as_str()?,
        case["schedule"]["learning_rate"].as_f64()?,
        ours(&case["schedule"])?,
    );
    errors.require(schedule.faults(base).is_empty(), || {
        format!("{name} is refused")
    });
    let start = resolve_start(&schedule, None, 0);
    errors.require(start == start_of(&case["resolved_start"]), || {
        format!("{name}: start {start:?}")
    });
    let curve = Curve {
        name,
        base,
        schedule: &schedule,
        start,
        replay: &case["replay"],
    };
    for (n, rate) in case["lr"].as_array()?.iter().enumerate() {
        curve.check(n as u64, rate.as_f64()?, errors);
    }
    Some(())
}

fn curve(case: &Value, errors: &mut Errors) -> Option<()> {
    let (name, replay) = (case["name"].as_str()?, &case["replay"]);
    let schedule = translated(case["scheduler"].as_str()?, &case["args"])?;
    for (group, base) in case["base_lr"].as_array()?.iter().enumerate() {
        let base = base.as_f64()?;
        let accepted = replay["groups_accepted"]
            .as_array()
            .is_some_and(|list| list.contains(&json!(group)));
        let found = fault_keys(&schedule, base);
        if replay["class"] == "refused" && !accepted {
            let named = replay["keys"]
                .as_array()?
                .iter()
                .all(|key| found.iter().any(|f| json!(f) == *key));
            errors.require(named, || format!("{name}: refuses {found:?}"));
            continue;
        }
        errors.require(found.is_empty(), || format!("{name}: refuses {found:?}"));
        let start = resolve_start(&schedule, None, 0);
        let curve = Curve {
            name,
            base,
            schedule: &schedule,
            start,
            replay,
        };
        for (n, rates) in case["lr"].as_array()?.iter().enumerate() {
            curve.check(n as u64, rates[group].as_f64()?, errors);
        }
    }
    Some(())
}

fn resume(case: &Value, errors: &mut Errors) -> Option<()> {
    let (name, replay, kind) = (
        case["name"].as_str()?,
        &case["replay"],
        case["scheduler"].as_str()?,
    );
    let (first, next) = (
        translated(kind, &case["args_first_run"])?,
        translated(kind, &case["args_resume"])?,
    );
    let (base, base_next) = (case["base_lr"].as_f64()?, case["base_lr_resume"].as_f64()?);
    if replay["class"] == "refused" {
        let mut found = fault_keys(&next, base_next);
        let (old, new) = (json!(first), json!(next));
        found.extend(
            new.as_object()?
                .keys()
                .filter(|key| !is_config_only(&next, key) && old[*key] != new[*key])
                .cloned(),
        );
        let named = replay["keys"]
            .as_array()?
            .iter()
            .all(|key| found.iter().any(|f| json!(f) == *key));
        errors.require(named, || format!("{name}: refuses {found:?}"));
        return Some(());
    }
    let completed = case["resume_at_step"].as_u64()?;
    let start = resolve_start(&first, None, 0);
    let free = json!({ "class": replay["class"] });
    let before = Curve {
        name,
        base,
        schedule: &first,
        start,
        replay: &free,
    };
    for (n, rate) in case["lr_first_run"].as_array()?.iter().enumerate() {
        before.check(n as u64, rate.as_f64()?, errors);
    }
    let saved = start.filter(|_| case["dropped_keys"].as_array().is_none_or(Vec::is_empty));
    let start = resolve_start(&next, saved, completed);
    errors.require(start == start_of(&replay["resolved_ours"]), || {
        format!("{name}: start {start:?}")
    });
    if replay["class"] == "information" {
        return Some(());
    }
    let after = Curve {
        name,
        base: base_next,
        schedule: &next,
        start,
        replay,
    };
    for (n, rate) in (completed + 1..).zip(case["lr_after_resume"].as_array()?) {
        after.check(n, rate.as_f64()?, errors);
    }
    Some(())
}

fn truth_table(root: &Value, errors: &mut Errors) -> Option<()> {
    let base = root["meta"]["base_lr"].as_f64()?;
    let exact = json!({});
    for row in root["rows"].as_array()? {
        let kind = row["scheduler"].as_str()?;
        let (start_key, flag_key) = if kind == "WSDScheduler" {
            ("decay_start_step", "start_decay")
        } else {
            ("checkpoint_step", "start_annealing")
        };
        let mut args = root["meta"]["args"][kind].as_object()?.clone();
        args.insert(start_key.into(), row["ctor"].clone());
        args.insert(flag_key.into(), row["flag"].clone());
        let schedule = translated(kind, &Value::Object(args))?;
        let completed = row["last_epoch"].as_u64()?;
        let (resolved, rate) = if row["replay"]["class"] == "differs" {
            (
                &row["replay"]["resolved_ours"],
                &row["replay"]["lr_next_step_ours"],
            )
        } else {
            (&row["resolved"], &row["lr_next_step"])
        };
        let start = resolve_start(&schedule, start_of(&row["saved"]), completed);
        errors.require(start == start_of(resolved), || {
            format!("start {start:?} of {row}")
        });
        Curve {
            name: "truth table",
            base,
            schedule: &schedule,
            start,
            replay: &exact,
        }
        .check(completed + 1, rate.as_f64()?, errors);
    }
    Some(())
}
