//! Truth of reports: on a run's last step, receipts next to each other, files that are not what they seem, names that were not meant for
//! publication.

use super::*;

/// Runs `args` with stderr in a log file, not a terminal. Returns the log.
fn log_of(args: &[&str]) -> String {
    String::from_utf8(output(args).stderr).unwrap()
}

#[test]
fn a_log_ends_with_the_last_step() {
    let place = folder("told-last");
    let (config, data) = tiny(&place);
    let run = [
        "train",
        "--config",
        &config,
        "--data",
        &data,
        "--device",
        "cpu",
        "--steps",
        "200",
        "--batch-size",
        "2",
        "--seq-len",
        "16",
        "--learning-rate",
        "1e-3",
    ];
    let log = log_of(&[&run[..], &["--stop-at", "25"]].concat());
    assert!(
        log.lines()
            .any(|line| line.starts_with("25/200 epoch 1.06 · loss ")),
        "{log}"
    );
    assert_eq!(
        log.lines()
            .filter(|line| line.starts_with("20/200"))
            .count(),
        1,
        "{log}"
    );
}

#[test]
fn steps_with_a_plus_come_after_those_that_were_made() {
    let (out, data) = checkpoint();
    let place = folder("told-plus");
    let to = text(&place.join("more"));
    let args = [
        "train",
        "--resume",
        &out,
        "--data",
        &data,
        "--steps",
        "+3",
        "--override",
        "steps",
        "--device",
        "cpu",
        "--out",
        &to,
    ];
    let steps: Vec<u64> = succeed(&args)
        .with("grad_norm")
        .iter()
        .map(|line| line["step"].as_u64().unwrap())
        .collect();
    assert_eq!(steps, [5, 6, 7]);
    assert_eq!(
        refuse(&["train", "--resume", &out, "--data", &data, "--steps", "+x"]).0,
        "cli.usage"
    );
}

#[test]
fn an_evaluation_has_the_digest_of_the_data_that_were_evaluated() {
    let place = folder("told-evaluated");
    let (config, data) = tiny(&place);
    let [a, b] = [
        ("a.txt", "the slithy toves "),
        ("b.txt", "And mimsy were the wabe "),
    ]
    .map(|(name, words)| write(&place, name, words.repeat(9)));
    let [out, best, exported] = ["run", "best", "exported"].map(|name| text(&place.join(name)));
    let kept = ["--eval-every", "2", "--keep-best", &best, "--out", &out];
    let first = succeed(
        &[
            &short(&config, &data)[..],
            &["--validation-data", &a],
            &kept[..],
        ]
        .concat(),
    );
    assert_eq!(first.with("best").len(), 2);
    let evaluated = |folder: &str| -> Value {
        let saved: Value = serde_json::from_slice(
            &std::fs::read(Path::new(folder).join("checkpoint.json")).unwrap(),
        )
        .unwrap();
        json!([
            saved["progress"]["evaluation"]["data_digest"],
            saved["data_digest"]
        ])
    };
    let of_a = evaluated(&out);
    assert!(of_a[0].is_string() && of_a[0] != of_a[1], "{of_a}");
    succeed(&[
        "export",
        "--checkpoint",
        &out,
        "--format",
        "safetensors",
        "--to",
        &exported,
    ]);
    assert!(run(&["verify", &exported]).good);
    let card = std::fs::read_to_string(Path::new(&exported).join("README.md")).unwrap();
    assert!(
        card.contains(&format!(
            "on other data (SHA-256 {})",
            of_a[0].as_str().unwrap()
        )),
        "{card}"
    );
    // Losses on other data are not compared with the earlier ones, and do not replace their best.
    let more = [
        "train",
        "--resume",
        &out,
        "--data",
        &data,
        "--validation-data",
        &b,
        "--steps",
        "+2",
        "--override",
        "steps",
        "--device",
        "cpu",
    ];
    let (code, message) = refuse(&[&more[..], &kept[..]].concat());
    assert!(
        code == "output.occupied" && message.contains("evaluated on other data"),
        "{message}"
    );
    assert_eq!(evaluated(&best)[0], of_a[0]);
    let other = text(&place.join("other"));
    let second = succeed(
        &[
            &more[..],
            &["--eval-every", "2", "--keep-best", &other, "--out", &out],
        ]
        .concat(),
    );
    assert_eq!(second.with("best").len(), 1, "{:?}", second.lines);
    assert_ne!(evaluated(&other)[0], of_a[0]);
}

/// Exports with these options and returns the losses of the receipt, which `verify` confirms, and its path.
fn exported_losses(options: &[&str], to: &Path) -> (Value, PathBuf) {
    let path = text(to);
    succeed(&[&["export", "--to", &path][..], options].concat());
    assert!(run(&["verify", &path]).good, "{options:?}");
    let receipt = if to.is_dir() {
        to.join("tabtune.receipt.json")
    } else {
        PathBuf::from(format!("{path}.receipt.json"))
    };
    let document: Value = serde_json::from_slice(&std::fs::read(&receipt).unwrap()).unwrap();
    (document["training"]["losses"].clone(), receipt)
}

#[test]
fn an_evaluation_of_weights_that_were_changed_afterwards_says_so() {
    let place = folder("told-rounded");
    let (config, data) = tiny(&place);
    let [out, halves, lora] = ["run", "halves", "lora"].map(|name| text(&place.join(name)));
    let evaluated = ["--validation-fraction", "0.3", "--eval-every", "2", "--out"];
    succeed(&[&short(&config, &data)[..], &evaluated[..], &[&out]].concat());
    succeed(
        &[
            &short(&config, &data)[..],
            &["--precision", "bf16"],
            &evaluated[..],
            &[&halves],
        ]
        .concat(),
    );
    let settings = [
        "train",
        "--model",
        &out,
        "--data",
        &data,
        "--device",
        "cpu",
        "--lora",
        "--steps",
        "2",
        "--batch-size",
        "2",
    ];
    succeed(
        &[
            &settings[..],
            &["--seq-len", "16", "--learning-rate", "0.02"],
            &evaluated[..],
            &[&lora],
        ]
        .concat(),
    );
    let (merging, rounding) = ("merging the adapter", "rounding to BF16");
    let both = format!("{merging} and {rounding}");
    for (at, (options, before)) in [
        (&["--checkpoint", &out][..], None),
        (&["--checkpoint", &out, "--dtype", "bf16"], Some(rounding)),
        (&["--checkpoint", &out, "--format", "gguf"], None),
        (
            &["--checkpoint", &out, "--format", "gguf", "--type", "q4_0"],
            Some("rounding to F16"),
        ),
        // A wider type has the same values.
        (&["--checkpoint", &halves], None),
        (&["--checkpoint", &halves, "--dtype", "f32"], None),
        (&["--checkpoint", &lora, "--format", "peft"], None),
        (
            &["--checkpoint", &lora, "--format", "peft", "--dtype", "bf16"],
            Some(rounding),
        ),
        (&["--checkpoint", &lora, "--base", &out], Some(merging)),
        (
            &["--checkpoint", &lora, "--base", &out, "--dtype", "bf16"],
            Some(both.as_str()),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let ending = if options.contains(&"gguf") {
            ".gguf"
        } else {
            ""
        };
        let to = place.join(format!("export-{at}{ending}"));
        let (losses, receipt) = exported_losses(options, &to);
        assert!(
            losses["evaluation"]["step"].is_u64(),
            "{options:?}: {losses}"
        );
        assert_eq!(
            losses.get("evaluation_before").and_then(Value::as_str),
            before,
            "{options:?}"
        );
        if let Ok(card) = std::fs::read_to_string(to.join("README.md")) {
            let words = before.map_or("of these weights".to_string(), |before| {
                format!("measured before {before}")
            });
            assert!(
                card.contains(&format!(", {words}: ")),
                "{options:?}: {card}"
            );
        }
        let Some(before) = before else { continue };
        // A receipt that calls it the evaluation of these weights is refused.
        let mut forged: Value = serde_json::from_slice(&std::fs::read(&receipt).unwrap()).unwrap();
        forged["training"]["losses"]
            .as_object_mut()
            .unwrap()
            .remove("evaluation_before");
        std::fs::write(&receipt, forged.to_string()).unwrap();
        let answer = run(&["verify", &text(&to)]);
        let check = answer.last()["checks"]
            .as_array()
            .unwrap()
            .iter()
            .find(|check| check["name"] == "evaluation")
            .unwrap()
            .clone();
        assert!(
            !answer.good && check["result"] == "differs",
            "{options:?}: {check}"
        );
        assert_eq!(
            check["expected"],
            json!(format!("measured before {before}")),
            "{options:?}"
        );
    }
}

#[test]
fn each_receipt_is_that_of_its_own_files() {
    let (out, _) = checkpoint();
    let place = folder("told-receipts");
    let paths = ["a.gguf", "b.gguf"].map(|name| text(&place.join(name)));
    for path in &paths {
        succeed(&[
            "export",
            "--checkpoint",
            &out,
            "--format",
            "gguf",
            "--to",
            path,
        ]);
    }
    let verify = |path: &str| run(&["verify", path]).good;
    let receipts = paths.each_ref().map(|path| format!("{path}.receipt.json"));
    for path in paths.iter().chain(&receipts).chain([&text(&place)]) {
        assert!(verify(path), "{path}");
    }
    let mut bytes = std::fs::read(&paths[1]).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&paths[1], bytes).unwrap();
    assert_eq!(
        [
            &paths[0],
            &paths[1],
            &receipts[0],
            &receipts[1],
            &text(&place)
        ]
        .map(|path| verify(path)),
        [true, false, true, false, false]
    );
}

#[test]
fn each_path_is_verified_by_itself() {
    let (out, _) = checkpoint();
    let place = folder("told-paths");
    let [a, b, alone] = ["a", "b", "alone"].map(|name| text(&place.join(name)));
    for path in [&a, &b] {
        succeed(&[
            "export",
            "--checkpoint",
            &out,
            "--format",
            "safetensors",
            "--to",
            path,
        ]);
    }
    let verify = |paths: &[&str]| run(&[&["verify"][..], paths].concat());
    let good = |paths: &[&str]| verify(paths).good;
    let both = verify(&[&a, &b]);
    assert!(
        both.good
            && both.lines.len() == 2
            && both.lines[1]["path"] == json!(format!("{b}/tabtune.receipt.json")),
        "{:?}",
        both.lines
    );
    std::fs::create_dir(&alone).unwrap();
    std::fs::copy(
        format!("{a}/tabtune.receipt.json"),
        format!("{alone}/tabtune.receipt.json"),
    )
    .unwrap();
    let weights = Path::new(&b).join("model.safetensors");
    std::fs::write(&weights, &std::fs::read(&weights).unwrap()[..100]).unwrap();
    // Equal files elsewhere never take the place of those of a folder.
    assert_eq!(
        [&a, &b, &alone].map(|path| good(&[path])),
        [true, false, false]
    );
    assert!(!good(&[&a, &b]) && !good(&[&b, &a]) && !good(&[&a, &alone]));
    assert!(!good(&[&alone, &format!("{a}/model.safetensors")]));
    // Files that are named with their receipt belong to it, wherever they are, unless they have a receipt of their own.
    let files: Vec<String> = std::fs::read_dir(&a)
        .unwrap()
        .map(|file| text(&file.unwrap().path()))
        .collect();
    let mut named: Vec<&str> = files.iter().map(String::as_str).collect();
    assert!(good(&named));
    let receipts = [&a, &b, &alone].map(|folder| format!("{folder}/tabtune.receipt.json"));
    let mut elsewhere: Vec<&str> = named
        .iter()
        .copied()
        .filter(|path| !path.ends_with("receipt.json"))
        .collect();
    elsewhere.push(&receipts[2]);
    assert!(good(&elsewhere));
    assert!(!good(
        &[&named[..], &[text(&weights).as_str(), &receipts[1]]].concat()
    ));
    // A file that no receipt lists is not skipped.
    let other = write(&place, "other.txt", "another file");
    named.push(&other);
    assert!(!good(&named) && !good(&[&a, &other]));
}

#[test]
fn a_page_of_html_is_reported_by_whatever_option_it_comes() {
    let place = folder("told-html");
    let (config, data) = tiny(&place);
    let page = write(&place, "page.json", "<!DOCTYPE html><html>");
    let cut = write(
        &place,
        "cut.json",
        &std::fs::read_to_string(&config).unwrap()[..60],
    );
    let empty = write(&place, "empty.json", "");
    let conflict = write(&place, "conflict.json", "<<<<<<< HEAD\n{}\n");
    let message = write(&place, "message.json", "Entry not found");
    for (file, words) in [
        (&page, "a page of HTML"),
        (&cut, "ends in the middle"),
        (&empty, "an empty file"),
        (&conflict, "merge of Git"),
        (&message, "\"Entry not found\""),
    ] {
        let (code, message) = refuse(&[
            "train", "--config", file, "--data", &data, "--device", "cpu",
        ]);
        assert!(code == "cli.json" && message.contains(words), "{message}");
        let (code, message) =
            refuse(&[&short(&config, &data)[..], &["--train-config", file]].concat());
        assert!(code == "cli.json" && message.contains(words), "{message}");
    }
}

#[test]
fn where_somebody_had_another_model_is_published_by_nothing() {
    let place = folder("told-names");
    let model = place.join("model");
    std::fs::create_dir_all(&model).unwrap();
    for file in std::fs::read_dir(format!(
        "{}/golden/inputs/forms/model",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
    {
        let path = file.unwrap().path();
        std::fs::copy(&path, model.join(path.file_name().unwrap())).unwrap();
    }
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(model.join("config.json")).unwrap()).unwrap();
    config["_name_or_path"] = json!("/home/secret/parent");
    write(&model, "config.json", config.to_string());
    let (model, data) = (text(&model), write(&place, "text.txt", POEM));
    let out = text(&place.join("run"));
    let lora = [
        "--lora",
        "--lora-r",
        "2",
        "--steps",
        "1",
        "--batch-size",
        "1",
        "--seq-len",
        "16",
        "--device",
        "cpu",
        "--out",
        &out,
    ];
    succeed(&[&["train", "--model", &model, "--data", &data], &lora[..]].concat());
    let [merged, peft] = ["merged", "peft"].map(|name| text(&place.join(name)));
    succeed(&[
        "export",
        "--checkpoint",
        &out,
        "--format",
        "peft",
        "--to",
        &peft,
    ]);
    succeed(&["convert", "--model", &model, "--to", &merged]);
    for folder in [&out, &peft, &merged] {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() {
                assert!(
                    !String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains("secret"),
                    "{}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn an_adapter_whose_files_name_more_than_the_model_has_is_asked_too() {
    let place = folder("told-targets");
    let (out, data) = checkpoint();
    let run = text(&place.join("run"));
    let lora = [
        "--lora",
        "--lora-r",
        "2",
        "--steps",
        "1",
        "--batch-size",
        "1",
        "--seq-len",
        "16",
        "--device",
        "cpu",
        "--out",
        &run,
    ];
    succeed(&[&["train", "--model", &out, "--data", &data], &lora[..]].concat());
    let peft = place.join("peft");
    succeed(&[
        "export",
        "--checkpoint",
        &run,
        "--format",
        "peft",
        "--to",
        &text(&peft),
    ]);
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(peft.join("adapter_config.json")).unwrap()).unwrap();
    let evaluate = [
        "evaluate",
        "--model",
        &out,
        "--data",
        &data,
        "--device",
        "cpu",
        "--adapter",
        &text(&peft),
    ];
    let before = succeed(&evaluate).last()["loss"].clone();
    let names = config["target_modules"].as_array().unwrap().clone();
    config["target_modules"] = json!([names, vec![json!("query_key_value")]].concat());
    config["modules_to_save"] = json!(["nope"]);
    config["exclude_modules"] = json!(["zzz"]);
    write(&peft, "adapter_config.json", config.to_string());
    let told = output(&evaluate);
    assert_eq!(
        told.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&told.stderr)
    );
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(
        ["query_key_value", "nope", "zzz in exclude_modules"]
            .iter()
            .all(|name| told.contains(name)),
        "{told}"
    );
    assert_eq!(succeed(&evaluate).last()["loss"], before);
    config["target_modules"] = json!(["query_key_value"]);
    write(&peft, "adapter_config.json", config.to_string());
    assert_eq!(refuse(&evaluate).0, "adapter.target.unmatched");
}

#[test]
fn a_checkpoint_that_serves_as_an_adapter_knows_its_base() {
    let place = folder("told-base");
    let (out, data) = checkpoint();
    let run = text(&place.join("run"));
    let options = [
        "--steps",
        "1",
        "--batch-size",
        "1",
        "--seq-len",
        "16",
        "--device",
        "cpu",
    ];
    let lora = ["--lora", "--lora-r", "2", "--out", &run];
    succeed(
        &[
            &["train", "--model", &out, "--data", &data],
            &options[..],
            &lora,
        ]
        .concat(),
    );
    // Other values of the same shapes.
    let other = text(&place.join("other"));
    succeed(
        &[
            &["train", "--model", &out, "--data", &data, "--seed", "8"],
            &options[..],
            &["--out", &other],
        ]
        .concat(),
    );
    for (model, differs) in [(&out, false), (&other, true)] {
        let evaluate = [
            "evaluate",
            "--model",
            model,
            "--data",
            &data,
            "--device",
            "cpu",
            "--adapter",
            &run,
        ];
        let to = text(&place.join(format!("merged-{differs}")));
        for args in [
            &evaluate[..],
            &[
                "adapter",
                "merge",
                "--model",
                model,
                "--adapter",
                &run,
                "--to",
                &to,
            ],
        ] {
            let ended = output(args);
            let told = String::from_utf8(ended.stderr).unwrap();
            assert!(
                ended.status.success() && told.contains("[adapter.base.differs]") == differs,
                "{args:?}: {told}"
            );
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_the_caller_ignores_ends_nothing() {
    let place = folder("told-nohup");
    let (config, data) = tiny(&place);
    let args = [
        "train",
        "--config",
        &config,
        "--data",
        &data,
        "--device",
        "cpu",
        "--batch-size",
        "2",
        "--seq-len",
        "16",
        "--steps",
        "60",
        "--json",
    ];
    let script = "trap '' HUP; \"$0\" \"$@\" & run=$!; for i in 1 2 3 4 5 6 7 8; do kill -HUP $run 2>/dev/null; sleep 0.05; done; wait $run";
    let status = Command::new("sh")
        .args(["-c", script])
        .arg(binary())
        .args(args)
        .output()
        .unwrap();
    let lines = String::from_utf8(status.stdout).unwrap();
    assert!(
        status.status.code() == Some(0)
            && lines.contains("\"done\":true")
            && lines.contains("\"step\":60"),
        "{lines}"
    );
}

#[test]
fn token_ids_beyond_the_vocabulary_are_refused_before_the_first_step() {
    let (model, _) = checkpoint();
    let place = folder("told-tokens");
    let ids: Vec<u8> = (0..400u32)
        .map(|at| if at == 399 { 99_999 } else { at % 5 })
        .flat_map(u32::to_le_bytes)
        .collect();
    let data = write(&place, "ids.tokens", ids);
    let settings = [
        "--steps",
        "1",
        "--batch-size",
        "1",
        "--seq-len",
        "8",
        "--device",
        "cpu",
    ];
    let (code, message) = refuse(
        &[
            &["train", "--model", &model, "--data", &data],
            &settings[..],
        ]
        .concat(),
    );
    assert_eq!(code, "model.token-range");
    assert!(message.contains("99999, at position 399"), "{message}");
}
