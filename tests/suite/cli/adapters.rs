//! Adapters on the command line: trained, resumed with their model, exported, trained further.

use super::*;

/// Returns a model folder: the checkpoint of a short run is one.
fn base() -> (String, String) {
    checkpoint()
}

fn lora<'a>(model: &'a str, data: &'a str, out: &'a str) -> Vec<&'a str> {
    let mut args = vec![
        "train", "--model", model, "--data", data, "--device", "cpu", "--out", out,
    ];
    args.extend([
        "--steps",
        "4",
        "--batch-size",
        "2",
        "--seq-len",
        "16",
        "--learning-rate",
        "0.02",
        "--seed",
        "7",
    ]);
    args
}

fn losses(answer: &Answer) -> Vec<f64> {
    answer
        .with("grad_norm")
        .iter()
        .map(|line| line["loss"].as_f64().unwrap())
        .collect()
}

#[test]
fn lora_is_trained_resumed_with_its_base_and_exported() {
    let (model, data) = base();
    let place = folder("lora");
    let at = |name: &str| text(&place.join(name));
    let options = [
        "--lora",
        "--lora-r",
        "2",
        "--lora-alpha",
        "4",
        "--lora-targets",
        "all-linear",
        "--rslora",
    ];
    let straight = losses(&succeed(
        &[&lora(&model, &data, &at("straight"))[..], &options].concat(),
    ));
    let run = at("run");
    let mut halves = losses(&succeed(
        &[
            &lora(&model, &data, &run)[..],
            &options,
            &["--stop-at", "2"],
        ]
        .concat(),
    ));
    let resume = [
        "train", "--resume", &run, "--data", &data, "--device", "cpu", "--out", &run,
    ];
    assert_eq!(refuse(&resume).0, "checkpoint.base.missing");
    halves.extend(losses(&succeed(
        &[&resume[..], &["--model", &model]].concat(),
    )));
    assert_eq!(halves, straight);
    let files: Vec<String> = std::fs::read_dir(&run)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        files.contains(&"adapter_model.safetensors".to_string())
            && !files.contains(&"model.safetensors".to_string()),
        "{files:?}"
    );

    let peft = at("peft");
    succeed(&[
        "export",
        "--checkpoint",
        &run,
        "--base",
        &model,
        "--format",
        "peft",
        "--to",
        &peft,
    ]);
    let config: Value = serde_json::from_slice(
        &std::fs::read(Path::new(&peft).join("adapter_config.json")).unwrap(),
    )
    .unwrap();
    assert_eq!(
        (&config["r"], &config["use_rslora"], &config["peft_type"]),
        (&json!(2), &json!(true), &json!("LORA"))
    );
    assert_eq!(
        refuse(&["export", "--checkpoint", &run, "--to", &at("whole")]).0,
        "checkpoint.base.missing"
    );
    // It is trained further with its own settings, and others are refused.
    let place_on = at("on");
    let on = [&lora(&model, &data, &place_on)[..], &["--adapter", &peft]].concat();
    let first = losses(&succeed(&on))[0];
    assert!(first < straight[0], "{first} after {straight:?}");
    let other = write(&place, "t.json", r#"{"adapter": {"r": 3}}"#);
    assert_eq!(
        refuse(&[&on[..], &["--train-config", &other]].concat()).0,
        "adapter.settings"
    );
}

#[test]
fn names_of_an_adapter_that_match_nothing_are_warnings_everywhere() {
    let (model, data) = base();
    let place = folder("unmatched-names");
    let at = |name: &str| text(&place.join(name));
    let (run, peft) = (at("run"), at("peft"));
    succeed(
        &[
            &lora(&model, &data, &run)[..],
            &["--lora", "--lora-r", "2", "--lora-targets", "all-linear"],
        ]
        .concat(),
    );
    succeed(&[
        "export",
        "--checkpoint",
        &run,
        "--base",
        &model,
        "--format",
        "peft",
        "--to",
        &peft,
    ]);
    let path = Path::new(&peft).join("adapter_config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let evaluate = || {
        succeed(&[
            "evaluate",
            "--model",
            &model,
            "--data",
            &data,
            "--device",
            "cpu",
            "--adapter",
            &peft,
        ])
    };
    let plain = evaluate().last()["loss"].clone();
    for (key, value) in [
        ("rank_pattern", json!({"zip": 3})),
        ("alpha_pattern", json!({"nope": 16})),
        ("layers_to_transform", json!([0, 1, 7])),
    ] {
        config[key] = value;
    }
    std::fs::write(&path, config.to_string()).unwrap();
    let evaluated = evaluate();
    assert_eq!(evaluated.last()["loss"], plain);
    succeed(&[&lora(&model, &data, &at("on"))[..], &["--adapter", &peft]].concat());
    let merged = output(&[
        "adapter",
        "merge",
        "--model",
        &model,
        "--adapter",
        &peft,
        "--to",
        &at("merged"),
    ]);
    let told =
        String::from_utf8(merged.stderr).unwrap() + &String::from_utf8(merged.stdout).unwrap();
    for name in [
        "zip in rank_pattern",
        "nope in alpha_pattern",
        "7 in layers_to_transform",
    ] {
        assert!(told.contains(name), "{told}");
    }
}

#[test]
fn adapters_of_mlx_and_pages_are_named() {
    let (model, _) = base();
    let place = folder("other-programs");
    let config = json!({"fine_tune_type": "lora", "lora_parameters": {"rank": 8, "scale": 20.0}, "num_layers": 2});
    write(&place, "adapter_config.json", config.to_string());
    for name in [
        "0000100_adapters.safetensors",
        "adapter_model.safetensors",
        "adapters.npz",
    ] {
        let path = write(&place, name, "");
        let (code, message) = refuse(&[
            "adapter",
            "merge",
            "--model",
            &model,
            "--adapter",
            &text(&place),
            "--to",
            &text(&place.join("m")),
        ]);
        assert!(
            code == "format.unsupported" && message.contains("MLX"),
            "{name}: {code} {message}"
        );
        std::fs::remove_file(path).unwrap();
    }
    let page = write(
        &place,
        "config.json",
        "<!doctype html><html><body>Not here</body></html>",
    );
    let report = succeed(&["inspect", &page]).last().clone();
    assert!(
        report["message"]
            .as_str()
            .unwrap()
            .contains("a page of HTML"),
        "{report}"
    );
}

/// Compares with reference numbers in float64, with the base as stored and widened: the values have the same bits.
#[test]
fn small_reference_cases_hold() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/lora");
    let (cases, assets) = (text(&place.join("cases.json")), text(&place));
    let check = |storage: &str| {
        let args = [
            "check",
            &cases,
            "--assets",
            &assets,
            "--device",
            "cpu",
            "--base-storage",
            storage,
        ];
        succeed(&args)
            .with("digest")
            .into_iter()
            .map(|line| (line["id"].clone(), line["digest"].clone()))
            .collect::<Vec<_>>()
    };
    let stored = check("stored");
    assert_eq!(stored.len(), 7);
    assert_eq!(stored, check("f32"));
}

#[test]
fn lora_options_that_mean_nothing_are_refused() {
    let (model, data) = base();
    let place = folder("lora-refused");
    let out = text(&place.join("run"));
    let train = lora(&model, &data, &out);
    assert_eq!(
        refuse(&[&train[..], &["--lora", "--lora-targets", "nothing"]].concat()).0,
        "adapter.target.unknown"
    );
    assert_eq!(
        refuse(&[&train[..], &["--lora", "--lora-r", "0"]].concat()).0,
        "config.invalid"
    );
    let dora = write(&place, "t.json", r#"{"adapter": {"use_dora": true}}"#);
    assert_eq!(
        refuse(&[&train[..], &["--train-config", &dora]].concat()).0,
        "config.invalid"
    );
    let (config, _) = tiny(&place);
    let adapter = write(&place, "a.json", r#"{"adapter": {}}"#);
    assert_eq!(
        refuse(&[&short(&config, &data)[..], &["--train-config", &adapter]].concat()).0,
        "config.invalid"
    );
}

#[test]
fn adapter_extract_turns_a_full_fine_tune_into_factors() {
    let (model, data) = base();
    let place = folder("extract");
    let at = |name: &str| text(&place.join(name));
    let run = at("run");
    succeed(&lora(&model, &data, &run));
    let to = at("adapter");
    let extract = [
        "adapter", "extract", "--model", &run, "--base", &model, "--rank", "16", "--to",
    ];
    let answer = succeed(&[&extract[..], &[&to]].concat());
    let [report] = answer.lines.as_slice() else {
        panic!("{:?}", answer.lines)
    };
    // The smaller side of every matrix has 16.
    assert!(
        report["rank"] == json!(16) && report["error"].as_f64().unwrap() < 1e-5,
        "{report}"
    );
    let of = |list: &Value, name: &str, field: &str| list[name][field].as_f64().unwrap();
    assert!(
        of(
            &report["tensors"],
            "model.layers.1.mlp.down_proj.weight",
            "norm"
        ) > 0.0,
        "{report}"
    );
    assert!(
        of(&report["uncovered"], "model.norm.weight", "share") > 0.0,
        "{report}"
    );
    // The adapter can be verified, opened and merged like any other.
    succeed(&["verify", &to]);
    succeed(&[
        "adapter",
        "merge",
        "--model",
        &model,
        "--adapter",
        &to,
        "--to",
        &at("merged"),
    ]);
    let ended = output(
        &[
            &extract[..],
            &[&at("shown"), "--targets", "q_proj,down_proj"],
        ]
        .concat(),
    );
    let (shown, told) = (
        String::from_utf8(ended.stdout).unwrap(),
        String::from_utf8(ended.stderr).unwrap(),
    );
    assert!(
        told.contains("does not name the base") && told.contains("[adapter.base.unnamed]"),
        "{told}"
    );
    assert!(
        shown.contains("down_proj.weight: ")
            && shown.contains("up_proj.weight: no factors")
            && shown.contains("rank 16: "),
        "{shown}"
    );
    let (config, _) = tiny(&place);
    let other = at("other");
    let mut other_shape: Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    other_shape["intermediate_size"] = json!(32);
    let config = write(&place, "other.json", other_shape.to_string());
    succeed(&[&short(&config, &data)[..], &["--out", &other]].concat());
    assert_eq!(
        refuse(&[
            "adapter",
            "extract",
            "--model",
            &other,
            "--base",
            &model,
            "--rank",
            "2",
            "--to",
            &at("none")
        ])
        .0,
        "extract.shape"
    );
    assert!(!place.join("none").exists());
}

/// The browser tests compare the same files with those that a tab makes from the same two models.
#[test]
fn adapter_extract_gives_the_bytes_that_a_tab_gives() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let expected: Value =
        serde_json::from_slice(&std::fs::read(golden.join("adapters/extracted.json")).unwrap())
            .unwrap();
    let base = golden.join("models/llama3.gguf");
    let mut bytes = std::fs::read(&base).unwrap();
    // The upper half of some fractions changes; sign and exponent stay.
    for at in (bytes.len() - 12_000..bytes.len()).step_by(28) {
        bytes[at + 2] ^= 0x20;
    }
    let place = folder("extract-bytes");
    let tuned = place.join("tuned.gguf");
    std::fs::write(&tuned, bytes).unwrap();
    let to = place.join("adapter");
    let answer = succeed(&[
        "adapter",
        "extract",
        "--model",
        &text(&tuned),
        "--base",
        &text(&base),
        "--rank",
        "3",
        "--to",
        &text(&to),
    ]);
    let [report] = answer.lines.as_slice() else {
        panic!("{:?}", answer.lines)
    };
    assert_eq!(report["error"], expected["error"]);
    for (name, sum) in expected["files"].as_object().unwrap() {
        let mut hasher = tabtune::formats::Hasher::default();
        hasher.update(&std::fs::read(to.join(name)).unwrap());
        assert_eq!(hasher.finish().to_string(), sum.as_str().unwrap(), "{name}");
    }
}

#[test]
fn adapter_leaves_alone_and_merged() {
    let (model, data) = base();
    let place = folder("lora-out");
    let at = |name: &str| text(&place.join(name));
    let gguf = at("base.gguf");
    succeed(&[
        "convert", "--model", &model, "--to", &gguf, "--format", "gguf", "--type", "q8_0",
    ]);
    let run = at("run");
    let options = [
        "--lora",
        "--lora-r",
        "2",
        "--lora-alpha",
        "4",
        "--lora-targets",
        "all-linear",
        "--rslora",
    ];
    succeed(&[&lora(&gguf, &data, &run)[..], &options].concat());
    let export = |format: &str, to: &str, more: &[&str]| -> Vec<String> {
        let to = at(to);
        let all = [
            &[
                "export",
                "--checkpoint",
                &run,
                "--format",
                format,
                "--to",
                &to,
            ],
            more,
        ]
        .concat();
        all.into_iter().map(String::from).collect()
    };
    let refused =
        |args: Vec<String>| refuse(&args.iter().map(String::as_str).collect::<Vec<_>>()).0;
    let succeed_in =
        |args: Vec<String>| succeed(&args.iter().map(String::as_str).collect::<Vec<_>>());
    // Exporting only the adapter needs no byte of the base; exports of both ask for the base, and accept no other.
    succeed_in(export("peft", "peft", &[]));
    assert!(!Path::new(&at("peft")).join("model.safetensors").exists());
    for (format, to) in [
        ("gguf-adapter", "a.gguf"),
        ("gguf", "b.gguf"),
        ("safetensors", "c"),
    ] {
        assert_eq!(
            refused(export(format, to, &[])),
            "checkpoint.base.missing",
            "{format}"
        );
        assert_eq!(
            refused(export(format, to, &["--base", &model])),
            "checkpoint.base.mismatch",
            "{format}"
        );
        let answer = succeed_in(export(format, to, &["--base", &gguf, "--name", "mine"]));
        let receipt = &answer.last()["receipt"];
        assert_eq!(receipt["operation"], "export", "{format}");
        let survival = receipt["conversions"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one.get("survival").is_some())
            .count();
        assert_eq!(
            survival > 0,
            format != "gguf-adapter",
            "{format}: what is merged tells how much of the change is left"
        );
        assert_eq!(
            receipt["tensors"].get("scaled").is_some(),
            format == "gguf-adapter",
            "{format}"
        );
    }
    succeed(&["verify", &at("a.gguf"), &at("a.gguf.receipt.json")]);
    assert_eq!(
        refused(export(
            "gguf-adapter",
            "d.gguf",
            &["--base", &gguf, "--type", "q8_0"]
        )),
        "export.gguf.type"
    );
    // The merged models are the same model, except that the folder has halves.
    let loss = |model: &str| {
        let answer = succeed(&[
            "evaluate", "--model", model, "--data", &data, "--device", "cpu",
        ]);
        answer.last()["loss"].as_f64().unwrap()
    };
    let merged = at("exact");
    succeed_in(export(
        "safetensors",
        "exact",
        &["--base", &gguf, "--dtype", "f32"],
    ));
    let (exact, halves, blocks, before) = (
        loss(&merged),
        loss(&at("c")),
        loss(&at("b.gguf")),
        loss(&gguf),
    );
    // Rows of 16 have no blocks of 32, so their file has halves too.
    assert!(
        (halves / exact - 1.0).abs() < 1e-5 && (blocks / exact - 1.0).abs() < 1e-5,
        "{exact} {halves} {blocks}"
    );
    assert!(
        (before / exact - 1.0).abs() > 2e-3,
        "the adapter changes nothing: {before} {exact}"
    );
    // A run that trains all weights has nothing to merge.
    let whole = [
        "export",
        "--checkpoint",
        &model,
        "--format",
        "gguf-adapter",
        "--to",
        &at("e.gguf"),
    ];
    assert_eq!(refuse(&whole).0, "export.adapter");
}

/// Trains an adapter on the checkpoint of another short run. Returns model, data and the adapter's PEFT folder.
fn trained(place: &Path) -> (String, String, String) {
    let (model, data) = base();
    let (run, peft) = (text(&place.join("run")), text(&place.join("peft")));
    succeed(
        &[
            &lora(&model, &data, &run)[..],
            &[
                "--lora",
                "--lora-r",
                "3",
                "--lora-targets",
                "all-linear",
                "--lora-alpha",
                "9",
            ],
        ]
        .concat(),
    );
    succeed(&[
        "export",
        "--checkpoint",
        &run,
        "--base",
        &model,
        "--format",
        "peft",
        "--to",
        &peft,
    ]);
    (model, data, peft)
}

#[test]
fn lora_is_evaluated_and_writes_next_to_its_base() {
    let place = folder("lora-apart");
    let (model, data, peft) = trained(&place);
    let merged = text(&place.join("merged"));
    succeed(&[
        "adapter",
        "merge",
        "--model",
        &model,
        "--adapter",
        &peft,
        "--to",
        &merged,
    ]);
    let evaluate = |more: &[&str]| {
        let answer = succeed(
            &[
                &[
                    "evaluate",
                    "--data",
                    &data,
                    "--device",
                    "cpu",
                    "--seq-len",
                    "16",
                ],
                more,
            ]
            .concat(),
        );
        answer.last()["loss"].as_f64().unwrap()
    };
    let generate = |more: &[&str]| -> Vec<(u64, f64)> {
        let args = [
            "generate",
            "--prompt",
            "Twas ",
            "--temperature",
            "0",
            "--max-tokens",
            "24",
            "--device",
            "cpu",
        ];
        let token = |line: &Value| {
            (
                line["id"].as_u64().unwrap(),
                line["logprob"].as_f64().unwrap(),
            )
        };
        let lines = succeed(&[&args[..], more].concat()).lines;
        lines
            .iter()
            .filter(|line| line["end"].is_null())
            .map(token)
            .collect()
    };
    let differs = |one: &[(u64, f64)], other: &[(u64, f64)]| {
        assert_eq!(one.len(), other.len());
        one.iter()
            .zip(other)
            .any(|(one, other)| one.0 != other.0 || (one.1 - other.1).abs() > 1e-5)
    };
    let text_of_merged = generate(&["--model", &merged]);
    assert!(differs(&generate(&["--model", &model]), &text_of_merged));
    let of_base = evaluate(&["--model", &model]);
    assert_eq!(
        evaluate(&["--model", &model, "--base-storage", "stored"]),
        of_base
    );
    let expected = evaluate(&["--model", &merged]);
    assert!(
        (of_base / expected - 1.0).abs() > 1e-3,
        "{of_base} and {expected}"
    );
    // A checkpoint of the run contains the adapter too.
    for adapter in [&peft, &text(&place.join("run"))] {
        let found = evaluate(&["--model", &model, "--adapter", adapter]);
        assert!(
            (found / expected - 1.0).abs() <= 1e-6,
            "{found} and {expected}"
        );
        assert_eq!(
            evaluate(&[
                "--model",
                &model,
                "--adapter",
                adapter,
                "--base-storage",
                "f32"
            ]),
            found
        );
        assert!(!differs(
            &generate(&["--model", &model, "--adapter", adapter]),
            &text_of_merged
        ));
    }
    let narrow = evaluate(&[
        "--model",
        &model,
        "--adapter",
        &peft,
        "--base-storage",
        "bf16",
    ]);
    assert!(
        narrow != expected && (narrow / expected - 1.0).abs() < 1e-2,
        "{narrow} and {expected}"
    );
    // Factors of another shape fit no matrix.
    let (other, _) = tiny(&folder("lora-other"));
    let wide = std::fs::read_to_string(&other)
        .unwrap()
        .replace("\"hidden_size\":16", "\"hidden_size\":32");
    let config = write(&place, "wide.json", wide);
    let run = text(&place.join("wide"));
    succeed(&[&short(&config, &data)[..], &["--out", &run]].concat());
    assert_eq!(
        refuse(&[
            "evaluate",
            "--model",
            &run,
            "--data",
            &data,
            "--adapter",
            &peft,
            "--device",
            "cpu"
        ])
        .0,
        "adapter.shape"
    );
}

#[test]
fn lora_is_estimated_without_a_device() {
    let place = folder("lora-estimate");
    let (model, _, peft) = trained(&place);
    let estimate = |more: &[&str]| succeed(&[&["estimate"], more].concat()).last().clone();
    let run = ["--batch-size", "2", "--seq-len", "16"];
    let options = ["--lora", "--lora-r", "3", "--lora-targets", "all-linear"];
    let beside = estimate(&[&["--model", &model], &run[..], &options].concat());
    let sum: u64 = beside["parts"]
        .as_object()
        .unwrap()
        .values()
        .map(|part| part.as_u64().unwrap())
        .sum();
    assert_eq!(beside["needBytes"].as_u64(), Some(sum));
    // q and o 16 to 16, k and v 16 to 8, gate, up and down 16 to 24, in two layers.
    assert_eq!(beside["trained"], json!(2 * 3 * (2 * 32 + 2 * 24 + 3 * 40)));
    assert_eq!(
        beside["parts"]["adapter"],
        json!(4 * 2 * 3 * (2 * 32 + 2 * 24 + 3 * 40))
    );
    assert!(
        beside["fits"]
            .as_object()
            .unwrap()
            .values()
            .all(Value::is_boolean)
    );
    // The same for a PEFT folder, which states the trained modules.
    assert_eq!(
        estimate(&[&["--model", &model, "--adapter", &peft], &run[..]].concat()),
        beside
    );
    let full = estimate(&[&["--model", &model], &run[..]].concat());
    assert!(
        full["parts"].get("base").is_none() && full["parts"]["weights"].is_u64(),
        "{full}"
    );
    // Without a rate a run of trained weights has bf16, as `train` chooses it.
    let wide = estimate(&[&["--model", &model, "--learning-rate", "1e-3"], &run[..]].concat());
    let weights = |of: &Value| of["parts"]["weights"].as_u64().unwrap();
    assert!(weights(&full) < weights(&wide), "{full} {wide}");
    let halves = estimate(&[&["--model", &model, "--type", "f16"], &run[..], &options].concat());
    assert!(halves["parts"]["base"].as_u64() < beside["parts"]["base"].as_u64());
    let plain = output(&[&["estimate", "--model", &model], &run[..], &options].concat());
    assert!(
        String::from_utf8(plain.stdout)
            .unwrap()
            .starts_with("needs 0."),
        "in words"
    );
    let (config, _) = tiny(&place);
    assert_eq!(
        refuse(&["estimate", "--config", &config, "--lora", "--type", "q9"]).0,
        "export.gguf.type"
    );
    assert_eq!(
        refuse(&["estimate", "--config", &config, "--seq-len", "64"]).0,
        "model.context"
    );
    assert_eq!(
        refuse(
            &[
                &[
                    "estimate",
                    "--config",
                    &config,
                    "--lora",
                    "--lora-targets",
                    "x"
                ],
                &run[..]
            ]
            .concat()
        )
        .0,
        "adapter.target.unknown"
    );
    assert_eq!(refuse(&["estimate", "--lora"]).0, "cli.usage");
}

#[test]
fn an_adapter_that_was_merged_before_the_run_is_named() {
    let place = folder("merged-before");
    let (model, data, peft) = trained(&place);
    let (run, to) = (
        text(&place.join("merged-run")),
        text(&place.join("merged-out")),
    );
    succeed(&[
        "train",
        "--model",
        &model,
        "--merge-adapter",
        &peft,
        "--data",
        &data,
        "--device",
        "cpu",
        "--steps",
        "1",
        "--out",
        &run,
    ]);
    succeed(&["export", "--checkpoint", &run, "--to", &to]);
    let receipt: Value = serde_json::from_slice(
        &std::fs::read(Path::new(&to).join("tabtune.receipt.json")).unwrap(),
    )
    .unwrap();
    let names: Vec<&str> = receipt["base"]["merged_adapter"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["adapter_config.json", "adapter_model.safetensors"]);
    let card = std::fs::read_to_string(Path::new(&to).join("README.md")).unwrap();
    assert!(
        card.contains("An adapter was merged into it before it was trained")
            && card.contains("adapter_model.safetensors"),
        "{card}"
    );
    assert_eq!(succeed(&["verify", &to]).last()["ok"], true);
}
