//! Settings of adapters: the modules that they select, compared with PEFT; refused settings; the file that PEFT reads.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tabtune::Error;
use tabtune::bundle::{LoraConfig, adapter_config_json};
use tabtune::config::{
    AdapterConfig, Architecture, BaseStorage, BlockPattern, Module, ModuleKind, Pattern, PeftNames,
    Resolved, TrainConfig,
};
use tabtune::families::peft_names;
use tabtune::formats::MemorySource;

use super::{read, refused};

const GOLDEN: &str = include_str!("../../golden/adapters/settings.json");

fn golden() -> Value {
    serde_json::from_str(GOLDEN).unwrap()
}

fn family(model: &str) -> &'static PeftNames {
    peft_names(if model == "gpt2" {
        Architecture::Gpt2
    } else {
        Architecture::Llama
    })
}

fn modules(golden: &Value, model: &str) -> Vec<Module> {
    let module = |of: &Value| {
        let name = of[0].as_str().unwrap().to_string();
        let kind = match of[1].as_str().unwrap() {
            "matrix" => ModuleKind::Matrix,
            "norm" => ModuleKind::Norm,
            "embedding" => ModuleKind::Embedding,
            _ => ModuleKind::Head,
        };
        let shape = serde_json::from_value(of[2].clone()).unwrap();
        let block = name.split('.').find_map(|part| part.parse().ok());
        Module {
            name,
            block,
            shape,
            kind,
            tied: of[3] == true,
            fan_in_fan_out: of[4] == true,
        }
    };
    golden["models"][model]
        .as_array()
        .unwrap()
        .iter()
        .map(module)
        .collect()
}

fn settings(of: &Value) -> Result<AdapterConfig, Error> {
    Ok(TrainConfig::default()
        .overlaid(json!({ "adapter": of }))?
        .adapter
        .unwrap())
}

fn resolved(golden: &Value, model: &str, of: &Value) -> Result<Resolved, Error> {
    settings(of)?.resolve(family(model), &modules(golden, model))
}

/// Returns targets in the form of PEFT's golden: name → rank and scale.
fn as_golden(resolved: &Resolved) -> BTreeMap<String, (usize, f64)> {
    resolved
        .targets
        .iter()
        .map(|target| (target.module.clone(), (target.rank, target.scale)))
        .collect()
}

fn words(error: &Error) -> Vec<&str> {
    if let Error::Refused(list) = error {
        list.iter().map(|refusal| refusal.code).collect()
    } else {
        vec![error.code()]
    }
}

#[test]
fn targets_are_those_of_peft() {
    let golden = golden();
    let cases = golden["cases"].as_array().unwrap();
    let (mut equal, mut failed) = (0, 0);
    for case in cases {
        let (model, peft) = (case["model"].as_str().unwrap(), &case["peft"]);
        let name = format!("{model} {}", case["settings"]);
        match resolved(&golden, model, &case["settings"]) {
            Ok(found) => {
                assert_eq!(case["refused"], json!([]), "{name}");
                let expected: BTreeMap<String, (usize, f64)> =
                    serde_json::from_value(peft["targets"].clone()).unwrap();
                assert_eq!(as_golden(&found), expected, "{name}");
                assert_eq!(json!(found.saved), peft["saved"], "{name}");
                equal += 1;
            }
            Err(error) => {
                assert_eq!(json!(words(&error)), case["refused"], "{name}: {error}");
                assert_eq!(error.kind(), "BAD_OPTION", "{name}: {error}");
                failed += 1;
            }
        }
    }
    assert!(equal > 40 && failed > 30, "{equal} equal, {failed} refused");
}

#[test]
fn targets_have_shapes_in_the_order_of_the_model() {
    let found = resolved(
        &golden(),
        "gpt2",
        &json!({"target_modules": ["c_proj", "c_attn"], "r": 17}),
    )
    .unwrap();
    let shown: Vec<_> = found
        .targets
        .iter()
        .take(3)
        .map(|t| (t.module.as_str(), t.out, t.input, t.alpha))
        .collect();
    let block = |end: &str| format!("transformer.h.0.{end}");
    let names = ["attn.c_attn", "attn.c_proj", "mlp.c_proj"].map(block);
    assert_eq!(
        shown,
        [
            (names[0].as_str(), 48, 16, 8.0),
            (&names[1], 16, 16, 8.0),
            (&names[2], 16, 64, 8.0)
        ]
    );
    let warnings: Vec<_> = found
        .warnings
        .iter()
        .map(|warning| (warning.code.text(), warning.subject.as_str()))
        .collect();
    assert_eq!(
        warnings,
        names
            .iter()
            .map(|name| ("adapter.rank.large", name.as_str()))
            .collect::<Vec<_>>(),
        "once for all blocks"
    );
    let largest = resolved(&golden(), "gpt2", &json!({"r": 16})).unwrap();
    assert!(
        largest.warnings.is_empty(),
        "the smaller side itself is no warning"
    );
}

#[test]
fn refusals_name_modules_and_settings_together() {
    let of = json!({"target_modules": ["norm", "lm_head", "w1"], "exclude_modules": ["w2"], "rank_pattern": {"w3": 4}, "modules_to_save": ["w4"],
                    "layers_to_transform": [9], "layers_pattern": ["h"]});
    let Err(Error::Refused(list)) = resolved(&golden(), "qwen2", &of) else {
        panic!("resolved")
    };
    let shown: Vec<_> = list
        .iter()
        .map(|refusal| (refusal.code, refusal.subject.as_deref().unwrap()))
        .collect();
    // The norm is not in a block 9; a whole name is meant wherever it is.
    let unmatched = ["w1", "w2", "9", "h", "w3", "w4"].map(|name| ("adapter.target.unknown", name));
    assert_eq!(
        shown,
        [
            &[("adapter.target.unsupported", "lm_head")],
            unmatched.as_slice()
        ]
        .concat()
    );
    let of = json!({"target_modules": ["norm", "lm_head", "input_layernorm"], "modules_to_save": ["embed_tokens", "up_proj"]});
    let Err(Error::Refused(list)) = resolved(&golden(), "qwen2", &of) else {
        panic!("resolved")
    };
    let shown: Vec<_> = list
        .iter()
        .map(|refusal| {
            (
                refusal.subject.as_deref().unwrap(),
                refusal.found.as_deref().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("model.layers.0.input_layernorm", "a norm, in 2 blocks"),
            ("model.norm", "a norm"),
            ("lm_head", "the head"),
            ("model.layers.0.mlp.up_proj", "a matrix"),
            (
                "model.embed_tokens",
                "a matrix that is both embedding and head"
            ),
        ]
    );
}

#[test]
fn faults_of_settings_are_reported_together() {
    let long = "x".repeat(1025);
    let faults = refused(json!({"steps": 0, "base_storage": "q4", "adapter": {
        "r": 65537, "alpha": 0, "dropout": 1, "rank": 4, "rslora": 1, "bias": "lora_only", "init": "pissa_niter_4", "target_modules": 3,
        "layers_to_transform": -1, "rank_pattern": {"a": 1.5}, "modules_to_save": "norm", "layers_pattern": ["h", 1]}}));
    let shown: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let keys = "r, alpha, target_modules, exclude_modules, layers_to_transform, layers_pattern, rank_pattern, alpha_pattern, dropout, rslora, \
                modules_to_save, init, bias";
    assert_eq!(
        shown,
        [
            &format!("adapter.rank: expected one of {keys}, found an unknown key"),
            "adapter.rslora: expected true or false, found 1",
            r#"adapter.bias: expected "none", found "lora_only""#,
            r#"adapter.init: expected true or "gaussian": pissa_niter_4 changes the base, found "pissa_niter_4""#,
            "adapter.target_modules: expected a list of names, or one text, found 3",
            "adapter.layers_to_transform: expected an integer ≥ 0, or a list of them, found -1",
            r#"adapter.rank_pattern: expected an integer ≥ 0, found {"a":1.5}"#,
            r#"adapter.modules_to_save: expected a sequence, found "norm""#,
            r#"adapter.layers_pattern: expected a string, found ["h",1]"#,
            r#"base_storage: expected one of "stored", "bf16", "f32", found "q4""#,
            "steps: expected an integer ≥ 1, found 0",
        ]
    );
    let keys = |of: Value| {
        refused(json!({ "adapter": of }))
            .into_iter()
            .map(|fault| fault.key)
            .collect::<Vec<_>>()
    };
    let values = json!({"r": 65537, "alpha": 1e-60, "dropout": 1, "rank_pattern": {"a": 0, "b": 4}, "alpha_pattern": {"a": -1}});
    assert_eq!(
        keys(values),
        [
            "adapter.r",
            "adapter.alpha",
            "adapter.dropout",
            "adapter.rank_pattern",
            "adapter.alpha_pattern"
        ]
    );
    let texts = json!({"target_modules": "(?!a)", "exclude_modules": [long.clone()], "rank_pattern": {"q(": 4}, "alpha_pattern": {(long): 4},
                       "layers_to_transform": 0, "layers_pattern": ["a|b"], "modules_to_save": ["(a)\\1", ""]});
    let found = [
        "layers_to_transform",
        "layers_pattern",
        "modules_to_save",
        "target_modules",
        "exclude_modules",
        "rank_pattern",
        "alpha_pattern",
        "layers_pattern",
        "modules_to_save",
    ];
    assert_eq!(keys(texts), found.map(|key| format!("adapter.{key}")));
    assert_eq!(
        keys(json!({"target_modules": []})),
        ["adapter.target_modules"]
    );
    assert_eq!(
        keys(json!({"target_modules": vec!["a"; 4097]})),
        ["adapter.target_modules"]
    );
    assert_eq!(keys(json!({"init": "olora"})), keys(json!({"init": false})));
    assert_eq!(
        refused(json!({"adapter": 3}))[0].to_string(),
        "adapter: expected an object, or null, found 3"
    );
    for edge in [
        json!({"r": 65536}),
        json!({"r": 1, "dropout": 0.999}),
        json!({"target_modules": ["x".repeat(1024)]}),
    ] {
        settings(&edge).unwrap();
    }
}

#[test]
fn an_adapter_runs_its_blocks_again_by_default() {
    let recomputes = |given: Value| read(given).gradient_checkpointing;
    assert!(!recomputes(json!({})) && !recomputes(json!({"adapter": null})));
    assert!(recomputes(json!({"adapter": {}})));
    assert!(!recomputes(
        json!({"adapter": {}, "gradient_checkpointing": false})
    ));
    // A resumed run keeps its settings, whatever they are.
    let off =
        read(json!({"adapter": {"r": 4}, "gradient_checkpointing": false, "base_storage": "f32"}));
    let resumed = off.overlaid(json!({"adapter": {"dropout": 0.1}})).unwrap();
    assert_eq!(
        (
            resumed.gradient_checkpointing,
            resumed.adapter.as_ref().unwrap().r,
            resumed.base_storage
        ),
        (false, 4, BaseStorage::F32)
    );
    // Settings of earlier checkpoints do not mention adapters.
    let mut earlier = serde_json::to_value(TrainConfig::default()).unwrap();
    for key in ["adapter", "base_storage"] {
        earlier.as_object_mut().unwrap().shift_remove(key).unwrap();
    }
    assert_eq!(
        serde_json::from_value::<TrainConfig>(earlier).unwrap(),
        TrainConfig::default()
    );
}

#[test]
fn tables_keep_their_order_and_are_replaced_whole() {
    let of = json!({"rank_pattern": {"v_proj": 4, "q_proj": 2, "a": 9}, "target_modules": "all-linear", "layers_pattern": null});
    let run = read(json!({ "adapter": of }));
    let order = |run: &TrainConfig| {
        run.adapter
            .as_ref()
            .unwrap()
            .rank_pattern
            .0
            .iter()
            .map(|(key, _)| key.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(order(&run), ["v_proj", "q_proj", "a"]);
    let text = serde_json::to_string(&run).unwrap();
    assert_eq!(
        serde_json::from_str::<TrainConfig>(&text).unwrap(),
        run,
        "as a checkpoint has them"
    );
    assert_eq!(
        order(
            &run.overlaid(json!({"adapter": {"rank_pattern": {"z": 3}}}))
                .unwrap()
        ),
        ["z"]
    );
    assert_eq!(
        order(&run.overlaid(json!({"adapter": {"alpha": 3}})).unwrap()),
        ["v_proj", "q_proj", "a"]
    );
    assert!(
        serde_json::from_str::<AdapterConfig>(r#"{"rank_pattern": {"a": 1, "a": 2}}"#).is_err(),
        "a key given twice"
    );
}

#[test]
fn patterns_do_not_leave_their_brackets() {
    for text in ["a)|(b", "(?x)a #", "a\\"] {
        assert!(
            Pattern::whole("x", text).is_err() && Pattern::end("x", text).is_err(),
            "{text}"
        );
    }
    let block = |text| {
        BlockPattern::new("x", text)
            .unwrap()
            .block_of("a.b.3.c.41.q")
    };
    assert_eq!(
        (
            block(None),
            block(Some("b")),
            block(Some("a")),
            block(Some("(?:b|c)"))
        ),
        (Some(41), Some(3), None, Some(41))
    );
}

fn written(
    golden: &Value,
    model: &str,
    of: &Value,
    kept: &Map<String, Value>,
) -> (String, Resolved) {
    let found = resolved(golden, model, of).unwrap();
    (
        adapter_config_json(
            &settings(of).unwrap(),
            family(model),
            Some("base"),
            &found,
            kept,
        ),
        found,
    )
}

#[test]
fn written_configurations_are_those_of_peft() {
    let golden = golden();
    for case in golden["configs"].as_array().unwrap() {
        let (model, of) = (case["model"].as_str().unwrap(), &case["settings"]);
        let (text, found) = written(&golden, model, of, &Map::new());
        let ours: Map<String, Value> = serde_json::from_str(&text).unwrap();
        assert!(ours.keys().is_sorted(), "{text}");
        let theirs = case["file"].as_object().unwrap();
        assert!(ours.keys().eq(theirs.keys()), "{text}");
        let tables = ["rank_pattern", "alpha_pattern"];
        for (key, value) in ours
            .iter()
            .filter(|(key, _)| *key != "base_model_name_or_path" && !tables.contains(&key.as_str()))
        {
            assert_eq!(value, &theirs[key], "{model} {of}: {key}");
        }
        // The tables name whole modules, in whatever form the settings are.
        let table =
            |own: &dyn Fn(&tabtune::config::Target) -> Option<f64>| -> BTreeMap<String, f64> {
                found
                    .targets
                    .iter()
                    .filter_map(|target| Some((target.module.clone(), own(target)?)))
                    .collect()
            };
        let read =
            |key: &str| serde_json::from_value::<BTreeMap<String, f64>>(ours[key].clone()).unwrap();
        assert_eq!(
            read("rank_pattern"),
            table(&|target| (target.rank != 8 && of["r"].is_null()).then_some(target.rank as f64)),
            "{of}"
        );
        let alpha = settings(of).unwrap().alpha;
        assert_eq!(
            read("alpha_pattern"),
            table(&|target| (target.alpha != alpha).then_some(target.alpha)),
            "{of}"
        );
        // The written file means the same modules when it is read.
        let again =
            LoraConfig::open(&MemorySource::new("adapter_config.json", text.into_bytes())).unwrap();
        assert!(again.warnings.is_empty() && again.fan_in_fan_out == (model == "gpt2"));
        assert_eq!(
            again
                .settings()
                .resolve(family(model), &modules(&golden, model))
                .unwrap(),
            found,
            "{of}"
        );
        assert_eq!(
            (again.settings().dropout, again.settings().init),
            (settings(of).unwrap().dropout, settings(of).unwrap().init)
        );
    }
}

#[test]
fn unknown_fields_of_a_file_are_kept_and_read_settings_hold() {
    let golden = golden();
    let file = json!({"peft_type": "LORA", "r": 4, "lora_alpha": 6.5, "lora_dropout": 0.25, "target_modules": ["v_proj", "q_proj"], "new_field": {"b": [1, 2.5]},
                      "exclude_modules": r".*\.0\..*", "layers_to_transform": 1, "layers_pattern": "layers", "rank_pattern": {"v_proj": 2, "q_proj": 3},
                      "modules_to_save": ["norm"], "use_rslora": true, "init_lora_weights": "gaussian", "r_new": null});
    let open = |file: &Value| {
        LoraConfig::open(&MemorySource::new(
            "adapter_config.json",
            file.to_string().into_bytes(),
        ))
    };
    let config = open(&file).unwrap();
    let own = config.settings();
    let expected = settings(
        &json!({"r": 4, "alpha": 6.5, "dropout": 0.25, "target_modules": ["q_proj", "v_proj"], "exclude_modules": r".*\.0\..*",
                                    "layers_to_transform": [1], "layers_pattern": "layers", "rank_pattern": {"v_proj": 2, "q_proj": 3},
                                    "modules_to_save": ["norm"], "rslora": true, "init": "gaussian"}),
    );
    assert_eq!(own, expected.unwrap());
    let found = own
        .resolve(family("llama"), &modules(&golden, "llama"))
        .unwrap();
    let text = adapter_config_json(&own, family("llama"), Some("a/b"), &found, &config.unknown);
    let again: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&again["new_field"], &again["r_new"]),
        (&json!({"b": [1, 2.5]}), &Value::Null)
    );
    assert!(
        again.as_object().unwrap().contains_key("r_new")
            && again.as_object().unwrap().keys().is_sorted()
    );
    assert_eq!(
        (&again["base_model_name_or_path"], &again["revision"]),
        (&json!("a/b"), &Value::Null)
    );
    // Without a name of its own the adapter has the name of the adapter that it continues, or none.
    let named = json!({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"], "base_model_name_or_path": "c/d", "revision": "v2"});
    for (before, name, revision) in [
        (&named, json!("c/d"), json!("v2")),
        (&file, Value::Null, Value::Null),
    ] {
        let text = adapter_config_json(
            &own,
            family("llama"),
            None,
            &found,
            &open(before).unwrap().unknown,
        );
        let found: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&found["base_model_name_or_path"], &found["revision"]),
            (&name, &revision)
        );
    }
    let mut odd = file.clone();
    odd["lora_dropout"] = json!("0.1");
    assert_eq!(open(&odd).unwrap_err().code(), "adapter.field.type");

    // Continued: settings of the files may be repeated, nothing else; the dropout is free.
    let same = json!({"r": 4, "target_modules": ["v_proj", "q_proj"], "layers_to_transform": 1, "dropout": 0.5, "init": true, "modules_to_save": null});
    assert_eq!(
        own.continued(&same).unwrap(),
        AdapterConfig {
            dropout: 0.5,
            ..own.clone()
        }
    );
    assert_eq!(own.continued(&json!({})).unwrap(), own);
    let Err(Error::Refused(list)) = own
        .continued(&json!({"r": 8, "alpha": 6.5, "rslora": false, "target_modules": ["q_proj"]}))
    else {
        panic!("continued")
    };
    let shown: Vec<_> = list
        .iter()
        .map(|refusal| (refusal.code, refusal.subject.as_deref().unwrap()))
        .collect();
    assert_eq!(
        shown,
        ["r", "rslora", "target_modules"].map(|key| ("adapter.settings", key))
    );
    assert_eq!(
        own.continued(&json!({"rr": 8})).unwrap_err().code(),
        "config.invalid"
    );
}
