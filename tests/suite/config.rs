//! Settings from JSON: presets, groups over the run's optimizer, every fault of one configuration at once.

mod adapter;

use serde_json::{Value, json};
use tabtune::config::{AdamwConfig, GroupConfig, OptimizerConfig, TrainConfig, overlay};
use tabtune::error::{Error, Fault};

fn read(given: Value) -> TrainConfig {
    TrainConfig::default().overlaid(given).unwrap()
}

fn refused(given: Value) -> Vec<Fault> {
    match TrainConfig::default().overlaid(given) {
        Err(Error::InvalidConfig(faults)) => faults,
        other => panic!("{other:?}"),
    }
}

fn keys(given: Value) -> Vec<String> {
    refused(given).into_iter().map(|fault| fault.key).collect()
}

fn optimizer(json: Value) -> OptimizerConfig {
    serde_json::from_value(json).unwrap()
}

#[test]
fn preset_by_name_is_spelled_out() {
    assert_eq!(
        read(json!({"groups": "no_decay"})).groups,
        GroupConfig::no_decay()
    );
    let faults = refused(json!({"groups": "nodecay"}));
    assert_eq!(
        faults[0].to_string(),
        r#"groups: expected a list of groups, or "no_decay", found "nodecay""#
    );
}

#[test]
fn optimizer_of_a_group_lies_over_the_runs() {
    let run = json!({"type": "adamw", "beta2": 0.95, "weight_decay": 0.1});
    let of = |group: Value| {
        read(json!({"optimizer": run, "groups": [{"pattern": "*", "optimizer": group}]})).groups[0]
            .optimizer
            .clone()
    };
    let over = OptimizerConfig::Adamw(AdamwConfig {
        beta1: 0.3,
        beta2: 0.95,
        weight_decay: 0.1,
        ..AdamwConfig::default()
    });
    assert_eq!(of(json!({"beta1": 0.3})), Some(over.clone()));
    assert_eq!(of(json!({"type": "adamw", "beta1": 0.3})), Some(over));
    // Another kind of optimizer shares no key with the run's, not even its weight decay.
    assert_eq!(
        of(json!({"type": "sgd", "momentum": 0.9})),
        Some(optimizer(json!({"type": "sgd", "momentum": 0.9})))
    );
    assert_eq!(of(Value::Null), None);
    // The default optimizer is AdamW.
    assert_eq!(
        keys(json!({"groups": [{"pattern": "*", "optimizer": {"momentum": 0.9}}]})),
        ["groups[0].optimizer.momentum"]
    );
}

#[test]
fn group_of_a_resumed_run_lies_over_the_resumed_optimizer() {
    let saved = read(json!({"optimizer": {"type": "adamw", "beta2": 0.95}}));
    let given = json!({"optimizer": {"beta1": 0.8}, "groups": [{"pattern": "*", "optimizer": {"eps": 1e-7}}]});
    let OptimizerConfig::Adamw(group) = saved.overlaid(given).unwrap().groups[0]
        .optimizer
        .clone()
        .unwrap()
    else {
        panic!("AdamW")
    };
    assert_eq!((group.beta1, group.beta2, group.eps), (0.8, 0.95, 1e-7));
    // Saved groups are written in full and read back unchanged.
    let saved = read(json!({"groups": [{"pattern": "*", "optimizer": {"beta1": 0.3}}]}));
    assert_eq!(saved.overlaid(json!({})).unwrap(), saved);
}

#[test]
fn unknown_keys_wrong_types_and_broken_rules_are_reported_together() {
    let faults = refused(json!({
        "learning_rat": 1, "steps": "many", "batch_size": 0, "precision": "f8", "gradient_release": 1, "seed": -1,
        "optimizer": {"type": "sgd", "foo": 1, "momentum": 2},
        "schedule": {"type": "wsd", "warmup_steps": 1.5, "decay_type": "cosine", "min_learning_rate": "low"},
        "groups": [{"pattern": 3, "frozen": null}, 7, {"lr": 1, "optimizer": {"type": "no-such-rule"}}, {"pattern": "*", "weight_decay": -1}],
    }));
    let shown: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let no_rule = refused(json!({"optimizer": {"type": "no-such-rule"}}))[0].to_string();
    assert!(
        no_rule.starts_with(r#"optimizer.type: expected one of "adamw", "#)
            && no_rule.ends_with(r#", found "no-such-rule""#),
        "{no_rule}"
    );
    let groups = "pattern, optimizer, weight_decay, learning_rate_scale, frozen";
    let train = "steps, epochs, batch_size, seq_len, gradient_accumulation_steps, learning_rate, max_grad_norm, seed, precision, optimizer, groups, \
                 schedule, adapter, base_storage, gradient_checkpointing, gradient_release, report_every, block_coordinate, \
                 document_mask, data_order, validation_fraction, validation_rows, data_weights, form, columns, on_bad_row, loss_on, on_long, packing, chat_date";
    assert_eq!(
        shown,
        [
            "schedule.warmup_steps: expected an integer ≥ 0, found 1.5",
            r#"schedule.decay_type: expected one of "harmonic", "rsqrt", "exponential", "linear", "one_minus_sqrt", found "cosine""#,
            r#"schedule.min_learning_rate: expected a number, found "low""#,
            "optimizer.foo: expected one of type, momentum, nesterov, weight_decay, stochastic_rounding, found an unknown key",
            "groups[0].pattern: expected a string, found 3",
            "groups[0].frozen: expected true or false, found null",
            "groups[1]: expected an object, found 7",
            &format!("groups[2].{no_rule}"),
            "groups[2].pattern: expected a string, found nothing",
            &format!("groups[2].lr: expected one of {groups}, found an unknown key"),
            r#"steps: expected an integer ≥ 0, found "many""#,
            "seed: expected an integer ≥ 0, found -1",
            r#"precision: expected "f32" or "bf16", found "f8""#,
            "gradient_release: expected true or false, found 1",
            &format!("learning_rat: expected one of {train}, found an unknown key"),
            "batch_size: expected an integer ≥ 1, found 0",
            "optimizer.momentum: expected 0 ≤ μ < 1 in f32, found 2",
            "groups[3].weight_decay: expected finite, ≥ 0, learning_rate·weight_decay < 1, found -1",
        ]
    );
}

#[test]
fn values_that_stand_in_for_unreadable_ones_break_no_rule() {
    // A missing momentum with nesterov would break a rule, and so would the default rate with a higher constant rate.
    assert_eq!(
        keys(json!({"optimizer": {"type": "sgd", "nesterov": true, "momentum": "much"}})),
        ["optimizer.momentum"]
    );
    let schedule = json!({"type": "infinite", "cooldown_steps": 1, "constant_learning_rate": 0.05});
    assert_eq!(
        keys(json!({"learning_rate": "0.1", "schedule": schedule})),
        ["learning_rate"]
    );
    assert_eq!(
        keys(json!({"steps": null, "schedule": {"type": "cosine", "warmup_steps": 500}})),
        ["steps"]
    );
    assert_eq!(
        keys(json!({"optimizer": "adamw", "learning_rate": 500})),
        ["optimizer"]
    );
    assert_eq!(keys(json!([])), ["settings"]);
}

#[test]
fn schedule_over_the_run_falls_over_the_whole_run() {
    let json =
        serde_json::to_value(read(json!({"steps": 70, "schedule": {"type": "linear"}})).schedule)
            .unwrap();
    assert_eq!(json["total_steps"], 70);
}

#[test]
fn length_of_an_annealing_replaces_the_saved_one() {
    let infinite = |schedule: Value| overlay(json!({"type": "infinite"}), schedule);
    let saved = |schedule: Value| read(json!({"schedule": infinite(schedule)}));
    let changed = |saved: TrainConfig, given: Value| {
        serde_json::to_value(saved.overlaid(json!({"schedule": given})).unwrap().schedule).unwrap()
    };
    let steps = changed(saved(json!({"tau": 4.0})), json!({"annealing_steps": 7}));
    assert_eq!(
        (&steps["annealing_steps"], &steps["tau"]),
        (&json!(7), &Value::Null)
    );
    let tau = changed(saved(json!({"annealing_steps": 7})), json!({"tau": 4.0}));
    assert_eq!(
        (&tau["annealing_steps"], &tau["tau"]),
        (&json!(0), &json!(4.0))
    );
    // Settings that do not determine the length keep it.
    let kept = changed(
        saved(json!({"tau": 4.0})),
        json!({"annealing_steps": 0, "start_annealing": true}),
    );
    assert_eq!(kept["tau"], 4.0);
    // Both at once are a contradiction as before.
    assert_eq!(
        keys(json!({"schedule": infinite(json!({"tau": 4.0, "annealing_steps": 7}))})),
        ["schedule.tau"]
    );
}

#[test]
fn values_that_f32_cannot_hold_are_refused() {
    for (key, value) in [
        ("learning_rate", 1e39),
        ("learning_rate", 1e-60),
        ("max_grad_norm", 1e39),
        ("max_grad_norm", 1e-60),
    ] {
        assert_eq!(
            keys(json!({key: value, "optimizer": {"weight_decay": 0}})),
            [key],
            "{value}"
        );
    }
    for (kind, key, value) in [
        ("adamw", "beta1", 1.0 - 1e-12),
        ("adamw", "beta2", 1.0 - 1e-12),
        ("adamw", "eps", 1e60),
        ("adafactor", "decay_rate", -1e60),
        ("adafactor", "decay_rate", -1e-60),
        ("adafactor", "beta2_cap", 1.0 - 1e-12),
        ("adafactor", "clip_threshold", 1e-60),
        ("adafactor", "clip_threshold", 1e60),
        ("adafactor", "eps1", 1e60),
        ("adafactor", "eps2", 1e-60),
        ("apollo", "scale", 1e80),
        ("apollo", "scale", 1e-60),
        ("apollo", "growth_limit", 1.0 + 1e-12),
        ("apollo", "growth_limit", 1e60),
        ("apollo", "adamw_learning_rate_scale", 1e60),
        ("apollo", "adamw_learning_rate_scale", 1e-60),
        ("sgd", "momentum", 1.0 - 1e-12),
    ] {
        assert_eq!(
            keys(json!({"optimizer": {"type": kind, key: value}})),
            [format!("optimizer.{key}")],
            "{value}"
        );
    }
    // No rate that f32 can hold makes this decay small; a rate that a GPU may treat as 0 is refused.
    assert_eq!(
        keys(json!({"learning_rate": 1.2e-38, "optimizer": {"weight_decay": 1e39}})),
        ["optimizer.weight_decay"]
    );
    assert_eq!(keys(json!({"learning_rate": 1e-42})), ["learning_rate"]);
    let scaled = json!({"learning_rate": 1e30, "optimizer": {"weight_decay": 0}, "groups": [{"pattern": "*", "learning_rate_scale": 1e30}]});
    assert_eq!(keys(scaled), ["groups[0].learning_rate_scale"]);
    let schedule =
        json!({"type": "infinite", "cooldown_steps": 1, "constant_learning_rate": 1e-60});
    assert_eq!(
        keys(json!({"schedule": schedule})),
        ["schedule.constant_learning_rate"]
    );
    // The largest and smallest values that are accepted.
    read(
        json!({"learning_rate": 3e38, "max_grad_norm": 1.2e-38, "optimizer": {"weight_decay": 0, "eps": 3e38, "beta1": 0.9999999}}),
    );
}

#[test]
fn apollo_takes_words_and_null_and_no_others() {
    let of = |key: &str, value: Value| {
        read(json!({"optimizer": {"type": "apollo", key: value}})).optimizer
    };
    let default = optimizer(json!({"type": "apollo"}));
    assert_eq!(of("scale", json!("auto")), default);
    assert_eq!(serde_json::to_value(&default).unwrap()["scale"], "auto");
    assert_eq!(
        serde_json::to_value(of("scale", json!(4))).unwrap()["scale"],
        4.0
    );
    assert_eq!(
        serde_json::to_value(of("growth_limit", Value::Null)).unwrap()["growth_limit"],
        Value::Null
    );
    let refused = |key: &str, value: Value| {
        refused(json!({"optimizer": {"type": "apollo", key: value}}))[0].to_string()
    };
    assert_eq!(
        refused("scale", json!("rank")),
        r#"optimizer.scale: expected a number or "auto", found "rank""#
    );
    assert_eq!(
        refused("scale", json!(true)),
        r#"optimizer.scale: expected a number or "auto", found true"#
    );
    assert_eq!(
        refused("scale", json!(-1)),
        "optimizer.scale: expected finite and > 0 in f32, found -1"
    );
    assert_eq!(
        refused("growth_limit", json!(1)),
        "optimizer.growth_limit: expected > 1 and finite in f32, or null, found 1"
    );
    assert_eq!(
        refused("projected", json!("none")),
        r#"optimizer.projected: expected "blocks" or "all", found "none""#
    );
    // The decay fits the rate of projected matrices, but not the rate of those that AdamW moves.
    let decay = |scale: f64| json!({"learning_rate": 0.1, "optimizer": {"type": "apollo", "weight_decay": 5, "adamw_learning_rate_scale": scale}});
    read(decay(1.9));
    assert_eq!(keys(decay(2.0)), ["optimizer.adamw_learning_rate_scale"]);
}

#[test]
fn step_of_more_tokens_than_memory_is_refused() {
    for huge in [1u64 << 32, 4_000_000_000_000_000_000, u64::MAX] {
        for key in ["gradient_accumulation_steps", "batch_size", "seq_len"] {
            assert_eq!(
                keys(json!({key: huge})),
                ["gradient_accumulation_steps"],
                "{key} {huge}"
            );
        }
    }
    read(json!({"batch_size": 1 << 14, "seq_len": 1 << 12, "gradient_accumulation_steps": 4}));
    assert_eq!(
        keys(json!({"batch_size": 1 << 14, "seq_len": 1 << 12, "gradient_accumulation_steps": 5})),
        ["gradient_accumulation_steps"]
    );
}

#[test]
fn run_that_trains_nothing_is_refused() {
    let faults = refused(
        json!({"groups": [{"pattern": "a", "frozen": true}, {"pattern": "*", "frozen": true}]}),
    );
    assert_eq!(
        faults[0].to_string(),
        "groups: expected at least one that is not frozen, found none"
    );
    assert_eq!(faults.len(), 1);
    read(json!({"groups": [{"pattern": "a", "frozen": true}, {"pattern": "*"}]}));
}
