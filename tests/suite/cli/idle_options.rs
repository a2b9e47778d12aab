//! Options and settings that would have no effect, and records of what a run went through.

use super::*;

#[test]
fn options_that_would_do_nothing_are_refused() {
    let (out, data) = checkpoint();
    let place = folder("idle");
    let (config, _) = tiny(&place);
    let at = |name: &str| text(&place.join(name));
    let absent = at("absent");
    for option in ["--adapter", "--merge-adapter"] {
        let (code, message) = refuse(&[&short(&config, &data)[..], &[option, &absent]].concat());
        assert!(
            code == "cli.usage" && message.contains(option) && message.contains("--model"),
            "{message}"
        );
    }
    let model = at("model");
    succeed(&["convert", "--model", &out, "--to", &model]);
    let (code, message) = refuse(&["convert", "--model", &model, "--to", &at("x"), "--manifest"]);
    assert!(
        code == "config.invalid" && message.contains("manifest"),
        "{message}"
    );
    for option in ["--license", "--base-model", "--data-note", "--note"] {
        let args = [
            "export",
            "--checkpoint",
            &out,
            "--to",
            &at("x.gguf"),
            "--format",
            "gguf",
            option,
            "mit",
        ];
        let (code, message) = refuse(&args);
        assert!(
            code == "cli.usage" && message.contains(option) && message.contains("model card"),
            "{message}"
        );
    }
    let (code, message) = refuse(&[
        "convert",
        "--model",
        &model,
        "--to",
        &at("x"),
        "--rename-state",
    ]);
    assert!(
        code == "cli.usage" && message.contains("--rename-state"),
        "{message}"
    );
    let (code, message) =
        refuse(&[&short(&config, &data)[..], &["--base-storage", "f32"]].concat());
    assert!(
        code == "config.invalid" && message.contains("--base-storage"),
        "{message}"
    );
    let (code, message) = refuse(&[
        "convert",
        "--model",
        &model,
        "--to",
        &at("x"),
        "--requantise",
    ]);
    assert!(
        code == "cli.usage" && message.contains("requantise"),
        "{message}"
    );
    for (format, options) in [
        ("gguf", &["--manifest"][..]),
        ("safetensors", &["--name", ""]),
    ] {
        let (code, message) = refuse(
            &[
                &[
                    "export",
                    "--checkpoint",
                    &out,
                    "--to",
                    &at("y.gguf"),
                    "--format",
                    format,
                ],
                options,
            ]
            .concat(),
        );
        assert!(
            code == "cli.usage" && message.contains(options[0]),
            "{format}: {message}"
        );
    }
    let (code, message) = refuse(&["inspect", &model, "--include", "zzz"]);
    assert!(
        code == "cli.usage" && message.contains("--contract"),
        "{message}"
    );
    assert_eq!(
        refuse(&["schedule", "--train-config", &absent, "--steps", "0"]).0,
        "cli.usage"
    );
    for option in [&["--chat-date", "2024-07-26"][..], &["--no-packing"]] {
        let answer = succeed(&[&short(&config, &data)[..], option].concat());
        assert!(
            answer
                .with("warning")
                .iter()
                .any(|line| line["warning"]["code"] == "data.settings.unused"),
            "{option:?}"
        );
    }
    let (code, message) = refuse(&["score", "--model", &model, "--text", "a", "--generation"]);
    assert!(
        code == "cli.usage" && message.contains("--generation"),
        "{message}"
    );
    let epochs = write(
        &place,
        "epochs.json",
        json!({"epochs": 2, "schedule": {"type": "cosine", "total_steps": 9}}).to_string(),
    );
    let (code, message) = refuse(&["schedule", "--train-config", &epochs]);
    assert!(
        code == "cli.usage" && message.contains("--steps"),
        "{message}"
    );
    assert_eq!(
        succeed(&["schedule", "--train-config", &epochs, "--steps", "9"])
            .with("step")
            .len(),
        9
    );
    let twice = write(
        &place,
        "twice.json",
        "{\"steps\": 3, \"schedule\": {\"type\": \"cosine\", \"type\": \"linear\"}}",
    );
    let (code, message) = refuse(&["schedule", "--train-config", &twice]);
    assert!(
        code == "cli.json" && message.contains("schedule.type is there twice"),
        "{message}"
    );
}

/// clap does not require an option that contradicts another one: `--config` contradicts `--resume`.
#[test]
fn options_of_another_start_are_refused() {
    let (out, data) = checkpoint();
    let place = folder("idle-starts");
    let (config, _) = tiny(&place);
    let new = short(&config, &data);
    let resumed = [
        "train", "--resume", &out, "--data", &data, "--device", "cpu",
    ];
    let tuned = [
        "train",
        "--model",
        &out,
        "--data",
        &data,
        "--device",
        "cpu",
        "--adapter",
        &out,
    ];
    for (start, options, with) in [
        (&new[..], &["--verify", "header"][..], "--resume"),
        (&new, &["--override", "steps"], "--resume"),
        (&new, &["--allow-non-finite"], "--model"),
        (&new, &["--resize-vocabulary"], "--merge-adapter"),
        (&tuned, &["--resize-vocabulary"], "--merge-adapter"),
        (&resumed, &["--allow-non-finite"], "new run"),
        (&resumed, &["--verify", "header"], "--model"),
        (&resumed, &["--profile"], "--device wgpu"),
    ] {
        let (code, message) = refuse(&[start, options].concat());
        assert!(
            code == "cli.usage" && message.contains(options[0]) && message.contains(with),
            "{options:?}: {message}"
        );
    }
    let (code, message) = refuse(&[&new[..], &["--stop-at", "1000"]].concat());
    assert!(
        code == "cli.usage"
            && message.contains("--stop-at 1000")
            && message.contains("whose last one is"),
        "{message}"
    );
}

#[test]
fn a_file_that_a_receipt_does_not_list_fails_if_models_are_read_from_it() {
    let (out, _) = checkpoint();
    let place = folder("unlisted");
    let model = text(&place.join("model"));
    succeed(&["export", "--checkpoint", &out, "--to", &model]);
    let verified = || run(&["verify", &model]).last().clone();
    assert_eq!(verified()["ok"], true);
    write(Path::new(&model), "notes.txt", "mine");
    assert_eq!(
        verified()["ok"],
        json!(true),
        "no program reads a note as a part of the model"
    );
    for name in [
        "special_tokens_map.json",
        "added_tokens.json",
        "adapter_config.json",
        "model-00001-of-00001.safetensors",
    ] {
        let path = write(Path::new(&model), name, "{}");
        let found = verified();
        assert_eq!(found["ok"], false, "{name}");
        assert!(
            found["checks"]
                .to_string()
                .contains(&format!("unlisted:{name}")),
            "{found}"
        );
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(verified()["ok"], true);
}

#[test]
fn a_damaged_checkpoint_does_not_open_as_a_model_when_it_is_read() {
    let (out, _) = checkpoint();
    let place = folder("inspected");
    let copy = place.join("run");
    copy_folder(&out, &copy);
    assert_eq!(
        succeed(&["inspect", &text(&copy), "--read"]).last()["ok"],
        true
    );
    let weights = copy.join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&weights, bytes).unwrap();
    let report = succeed(&["inspect", &text(&copy), "--read"]).last().clone();
    assert_eq!(
        (report["ok"].clone(), report["code"].clone()),
        (json!(false), json!("checkpoint.chunk.hash")),
        "{report}"
    );
}
