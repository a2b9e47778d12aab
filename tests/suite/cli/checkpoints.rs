//! Checkpoints from elsewhere: in one file, with other data, with weights that are not finite.

use tabtune::checkpoint::sha256;

use super::*;

/// A change of a container's head and of the bytes that follow it.
type Edit<'a> = &'a dyn Fn(&mut Value, &mut Vec<u8>);

/// Writes the files of the checkpoint folder as one file, with its head changed by `edit`.
fn container(out: &str, place: &Path, edit: impl FnOnce(&mut Value, &mut Vec<u8>)) -> String {
    let mut names: Vec<String> = std::fs::read_dir(out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_by_key(|name| name == "checkpoint.json");
    let mut body = Vec::new();
    let files: Vec<Value> = names
        .iter()
        .map(|name| {
            let bytes = std::fs::read(Path::new(out).join(name)).unwrap();
            // Chunks as browser storage cuts them, but smaller.
            let chunks: Vec<Value> = bytes
                .chunks(5000)
                .map(|chunk| json!({"bytes": chunk.len(), "sha256": sha256(chunk)}))
                .collect();
            let record = json!({"name": name, "bytes": bytes.len(), "chunks": chunks});
            body.extend(bytes);
            record
        })
        .collect();
    let data = b"the run's data";
    body.extend(data);
    let kept =
        json!({"bytes": data.len(), "chunks": [{"bytes": data.len(), "sha256": sha256(data)}]});
    let mut head = json!({"format": 1, "manifest": {"format": 1, "bytes": 0, "files": files}, "run": {"id": "r", "data": kept}, "history": []});
    edit(&mut head, &mut body);
    let head = head.to_string();
    let mut file = b"TABTUNE1".to_vec();
    file.extend((head.len() as u64).to_le_bytes());
    file.extend(head.as_bytes());
    file.extend(body);
    write(place, "run.tabtune", file)
}

#[test]
fn resume_reads_a_checkpoint_in_one_file_as_its_folder() {
    let (out, data) = checkpoint();
    let place = folder("container");
    let resumed = |from: &str, to: &str| {
        let to = text(&place.join(to));
        let args = [
            "train",
            "--resume",
            from,
            "--data",
            &data,
            "--device",
            "cpu",
            "--steps",
            "7",
            "--override",
            "steps",
            "--out",
            &to,
        ];
        let losses: Vec<Value> = succeed(&args)
            .with("loss")
            .iter()
            .map(|line| line["loss"].clone())
            .collect();
        (
            losses,
            std::fs::read(Path::new(&to).join("model.safetensors")).unwrap(),
        )
    };
    let file = container(&out, &place, |_, _| {});
    let (losses, weights) = resumed(&file, "a");
    assert_eq!(losses.len(), 3);
    assert!((losses, weights) == resumed(&out, "b"));
    let exported = text(&place.join("weights"));
    succeed(&["export", "--checkpoint", &file, "--to", &exported]);
    assert!(Path::new(&exported).join("model.safetensors").is_file());
}

#[test]
fn checkpoint_in_one_file_that_is_damaged_is_refused_by_what_is_wrong() {
    let (out, data) = checkpoint();
    let refused = |place: &Path, edit: Edit<'_>| {
        let file = container(&out, place, edit);
        refuse(&[
            "train", "--resume", &file, "--data", &data, "--device", "cpu",
        ])
        .0
    };
    let place = folder("damaged");
    let cases: [(&str, Edit<'_>); 10] = [
        ("checkpoint.chunk.hash", &|_, body| body[70] ^= 1),
        ("checkpoint.container.length", &|_, body| {
            body.truncate(body.len() - 1)
        }),
        ("checkpoint.container.length", &|_, body| body.push(0)),
        ("checkpoint.container.name", &|head, _| {
            head["manifest"]["files"][0]["name"] = json!("../config.json")
        }),
        ("checkpoint.container.name", &|head, _| {
            head["manifest"]["files"][0]["name"] = json!("a\\b")
        }),
        ("checkpoint.container.name", &|head, _| {
            head["manifest"]["files"][0]["name"] = head["manifest"]["files"][1]["name"].clone()
        }),
        ("checkpoint.container.chunk", &|head, _| {
            head["manifest"]["files"][0]["bytes"] = json!(3)
        }),
        ("checkpoint.container.head", &|head, _| {
            head["manifest"]["files"] = json!(7)
        }),
        ("checkpoint.version", &|head, _| head["format"] = json!(99)),
        ("checkpoint.corrupt", &|head, body| {
            let last = head["manifest"]["files"]
                .as_array_mut()
                .unwrap()
                .pop()
                .unwrap();
            let (manifest, data) = (last["bytes"].as_u64().unwrap() as usize, 14);
            let end = body.len() - data;
            body.drain(end - manifest..end);
        }),
    ];
    for (index, (code, edit)) in cases.into_iter().enumerate() {
        assert_eq!(refused(&place, edit), code, "case {index}");
    }
    let file = container(&out, &place, |_, _| {});
    let bytes = std::fs::read(&file).unwrap();
    let refused = |bytes: &[u8]| {
        let file = write(&place, "cut.tabtune", bytes);
        refuse(&[
            "train", "--resume", &file, "--data", &data, "--device", "cpu",
        ])
        .0
    };
    assert_eq!(refused(&bytes[..12]), "checkpoint.container.magic");
    assert_eq!(refused(&bytes[..99]), "checkpoint.container.head");
    assert_eq!(
        refused(&[b"TABTUNE2", &bytes[8..]].concat()),
        "checkpoint.container.magic"
    );
    assert_eq!(
        refused(&[b"TABTUNE1", &[255; 8][..], &bytes[16..]].concat()),
        "checkpoint.container.head"
    );
}

#[test]
fn resume_continues_with_other_data_where_data_is_named_and_says_so() {
    let (out, _) = checkpoint();
    let place = folder("other-data");
    let other = write(&place, "other.txt", POEM.repeat(5));
    let args = [
        "train", "--resume", &out, "--data", &other, "--device", "cpu", "--steps", "6",
    ];
    let (code, message) = refuse(&args);
    assert_eq!(code, "optim.resume-mismatch");
    assert!(
        message.contains("data") && message.contains("--override"),
        "{message}"
    );
    let (again, to) = (text(&place.join("run")), text(&place.join("out")));
    let answer = succeed(&[&args[..], &["--override", "steps", "data", "--out", &again]].concat());
    assert_eq!(
        answer.with("warning")[0]["warning"]["code"],
        json!("checkpoint.data.changed")
    );
    assert_eq!(answer.with("loss").len(), 2);
    // Receipt and card say that these data were not the only ones.
    succeed(&["export", "--checkpoint", &again, "--to", &to]);
    let receipt: Value = serde_json::from_slice(
        &std::fs::read(Path::new(&to).join("tabtune.receipt.json")).unwrap(),
    )
    .unwrap();
    assert_eq!(
        (
            &receipt["training"]["completed_steps"],
            &receipt["training"]["data"]["steps_before"]
        ),
        (&json!(6), &json!(4))
    );
    let card = std::fs::read_to_string(Path::new(&to).join("README.md")).unwrap();
    assert!(
        card.contains("Other data were used in the first 4 steps."),
        "{card}"
    );
    assert!(
        !card.contains("before which others applied"),
        "more steps are no other settings: {card}"
    );
}

#[test]
fn a_card_says_which_steps_its_settings_made() {
    let (out, data) = checkpoint();
    let place = folder("other-settings");
    let (again, to) = (text(&place.join("run")), text(&place.join("out")));
    let args = [
        "train",
        "--resume",
        &out,
        "--data",
        &data,
        "--device",
        "cpu",
        "--steps",
        "6",
        "--learning-rate",
        "1e-3",
    ];
    succeed(
        &[
            &args[..],
            &["--override", "steps", "learning_rate", "--out", &again],
        ]
        .concat(),
    );
    succeed(&["export", "--checkpoint", &again, "--to", &to]);
    let receipt: Value = serde_json::from_slice(
        &std::fs::read(Path::new(&to).join("tabtune.receipt.json")).unwrap(),
    )
    .unwrap();
    assert_eq!(receipt["training"]["steps_before"], json!(4));
    let card = std::fs::read_to_string(Path::new(&to).join("README.md")).unwrap();
    assert!(
        card.contains("Settings of the steps after step 4, before which others applied:"),
        "{card}"
    );
    // A run that ends before its first step with them.
    let (still, to) = (text(&place.join("still")), text(&place.join("still-out")));
    let other = write(&place, "other.txt", POEM.repeat(5));
    let args = [
        "train",
        "--resume",
        &out,
        "--data",
        &other,
        "--device",
        "cpu",
        "--steps",
        "6",
        "--stop-at",
        "4",
    ];
    let overrides = [
        "--override",
        "steps",
        "data",
        "learning_rate",
        "--learning-rate",
        "1e-3",
        "--out",
        &still,
    ];
    succeed(&[&args[..], &overrides].concat());
    succeed(&["export", "--checkpoint", &still, "--to", &to]);
    let card = std::fs::read_to_string(Path::new(&to).join("README.md")).unwrap();
    assert!(
        card.contains("No step was made with these data yet")
            && card.contains("Settings of the next step"),
        "{card}"
    );
}

#[test]
fn resume_with_other_data_to_evaluate_on_says_so() {
    let place = folder("other-validation");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    let [first, second] = ["a.txt", "b.txt"].map(|name| {
        write(
            &place,
            name,
            POEM.repeat(if name == "a.txt" { 3 } else { 4 }),
        )
    });
    let run = [
        "train",
        "--config",
        &config,
        "--data",
        &data,
        "--device",
        "cpu",
        "--steps",
        "2",
        "--seq-len",
        "16",
        "--out",
        &out,
    ];
    succeed(
        &[
            &run[..],
            &["--validation-data", &first, "--eval-every", "2"],
        ]
        .concat(),
    );
    let resume = |file: &str| {
        let args = [
            "train",
            "--resume",
            &out,
            "--data",
            &data,
            "--validation-data",
            file,
            "--device",
            "cpu",
            "--steps",
            "3",
            "--override",
            "steps",
        ];
        let answer = succeed(&args);
        answer
            .with("warning")
            .iter()
            .any(|line| line["warning"]["code"] == "checkpoint.validation.changed")
    };
    assert_eq!([resume(&first), resume(&second)], [false, true]);
    // Without validation data nothing is evaluated.
    let answer = succeed(&[
        "train",
        "--resume",
        &out,
        "--data",
        &data,
        "--device",
        "cpu",
        "--steps",
        "3",
        "--override",
        "steps",
    ]);
    assert!(
        answer
            .with("warning")
            .iter()
            .all(|line| line["warning"]["code"] != "checkpoint.validation.changed")
    );
}

#[test]
fn epochs_of_a_run_are_other_steps_with_other_batches() {
    let place = folder("epochs");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    let run = [
        "train",
        "--config",
        &config,
        "--data",
        &data,
        "--device",
        "cpu",
        "--seq-len",
        "16",
        "--batch-size",
        "1",
        "--epochs",
        "2",
    ];
    let answer = succeed(&[&run[..], &["--stop-at", "1", "--out", &out]].concat());
    assert_eq!(answer.with("grad_norm").len(), 1);
    let resume = |more: &[&str]| {
        let answer = succeed(
            &[
                &[
                    "train", "--resume", &out, "--data", &data, "--device", "cpu",
                ],
                more,
            ]
            .concat(),
        );
        let told = answer
            .with("warning")
            .iter()
            .any(|line| line["warning"]["code"] == "run.steps");
        let steps = answer.with("grad_norm");
        (
            told,
            steps.last().unwrap()["step"].as_u64().unwrap(),
            steps.last().unwrap()["epoch"].as_f64().unwrap(),
        )
    };
    let (told, steps, epoch) = resume(&[]);
    assert!(!told && epoch == 2.0, "{epoch}");
    let (told, fewer, epoch) = resume(&["--batch-size", "2", "--override", "batch_size"]);
    assert!(
        told && fewer == steps.div_ceil(2) && epoch <= 2.0,
        "{fewer} of {steps}, epoch {epoch}"
    );
}

#[test]
fn epochs_of_a_run_are_other_steps_with_other_data() {
    let place = folder("epochs-of-other-data");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    let run = [
        "train",
        "--config",
        &config,
        "--data",
        &data,
        "--device",
        "cpu",
        "--seq-len",
        "16",
        "--batch-size",
        "1",
        "--epochs",
        "2",
    ];
    succeed(&[&run[..], &["--stop-at", "1", "--out", &out]].concat());
    let steps = |out: &str| {
        let saved: Value =
            serde_json::from_slice(&std::fs::read(Path::new(out).join("checkpoint.json")).unwrap())
                .unwrap();
        (
            saved["train"]["steps"].as_u64().unwrap(),
            saved["train"]["epochs"].as_f64(),
        )
    };
    let planned = steps(&out).0;
    let longer = write(
        &place,
        "longer.txt",
        std::fs::read_to_string(&data).unwrap().repeat(3),
    );
    let resume = |data: &str| {
        let to = text(&place.join("resumed"));
        let answer = succeed(&[
            "train",
            "--resume",
            &out,
            "--data",
            data,
            "--device",
            "cpu",
            "--override",
            "data",
            "--stop-at",
            "2",
            "--out",
            &to,
        ]);
        let told = answer
            .with("warning")
            .into_iter()
            .map(|line| line["warning"].clone())
            .find(|warning| warning["code"] == "run.steps");
        let planned = steps(&to);
        std::fs::remove_dir_all(&to).unwrap();
        (
            told.map(|warning| warning["message"].as_str().unwrap().to_owned()),
            planned,
        )
    };
    let (told, (anew, epochs)) = resume(&longer);
    assert!(
        anew > 2 * planned && epochs == Some(2.0),
        "{anew} {planned}"
    );
    assert_eq!(
        told.as_deref(),
        Some(format!("the run goes over the same number of epochs, which are {anew} steps now and were {planned}.").as_str())
    );
    assert_eq!(resume(&data), (None, (planned, Some(2.0))));
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn weights_that_are_no_numbers_are_refused_at_the_start_unless_they_are_allowed() {
    let (out, data) = checkpoint();
    let place = folder("non-finite");
    let model = text(&place.join("model"));
    succeed(&["export", "--checkpoint", &out, "--to", &model]);
    let weights = Path::new(&model).join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    let end = bytes.len();
    // The last values of model.norm.weight.
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    bytes[end - 8..end - 4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    std::fs::write(&weights, bytes).unwrap();
    let args = [
        "train",
        "--model",
        &model,
        "--data",
        &data,
        "--device",
        "cpu",
        "--steps",
        "1",
        "--batch-size",
        "1",
        "--seq-len",
        "8",
    ];
    let (code, message) = refuse(&args);
    assert_eq!(code, "model.non-finite");
    assert!(
        message.contains("model.norm.weight") && message.contains("2 NaN or infinite"),
        "{message}"
    );
    // If they are allowed, the run begins; its first step reports that its loss is not finite.
    assert_eq!(
        refuse(&[&args[..], &["--allow-non-finite"]].concat()).0,
        "train.non-finite"
    );
}

#[test]
fn a_checkpoint_that_is_used_as_a_model_is_verified() {
    let (out, data) = checkpoint();
    let place = folder("verified");
    let copy = text(&place.join("run"));
    copy_folder(&out, Path::new(&copy));
    let weights = Path::new(&copy).join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&weights, bytes).unwrap();
    let to = text(&place.join("out"));
    for args in [
        vec!["convert", "--model", &copy, "--to", &to],
        vec![
            "evaluate", "--model", &copy, "--data", &data, "--device", "cpu",
        ],
        vec![
            "train", "--model", &copy, "--data", &data, "--device", "cpu", "--steps", "1",
        ],
    ] {
        let (code, message) = refuse(&args);
        assert!(
            code == "checkpoint.chunk.hash" && message.contains("model.safetensors"),
            "{args:?}: {message}"
        );
    }
    // No weights are read for these.
    succeed(&["data", &data, "--model", &copy]);
    // A document of another program states nothing about the files.
    let document = Path::new(&copy).join("checkpoint.json");
    std::fs::write(&document, "{\"files\": []}").unwrap();
    succeed(&["convert", "--model", &copy, "--to", &to]);
    std::fs::write(&document, "{\"format\": \"tabtune.checkpoint\", ").unwrap();
    assert_eq!(
        refuse(&[
            "convert",
            "--model",
            &copy,
            "--to",
            &text(&place.join("other"))
        ])
        .0,
        "checkpoint.corrupt"
    );
}
