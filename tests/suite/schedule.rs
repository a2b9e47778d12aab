//! Learning-rate schedules compared with curves of the reference, resumes, and properties of a curve: never above the peak, never below the
//! minimum once warmup is over, no rise after it, and exactly the minimum from the end on.

use std::collections::BTreeSet;

use burn::lr_scheduler::{LrScheduler, LrSchedulerRecord};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tabtune::config::{ScheduleConfig, TrainConfig};
use tabtune::schedule::{
    Scheduler, is_config_only, learning_rate, misfits, preview, resolve_start, trigger,
};

/// Bound for f64 curves: one rounding of the base rate.
const EXACT: f64 = 1e-15;
/// Bound for curves that the reference rounds to f32.
const ROUNDED: f64 = 4e-7;

fn vectors(name: &str) -> Value {
    let path = format!("{}/golden/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Parses a schedule with tabtune's keys.
fn schedule(mut keys: Value) -> ScheduleConfig {
    keys.as_object_mut().unwrap().remove("learning_rate");
    serde_json::from_value(keys).unwrap()
}

/// Translates the reference's arguments to tabtune's keys.
fn translated(scheduler: &str, args: &Value) -> ScheduleConfig {
    let kind = match scheduler {
        "InfiniteLRScheduler" => "infinite",
        "WSDScheduler" => "wsd",
        "CosineLRScheduler" => "cosine",
        other => panic!("{other}"),
    };
    let harmonic = args["annealing_type"] == "rsqrt";
    let mut keys = Map::from_iter([("type".to_owned(), json!(kind))]);
    for (key, value) in args.as_object().unwrap() {
        let name = match key.as_str() {
            "constant_lr" => "constant_learning_rate",
            "min_lr" => "min_learning_rate",
            "checkpoint_step" => "annealing_start_step",
            "tau" if harmonic || args.get("annealing_steps").is_some() => continue,
            other => other,
        };
        keys.insert(name.to_owned(), value.clone());
    }
    schedule(Value::Object(keys))
}

fn fault_keys(schedule: &ScheduleConfig, base: f64) -> BTreeSet<String> {
    schedule
        .faults(base)
        .into_iter()
        .map(|fault| fault.key.trim_start_matches("schedule.").to_owned())
        .collect()
}

/// Asserts that step n + 1 has the rate `expected`, within `bound` of the base rate.
fn same(
    name: &str,
    n: u64,
    base: f64,
    schedule: &ScheduleConfig,
    start: Option<u64>,
    expected: f64,
    bound: f64,
) {
    let found = learning_rate(n + 1, base, schedule, start);
    let allowed = if bound == EXACT {
        EXACT * base
    } else {
        bound * expected.abs()
    };
    assert!(
        (found - expected).abs() <= allowed,
        "{name}, n = {n}: expected {expected:e}, found {found:e}"
    );
}

fn bound_of(replay: &Value) -> f64 {
    if replay["class"] == "f32" {
        ROUNDED
    } else {
        EXACT
    }
}

fn start_of(value: &Value) -> Option<u64> {
    value.as_i64().and_then(|start| u64::try_from(start).ok())
}

fn floats(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|rate| rate.as_f64().unwrap())
        .collect()
}

#[test]
fn curves_equal_the_reference() {
    let file = vectors("schedulers_0_200_a");
    let mut replayed = 0;
    for case in file["cases"].as_array().unwrap() {
        let (name, replay) = (case["name"].as_str().unwrap(), &case["replay"]);
        let schedule = translated(case["scheduler"].as_str().unwrap(), &case["args"]);
        let refused = replay["class"] == "refused";
        for (group, base) in floats(&case["base_lr"]).into_iter().enumerate() {
            let accepted = replay["groups_accepted"]
                .as_array()
                .is_some_and(|list| list.contains(&json!(group)));
            if refused && !accepted {
                let found = fault_keys(&schedule, base);
                assert!(
                    replay["keys"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .all(|key| found.contains(key.as_str().unwrap())),
                    "{name}: {found:?}"
                );
                replayed += 1;
                continue;
            }
            assert_eq!(schedule.faults(base), [], "{name}");
            let start = resolve_start(&schedule, None, 0);
            let until = replay["until"].as_u64().unwrap_or(u64::MAX);
            for (n, rates) in case["lr"]
                .as_array()
                .unwrap()
                .iter()
                .enumerate()
                .take_while(|(n, _)| *n as u64 <= until)
            {
                same(
                    name,
                    n as u64,
                    base,
                    &schedule,
                    start,
                    rates[group].as_f64().unwrap(),
                    bound_of(replay),
                );
            }
            replayed += 1;
        }
    }
    assert_eq!(replayed, 19);
}

#[test]
fn curves_equal_our_own_goldens() {
    let file = vectors("schedulers_expected");
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 14);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let base = case["schedule"]["learning_rate"].as_f64().unwrap();
        let schedule = schedule(case["schedule"].clone());
        assert_eq!(schedule.faults(base), [], "{name}");
        let start = resolve_start(&schedule, None, 0);
        assert_eq!(start, start_of(&case["resolved_start"]), "{name}");
        for (n, expected) in floats(&case["lr"]).into_iter().enumerate() {
            same(name, n as u64, base, &schedule, start, expected, EXACT);
        }
    }
}

#[test]
fn resumes_equal_the_reference_or_are_refused() {
    let file = vectors("schedulers_resume_a");
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 15);
    for case in cases {
        let (name, replay) = (case["name"].as_str().unwrap(), &case["replay"]);
        let kind = case["scheduler"].as_str().unwrap();
        let (first, next) = (
            translated(kind, &case["args_first_run"]),
            translated(kind, &case["args_resume"]),
        );
        let (base, base_next) = (
            case["base_lr"].as_f64().unwrap(),
            case["base_lr_resume"].as_f64().unwrap(),
        );
        if replay["class"] == "refused" {
            let mut found = fault_keys(&next, base_next);
            let (old, new) = (json!(first), json!(next));
            let keys = new
                .as_object()
                .unwrap()
                .keys()
                .filter(|key| !is_config_only(&next, key) && old[*key] != new[*key]);
            found.extend(keys.cloned());
            assert!(
                replay["keys"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|key| found.contains(key.as_str().unwrap())),
                "{name}: {found:?}"
            );
            continue;
        }
        let completed = case["resume_at_step"].as_u64().unwrap();
        let first_start = resolve_start(&first, None, 0);
        for (n, expected) in floats(&case["lr_first_run"]).into_iter().enumerate() {
            same(
                name,
                n as u64,
                base,
                &first,
                first_start,
                expected,
                bound_of(replay),
            );
        }
        let saved = first_start.filter(|_| case["dropped_keys"].as_array().unwrap().is_empty());
        let start = resolve_start(&next, saved, completed);
        assert_eq!(start, start_of(&replay["resolved_ours"]), "{name}");
        if replay["class"] == "information" {
            continue;
        }
        let until = replay["until"].as_u64().unwrap_or(u64::MAX);
        for (n, expected) in (completed + 1..=until).zip(floats(&case["lr_after_resume"])) {
            same(name, n, base_next, &next, start, expected, bound_of(replay));
        }
    }
}

#[test]
fn start_is_resolved_by_the_truth_table() {
    let file = vectors("schedulers_load_truth_table_a");
    let base = file["meta"]["base_lr"].as_f64().unwrap();
    let rows = file["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 48);
    for row in rows {
        let kind = row["scheduler"].as_str().unwrap();
        let (start_key, flag_key) = if kind == "WSDScheduler" {
            ("decay_start_step", "start_decay")
        } else {
            ("checkpoint_step", "start_annealing")
        };
        let mut args = file["meta"]["args"][kind].clone();
        args[start_key] = row["ctor"].clone();
        args[flag_key] = row["flag"].clone();
        let schedule = translated(kind, &args);
        let completed = row["last_epoch"].as_u64().unwrap();
        let differs = row["replay"]["class"] == "differs";
        let (resolved, rate) = if differs {
            (
                &row["replay"]["resolved_ours"],
                &row["replay"]["lr_next_step_ours"],
            )
        } else {
            (&row["resolved"], &row["lr_next_step"])
        };
        let start = resolve_start(&schedule, start_of(&row["saved"]), completed);
        assert_eq!(start, start_of(resolved), "{row}");
        same(
            "truth table",
            completed + 1,
            base,
            &schedule,
            start,
            rate.as_f64().unwrap(),
            EXACT,
        );
        let mut scheduler = Scheduler::new(base, schedule).unwrap();
        let saved = row["saved"].as_i64().into_iter();
        let record = LrSchedulerRecord::new().with_scalar("completed_steps", completed);
        scheduler.load_record(saved.fold(record, |record, saved| {
            record.with_scalar("schedule_start", saved)
        }));
        let found = scheduler.to_record().scalar::<u64>("schedule_start");
        assert_eq!(found, start_of(resolved), "Scheduler: {row}");
        // The rate of the table is that after the next one.
        scheduler.step();
        let (found, expected) = (scheduler.step(), rate.as_f64().unwrap());
        assert!((found - expected).abs() <= EXACT * base, "Scheduler: {row}");
    }
}

#[test]
fn trigger_starts_a_decay_after_warmup_and_only_once() {
    let mut wsd = schedule(
        json!({"type": "wsd", "warmup_steps": 20, "decay_steps": 50, "min_learning_rate": 1e-6}),
    );
    assert_eq!(trigger(&mut wsd, None, 5).unwrap(), Some(20));
    assert_eq!(trigger(&mut wsd, Some(20), 30).unwrap(), Some(20));
    assert_eq!(json!(wsd)["start_decay"], true);
    // The configuration with the flag set and the saved start continue from where they were.
    assert_eq!(resolve_start(&wsd, Some(20), 40), Some(20));

    let mut infinite = schedule(
        json!({"type": "infinite", "warmup_steps": 2, "cooldown_steps": 8, "constant_learning_rate": 1e-4, "tau": 9}),
    );
    assert_eq!(trigger(&mut infinite, None, 70).unwrap(), Some(70));
    let without_length = json!({"type": "wsd", "warmup_steps": 20});
    assert_eq!(
        trigger(&mut schedule(without_length), None, 5)
            .unwrap_err()
            .code(),
        "config.invalid"
    );
    assert_eq!(
        trigger(&mut ScheduleConfig::default(), None, 5)
            .unwrap_err()
            .code(),
        "config.invalid"
    );
}

#[test]
fn validation_lists_every_fault() {
    let keys = |value: Value| {
        fault_keys(&schedule(value), 1e-3)
            .into_iter()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        keys(
            json!({"type": "cosine", "warmup_steps": 10, "total_steps": 10, "min_learning_rate": 2e-3})
        ),
        ["min_learning_rate", "total_steps"]
    );
    assert_eq!(keys(json!({"type": "linear"})), ["total_steps"]);
    let wsd =
        json!({"type": "wsd", "warmup_steps": 10, "decay_start_step": 9, "min_learning_rate": 0.0});
    assert_eq!(
        keys(wsd),
        ["decay_start_step", "decay_steps", "min_learning_rate"]
    );
    assert_eq!(
        keys(
            json!({"type": "wsd", "decay_type": "linear", "min_learning_rate": 0.0, "decay_start_step": 0, "decay_steps": 1})
        ),
        [""; 0]
    );
    let infinite = json!({"type": "infinite", "cooldown_steps": 5, "annealing_start_step": -2, "annealing_type": "linear", "min_learning_rate": 1.0});
    assert_eq!(
        keys(infinite),
        [
            "annealing_start_step",
            "annealing_steps",
            "annealing_type",
            "constant_learning_rate",
            "min_learning_rate"
        ]
    );
    let tau = json!({"type": "infinite", "tau": 5, "annealing_steps": 3, "start_annealing": true});
    assert_eq!(keys(tau), ["tau"]);
    let above = json!({"type": "infinite", "cooldown_steps": 4, "constant_learning_rate": 5e-4, "min_learning_rate": 6e-4});
    assert_eq!(keys(above), ["min_learning_rate"]);
    for bad in [
        json!({"type": "cosine", "total_stepz": 3}),
        json!({"type": "constant", "warmup_steps": 1.5}),
        json!({"type": "step"}),
    ] {
        assert!(serde_json::from_value::<ScheduleConfig>(bad).is_err());
    }
}

#[test]
fn preview_is_the_curve_from_step_one() {
    let linear = schedule(json!({"type": "linear", "total_steps": 4}));
    assert_eq!(
        preview(1..=6, 1.0, &linear, None).collect::<Vec<_>>(),
        [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    );
    let warm = schedule(json!({"type": "constant", "warmup_steps": 4, "warmup_from_zero": false}));
    assert_eq!(
        preview(1..=5, 1.0, &warm, None).collect::<Vec<_>>(),
        [0.25, 0.5, 0.75, 1.0, 1.0]
    );
}

/// Generates a valid schedule, its minimum, the end of its warmup, and the step at which it must have arrived.
fn any_schedule() -> impl Strategy<Value = (ScheduleConfig, f64, f64, u64, Option<u64>)> {
    let form = prop::sample::select(vec!["harmonic", "exponential", "linear", "one_minus_sqrt"]);
    (1e-6f64..1.0, 0.001f64..1.0, 0.01f64..1.0, 0u64..40, 0u64..40, 1u64..300, 0u64..100, form, 0..5, any::<bool>()).prop_map(
        |(base, low, middle, warmup, cooldown, length, wait, form, kind, from_zero)| {
            let constant = if cooldown == 0 { base } else { base * middle };
            let h = if kind == 4 { constant } else { base };
            let minimum = h * low;
            let (value, end) = match kind {
                0 => (json!({"type": "constant"}), None),
                1 => (json!({"type": "cosine", "total_steps": warmup + length, "min_learning_rate": minimum}), Some(warmup + length)),
                2 => (json!({"type": "linear", "total_steps": warmup + length, "min_learning_rate": minimum}), Some(warmup + length)),
                3 => {
                    let start = warmup + wait;
                    let keys = json!({"type": "wsd", "decay_start_step": start, "decay_steps": length, "decay_type": form, "min_learning_rate": minimum});
                    (keys, Some(start + length))
                }
                _ => {
                    let start = warmup + cooldown + wait;
                    let form = if form == "harmonic" { "harmonic" } else { "exponential" };
                    let keys = json!({"type": "infinite", "cooldown_steps": cooldown, "constant_learning_rate": constant,
                        "annealing_start_step": start, "annealing_steps": length, "annealing_type": form, "min_learning_rate": minimum});
                    (keys, Some(start + length))
                }
            };
            let mut value = value;
            value["warmup_steps"] = json!(warmup);
            value["warmup_from_zero"] = json!(from_zero);
            (schedule(value), base, if kind == 0 { base } else { minimum }, warmup, end)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rates_keep_their_promises((schedule, base, minimum, warmup, end) in any_schedule()) {
        prop_assert_eq!(schedule.faults(base), []);
        let start = resolve_start(&schedule, None, 0);
        let rates: Vec<f64> = preview(1..=700, base, &schedule, start).collect();
        for (n, pair) in (0u64..).zip(rates.windows(2)) {
            let (now, next) = (pair[0], pair[1]);
            prop_assert!(now.is_finite() && now <= base, "above the base rate at n = {}", n);
            if n >= warmup {
                prop_assert!(now >= minimum, "below the minimum at n = {}", n);
                prop_assert!(next <= now + EXACT * base, "rises at n = {}", n);
            } else {
                prop_assert!(next >= now - EXACT * base, "falls in the warmup at n = {}", n);
            }
            if end.is_some_and(|end| n >= end) {
                prop_assert_eq!(now, minimum);
            }
        }
    }
}

#[test]
fn a_start_that_is_stated_twice_is_reported() {
    let told = |keys: Value| {
        let config = TrainConfig {
            steps: 100,
            schedule: schedule(keys),
            ..TrainConfig::default()
        };
        misfits(&config, resolve_start(&config.schedule, None, 0))
    };
    let wsd = |start: i64, flag: bool| json!({"type": "wsd", "decay_steps": 10, "decay_start_step": start, "start_decay": flag});
    assert_eq!(
        told(wsd(50, true)),
        ["start_decay has no effect: by decay_start_step it starts after step 50"]
    );
    assert_eq!(
        (told(wsd(50, false)), told(wsd(-1, true))),
        (vec![], vec![])
    );
    // A warmup that reaches its peak in the last step, and a line that stays at its minimum, are as they were meant.
    assert_eq!(
        told(json!({"type": "constant", "warmup_steps": 100, "warmup_from_zero": false})),
        Vec::<String>::new()
    );
    assert_eq!(
        told(json!({"type": "constant", "warmup_steps": 101, "warmup_from_zero": false})).len(),
        1
    );
    let line =
        |minimum: f64| json!({"type": "linear", "total_steps": 200, "min_learning_rate": minimum});
    assert_eq!((told(line(1e-3)), told(line(1e-4)).len()), (vec![], 1));
    let infinite = json!({"type": "infinite", "annealing_steps": 10, "annealing_start_step": 50, "start_annealing": true,
        "min_learning_rate": 1e-5, "annealing_type": "exponential"});
    assert_eq!(
        told(infinite),
        ["start_annealing has no effect: by annealing_start_step it starts after step 50"]
    );
}
