//! Bases of every kind, merged into every type by each command that merges: equal inputs and requests give equal bytes.

use super::*;

/// Makes a Llama whose rows are whole blocks of Q8_0, after one step.
fn base(place: &Path) -> (String, String) {
    let (config, data) = tiny(place);
    let mut wide: Value = serde_json::from_slice(&std::fs::read(config).unwrap()).unwrap();
    for (key, value) in [
        ("hidden_size", 64),
        ("intermediate_size", 96),
        ("max_position_embeddings", 32),
    ] {
        wide[key] = json!(value);
    }
    wide["initializer_range"] = json!(0.2);
    let config = write(place, "wide.json", wide.to_string());
    let out = text(&place.join("trained"));
    succeed(
        &[
            &short(&config, &data)[..],
            &["--stop-at", "1", "--out", &out],
        ]
        .concat(),
    );
    (out, data)
}

/// Runs a command and returns the bytes of the weights that it writes, from a folder or a file.
fn weights(args: &[&str], to: &str) -> Vec<u8> {
    succeed(&[args, &["--to", to, "--name", "m"]].concat());
    let path = Path::new(to);
    std::fs::read(if path.is_dir() {
        path.join("model.safetensors")
    } else {
        path.to_path_buf()
    })
    .unwrap()
}

#[test]
fn every_command_writes_the_same() {
    let place = folder("merge-matrix");
    let (trained, data) = base(&place);
    let still = r#"{"optimizer": {"type": "sgd"}, "learning_rate": 1e-37, "steps": 1, "seq_len": 16, "batch_size": 1, "precision": "f32"}"#;
    let still = write(&place, "still.json", still);
    for kind in ["f32", "f16", "bf16", "q8_0", "q4_k_m"] {
        let blocks = kind.starts_with('q');
        let model = text(&place.join(if blocks {
            format!("{kind}.gguf")
        } else {
            kind.to_string()
        }));
        let asked: &[&str] = if blocks {
            &["--format", "gguf", "--type", kind]
        } else {
            &["--dtype", kind]
        };
        succeed(&[&["convert", "--model", &trained, "--to", &model], asked].concat());
        let (run, factors) = (
            text(&place.join(format!("{kind}-run"))),
            text(&place.join(format!("{kind}-factors"))),
        );
        let settings = [
            "--lora",
            "--lora-r",
            "3",
            "--lora-targets",
            "all-linear",
            "--device",
            "cpu",
            "--steps",
            "2",
            "--batch-size",
            "2",
        ];
        let rest = ["--seq-len", "16", "--learning-rate", "0.02", "--out", &run];
        succeed(
            &[
                &["train", "--model", &model, "--data", &data],
                &settings[..],
                &rest[..],
            ]
            .concat(),
        );
        succeed(&[
            "export",
            "--checkpoint",
            &run,
            "--format",
            "peft",
            "--to",
            &factors,
        ]);
        for out in [
            "f32",
            "f16",
            "bf16",
            "stored",
            "gguf:f32",
            "gguf:f16",
            "gguf:bf16",
            "gguf:q8_0",
            "gguf:q4_k_m",
            "gguf:as-base",
        ] {
            let (asked, ending) = match out.split_once(':') {
                Some((_, word)) => (vec!["--format", "gguf", "--type", word], ".gguf"),
                None => (vec!["--dtype", out], ""),
            };
            let to = |command: &str| {
                text(&place.join(format!(
                    "{kind}-{}-{command}{ending}",
                    out.replace(':', "-")
                )))
            };
            let exported = weights(
                &[
                    &["export", "--checkpoint", &run, "--base", &model],
                    &asked[..],
                ]
                .concat(),
                &to("export"),
            );
            let merged = weights(
                &[
                    &["adapter", "merge", "--model", &model, "--adapter", &factors],
                    &asked[..],
                ]
                .concat(),
                &to("merge"),
            );
            let converted = weights(
                &[
                    &["convert", "--model", &model, "--merge-adapter", &factors],
                    &asked[..],
                ]
                .concat(),
                &to("convert"),
            );
            assert!(exported == merged && merged == converted, "{kind} to {out}");
            if out == "f32" {
                // The weights that a run begins with, saved after a step with almost no effect, which changes only zeros.
                let begun = to("train");
                let train = [
                    "train",
                    "--model",
                    &model,
                    "--merge-adapter",
                    &factors,
                    "--data",
                    &data,
                    "--device",
                    "cpu",
                    "--train-config",
                ];
                let told = succeed(&[&train[..], &[&still, "--out", &begun]].concat());
                let survival = &told.with("survival")[0]["survival"];
                assert!(survival["mean"].as_f64().unwrap() > 0.99, "{survival}");
                let tensors = |bytes: &[u8]| {
                    let file = safetensors::SafeTensors::deserialize(bytes).unwrap();
                    let floats = |data: &[u8]| -> Vec<f32> {
                        let all = data
                            .chunks_exact(4)
                            .map(|four| f32::from_le_bytes(four.try_into().unwrap()));
                        all.map(|value| if value.abs() < 1e-36 { 0.0 } else { value })
                            .collect()
                    };
                    let all = file
                        .tensors()
                        .into_iter()
                        .map(|(name, view)| (name, floats(view.data())));
                    all.collect::<std::collections::BTreeMap<_, _>>()
                };
                let begun = std::fs::read(Path::new(&begun).join("model.safetensors")).unwrap();
                assert!(tensors(&begun) == tensors(&merged), "{kind}: trained on");
            }
        }
    }
}
