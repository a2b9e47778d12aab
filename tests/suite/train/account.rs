//! The groups of a run as plain data.

use burn::tensor::Device;
use serde_json::{Value, json};
use tabtune::Error;
use tabtune::config::{ModelConfig, OptimizerConfig, ScheduleConfig, TrainConfig};
use tabtune::families::config_from_hf;
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::state::{
    GroupClass, ModelStateGroupAssignment, OptimizerRecord, Residency, SchedulerAccount, StateWord,
};
use tabtune::train::{
    Trainer, group_accounts, optimizer_config, optimizer_record, schedule_config, scheduler_account,
};
use tabtune_tests::{block_on, cpu};

use crate::optim::rules;
use crate::resume::{config, dataset, go, start};

fn gpt2() -> ModelConfig {
    let json = json!({
        "model_type": "gpt2", "vocab_size": 13, "n_embd": 8, "n_inner": 12, "n_layer": 1, "n_head": 2, "n_positions": 8,
        "layer_norm_epsilon": 1e-5
    });
    config_from_hf(&json).unwrap()
}

fn qwen2() -> ModelConfig {
    let json = json!({
        "model_type": "qwen2", "vocab_size": 13, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "tie_word_embeddings": false
    });
    config_from_hf(&json).unwrap()
}

fn settings(changes: Value) -> TrainConfig {
    config(
        &json!({"type": "adamw"}),
        "f32",
        &json!({"type": "constant"}),
    )
    .overlaid(changes)
    .unwrap()
}

fn resolved(model: &ModelConfig, changes: Value) -> Vec<ModelStateGroupAssignment> {
    group_accounts(model, &settings(changes), None, &|_| None).unwrap()
}

#[test]
fn class_is_what_the_family_says_of_the_members() {
    let groups = |patterns: &[&str]| json!({"groups": patterns.iter().map(|pattern| json!({"pattern": pattern})).collect::<Vec<_>>()});
    let classes = |model: &ModelConfig, patterns: &[&str]| -> Vec<GroupClass> {
        resolved(model, groups(patterns))
            .iter()
            .map(|group| group.class)
            .collect()
    };
    use GroupClass::{Bias, Embedding, Head, Matrix, Mixed, Scalar};
    let patterns = ["*wte*", "*wpe*", "*ln_?.weight", "*bias", "*attn*", "*"];
    assert_eq!(
        classes(&gpt2(), &patterns),
        [Embedding, Embedding, Scalar, Bias, Matrix, Matrix],
        "biases of norms are biases"
    );
    let patterns = ["*norm*", "*bias", "*embed*", "lm_head*", "*"];
    assert_eq!(
        classes(&qwen2(), &patterns),
        [Scalar, Bias, Embedding, Head, Matrix]
    );
    assert_eq!(
        classes(&qwen2(), &["{lm_head*,*embed*}", "*"]),
        [Mixed, Mixed]
    );
}

#[test]
fn group_means_the_module_of_all_its_members() {
    let patterns = [
        "*layers.0.self_attn.q_proj*",
        "*layers.0.self_attn.k_proj.weight",
        "*layers.0*",
        "*layers*",
        "lm_head*",
        "*",
    ];
    let groups = resolved(
        &qwen2(),
        json!({"groups": patterns.map(|pattern| json!({"pattern": pattern}))}),
    );
    let paths: Vec<String> = groups
        .iter()
        .map(|group| group.model_tree_path.join("."))
        .collect();
    let expected = [
        "model.layers.0.self_attn.q_proj",
        "model.layers.0.self_attn.k_proj",
        "model.layers.0",
        "model.layers.1",
        "lm_head",
    ];
    assert_eq!(paths[..5], expected);
    assert_eq!(paths[5], "model", "embedding and last norm");
    let names: Vec<&str> = groups[0]
        .members
        .iter()
        .map(|member| member.parameter.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "model.layers.0.self_attn.q_proj.weight",
            "model.layers.0.self_attn.q_proj.bias"
        ]
    );
    let all = resolved(&qwen2(), json!({}));
    assert_eq!(
        (
            all.len(),
            all[0].group_id.as_str(),
            all[0].model_tree_path.len()
        ),
        (1, "default", 0)
    );
    assert_eq!(groups[3].group_id, "groups/3");
}

/// Returns the state words of each kind, written by hand.
fn words(kind: &str, vector: bool) -> Vec<StateWord> {
    use StateWord::{Col, M, Momentum, Norm, Row, Step, V};
    match (kind, vector) {
        ("adamw", _) | ("apollo", true) => vec![M, Step, V],
        ("adafactor", true) => vec![Row, Step],
        ("adafactor", false) => vec![Col, Row, Step],
        ("apollo", false) => vec![M, Norm, Step, V],
        ("sgd with momentum", _) => vec![Momentum, Step],
        _ => vec![Step],
    }
}

#[test]
fn members_have_the_state_of_their_rule_and_steps_are_counted() {
    let groups = json!({"groups": [
        {"pattern": "*norm*", "frozen": true, "learning_rate_scale": 0.5},
        {"pattern": "*embed*", "optimizer": {"type": "sgd", "momentum": 0.9}},
        {"pattern": "*q_proj*", "optimizer": {"type": "adafactor"}},
        {"pattern": "*.mlp.*", "optimizer": {"type": "apollo", "rank": 2}},
        {"pattern": "*"}
    ]});
    let mut run = start(settings(groups), &cpu().inner());
    assert!(run.groups().iter().all(|group| group.applied_steps == 0
        && group.members.iter().all(|member| member.state.is_empty())));
    go(&mut run, 3);
    let groups = run.groups();
    let kinds: Vec<&str> = groups
        .iter()
        .map(|group| group.optimizer.kind.as_str())
        .collect();
    assert_eq!(kinds, ["adamw", "sgd", "adafactor", "apollo", "adamw"]);
    assert_eq!(
        groups
            .iter()
            .map(|group| group.applied_steps)
            .collect::<Vec<_>>(),
        [0, 3, 3, 3, 3]
    );
    assert!(groups[0].parameter_semantics.frozen && !groups[1].parameter_semantics.frozen);
    assert_eq!(groups[0].parameter_semantics.learning_rate_scale, 0.5);
    for (group, kind) in
        groups
            .iter()
            .zip(["none", "sgd with momentum", "adafactor", "apollo", "adamw"])
    {
        for member in &group.members {
            let expected = if kind == "none" {
                Vec::new()
            } else {
                words(kind, false)
            };
            assert_eq!(
                member.state.keys().copied().collect::<Vec<_>>(),
                expected,
                "{}",
                member.parameter
            );
            for (word, key) in &member.state {
                assert_eq!(*key, format!("{}:{}", member.parameter, word.text()));
            }
        }
        assert_eq!(group.residency, Some(Residency::Device));
    }
    let named: usize = groups.iter().map(|group| group.members.len()).sum();
    assert_eq!(named, run.model().parameters().len());
    let mut claimed: Vec<&String> = groups
        .iter()
        .flat_map(|group| &group.members)
        .flat_map(|member| member.state.values())
        .collect();
    claimed.sort();
    let stream = run.state_stream();
    assert_eq!(
        claimed,
        stream.iter().map(|tensor| &tensor.name).collect::<Vec<_>>(),
        "each state tensor is claimed once"
    );
}

#[test]
fn step_of_a_thawed_parameter_is_its_own_and_applied_steps_the_largest() {
    let device = cpu().inner();
    let frozen = json!({"groups": [{"pattern": "*embed*", "frozen": true}, {"pattern": "*"}]});
    let mut run = start(settings(frozen), &device);
    go(&mut run, 4);
    let thawed = crate::resume::resume(
        crate::resume::save(&run),
        json!({"groups": [{"pattern": "*"}]}),
        &["groups"],
    );
    let mut run = thawed.unwrap();
    go(&mut run, 6);
    let groups = run.groups();
    assert_eq!((groups.len(), groups[0].applied_steps), (1, 6));
    assert_eq!(run.optim().step_count("model.embed_tokens.weight"), 2);
}

#[test]
fn hyperparameters_come_back_for_every_rule() {
    for rule in rules() {
        let account = optimizer_record(&rule, 3e-4).unwrap();
        assert_eq!(optimizer_config(&account).unwrap(), rule);
        assert_eq!(account.hyperparameters["learning_rate"], 3e-4);
        // Every setting is present under its public name, except those that are not set.
        let value = serde_json::to_value(&rule).unwrap();
        let set = value
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, value)| match key.as_str() {
                "type" => false,
                "growth_limit" => true,
                _ => !value.is_null() && **value != "auto",
            });
        assert_eq!(account.hyperparameters.len(), set.count() + 1);
        // It survives JSON as well.
        let text = serde_json::to_string(&account).unwrap();
        assert_eq!(
            optimizer_config(&serde_json::from_str::<OptimizerRecord>(&text).unwrap()).unwrap(),
            rule
        );
    }
    let apollo = json!({"type": "apollo", "rank": 7, "scale": 1.5, "projector": "orthogonal", "mini": false, "eps": 1e-30, "beta1": 0.1});
    let apollo: OptimizerConfig = serde_json::from_value(apollo).unwrap();
    let account = optimizer_record(&apollo, 0.1).unwrap();
    let numbers = ["rank", "scale", "projector", "mini", "eps", "update_steps"]
        .map(|key| account.hyperparameters[key]);
    assert_eq!(numbers, [7.0, 1.5, 1.0, 0.0, 1e-30, 200.0]);
    assert_eq!(optimizer_config(&account).unwrap(), apollo);
    let words = json!({"type": "apollo", "growth_limit": null, "projected": "all", "adamw_learning_rate_scale": 0.5});
    let words: OptimizerConfig = serde_json::from_value(words).unwrap();
    let account = optimizer_record(&words, 0.1).unwrap();
    let numbers = ["growth_limit", "projected", "adamw_learning_rate_scale"]
        .map(|key| account.hyperparameters[key]);
    assert_eq!(numbers, [0.0, 1.0, 0.5]);
    assert!(
        !["rank", "scale"]
            .iter()
            .any(|key| account.hyperparameters.contains_key(*key)),
        "they follow from the matrix"
    );
    assert_eq!(optimizer_config(&account).unwrap(), words);
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> (&'static str, String) {
    let Err(Error::Refused(list)) = result else {
        panic!("{result:?}")
    };
    (list[0].code, list[0].subject.clone().unwrap())
}

#[test]
fn hyperparameters_that_tabtune_cannot_train_are_refused_by_name() {
    let account = optimizer_record(&OptimizerConfig::default(), 0.1).unwrap();
    for kind in ["adam", "lars", "lamb", "", "AdamW"] {
        let other = OptimizerRecord {
            kind: kind.into(),
            ..account.clone()
        };
        assert_eq!(
            refused(optimizer_config(&other)),
            ("state.group.kind", kind.to_string())
        );
    }
    let changes = [
        ("beta1", Some(f64::NAN)),
        ("beta1", Some(1.0)),
        ("eps", Some(f64::INFINITY)),
        ("stochastic_rounding", Some(0.5)),
        ("weight_decay", Some(-1.0)),
        ("weight_decay", None),
        ("learning_rate", None),
        ("learning_rate", Some(f64::NAN)),
        ("momentum", Some(0.9)),
    ];
    for (key, value) in changes {
        let mut other = account.clone();
        other.hyperparameters.remove(key);
        other
            .hyperparameters
            .extend(value.map(|value| (key.to_string(), value)));
        let (code, subject) = refused(optimizer_config(&other));
        assert_eq!(code, "state.group.hyperparameter");
        assert!(
            subject == key || subject == format!("optimizer.{key}"),
            "{subject} for {key}"
        );
    }
    let rule: OptimizerConfig =
        serde_json::from_value(json!({"type": "apollo", "rank": 2})).unwrap();
    for (key, value) in [
        ("rank", 2.5),
        ("rank", -1.0),
        ("rank", 1e300),
        ("projector", 2.0),
        ("update_steps", 0.0),
        ("scale", -1.0),
        ("scale", 0.0),
        ("growth_limit", 1.0),
        ("projected", 2.0),
    ] {
        let mut other = optimizer_record(&rule, 0.1).unwrap();
        other.hyperparameters.insert(key.into(), value);
        assert_eq!(
            refused(optimizer_config(&other)).0,
            "state.group.hyperparameter",
            "{key} {value}"
        );
    }
}

#[test]
fn schedules_come_back_and_others_are_refused() {
    let schedules = [
        json!({"type": "constant", "warmup_steps": 2}),
        json!({"type": "cosine", "total_steps": 8, "min_learning_rate": 1e-30}),
        json!({"type": "linear", "total_steps": 7}),
        json!({"type": "wsd", "decay_start_step": 2, "decay_steps": 5, "min_learning_rate": 1e-4}),
        json!({"type": "infinite", "annealing_start_step": 6, "tau": 4.5, "annealing_type": "exponential"}),
    ];
    for schedule in schedules {
        let kind = schedule["type"].as_str().unwrap().to_string();
        let schedule: ScheduleConfig = serde_json::from_value(schedule).unwrap();
        let account = scheduler_account(&schedule, Some(5)).unwrap();
        assert_eq!(
            (
                account.kind.clone(),
                account.start,
                account.config.get("type")
            ),
            (kind, Some(5), None)
        );
        assert_eq!(schedule_config(&account).unwrap(), schedule);
    }
    let account = |kind: &str, config: Value| SchedulerAccount {
        kind: kind.into(),
        config,
        start: None,
    };
    assert_eq!(
        refused(schedule_config(&account("step", json!({})))),
        ("state.group.kind", "step".into())
    );
    for config in [
        json!(7),
        json!({"gamma": 0.5}),
        json!({"warmup_steps": "two"}),
        json!({"type": "cosine"}),
    ] {
        assert_eq!(
            refused(schedule_config(&account("constant", config))).0,
            "state.group.hyperparameter"
        );
    }
}

#[test]
fn groups_of_a_fresh_run_follow_from_its_settings_alone() {
    let device: Device = cpu().inner();
    for (model, rule) in [qwen2(), gpt2()].into_iter().zip(rules()) {
        let config = settings(
            json!({"groups": "no_decay", "optimizer": serde_json::to_value(&rule).unwrap()}),
        );
        let fresh = block_on(Model::init(
            &model,
            3,
            config.precision,
            &device,
            &Interrupt::none(),
        ))
        .unwrap();
        let run = Trainer::new(fresh, dataset(), config.clone()).unwrap();
        assert_eq!(
            run.groups(),
            group_accounts(&model, &config, None, &|_| None).unwrap()
        );
        assert_eq!(
            run.groups()[0].optimizer.hyperparameters["weight_decay"],
            0.0
        );
    }
}
