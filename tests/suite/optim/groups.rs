use burn::tensor::DType;
use serde_json::json;
use tabtune::config::{GroupConfig, TrainConfig};
use tabtune::error::Error;
use tabtune::optim::{Optim, ParamInfo, clip_factor, glob_matches};
use tabtune_tests::cpu;

use super::{Run, infos, rule};

fn with(groups: serde_json::Value) -> TrainConfig {
    serde_json::from_value(json!({ "groups": groups })).unwrap()
}

fn keys(error: Error) -> Vec<String> {
    match error {
        Error::Groups(faults) | Error::InvalidConfig(faults) => faults.into_iter().map(|fault| fault.key).collect(),
        other => panic!("{other}"),
    }
}

#[test]
fn globs_match_whole_names() {
    for (pattern, name, expected) in [
        ("*", "", true),
        ("*.weight", "a.b.weight", true),
        ("*.weight", "a.weight.b", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("*norm*", "model.norm.weight", true),
        ("{*.bias,*norm*}", "x.bias", true),
        ("{*.bias,*norm*}", "x.weight", false),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "a-c", false),
        ("größe", "größe", true),
    ] {
        assert_eq!(glob_matches(pattern, name), expected, "{pattern} {name}");
    }
}

#[test]
fn first_match_wins_and_gaps_are_named() {
    let params = infos(DType::F32);
    let error = Optim::new(&with(json!([{"pattern": "layer.0.*"}, {"pattern": "layer.[1-3]*"}])), &params).unwrap_err();
    assert_eq!(keys(error), ["layer.1.weight", "layer.2.weight", "layer.3.weight", "groups[1].pattern"]);
    let error = Optim::new(&with(json!([{"pattern": "*"}, {"pattern": "layer.0.*"}])), &params).unwrap_err();
    assert_eq!(keys(error), ["groups[1].pattern"]);
    let optim = Optim::new(&with(json!([{"pattern": "layer.0.*", "frozen": true}, {"pattern": "*"}])), &params).unwrap();
    assert!(optim.frozen("layer.0.weight") && !optim.frozen("layer.1.weight") && optim.frozen("unknown"));
}

#[test]
fn every_fault_of_every_group_is_listed() {
    let config = TrainConfig { groups: vec![GroupConfig::new("layer.0.*"), GroupConfig::new("*")], ..TrainConfig::default() };
    let mut config = config;
    config.groups[0].optimizer =
        Some(rule(json!({"type": "adafactor", "decay_rate": 0.8, "clip_threshold": 0, "eps1": 0, "beta2_cap": 1})));
    config.groups[1].optimizer = Some(rule(json!({"type": "apollo", "update_steps": 0, "scale": -1, "beta1": 1})));
    let faults: Vec<String> = config.groups.iter().enumerate().flat_map(|(i, g)| g.faults(i, 1e-3)).map(|f| f.key).collect();
    assert_eq!(
        faults,
        [
            "groups[0].optimizer.decay_rate",
            "groups[0].optimizer.beta2_cap",
            "groups[0].optimizer.clip_threshold",
            "groups[0].optimizer.eps1",
            "groups[1].optimizer.beta1",
            "groups[1].optimizer.rank",
            "groups[1].optimizer.scale",
            "groups[1].optimizer.update_steps"
        ]
    );
    let faults = rule(json!({"type": "sgd", "momentum": -1, "nesterov": true, "weight_decay": 1e9})).faults(1e-3);
    assert_eq!(faults.len(), 3);
    assert!(serde_json::from_value::<tabtune::config::OptimizerConfig>(json!({"type": "adafactor", "beta1": 0.9})).is_err());
    let half = ParamInfo { name: "x".into(), shape: vec![2], dtype: DType::F16 };
    assert_eq!(keys(Optim::new(&TrainConfig::default(), &[half]).unwrap_err()), ["x"]);
}

#[test]
fn missing_gradient_leaves_all_and_zero_gradient_decays() {
    let device = cpu();
    let mut run = Run::new(&rule(json!({"type": "adamw", "weight_decay": 0.5})), infos(DType::F32), &device);
    run.step(1);
    let before = run.bytes();
    let name = run.infos[0].name.clone();
    let value = run.values[0].clone();
    run.values[0] = run.optim.step_param(&name, value, None, 1e-2, 1.0).unwrap();
    assert_eq!(run.bytes(), before);
    let value = run.values[0].clone();
    let zero = value.zeros_like();
    run.values[0] = run.optim.step_param(&name, value, Some(zero), 1e-2, 1.0).unwrap();
    let after = run.bytes();
    assert_eq!(after["layer.0.weight:step"], 2u64.to_le_bytes());
    assert_ne!(after["layer.0.weight"], before["layer.0.weight"]);
}

#[test]
fn apollo_names_what_it_leaves_to_adamw() {
    let config = TrainConfig { optimizer: rule(json!({"type": "apollo", "rank": 9})), ..TrainConfig::default() };
    let optim = Optim::new(&config, &infos(DType::F32)).unwrap();
    assert_eq!(optim.fallbacks(), ["layer.0.weight", "layer.2.weight", "layer.3.weight"]);
    let apollo = json!({"type": "apollo", "rank": 9});
    let groups = json!([{"pattern": "layer.2.*", "frozen": true, "optimizer": apollo}, {"pattern": "*", "optimizer": apollo}]);
    assert_eq!(Optim::new(&with(groups), &infos(DType::F32)).unwrap().fallbacks(), ["layer.0.weight", "layer.3.weight"]);
}

#[test]
fn clip_factor_bounds_the_norm() {
    assert_eq!(clip_factor(4.0, 1.0), 0.25);
    assert_eq!(clip_factor(0.5, 1.0), 1.0);
    assert_eq!(clip_factor(1e9, 0.0), 1.0);
}
