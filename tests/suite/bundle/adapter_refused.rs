//! Refused adapters, each with a file of its own (tests/suite/portable/README.md, line 40).

use std::rc::Rc;

use safetensors::Dtype;
use serde_json::{Value, json};
use tabtune::Error;
use tabtune::bundle::{OpenOptions, open_bundle, open_bundle_with};
use tabtune::formats::{ByteSource, Digest};
use tabtune::state::{leaf, weights_digest};

use super::adapter::{DOWN, Q, Stored, adapter, f32s, llama, noise, pair, settings, written};
use super::files::file;

type Found = Vec<(&'static str, Option<String>)>;

fn refused(options: OpenOptions) -> Found {
    match open_bundle_with(llama(Dtype::F32, true), options) {
        Ok(_) => vec![("ok", None)],
        Err(Error::Refused(list)) => {
            assert!(
                list.iter()
                    .all(|refusal| !refusal.artifact.is_empty() || refusal.subject.is_some()),
                "{list:?}"
            );
            list.into_iter()
                .map(|refusal| (refusal.code, refusal.subject))
                .collect()
        }
        Err(other) => panic!("{other}"),
    }
}

fn whole() -> Vec<Stored> {
    [pair(Q, 4, [8, 8]), pair(DOWN, 4, [8, 6])].concat()
}

fn one(code: &'static str, subject: &str) -> Found {
    vec![(code, Some(subject.to_string()))]
}

#[test]
fn configurations_are_refused_by_the_path_of_their_field() {
    let with = |change: Value| refused(adapter(&settings(change), &whole()));
    assert_eq!(with(json!({})), [("ok", None)]);
    let long = "x".repeat(1025);
    let shown = |path: &str| format!("{path}/{}…", "x".repeat(64 - path.len() - 1));
    for (change, code, subject) in [
        (json!({"r": null}), "adapter.field.missing", "r"),
        (
            json!({"lora_alpha": null}),
            "adapter.field.missing",
            "lora_alpha",
        ),
        (
            json!({"target_modules": null}),
            "adapter.field.missing",
            "target_modules",
        ),
        (
            json!({"peft_type": null}),
            "adapter.field.missing",
            "peft_type",
        ),
        (
            json!({"peft_type": "LOHA"}),
            "adapter.type.unsupported",
            "LOHA",
        ),
        (json!({"r": 0}), "adapter.rank", "r"),
        (json!({"r": 65537}), "adapter.rank", "r"),
        (
            json!({"rank_pattern": {"layers.0.q_proj": 0}}),
            "adapter.rank",
            "rank_pattern/layers.0.q_proj",
        ),
        (
            json!({"rank_pattern": {"q_proj": 1.5}}),
            "adapter.rank",
            "rank_pattern/q_proj",
        ),
        (json!({"lora_alpha": -1}), "adapter.alpha", "lora_alpha"),
        (
            json!({"alpha_pattern": {"q_proj": "8"}}),
            "adapter.alpha",
            "alpha_pattern/q_proj",
        ),
        (
            json!({"alpha_pattern": {"q(": 8}}),
            "adapter.pattern.invalid",
            "alpha_pattern/q(",
        ),
        (
            json!({"rank_pattern": {"(?=q)q_proj": 8}}),
            "adapter.pattern.invalid",
            "rank_pattern/(?=q)q_proj",
        ),
        (
            json!({"rank_pattern": {(long.as_str()): 8}}),
            "adapter.pattern.length",
            &shown("rank_pattern"),
        ),
        (
            json!({"target_modules": ["q_proj", long]}),
            "adapter.pattern.length",
            "target_modules/1",
        ),
        (
            json!({"target_modules": "(a)\\1"}),
            "adapter.pattern.invalid",
            "target_modules",
        ),
        (
            json!({"target_modules": "(((a{99}){99}){99}){99}"}),
            "adapter.pattern.invalid",
            "target_modules",
        ),
        (
            json!({"target_modules": vec!["q_proj"; 4097]}),
            "adapter.pattern.count",
            "target_modules",
        ),
        (
            json!({"target_modules": []}),
            "adapter.target.none",
            "target_modules",
        ),
        (
            json!({"target_modules": ["q_proj", 3]}),
            "adapter.field.type",
            "target_modules/1",
        ),
        (json!({"use_rslora": 1}), "adapter.field.type", "use_rslora"),
        (
            json!({"layers_to_transform": [0, -1]}),
            "adapter.field.type",
            "layers_to_transform/1",
        ),
        (
            json!({"modules_to_save": "norm"}),
            "adapter.field.type",
            "modules_to_save",
        ),
        (
            json!({"use_dora": true}),
            "adapter.feature.unsupported",
            "use_dora",
        ),
        (
            json!({"use_qalora": true}),
            "adapter.feature.unsupported",
            "use_qalora",
        ),
        (
            json!({"use_bdlora": true}),
            "adapter.feature.unsupported",
            "use_bdlora",
        ),
        (
            json!({"lora_bias": true}),
            "adapter.feature.unsupported",
            "lora_bias",
        ),
        (
            json!({"bias": "lora_only"}),
            "adapter.feature.unsupported",
            "bias",
        ),
        (
            json!({"layer_replication": [[0, 1]]}),
            "adapter.feature.unsupported",
            "layer_replication",
        ),
        (
            json!({"target_parameters": ["a"]}),
            "adapter.feature.unsupported",
            "target_parameters",
        ),
        (
            json!({"trainable_token_indices": [1]}),
            "adapter.feature.unsupported",
            "trainable_token_indices",
        ),
        (
            json!({"alora_invocation_tokens": [1]}),
            "adapter.feature.unsupported",
            "alora_invocation_tokens",
        ),
        (
            json!({"arrow_config": {"a": 1}}),
            "adapter.feature.unsupported",
            "arrow_config",
        ),
        (
            json!({"init_lora_weights": "olora"}),
            "adapter.feature.unsupported",
            "init_lora_weights",
        ),
        (
            json!({"init_lora_weights": "pissa_niter_4"}),
            "adapter.feature.unsupported",
            "init_lora_weights",
        ),
    ] {
        let name = change.to_string();
        assert_eq!(with(change), one(code, subject), "{name}");
    }
    let odd = adapter(&settings(json!({"some_new_field": 1})), &whole());
    let bundle = open_bundle_with(llama(Dtype::F32, true), odd).unwrap();
    let found: Vec<_> = bundle
        .warnings
        .iter()
        .map(|warning| (warning.code, warning.subject.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (
                "adapter.pair.absent",
                "model.layers.0.mlp.down_proj and 1 more"
            ),
            ("adapter.field.unknown", "some_new_field")
        ]
    );
}

#[test]
fn tensors_that_do_not_fit_are_listed_together() {
    let with = |change: Value, tensors: &[Stored]| refused(adapter(&settings(change), tensors));
    let each = |code: &'static str, names: &[&str]| -> Found {
        names
            .iter()
            .map(|name| (code, Some((*name).to_string())))
            .collect()
    };
    let halves = [whole()[0].clone(), whole()[3].clone()];
    assert_eq!(
        with(json!({}), &halves),
        each("adapter.pair.incomplete", &[Q, DOWN])
    );
    assert_eq!(
        with(json!({"r": 3}), &whole()),
        each("adapter.rank.mismatch", &[Q, DOWN])
    );
    assert_eq!(
        with(json!({"rank_pattern": {"down_proj": 5}}), &whole()),
        each("adapter.rank.mismatch", &[DOWN])
    );
    let turned = [pair(Q, 4, [8, 6]), pair(DOWN, 4, [6, 8])].concat();
    assert_eq!(with(json!({}), &turned), each("adapter.shape", &[Q, DOWN]));
    let norm = [
        whole(),
        vec![f32s("base_model.model.model.norm.weight", &[9], 3)],
    ]
    .concat();
    assert_eq!(
        with(json!({"modules_to_save": ["norm"]}), &norm),
        each("adapter.shape", &["model.norm.weight"])
    );
    let one_dimension = [
        whole(),
        vec![
            f32s("base_model.model.model.norm.lora_A.weight", &[8], 3),
            f32s("base_model.model.model.norm.lora_B.weight", &[8], 3),
        ],
    ]
    .concat();
    assert_eq!(
        with(json!({"target_modules": ".*"}), &one_dimension),
        each("adapter.shape", &["model.norm"])
    );
    let third = "model.layers.2.self_attn.q_proj";
    let elsewhere = [whole(), pair(third, 4, [8, 8])].concat();
    assert_eq!(
        with(json!({}), &elsewhere),
        each("adapter.target.unmatched", &[third])
    );
    assert_eq!(
        with(json!({"target_modules": ["q_proj"]}), &whole()),
        each("adapter.target.unmatched", &[DOWN])
    );
    let idle = json!({"target_modules": ["q_proj", "down_proj", "w1", "w2"]});
    let told = |change: Value| {
        let bundle = open_bundle_with(
            llama(Dtype::F32, true),
            adapter(&settings(change), &whole()),
        )
        .unwrap();
        // Each of the two pairs is in one of the two blocks.
        let (absent, others): (Vec<_>, Vec<_>) = bundle
            .warnings
            .iter()
            .partition(|warning| warning.code == "adapter.pair.absent");
        assert_eq!(absent[0].subject, "model.layers.0.mlp.down_proj and 1 more");
        others
            .into_iter()
            .map(|warning| (warning.code, Some(warning.subject.clone())))
            .collect::<Found>()
    };
    for (key, value) in [
        ("rank_pattern", json!({"w5": 2, "q_proj": 4})),
        ("alpha_pattern", json!({"w5": 2.0, "q_proj": 4.0})),
    ] {
        assert_eq!(
            told(json!({key: value})),
            each("adapter.target.unmatched", &[&format!("w5 in {key}")])
        );
    }
    // PEFT ignores names that match nothing.
    assert_eq!(told(idle), each("adapter.target.unmatched", &["w1", "w2"]));
    let idle_names =
        json!({"exclude_modules": ["w3", "mlp", "lm_head"], "layers_pattern": ["h", "layers"]});
    assert_eq!(
        told(idle_names),
        each(
            "adapter.target.unmatched",
            &["w3 in exclude_modules", "h in layers_pattern"]
        )
    );
    assert_eq!(
        told(json!({"exclude_modules": ".*w4"})),
        each("adapter.target.unmatched", &[".*w4 in exclude_modules"])
    );
    assert_eq!(
        told(json!({"exclude_modules": ".*k_proj"})),
        each("adapter.target.unmatched", &[".*k_proj in exclude_modules"])
    );
    // Which pairs a pattern excludes that cannot be read is unknown, so all of them are used.
    assert_eq!(
        told(json!({"exclude_modules": "(?!q_proj).*"})),
        each(
            "adapter.pattern.invalid",
            &["(?!q_proj).* in exclude_modules"]
        )
    );
    // If every pair is excluded, nothing of the adapter is left.
    assert_eq!(
        with(
            json!({"exclude_modules": ["self_attn.q_proj", "down_proj"]}),
            &whole()
        ),
        each("adapter.target.unmatched", &[Q, DOWN])
    );
    assert_eq!(
        with(json!({"target_modules": "all-linear"}), &[]),
        each("adapter.target.unmatched", &["all-linear"])
    );
    assert_eq!(
        with(json!({"target_modules": "all-linear"}), &whole()),
        [("ok", None)]
    );
    assert_eq!(
        with(json!({"layers_to_transform": [1]}), &whole()),
        each("adapter.target.unmatched", &[Q])
    );
    assert_eq!(
        with(json!({"layers_to_transform": [1, 0]}), &whole()),
        [("ok", None)]
    );
    assert_eq!(
        told(json!({"modules_to_save": ["norm"]})),
        each("adapter.target.unmatched", &["norm"])
    );
    let strange = [
        whole(),
        vec![
            f32s("x.weight", &[1], 0),
            f32s("base_model.model.score.weight", &[1], 0),
        ],
    ]
    .concat();
    assert_eq!(
        with(json!({}), &strange),
        each("adapter.target.unmatched", &["x.weight", "score.weight"])
    );
    let mut integers = whole();
    (integers[0].1, integers[0].3) = (Dtype::I32, noise(0, 32));
    assert_eq!(with(json!({}), &integers)[0].0, "model.tensor.dtype");
    let mut twice = whole();
    twice.push(f32s(
        &format!("base_model.model.{Q}.lora_A.default.weight"),
        &[4, 8],
        1,
    ));
    assert_eq!(with(json!({}), &twice)[0].0, "model.tensor.name-twice");
}

/// A file may have a pair of a module that its configuration excludes: PEFT does not use it, merged or apart, nor does it check it.
#[test]
fn pairs_of_excluded_modules_are_not_used() {
    let base = open_bundle(llama(Dtype::F32, true)).unwrap();
    let both = [pair(Q, 4, [8, 8]), pair(DOWN, 3, [8, 5])].concat();
    let weight = |module: &str| format!("{module}.weight");
    for excluded in [
        json!({"exclude_modules": ["down_proj"]}),
        json!({"exclude_modules": [DOWN]}),
        json!({"exclude_modules": ["q", "mlp.down_proj"]}),
        json!({"exclude_modules": r".*\.1\.mlp\..*"}),
        json!({"modules_to_save": ["mlp"]}),
    ] {
        for apart in [false, true] {
            let options = OpenOptions {
                apart,
                ..adapter(&settings(excluded.clone()), &both)
            };
            let bundle = open_bundle_with(llama(Dtype::F32, true), options).unwrap();
            let told: Vec<_> = bundle
                .warnings
                .iter()
                .filter(|warning| warning.code == "adapter.target.excluded")
                .collect();
            assert!(
                told.len() == 1 && told[0].subject == DOWN,
                "{excluded}: {:?}",
                bundle.warnings
            );
            assert!(
                !bundle
                    .warnings
                    .iter()
                    .any(|warning| warning.subject == "down_proj"),
                "{excluded}: {:?}",
                bundle.warnings
            );
            assert_eq!(
                bundle.read_f32(&weight(DOWN)).unwrap(),
                base.read_f32(&weight(DOWN)).unwrap(),
                "{excluded}"
            );
            let changed =
                bundle.read_f32(&weight(Q)).unwrap() != base.read_f32(&weight(Q)).unwrap();
            assert_eq!(changed, !apart, "{excluded}");
        }
    }
    // The whole name must match a pattern, and a name must begin after a dot.
    for other in [
        json!({"exclude_modules": "down_proj"}),
        json!({"exclude_modules": ["proj"]}),
    ] {
        assert_eq!(
            refused(adapter(&settings(other), &both))[0].0,
            "adapter.rank.mismatch"
        );
    }
}

#[test]
fn a_stated_base_must_be_the_base() {
    let base = open_bundle(llama(Dtype::F32, true)).unwrap();
    let leaves = base.names().into_iter().map(|name| {
        let bytes: Vec<u8> = base
            .read_f32(&name)
            .unwrap()
            .into_iter()
            .flat_map(f32::to_le_bytes)
            .collect();
        let shape: Vec<u64> = base
            .shape(&name)
            .unwrap()
            .into_iter()
            .map(|dim| dim as u64)
            .collect();
        (name.clone(), leaf(&name, "F32", &shape, Digest::of(&bytes)))
    });
    let right = weights_digest(&leaves.collect()).to_string();
    let with = |digest: &str| {
        refused(adapter(
            &settings(json!({"base_weights_digest": digest})),
            &whole(),
        ))
    };
    assert_eq!(with(&right), [("ok", None)]);
    assert_eq!(
        with(&"0".repeat(64)),
        one("adapter.base.mismatch", "base_weights_digest")
    );
    assert_eq!(
        with("abc"),
        one("adapter.field.type", "base_weights_digest")
    );
}

#[test]
fn values_that_the_base_cannot_hold_are_refused_where_they_are_read() {
    let mut tensors = whole();
    tensors[0].3.fill(400.0);
    tensors[1].3.fill(400.0);
    let merged = open_bundle_with(
        llama(Dtype::F16, true),
        adapter(&settings(json!({})), &tensors),
    )
    .unwrap();
    let error = merged.read_f32(&format!("{Q}.weight")).unwrap_err();
    assert_eq!(
        (error.code(), error.kind()),
        ("export.overflow", "BAD_OPTION")
    );
    assert!(merged.read_f32(&format!("{DOWN}.weight")).is_ok());
    tensors[0].3[0] = f32::NAN;
    let merged = open_bundle_with(
        llama(Dtype::F32, true),
        adapter(&settings(json!({})), &tensors),
    )
    .unwrap();
    assert_eq!(
        merged.non_finite(&format!("{Q}.weight")).unwrap(),
        8,
        "one column of the product"
    );
}

#[test]
fn files_that_are_no_adapter_of_peft_are_refused() {
    let config = || file("adapter_config.json", settings(json!({})).to_string());
    let code = |files: Vec<Rc<dyn ByteSource>>| {
        refused(OpenOptions {
            adapter: Some(files),
            ..OpenOptions::default()
        })[0]
            .0
    };
    assert_eq!(
        code(vec![config(), file("adapter_model.bin", "PK\x03\x04")]),
        "format.unsupported"
    );
    assert_eq!(code(vec![file("lora.gguf", "GGUF")]), "format.unsupported");
    assert_eq!(code(vec![config()]), "bundle.weights.missing");
    assert_eq!(
        code(vec![file("adapter_model.safetensors", written(&whole()))]),
        "bundle.config.missing"
    );
    assert_eq!(
        code(vec![
            config(),
            file("adapter_model.safetensors", "PK\x03\x04")
        ]),
        "format.mismatch",
        "a pickle by another name"
    );
    assert_eq!(
        code(vec![
            file("adapter_config.json", "{"),
            file("adapter_model.safetensors", written(&whole()))
        ]),
        "adapter.json"
    );
    let both = vec![
        config(),
        file("adapter_model.safetensors", written(&whole())),
        file("training_args.bin", "PK\x03\x04"),
    ];
    assert_eq!(
        code(both),
        "ok",
        "what is beside the adapter does not matter"
    );
    let among = [llama(Dtype::F32, true), vec![config()]]
        .into_iter()
        .flatten()
        .collect();
    let Err(Error::Refused(list)) = open_bundle(among) else {
        panic!("an adapter was passed over")
    };
    assert_eq!(list[0].code, "bundle.adapter");
    let hint = list[0].hint.as_deref().unwrap();
    assert!(
        hint.contains("mergeAdapter") && hint.contains("--merge-adapter"),
        "{hint}"
    );
}

#[test]
fn modules_without_a_pair_are_reported_unless_the_configuration_leaves_them_out() {
    let told = |change: Value, tensors: &[Stored]| {
        let bundle =
            open_bundle_with(llama(Dtype::F32, true), adapter(&settings(change), tensors)).unwrap();
        let absent = bundle
            .warnings
            .iter()
            .filter(|warning| warning.code == "adapter.pair.absent");
        absent
            .map(|warning| warning.subject.clone())
            .collect::<Vec<String>>()
    };
    let other = Q.replace('0', "1");
    let queries = || pair(Q, 4, [8, 8]);
    assert_eq!(
        told(json!({"target_modules": ["q_proj"]}), &queries()),
        std::slice::from_ref(&other)
    );
    assert_eq!(
        told(json!({"target_modules": ".*q_proj"}), &queries()),
        std::slice::from_ref(&other)
    );
    assert!(
        told(
            json!({"target_modules": ["q_proj"]}),
            &[queries(), pair(&other, 4, [8, 8])].concat()
        )
        .is_empty()
    );
    for narrower in [
        json!({"target_modules": ["q_proj"], "layers_to_transform": [0]}),
        json!({"target_modules": [Q]}),
        json!({"target_modules": r".*\.0\..*"}),
        json!({"target_modules": ["q_proj"], "exclude_modules": [other]}),
    ] {
        assert!(told(narrower.clone(), &queries()).is_empty(), "{narrower}");
    }
}
