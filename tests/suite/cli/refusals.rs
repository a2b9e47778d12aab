//! Bad input: one typed error, exit status 1, no panic, no partial result.

use super::*;

#[test]
fn command_line_faults_are_usage_errors() {
    let (out, data) = checkpoint();
    for args in [
        &["train", "--data", &data, "--model", &out, "--frobnicate"][..],
        &["train", "--data", &data],
        &["train", "--data", &data, "--model", &out, "--steps", "many"],
        &[
            "train",
            "--data",
            &data,
            "--model",
            &out,
            "--learning-rate",
            "NaN",
        ],
        &[
            "train",
            "--data",
            &data,
            "--model",
            &out,
            "--save-every",
            "0",
            "--out",
            "x",
        ],
        &["train", "--data", &data, "--model", &out, "--resume", &out],
        &[
            "train",
            "--data",
            &data,
            "--model",
            &out,
            "--profile",
            "--device",
            "cpu",
        ],
        &["evaluate", "--model", &out],
        &["frobnicate"],
        &[],
    ] {
        assert_eq!(refuse(args).0, "cli.usage", "{args:?}");
    }
}

#[test]
fn an_output_says_what_it_is_and_has_what_was_asked_for() {
    let ((out, data), place) = (checkpoint(), folder("output-words"));
    let to = |name: &str| text(&place.join(name));
    let (code, message) = refuse(&["export", "--checkpoint", &out, "--to", &to("model.gguf")]);
    assert!(
        code == "cli.usage" && message.contains("give --format gguf"),
        "{code}: {message}"
    );
    assert!(!place.join("model.gguf").exists());
    for format in [
        &["--to", &to("model")][..],
        &["--format", "json", "--to", &to("model.state_dict.json")],
    ] {
        let (code, message) =
            refuse(&[&["convert", "--model", &out, "--optimizer"], format].concat());
        assert!(
            code == "config.invalid" && message.contains("optimizer is true, but must be false"),
            "{code}: {message}"
        );
    }
    // Keys are listed with commas or spaces.
    let resume = [
        "train",
        "--resume",
        &out,
        "--data",
        &data,
        "--device",
        "cpu",
        "--override",
    ];
    for keys in [
        &["learning_rate,no_such_key"][..],
        &["learning_rate", "no_such_key"],
    ] {
        let (_, message) = refuse(&[&resume[..], keys].concat());
        assert!(
            message.contains("no_such_key") && !message.contains("learning_rate,"),
            "{message}"
        );
    }
}

#[test]
fn settings_are_refused_all_at_once() {
    let (out, data) = checkpoint();
    let (code, message) = refuse(&[
        "train",
        "--data",
        &data,
        "--model",
        &out,
        "--steps",
        "0",
        "--learning-rate",
        "-1",
        "--device",
        "cpu",
    ]);
    assert_eq!(code, "config.invalid");
    assert!(
        message.contains("--steps") && message.contains("--learning-rate"),
        "{message}"
    );
    let wrong = [
        "--precision",
        "f8",
        "--groups",
        "some",
        "--optimizer",
        "no-such-rule",
        "--batch-size",
        "0",
    ];
    let (code, message) = refuse(
        &[
            &["train", "--data", &data, "--model", &out, "--device", "cpu"],
            &wrong[..],
        ]
        .concat(),
    );
    assert_eq!(code, "config.invalid");
    assert!(
        ["--precision", "--groups", "--optimizer", "--batch-size"]
            .iter()
            .all(|key| message.contains(&format!("{key} is "))),
        "{message}"
    );
}

#[test]
fn settings_that_train_nothing_or_exhaust_memory_are_refused() {
    let (out, data) = checkpoint();
    let train = [
        "train",
        "--data",
        &data,
        "--model",
        &out,
        "--seq-len",
        "16",
        "--device",
        "cpu",
    ];
    let frozen = write(
        &folder("frozen"),
        "settings.json",
        r#"{"groups": [{"pattern": "*", "frozen": true}]}"#,
    );
    for more in [
        ["--train-config", &frozen],
        ["--gradient-accumulation-steps", "4000000000000000000"],
    ] {
        assert_eq!(
            refuse(&[&train[..], &more].concat()).0,
            "config.invalid",
            "{more:?}"
        );
    }
}

#[test]
fn document_mask_without_an_end_token_is_refused() {
    // The tokenizer of the checkpoint consists of the letters of its text.
    let (out, data) = checkpoint();
    let train = [
        "train",
        "--data",
        &data,
        "--model",
        &out,
        "--document-mask",
        "--device",
        "cpu",
    ];
    for args in [
        &train[..],
        &[
            "evaluate",
            "--data",
            &data,
            "--model",
            &out,
            "--document-mask",
            "--device",
            "cpu",
        ],
    ] {
        let (code, message) = refuse(args);
        assert_eq!(code, "config.invalid", "{args:?}");
        assert!(
            message.contains("--document-mask") && message.contains("eos"),
            "{message}"
        );
    }
}

#[test]
fn files_that_are_no_models_are_refused() {
    let place = folder("no-models");
    for (name, bytes) in [
        ("empty.gguf", &b""[..]),
        ("short.gguf", b"GGUF\x03\0\0\0\x05"),
        ("page.gguf", b"<!DOCTYPE html><html></html>"),
        ("poem.txt", POEM.as_bytes()),
        ("page.safetensors", b"<!DOCTYPE html><html></html>"),
    ] {
        let path = write(&place, name, bytes);
        let (code, _) = refuse(&["tokenize", "--model", &path, "--text", "a"]);
        assert!(!code.starts_with("cli.internal"), "{name}: {code}");
    }
    assert_eq!(
        refuse(&[
            "tokenize",
            "--model",
            &text(&place.join("absent")),
            "--text",
            "a"
        ])
        .0,
        "source.read"
    );
    let empty = place.join("empty");
    std::fs::create_dir(&empty).unwrap();
    refuse(&["tokenize", "--model", &text(&empty), "--text", "a"]);
}

#[test]
fn weights_cut_at_any_place_are_refused() {
    let (out, data) = checkpoint();
    let place = folder("cut");
    let whole = std::fs::read(Path::new(&out).join("model.safetensors")).unwrap();
    for keep in [0, 4, 8, 100, whole.len() / 2, whole.len() - 1] {
        let model = place.join(format!("cut-{keep}"));
        copy_with(&out, &model, "model.safetensors", &whole[..keep]);
        without_manifest(&model);
        let (code, _) = refuse(&[
            "evaluate",
            "--model",
            &text(&model),
            "--data",
            &data,
            "--device",
            "cpu",
        ]);
        assert!(code.starts_with("safetensors."), "{keep}: {code}");
    }
}

#[test]
fn config_that_does_not_fit_the_weights_is_refused() {
    let (out, data) = checkpoint();
    let place = folder("misfit");
    let config = std::fs::read_to_string(Path::new(&out).join("config.json")).unwrap();
    for (key, value) in [
        ("num_hidden_layers", json!(3)),
        ("intermediate_size", json!(32)),
        ("vocab_size", json!(999)),
    ] {
        let mut changed: Value = serde_json::from_str(&config).unwrap();
        changed[key] = value;
        let model = place.join("model");
        copy_with(&out, &model, "config.json", changed.to_string().as_bytes());
        without_manifest(&model);
        let (code, _) = refuse(&[
            "evaluate",
            "--model",
            &text(&model),
            "--data",
            &data,
            "--device",
            "cpu",
        ]);
        assert!(code.starts_with("model."), "{key}: {code}");
        // Before any device is opened: `inspect` uses none.
        assert_eq!(
            succeed(&["inspect", &text(&model)]).last()["code"],
            json!(code)
        );
    }
    let mut shorter: Value = serde_json::from_str(&config).unwrap();
    shorter["num_hidden_layers"] = json!(1);
    let model = place.join("shorter");
    copy_with(&out, &model, "config.json", shorter.to_string().as_bytes());
    let warnings = succeed(&["inspect", &text(&model)]).last()["warnings"].clone();
    let extra = warnings
        .as_array()
        .unwrap()
        .iter()
        .filter(|warning| warning["code"] == "model.tensor.extra")
        .count();
    assert_eq!(extra, 9, "the second layer: {warnings}");
}

#[test]
fn unusable_data_is_refused() {
    let place = folder("data");
    let (config, _) = tiny(&place);
    let (empty, short_text, binary) = (
        write(&place, "empty.txt", ""),
        write(&place, "short.txt", "abc"),
        write(&place, "binary.txt", b"abc\xff\xfe"),
    );
    let lines = write(&place, "bad.jsonl", "{\"prompt\": 3}\n");
    let code = |data: &str| refuse(&short(&config, data)).0;
    assert_eq!(code(&empty), "data.empty");
    assert_eq!(code(&short_text), "data.too-short");
    assert_eq!(code(&binary), "data.encoding");
    assert_eq!(code(&text(&place.join("absent.txt"))), "source.read");
    assert_eq!(code(&lines), "data.shape");
    let (out, _) = checkpoint();
    assert_eq!(
        refuse(&[
            "evaluate", "--model", &out, "--data", &empty, "--device", "cpu"
        ])
        .0,
        "data.empty"
    );
}

#[test]
fn sequence_beyond_the_context_is_refused() {
    let (out, data) = checkpoint();
    assert_eq!(
        refuse(&[
            "train",
            "--model",
            &out,
            "--data",
            &data,
            "--seq-len",
            "33",
            "--device",
            "cpu"
        ])
        .0,
        "model.context"
    );
    assert_eq!(
        refuse(&[
            "evaluate",
            "--model",
            &out,
            "--data",
            &data,
            "--seq-len",
            "34",
            "--device",
            "cpu"
        ])
        .0,
        "model.context"
    );
}

#[test]
fn contradictions_of_a_resumed_run_are_listed() {
    let (out, data) = checkpoint();
    let resume = |more: &[&str]| {
        refuse(
            &[
                &[
                    "train", "--resume", &out, "--data", &data, "--device", "cpu",
                ],
                more,
            ]
            .concat(),
        )
    };
    let (code, message) = resume(&["--learning-rate", "0.5", "--batch-size", "3"]);
    assert_eq!(code, "optim.resume-mismatch");
    assert!(
        message.contains("learning_rate") && message.contains("batch_size"),
        "{message}"
    );
    let other = write(
        &folder("other-data"),
        "other.txt",
        POEM.replace("toves", "doves").repeat(6),
    );
    let (code, _) = refuse(&[
        "train", "--resume", &out, "--data", &other, "--device", "cpu",
    ]);
    assert_eq!(code, "optim.resume-mismatch");
}

#[test]
fn damaged_checkpoint_is_refused() {
    let (out, data) = checkpoint();
    let place = folder("damaged");
    let resume = |folder: &Path| {
        refuse(&[
            "train",
            "--resume",
            &text(folder),
            "--data",
            &data,
            "--device",
            "cpu",
        ])
        .0
    };
    let model = place.join("manifest");
    copy_with(&out, &model, "checkpoint.json", b"{\"format\":");
    assert!(resume(&model).starts_with("checkpoint."));
    let model = place.join("moments");
    let whole = std::fs::read(Path::new(&out).join("optimizer.safetensors")).unwrap();
    copy_with(
        &out,
        &model,
        "optimizer.safetensors",
        &whole[..whole.len() - 1],
    );
    resume(&model);
    assert_eq!(resume(&place.join("absent")), "source.read");
}

#[test]
fn folders_in_the_way_are_left_alone() {
    let (out, data) = checkpoint();
    let place = folder("in-the-way");
    let kept = write(&place, "precious.txt", "x");
    let here = text(&place);
    assert_eq!(
        refuse(&["export", "--checkpoint", &out, "--to", &here]).0,
        "output.occupied"
    );
    assert_eq!(
        refuse(&[
            "train", "--model", &out, "--data", &data, "--out", &here, "--device", "cpu"
        ])
        .0,
        "output.occupied"
    );
    assert_eq!(
        refuse(&["export", "--checkpoint", &out, "--to", &kept]).0,
        "output.occupied"
    );
    assert_eq!(std::fs::read(&kept).unwrap(), b"x");
}

/// A document with a link or a folder in its place is not skipped.
#[cfg(unix)]
#[test]
fn documents_that_are_no_files_are_refused() {
    let (out, _) = checkpoint();
    let place = folder("no-files");
    let model = place.join("model");
    copy_folder(&out, &model);
    for name in [
        "tokenizer.json",
        "chat_template.jinja",
        "merges.txt",
        "config.json",
    ] {
        let path = model.join(name);
        let _ = std::fs::remove_file(&path);
        let refused = || {
            let (code, message) = refuse(&[
                "convert",
                "--model",
                &text(&model),
                "--to",
                &text(&place.join("never")),
            ]);
            assert!(
                code == "source.read" && message.contains(name),
                "{code} {message}"
            );
        };
        std::fs::create_dir(&path).unwrap();
        refused();
        std::fs::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink("../blobs/x", &path).unwrap();
        refused();
        std::fs::remove_file(&path).unwrap();
    }
}

/// A limit of the file size imitates a full disk: writes fail with an error instead of a signal.
#[cfg(unix)]
#[test]
fn full_disk_on_export_is_a_typed_error_and_leaves_nothing() {
    let (out, _) = checkpoint();
    let place = folder("full-disk");
    let to = place.join("model");
    let script = "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\"";
    let args = [
        "export",
        "--checkpoint",
        &out,
        "--to",
        to.to_str().unwrap(),
        "--json",
    ];
    let output = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg(binary())
        .args(args)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line["error"]["code"], json!("sink.write"));
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
}

fn copy_with(from: &str, to: &Path, name: &str, bytes: &[u8]) {
    copy_folder(from, to);
    std::fs::write(to.join(name), bytes).unwrap();
}

/// Makes the copy of a checkpoint a folder of a model alone, whose files no sums are stated for.
fn without_manifest(model: &Path) {
    std::fs::remove_file(model.join("checkpoint.json")).unwrap();
}

/// Makes a folder of the golden models' files under other names, and of generated files.
fn model_folder(name: &str, golden: &[(&str, &str)], made: &[(&str, &[u8])]) -> String {
    let place = folder(name);
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/models");
    for (from, to) in golden {
        std::fs::copy(models.join(from), place.join(to)).unwrap();
    }
    made.iter()
        .for_each(|(name, bytes)| drop(write(&place, name, bytes)));
    text(&place)
}

#[test]
fn folder_of_a_model_is_inspected_as_one() {
    let adapter = [("adapter_config.json", &b"{}"[..])];
    let place = model_folder(
        "adapter",
        &[
            ("qwen2/config.json", "config.json"),
            ("qwen2/model.safetensors", "model.safetensors"),
        ],
        &adapter,
    );
    let answer = succeed(&["inspect", &place]);
    assert_eq!(answer.last()["code"], json!("bundle.adapter"));
    assert_eq!(
        answer.last()["refusals"][0]["subject"],
        json!("adapter_config.json")
    );
    assert_eq!(
        refuse(&["tokenize", "--model", &place, "--text", "a"]).0,
        "bundle.adapter"
    );
    let place = model_folder(
        "beside",
        &[
            ("qwen2.gguf", "q.gguf"),
            ("llama3/config.json", "config.json"),
        ],
        &[],
    );
    let answer = succeed(&["inspect", &place]);
    assert_eq!(
        (&answer.last()["ok"], &answer.last()["warnings"][0]["code"]),
        (&json!(true), &json!("bundle.unused"))
    );
    assert!(
        answer.last()["warnings"][0]["message"]
            .as_str()
            .unwrap()
            .contains("config.json")
    );
    assert_eq!(
        succeed(&["tokenize", "--model", &place, "--text", "user"]).last()["ids"],
        json!([4, 5, 6, 7])
    );
    let parts = [
        "qwen3-00001-of-00003.gguf",
        "qwen3-00002-of-00003.gguf",
        "qwen3-00003-of-00003.gguf",
    ];
    let place = model_folder("parts", &parts.map(|part| (part, part)), &[]);
    assert_eq!(
        succeed(&["tokenize", "--model", &place, "--text", "user"]).last()["ids"],
        json!([4, 5, 6, 7])
    );
    // A part brings the others that lie next to it.
    let part = text(&Path::new(&place).join(parts[1]));
    assert_eq!(
        succeed(&["tokenize", "--model", &part, "--text", "user"]).last()["ids"],
        json!([4, 5, 6, 7])
    );
    std::fs::remove_file(Path::new(&place).join(parts[2])).unwrap();
    assert_eq!(
        refuse(&["tokenize", "--model", &part, "--text", "a"]).0,
        "gguf.split.incomplete"
    );
}

/// Names and texts of a file are escaped in the terminal, and unchanged for programs.
#[test]
fn text_of_files_is_shown_and_not_obeyed() {
    let place = folder("bidi");
    let name = format!("\u{202e}\u{9b}31m{}", "n".repeat(500));
    let header =
        json!({ &name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} }).to_string();
    let bytes = [
        &(header.len() as u64).to_le_bytes(),
        header.as_bytes(),
        &[0; 4],
    ]
    .concat();
    let path = write(&place, "odd.safetensors", bytes);
    let acts = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes)
            .chars()
            .any(|c| c != '\n' && (c.is_control() || c == '\u{202e}'))
    };
    let plain = output(&["inspect", &path]);
    assert!(
        !acts(&plain.stdout) && plain.stdout.len() < 400,
        "{}",
        String::from_utf8_lossy(&plain.stdout)
    );
    let json = output(&["inspect", &path, "--json"]);
    assert!(!acts(&json.stdout));
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(report["inventory"][0]["name"], json!(name));
    write(
        &place,
        "config.json",
        br#"{"model_type": "llama", "vocab_size": 1, "hidden_size": 1, "intermediate_size": 1, "num_hidden_layers": 1,
        "num_attention_heads": 1, "head_dim": 2, "max_position_embeddings": 8, "hidden_act": "\u202e\u009b silu"}"#,
    );
    let refused = output(&["tokenize", "--model", &text(&place), "--text", "a"]);
    assert!(!refused.status.success() && !acts(&refused.stderr) && !acts(&refused.stdout));
}

/// Files from a failed download, under the name of a document, are reported as what they are.
#[test]
fn documents_that_are_no_json_are_named() {
    let (out, data) = checkpoint();
    let place = folder("no-json");
    let page = b"<!DOCTYPE html><html><body>404</body></html>";
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n";
    for (index, (bytes, word)) in [
        (&page[..], "HTML"),
        (&pointer[..], "git lfs pull"),
        (&b" \n"[..], "an empty file"),
    ]
    .into_iter()
    .enumerate()
    {
        let model = place.join(format!("model-{index}"));
        copy_with(&out, &model, "config.json", bytes);
        std::fs::remove_file(model.join("checkpoint.json")).unwrap();
        let (code, message) = refuse(&[
            "evaluate",
            "--model",
            &text(&model),
            "--data",
            &data,
            "--device",
            "cpu",
        ]);
        assert!(
            code == "format.mismatch" && message.contains(word) && message.contains("config.json"),
            "{code} {message}"
        );
    }
    let message = place.join("message");
    copy_with(
        &out,
        &message,
        "model.safetensors",
        b"Access to model a/b is restricted.",
    );
    std::fs::remove_file(message.join("checkpoint.json")).unwrap();
    let (code, words) = refuse(&[
        "evaluate",
        "--model",
        &text(&message),
        "--data",
        &data,
        "--device",
        "cpu",
    ]);
    assert!(
        code == "safetensors.header.too-large" && words.contains("Access to model a/b"),
        "{code} {words}"
    );
    let mlx = place.join("mlx");
    std::fs::create_dir(&mlx).unwrap();
    std::fs::write(
        mlx.join("adapter_config.json"),
        r#"{"lora_parameters": {"rank": 8}}"#,
    )
    .unwrap();
    std::fs::write(mlx.join("adapters.safetensors"), []).unwrap();
    let merge = [
        "adapter",
        "merge",
        "--model",
        &out,
        "--adapter",
        &text(&mlx),
        "--to",
        &text(&place.join("to")),
    ];
    let (code, message) = refuse(&merge);
    assert!(
        code == "format.unsupported"
            && message.contains("an adapter of MLX")
            && message.contains("mlx_lm.fuse"),
        "{code} {message}"
    );
    let pickled = place.join("pickled");
    std::fs::create_dir(&pickled).unwrap();
    std::fs::copy(
        Path::new(&out).join("config.json"),
        pickled.join("config.json"),
    )
    .unwrap();
    std::fs::write(pickled.join("pytorch_model.bin"), b"PK\x03\x04archive").unwrap();
    let (code, message) = refuse(&[
        "evaluate",
        "--model",
        &text(&pickled),
        "--data",
        &data,
        "--device",
        "cpu",
    ]);
    assert!(
        code == "format.unsupported" && message.contains("pickle"),
        "{code} {message}"
    );
}

/// Nobody writes into the pipe, so that a command that opens it would wait without end.
#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_file_is_refused_at_once() {
    use std::os::unix::net::UnixListener;
    let place = folder("pipes");
    let (config, data) = tiny(&place);
    let (model, _) = checkpoint();
    let (pipe, socket) = (text(&place.join("pipe")), text(&place.join("socket")));
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let _listener = UnixListener::bind(&socket).unwrap();
    let to = text(&place.join("to.gguf"));
    for (path, found) in [
        (&*pipe, "a pipe"),
        (&*socket, "a socket"),
        ("/dev/zero", "a device"),
    ] {
        let scratch = [
            "train",
            "--config",
            &config,
            "--device",
            "cpu",
            "--steps",
            "1",
            "--seq-len",
            "16",
            "--data",
        ];
        let tuned = [
            "train",
            "--model",
            path,
            "--data",
            &data,
            "--device",
            "cpu",
            "--steps",
            "1",
            "--seq-len",
            "16",
        ];
        let commands = [
            [&scratch[..], &[path]].concat(),
            [&scratch[..], &[&data, "--validation-data", path]].concat(),
            tuned.to_vec(),
            vec![
                "evaluate", "--model", path, "--data", &data, "--device", "cpu",
            ],
            vec![
                "evaluate", "--model", &model, "--data", path, "--device", "cpu",
            ],
            vec!["data", path],
            vec!["inspect", path],
            vec!["convert", "--model", path, "--format", "gguf", "--to", &to],
        ];
        for args in commands {
            let (code, message) = refuse(&args);
            let expected =
                format!("{path}: expected a file, found {found}: read it into a file first");
            assert!(
                code == "source.read" && message.contains(&expected),
                "{args:?}: {code} {message}"
            );
        }
    }
    // The model of a checkpoint is opened as a folder, and a pipe is none.
    assert_eq!(
        refuse(&[
            "train", "--resume", &pipe, "--data", &data, "--device", "cpu"
        ])
        .0,
        "source.read"
    );
}
