//! Notices of a new run about its settings.

use serde_json::{Value, json};
use tabtune_tests::cpu;

use super::blocks::{settings, start};

/// Returns the messages of the notices of this code in a new run.
fn messages(changes: Value, code: &str) -> Vec<String> {
    let run = start(1, settings(changes), &cpu()).unwrap();
    run.notices()
        .iter()
        .filter(|notice| notice.code == code)
        .map(|notice| notice.message.clone())
        .collect()
}

#[test]
fn settings_without_effect_are_reported() {
    let idle = |changes: Value| messages(changes, "config.idle").join("; ");
    let rounding = json!({"optimizer": {"stochastic_rounding": false}});
    assert_eq!(
        idle(rounding.clone()),
        "optimizer.stochastic_rounding = false has no effect in f32, which is not rounded."
    );
    assert_eq!(
        idle(json!({"precision": "bf16", "optimizer": {"stochastic_rounding": false}})),
        ""
    );
    let warmup = |steps: u64| json!({"schedule": {"type": "cosine", "warmup_steps": steps, "warmup_from_zero": false}});
    assert_eq!(
        idle(warmup(0)),
        "schedule.warmup_from_zero = false has no effect without warmup_steps."
    );
    assert_eq!(idle(warmup(2)), "");
    let eps = |relative: bool| json!({"optimizer": {"type": "adafactor", "eps2": 0.01, "relative_step": relative}});
    assert_eq!(
        idle(eps(false)),
        "optimizer.eps2 = 0.01 has no effect without relative_step."
    );
    assert_eq!(idle(eps(true)), "");
    // A group is named for what is its own.
    let group = json!({"groups": [{"pattern": "*norm*", "optimizer": {"stochastic_rounding": false}}, {"pattern": "*"}]});
    assert_eq!(
        idle(group),
        "groups[0].optimizer.stochastic_rounding = false has no effect in f32, which is not rounded."
    );
    let both = json!({"optimizer": rounding["optimizer"], "groups": [{"pattern": "*norm*", "optimizer": {"beta1": 0.8}}, {"pattern": "*"}]});
    assert_eq!(idle(both), idle(rounding));
    assert_eq!(idle(json!({})), "");
}
