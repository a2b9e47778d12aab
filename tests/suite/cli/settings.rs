//! Options of settings, which are derived from the schema of `TrainConfig`.

use super::*;

/// Returns the settings of `TrainConfig` by the schema, as `a` or `a.b`.
fn settings() -> Vec<String> {
    let printed = output(&["schema"]);
    let schema: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let run = &schema;
    let definition = |part: &Value| {
        let reference = part["$ref"]
            .as_str()
            .or_else(|| part["anyOf"][0]["$ref"].as_str())?;
        Some(run["$defs"][reference.strip_prefix("#/$defs/").unwrap()].clone())
    };
    let keys = |part: &Value| {
        part["properties"]
            .as_object()
            .map(|keys| keys.keys().cloned().collect::<Vec<_>>())
            .unwrap_or_default()
    };
    let mut all = Vec::new();
    for (key, part) in run["properties"].as_object().unwrap() {
        if !["optimizer", "schedule", "adapter", "block_coordinate"].contains(&key.as_str()) {
            all.push(key.clone());
            continue;
        }
        let inner = definition(part).unwrap();
        let variants = inner["oneOf"]
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![inner.clone()]);
        all.extend(
            variants
                .iter()
                .flat_map(keys)
                .map(|inner| format!("{key}.{inner}")),
        );
    }
    all.sort();
    all.dedup();
    all
}

/// A setting that is added to `TrainConfig` has its option without another line.
#[test]
fn every_setting_has_an_option_with_its_description() {
    let help = String::from_utf8(output(&["train", "--help"]).stdout).unwrap();
    let short = [
        ("optimizer.type", "optimizer"),
        ("schedule.type", "schedule"),
        ("schedule.warmup_steps", "warmup-steps"),
        ("schedule.min_learning_rate", "min-learning-rate"),
        ("adapter.target_modules", "lora-targets"),
        ("adapter.rslora", "rslora"),
        ("block_coordinate.blocks", "block-coordinate"),
    ];
    let all = settings();
    assert!(
        all.len() > 70 && all.contains(&"steps".to_string()),
        "{all:?}"
    );
    for setting in all {
        let option = match short.iter().find(|(name, _)| *name == setting) {
            Some((_, option)) => (*option).to_string(),
            None => setting
                .replacen("adapter.", "lora.", 1)
                .replacen("block_coordinate.", "block.", 1)
                .replace(['.', '_'], "-"),
        };
        let listed = help
            .split_whitespace()
            .any(|word| word == format!("--{option}") || word == format!("--no-{option}"));
        assert!(listed, "{setting}: --{option}");
    }
    for text in [
        "Number of optimizer steps of the whole run",
        "[default: 100]",
        "[possible values: adamw, adafactor, apollo, sgd] [default: adamw]",
        "--no-packing",
    ] {
        assert!(help.contains(text), "{text}");
    }
    assert!(!help.contains('`'), "{help}");
}

/// Each kind of value arrives at the setting that the option is named after.
#[test]
fn options_set_what_they_are_named_after() {
    let place = folder("options");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    let options = [
        "--optimizer-weight-decay",
        "0.25",
        "--schedule",
        "wsd",
        "--schedule-decay-start-step",
        "-1",
        "--schedule-decay-type",
        "linear",
        "--warmup-steps",
        "1",
        "--no-packing",
        "--groups",
        "no_decay",
        "--data-order",
        "sequential",
        "--no-schedule-warmup-from-zero",
        "--schedule-decay-steps",
        "2",
        "--epochs",
        "0.1",
    ];
    let run = [
        "train",
        "--config",
        &config,
        "--data",
        &data,
        "--device",
        "cpu",
        "--batch-size",
        "1",
        "--seq-len",
        "8",
        "--out",
        &out,
    ];
    succeed(&[&run[..], &options[..]].concat());
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(Path::new(&out).join("checkpoint.json")).unwrap())
            .unwrap();
    let train = &manifest["train"];
    assert_eq!(train["optimizer"]["weight_decay"], json!(0.25));
    let schedule = [
        "type",
        "decay_start_step",
        "decay_type",
        "warmup_steps",
        "warmup_from_zero",
        "decay_steps",
    ]
    .map(|key| train["schedule"][key].clone());
    assert_eq!(
        schedule,
        [
            json!("wsd"),
            json!(-1),
            json!("linear"),
            json!(1),
            json!(false),
            json!(2)
        ]
    );
    assert_eq!(
        [&train["packing"], &train["data_order"]],
        [&json!(false), &json!("sequential")]
    );
    assert!(
        train["groups"]
            .as_array()
            .is_some_and(|groups| !groups.is_empty())
    );
}

#[test]
fn values_of_the_wrong_kind_are_refused_by_the_name_of_the_option() {
    let place = folder("wrong-options");
    let (config, data) = tiny(&place);
    let run = [
        "train", "--config", &config, "--data", &data, "--device", "cpu",
    ];
    for (options, words) in [
        (&["--learning-rate", "nan"][..], "--learning-rate"),
        (&["--steps", "many"], "--steps"),
        (&["--columns", "{"], "--columns"),
        (
            &["--optimizer-beta1", "inf"],
            "expected a finite number, found inf",
        ),
        (&["--epochs", "1", "--steps", "2"], "cannot be used with"),
        (&["--block-order", "ascending"], "--block-coordinate"),
    ] {
        let (code, message) = refuse(&[&run[..], options].concat());
        assert!(
            code == "cli.usage" && message.contains(words),
            "{options:?}: {message}"
        );
    }
    // A number that may be absent is absent.
    let absent = [
        "--optimizer",
        "apollo",
        "--optimizer-growth-limit",
        "null",
        "--steps",
        "1",
        "--batch-size",
        "1",
        "--seq-len",
        "8",
    ];
    succeed(&[&run[..], &absent].concat());
    // A setting that the chosen rule does not have.
    let (code, message) = refuse(
        &[
            &run[..],
            &["--optimizer", "sgd", "--optimizer-beta1", "0.9"],
        ]
        .concat(),
    );
    assert!(
        code == "config.invalid" && message.contains("beta1"),
        "{message}"
    );
}
