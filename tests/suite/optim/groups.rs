use std::collections::BTreeSet;

use burn::tensor::DType;
use serde_json::json;
use tabtune::config::{GroupConfig, OptimizerConfig, Precision, TrainConfig, glob_matches};
use tabtune::error::Error;
use tabtune::families::{config_from_hf, model_types};
use tabtune::interrupt::Interrupt;
use tabtune::model::{Kind, Model, ParameterRequest, Plan};
use tabtune::optim::{Apollo, Gate, Optim, ParamInfo, Rule, clip_factor};
use tabtune_tests::{block_on, cpu, family};

use super::{Run, infos, rule, upload};

fn with(groups: serde_json::Value) -> TrainConfig {
    serde_json::from_value(json!({ "groups": groups })).unwrap()
}

fn keys(error: Error) -> Vec<String> {
    match error {
        Error::Groups(faults) | Error::InvalidConfig(faults) => {
            faults.into_iter().map(|fault| fault.key).collect()
        }
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
    let error = Optim::new(
        &with(json!([{"pattern": "layer.0.*"}, {"pattern": "layer.[1-3]*"}])),
        &params,
    )
    .unwrap_err();
    let Error::Groups(faults) = error else {
        panic!("{error}")
    };
    assert_eq!(faults[0].key, "groups[1].pattern");
    let rest = "none for layer.1.weight, layer.2.weight, layer.3.weight";
    assert_eq!(
        (
            faults.len(),
            faults[1].key.as_str(),
            faults[1].value.as_str()
        ),
        (2, "groups", rest)
    );
    let many: Vec<ParamInfo> = (0..9)
        .map(|k| ParamInfo {
            name: format!("p{k}"),
            shape: vec![2],
            dtype: DType::F32,
            outside_blocks: false,
        })
        .collect();
    let Error::Groups(faults) = Optim::new(&with(json!([{"pattern": "p0"}])), &many).unwrap_err()
    else {
        panic!("groups")
    };
    assert_eq!(faults[0].value, "none for p1, p2, p3 and 5 more");
    let error = Optim::new(
        &with(json!([{"pattern": "*"}, {"pattern": "layer.0.*"}])),
        &params,
    )
    .unwrap_err();
    assert_eq!(keys(error), ["groups[1].pattern"]);
    let optim = Optim::new(
        &with(json!([{"pattern": "layer.0.*", "frozen": true}, {"pattern": "*"}])),
        &params,
    )
    .unwrap();
    assert!(
        optim.frozen("layer.0.weight")
            && !optim.frozen("layer.1.weight")
            && optim.frozen("unknown")
    );
}

#[test]
fn every_fault_of_every_group_is_listed() {
    let config = TrainConfig {
        groups: vec![GroupConfig::new("layer.0.*"), GroupConfig::new("*")],
        ..TrainConfig::default()
    };
    let mut config = config;
    config.groups[0].optimizer = Some(rule(
        json!({"type": "adafactor", "decay_rate": 0.8, "clip_threshold": 0, "eps1": 0, "beta2_cap": 1}),
    ));
    config.groups[1].optimizer = Some(rule(
        json!({"type": "apollo", "update_steps": 0, "scale": -1, "beta1": 1, "rank": 0, "growth_limit": 1}),
    ));
    let faults: Vec<String> = config
        .groups
        .iter()
        .enumerate()
        .flat_map(|(i, g)| g.faults(i, 1e-3))
        .map(|f| f.key)
        .collect();
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
            "groups[1].optimizer.growth_limit",
            "groups[1].optimizer.update_steps"
        ]
    );
    let faults =
        rule(json!({"type": "sgd", "momentum": -1, "nesterov": true, "weight_decay": 1e9}))
            .faults(1e-3);
    assert_eq!(faults.len(), 3);
    assert!(
        serde_json::from_value::<tabtune::config::OptimizerConfig>(
            json!({"type": "adafactor", "beta1": 0.9})
        )
        .is_err()
    );
    let half = ParamInfo {
        name: "x".into(),
        shape: vec![2],
        dtype: DType::F16,
        outside_blocks: false,
    };
    assert_eq!(
        keys(Optim::new(&TrainConfig::default(), &[half]).unwrap_err()),
        ["x"]
    );
}

#[test]
fn faults_of_names_and_of_values_are_listed_together() {
    let mut config = with(
        json!([{"pattern": "x"}, {"pattern": "layer.[0-2]*", "optimizer": {"type": "sgd", "momentum": 2.0}}, {"pattern": "layer.0*", "optimizer": {"type": "sgd", "momentum": 3.0}}]),
    );
    config.groups[0].frozen = true;
    let error = Optim::new(&config, &infos(DType::F32)).unwrap_err();
    assert_eq!(error.code(), "config.invalid");
    let expected = [
        "groups[0].pattern",
        "groups[1].pattern",
        "groups",
        "groups[1].optimizer.momentum",
        "groups[2].optimizer.momentum",
    ];
    assert_eq!(keys(error), expected);
}

#[test]
fn all_parameters_frozen_is_refused() {
    let error = Optim::new(
        &with(json!([{"pattern": "*", "frozen": true}])),
        &infos(DType::F32),
    )
    .unwrap_err();
    assert_eq!(
        (error.code(), keys(error)),
        ("config.invalid", vec!["groups".to_string()])
    );
}

fn hf_shape(model: &str) -> serde_json::Value {
    match model {
        "gpt2" => {
            json!({"model_type": "gpt2", "vocab_size": 8, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 8})
        }
        // The golden model, since the family needs more keys than the others.
        "granitemoehybrid" => {
            let mut config = family(model).config();
            config["tie_word_embeddings"] = json!(false);
            config
        }
        _ => {
            json!({"model_type": model, "vocab_size": 8, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2,
            "num_key_value_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "tie_word_embeddings": false})
        }
    }
}

/// Returns every parameter of a model as its family requests it, and whether it decays: a zero gradient then reduces a weight of 1.
fn decays(model: &str) -> Vec<(ParameterRequest, bool)> {
    let request = Plan::of(&config_from_hf(&hf_shape(model)).unwrap(), None)
        .unwrap()
        .parameters;
    let info = |request: &ParameterRequest| ParamInfo {
        name: request.name.clone(),
        shape: request.shape.clone(),
        dtype: DType::F32,
        outside_blocks: false,
    };
    let infos: Vec<ParamInfo> = request.iter().map(info).collect();
    let run = json!({"groups": "no_decay", "optimizer": {"type": "sgd", "weight_decay": 0.1}});
    let mut optim = Optim::new(&TrainConfig::default().overlaid(run).unwrap(), &infos).unwrap();
    let device = cpu();
    let gate = Gate::open(1.0, &device.inner());
    let one = |info: &ParamInfo| upload(&vec![1.0; info.elements()], DType::F32, &device);
    let step = |info: ParamInfo| {
        let after = optim
            .step_param(
                &info.name,
                one(&info),
                Some(one(&info).zeros_like()),
                1.0,
                &gate,
            )
            .unwrap();
        let value = f32::from_le_bytes(
            block_on(after.into_data_async()).unwrap().as_bytes()[..4]
                .try_into()
                .unwrap(),
        );
        assert!(value == 1.0 || value == 0.9, "{}: {value}", info.name);
        value != 1.0
    };
    request
        .into_iter()
        .zip(infos.into_iter().map(step))
        .collect()
}

#[test]
fn preset_no_decay_spares_norms_biases_and_embeddings() {
    for model in model_types() {
        let tables = if model == "gpt2" { 2 } else { 1 };
        let all = decays(model);
        assert!(all.len() > 8, "{model}");
        assert_eq!(
            all.iter()
                .filter(|(request, _)| request.part.is_table())
                .count(),
            tables,
            "{model}"
        );
        for (
            ParameterRequest {
                name, part, kind, ..
            },
            decays,
        ) in all
        {
            // Norms, biases and rates are the vectors.
            let expected = matches!(kind, Kind::Matrix(_) | Kind::Taps) && !part.is_table();
            assert_eq!(decays, expected, "{model}: {name}");
        }
    }
}

#[test]
fn missing_gradient_leaves_all_and_zero_gradient_decays() {
    let device = cpu();
    let mut run = Run::new(
        &rule(json!({"type": "adamw", "weight_decay": 0.5})),
        infos(DType::F32),
        &device,
    );
    run.step(1);
    let before = run.bytes();
    let name = run.infos[0].name.clone();
    let gate = Gate::open(1.0, &device.inner());
    let value = run.values[0].clone();
    run.values[0] = run
        .optim
        .step_param(&name, value, None, 1e-2, &gate)
        .unwrap();
    assert_eq!(run.bytes(), before);
    let value = run.values[0].clone();
    let zero = value.zeros_like();
    run.values[0] = run
        .optim
        .step_param(&name, value, Some(zero), 1e-2, &gate)
        .unwrap();
    let after = run.bytes();
    assert_eq!(after["layer.0.weight:step"], 2u64.to_le_bytes());
    assert_ne!(after["layer.0.weight"], before["layer.0.weight"]);
}

#[test]
fn apollo_names_what_it_leaves_to_adamw() {
    let config = TrainConfig {
        optimizer: rule(json!({"type": "apollo", "rank": 9})),
        ..TrainConfig::default()
    };
    let optim = Optim::new(&config, &infos(DType::F32)).unwrap();
    assert_eq!(
        optim.fallbacks(),
        ["layer.0.weight", "layer.2.weight", "layer.3.weight"]
    );
    let apollo = json!({"type": "apollo", "rank": 9});
    let groups = json!([{"pattern": "layer.2.*", "frozen": true, "optimizer": apollo}, {"pattern": "*", "optimizer": apollo}]);
    assert_eq!(
        Optim::new(&with(groups), &infos(DType::F32))
            .unwrap()
            .fallbacks(),
        ["layer.0.weight", "layer.3.weight"]
    );
}

/// Covers all families, as loaded and as planned: the matrices of attention and MLP are projected, AdamW updates everything else.
#[test]
fn apollo_projects_the_matrices_of_the_blocks() {
    for model in model_types() {
        let shape = config_from_hf(&hf_shape(model)).unwrap();
        let request = Plan::of(&shape, None).unwrap().parameters;
        let model = block_on(Model::init(
            &shape,
            1,
            Precision::F32,
            &cpu().inner(),
            &Interrupt::none(),
        ))
        .unwrap();
        let left = |projected: &str| {
            let optimizer = rule(json!({"type": "apollo", "mini": true, "projected": projected}));
            let optim = Optim::new(
                &TrainConfig {
                    optimizer,
                    ..TrainConfig::default()
                },
                &model.parameters(),
            )
            .unwrap();
            optim
                .fallbacks()
                .into_iter()
                .map(String::from)
                .collect::<BTreeSet<String>>()
        };
        let vectors = request.iter().filter(|request| request.shape.len() == 1);
        let outside = request
            .iter()
            .filter(|request| request.kind.is_matrix() && request.part.block().is_none());
        // An embedding and a head, or two tables.
        assert_eq!(outside.clone().count(), 2);
        let names = |request: &ParameterRequest| request.name.clone();
        assert_eq!(left("all"), vectors.clone().map(names).collect());
        assert_eq!(left("blocks"), vectors.chain(outside).map(names).collect());
    }
}

#[test]
fn what_apollo_leaves_to_adamw_has_a_rate_of_its_own() {
    let device = cpu();
    let stepped = |optimizer: serde_json::Value, rate: f64, group: f64| {
        let groups = json!([{"pattern": "*", "learning_rate_scale": group}]);
        let config = TrainConfig {
            optimizer: rule(optimizer),
            learning_rate: 1.0,
            ..with(groups)
        };
        let mut optim = Optim::new(&config, &infos(DType::F32)).unwrap();
        [0, 1].map(|k| {
            let info = &infos(DType::F32)[k];
            let values: Vec<f32> = (0..info.elements()).map(|i| (i as f32).sin()).collect();
            let [p, g] = [1.0, 0.01].map(|scale| {
                upload(
                    &values.iter().map(|x| x * scale).collect::<Vec<f32>>(),
                    DType::F32,
                    &device,
                )
            });
            let p = optim
                .step_param(
                    &info.name,
                    p,
                    Some(g),
                    rate,
                    &Gate::open(1.0, &device.inner()),
                )
                .unwrap();
            block_on(tabtune::gpu::read_f32(p)).unwrap()
        })
    };
    let apollo = |scale: f64| json!({"type": "apollo", "rank": 2, "weight_decay": 0.1, "adamw_learning_rate_scale": scale});
    let [vector, matrix] = stepped(apollo(0.25), 0.02, 2.0);
    assert_eq!(
        vector,
        stepped(json!({"type": "adamw", "weight_decay": 0.1}), 0.01, 1.0)[0],
        "a quarter of the group's rate"
    );
    assert_eq!(
        matrix,
        stepped(apollo(1.0), 0.02, 2.0)[1],
        "what is projected has the group's"
    );
    assert_ne!(matrix, stepped(apollo(0.25), 0.02, 1.0)[1]);
}

#[test]
fn rank_and_scale_follow_the_matrix_unless_they_are_given() {
    let config = |json: serde_json::Value| match rule(json) {
        OptimizerConfig::Apollo(config) => config,
        other => panic!("{other:?}"),
    };
    let default = config(json!({"type": "apollo"}));
    for (side, rank) in [
        (1, 1),
        (2, 1),
        (7, 1),
        (8, 2),
        (128, 32),
        (576, 128),
        (4096, 128),
    ] {
        assert_eq!(
            (default.rank(side), default.scale(side)),
            (rank, side as f64 / rank as f64),
            "{side}"
        );
        let mini = config(json!({"type": "apollo", "mini": true}));
        assert_eq!((mini.rank(side), mini.scale(side)), (1, side as f64));
        let given = config(json!({"type": "apollo", "rank": 16, "scale": 3}));
        assert_eq!((given.rank(side), given.scale(side)), (16, 3.0));
    }
    let info = |shape: &[usize]| ParamInfo {
        name: "w".into(),
        shape: shape.to_vec(),
        dtype: DType::BF16,
        outside_blocks: false,
    };
    for (shape, moments) in [
        (&[40, 300][..], [10, 300]),
        (&[300, 40], [10, 300]),
        (&[3, 200, 576], [128, 600]),
    ] {
        let layout = Apollo::new(default.clone()).layout(&info(shape)).0;
        assert_eq!(layout[0], ("m", moments.to_vec(), DType::F32), "{shape:?}");
    }
    // One column has nothing to project.
    let optim = Optim::new(
        &TrainConfig {
            optimizer: OptimizerConfig::Apollo(default),
            ..TrainConfig::default()
        },
        &[info(&[9, 1])],
    )
    .unwrap();
    assert_eq!(optim.fallbacks(), ["w"]);
}

#[test]
fn clip_factor_bounds_the_norm() {
    assert_eq!(clip_factor(4.0, 1.0), 0.25);
    assert_eq!(clip_factor(0.5, 1.0), 1.0);
    assert_eq!(clip_factor(1e9, 0.0), 1.0);
}
