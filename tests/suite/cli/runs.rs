//! Output of commands that succeed.

use super::*;

fn losses(answer: &Answer) -> Vec<f64> {
    answer
        .with("loss")
        .iter()
        .map(|line| line["loss"].as_f64().unwrap())
        .collect()
}

#[test]
fn train_prints_a_line_per_step_and_the_end() {
    let place = folder("lines");
    let (config, data) = tiny(&place);
    let answer = succeed(
        &[
            &short(&config, &data)[..],
            &["--validation-fraction", "0.2", "--eval-every", "2"],
        ]
        .concat(),
    );
    let steps = answer.with("grad_norm");
    assert_eq!(
        steps
            .iter()
            .map(|line| line["step"].as_u64().unwrap())
            .collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
    for line in steps {
        for key in [
            "epoch",
            "loss",
            "grad_norm",
            "learning_rate",
            "tokens",
            "secs",
        ] {
            assert!(line[key].is_number(), "{key} in {line}");
        }
        assert_eq!(line["tokens"], json!(32));
    }
    assert_eq!(answer.with("eval_loss").len(), 2);
    assert_eq!(answer.last()["done"], json!(true));
    assert_eq!(answer.last()["checkpoint"], Value::Null);
}

#[test]
fn train_names_what_apollo_leaves_to_adamw() {
    let place = folder("fallbacks");
    let (config, data) = tiny(&place);
    let file = write(
        &place,
        "t.json",
        r#"{"optimizer": {"type": "apollo", "rank": 8}}"#,
    );
    let args = [&short(&config, &data)[..], &["--train-config", &file]].concat();
    let answer = succeed(&args);
    // The tied embedding, five norms, and the projections to the 8 columns of two heads of four.
    let expected = json!([
        "model.embed_tokens.weight",
        "model.layers.0.input_layernorm.weight",
        "model.layers.0.post_attention_layernorm.weight",
        "model.layers.0.self_attn.k_proj.weight",
        "model.layers.0.self_attn.v_proj.weight",
        "model.layers.1.input_layernorm.weight",
        "model.layers.1.post_attention_layernorm.weight",
        "model.layers.1.self_attn.k_proj.weight",
        "model.layers.1.self_attn.v_proj.weight",
        "model.norm.weight"
    ]);
    assert_eq!(answer.lines[0], json!({ "fallbacks": expected }));
    assert_eq!(answer.with("fallbacks").len(), 1);
    let text = String::from_utf8(output(&args).stdout).unwrap();
    let line = "APOLLO leaves 10 tensors to AdamW: model.embed_tokens.weight, model.layers.0.input_layernorm.weight, \
                model.layers.0.post_attention_layernorm.weight and 7 more";
    assert_eq!(text.lines().next().unwrap(), line);
    assert!(succeed(&short(&config, &data)).with("fallbacks").is_empty());
}

#[test]
fn train_config_file_and_options_agree_and_options_win() {
    let place = folder("settings");
    let (config, data) = tiny(&place);
    let file = write(
        &place,
        "t.json",
        r#"{"steps": 9, "batch_size": 2, "seq_len": 16, "learning_rate": 0.01, "seed": 7}"#,
    );
    let by_file = succeed(&[
        "train",
        "--config",
        &config,
        "--data",
        &data,
        "--device",
        "cpu",
        "--train-config",
        &file,
        "--steps",
        "4",
    ]);
    assert_eq!(losses(&by_file), losses(&succeed(&short(&config, &data))));
}

#[test]
fn groups_by_name_are_spelled_out_in_the_checkpoint() {
    let place = folder("groups");
    let (config, data) = tiny(&place);
    let run = text(&place.join("run"));
    succeed(
        &[
            &short(&config, &data)[..],
            &["--groups", "no_decay", "--out", &run, "--stop-at", "2"],
        ]
        .concat(),
    );
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(Path::new(&run).join("checkpoint.json")).unwrap())
            .unwrap();
    let groups = manifest["train"]["groups"].as_array().unwrap();
    assert_eq!(
        groups
            .iter()
            .map(|group| &group["weight_decay"])
            .collect::<Vec<_>>(),
        [&json!(0.0), &Value::Null]
    );
    // The preset's name means the same setting as the groups that it names.
    let resume = [
        "train", "--resume", &run, "--data", &data, "--device", "cpu", "--groups", "no_decay",
    ];
    assert_eq!(succeed(&resume).last()["step"], json!(4));
}

#[test]
fn resumed_run_equals_the_whole_run_bit_for_bit() {
    let place = folder("resume");
    let (config, data) = tiny(&place);
    let (whole, parts) = (text(&place.join("whole")), text(&place.join("parts")));
    let more = ["--precision", "bf16", "--gradient-accumulation-steps", "2"];
    let all = succeed(&[&short(&config, &data)[..], &more, &["--out", &whole]].concat());
    let first = succeed(
        &[
            &short(&config, &data)[..],
            &more,
            &["--out", &parts, "--stop-at", "2"],
        ]
        .concat(),
    );
    let second = succeed(&[
        "train", "--resume", &parts, "--data", &data, "--device", "cpu", "--steps", "4", "--out",
        &parts,
    ]);
    assert_eq!([losses(&first), losses(&second)].concat(), losses(&all));
    for name in ["model.safetensors", "optimizer.safetensors"] {
        let read = |run: &str| std::fs::read(Path::new(run).join(name)).unwrap();
        assert!(read(&whole) == read(&parts), "{name} differs");
    }
}

/// Compares the bits of losses, evaluation losses and saved files, except for their settings; a refused step is named.
#[test]
fn reports_that_are_read_together_are_those_of_steps_one_by_one() {
    let place = folder("report-every");
    let (config, data) = tiny(&place);
    let run = |name: &str, more: &[&str]| {
        let out = text(&place.join(name));
        let mut nine = short(&config, &data);
        let steps = nine.iter().position(|word| *word == "--steps").unwrap() + 1;
        nine[steps] = "9";
        let options = [
            "--eval-every",
            "4",
            "--save-every",
            "6",
            "--validation-fraction",
            "0.3",
            "--out",
            &out,
        ];
        let answer = succeed(&[&nine[..], &options, more].concat());
        let weights = std::fs::read(place.join(name).join("model.safetensors")).unwrap();
        let evals: Vec<(Value, Value)> = answer
            .with("eval_loss")
            .into_iter()
            .map(|line| (line["step"].clone(), line["eval_loss"].clone()))
            .collect();
        (losses(&answer), evals, weights)
    };
    let alone = run("alone", &[]);
    assert_eq!((alone.0.len(), alone.1.len()), (9, 3));
    assert!(run("together", &["--report-every", "4"]) == alone);
    let wild = write(
        &place,
        "wild.json",
        r#"{"optimizer": {"type": "sgd"}, "max_grad_norm": 0.0, "report_every": 4, "learning_rate": 1e38, "steps": 9, "seq_len": 16}"#,
    );
    let (code, message) = refuse(&[
        "train",
        "--config",
        &config,
        "--data",
        &data,
        "--device",
        "cpu",
        "--train-config",
        &wild,
    ]);
    assert_eq!(
        (code.as_str(), message.starts_with("the loss of step 2 is ")),
        ("train.non-finite", true),
        "{message}"
    );
}

#[test]
fn resume_changes_only_what_override_names() {
    let place = folder("override");
    let (config, data) = tiny(&place);
    let run = text(&place.join("run"));
    succeed(
        &[
            &short(&config, &data)[..],
            &["--out", &run, "--stop-at", "2"],
        ]
        .concat(),
    );
    let resume = [
        "train",
        "--resume",
        &run,
        "--data",
        &data,
        "--device",
        "cpu",
        "--steps",
        "6",
        "--learning-rate",
        "0.001",
    ];
    let (code, message) = refuse(&resume);
    assert_eq!(code, "optim.resume-mismatch");
    assert!(
        message.contains("learning_rate") && message.contains("steps"),
        "{message}"
    );
    assert!(
        message.ends_with(" Accept the given values with --override learning_rate steps."),
        "{message}"
    );
    // Settings that cannot be overridden are not among them.
    let (_, message) = refuse(&[&resume[..], &["--seed", "9"]].concat());
    assert!(
        message.contains("seed is 9, but the run so far had 7, which cannot be overridden"),
        "{message}"
    );
    assert!(
        message.ends_with("--override learning_rate steps."),
        "{message}"
    );
    let other = write(
        &place,
        "other.txt",
        POEM.repeat(7).replace("slithy", "slithe"),
    );
    let (_, message) = refuse(&[
        "train", "--resume", &run, "--data", &other, "--device", "cpu",
    ]);
    assert!(message.ends_with("--override data."), "{message}");
    let answer = succeed(&[&resume[..], &["--override", "learning_rate", "steps"]].concat());
    let rates: Vec<f64> = answer
        .with("grad_norm")
        .iter()
        .map(|line| line["learning_rate"].as_f64().unwrap())
        .collect();
    assert_eq!(rates, [0.001; 4]);
}

#[test]
fn finished_run_extended_by_its_steps_continues_along_the_longer_schedule() {
    let place = folder("extend");
    let (config, data) = tiny(&place);
    let run = text(&place.join("run"));
    succeed(
        &[
            &short(&config, &data)[..],
            &["--schedule", "cosine", "--out", &run],
        ]
        .concat(),
    );
    let resume = [
        "train", "--resume", &run, "--data", &data, "--device", "cpu", "--steps", "6",
    ];
    let (_, message) = refuse(&resume);
    assert!(
        message.contains("schedule.total_steps is 6, but the run so far had 4. steps is 6, but"),
        "{message}"
    );
    let answer = succeed(&[&resume[..], &["--override", "steps"]].concat());
    let rates: Vec<f64> = answer
        .with("grad_norm")
        .iter()
        .map(|line| line["learning_rate"].as_f64().unwrap())
        .collect();
    // Half a cosine over 6 steps: cos(4π/6) = −1/2, cos(5π/6) = −√3/2.
    let expected = [
        0.01 * 0.5 * (1.0 - 0.5),
        0.01 * 0.5 * (1.0 - 3f64.sqrt() / 2.0),
    ];
    assert!(
        rates.len() == 2
            && rates
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 1e-12),
        "{rates:?}"
    );
    // A given length is kept.
    let longer = write(&place, "t.json", r#"{"schedule": {"total_steps": 9}}"#);
    let resume = [&resume[..], &["--train-config", &longer]].concat();
    assert!(
        refuse(&[&resume[..], &["--override", "steps"]].concat())
            .1
            .contains("schedule.total_steps is 9, but the run so far had 4")
    );
    succeed(
        &[
            &resume[..],
            &["--override", "steps", "schedule.total_steps"],
        ]
        .concat(),
    );
}

#[test]
fn resume_starts_a_decay_or_annealing_by_the_settings_file() {
    let place = folder("decay");
    let (config, data) = tiny(&place);
    for (schedule, start) in [
        (
            r#"{"type": "wsd"}"#,
            r#"{"start_decay": true, "decay_steps": 2}"#,
        ),
        (
            r#"{"type": "infinite"}"#,
            r#"{"start_annealing": true, "annealing_steps": 2, "annealing_type": "harmonic"}"#,
        ),
    ] {
        let run = text(&place.join("run"));
        let planned = write(
            &place,
            "planned.json",
            format!(r#"{{"schedule": {schedule}}}"#),
        );
        succeed(
            &[
                &short(&config, &data)[..],
                &["--train-config", &planned, "--out", &run, "--stop-at", "2"],
            ]
            .concat(),
        );
        let given = write(&place, "start.json", format!(r#"{{"schedule": {start}}}"#));
        let answer = succeed(&[
            "train",
            "--resume",
            &run,
            "--data",
            &data,
            "--device",
            "cpu",
            "--train-config",
            &given,
        ]);
        let rates: Vec<f64> = answer
            .with("grad_norm")
            .iter()
            .map(|line| line["learning_rate"].as_f64().unwrap())
            .collect();
        // From 0.01 to a tenth of it, harmonic: step 3 is the first of the decay, step 4 is half way.
        let expected = [0.01, 1.0 / (0.5 / 0.001 + 0.5 / 0.01)];
        assert!(
            rates.len() == 2
                && rates
                    .iter()
                    .zip(expected)
                    .all(|(a, b)| (a - b).abs() < 1e-12),
            "{schedule}: {rates:?}"
        );
    }
}

#[test]
fn profile_lists_every_launch_of_a_step_with_its_time() {
    if tabtune_tests::gpu().is_none() {
        return;
    }
    let place = folder("profile");
    let (config, data) = tiny(&place);
    let args: Vec<&str> = short(&config, &data)
        .into_iter()
        .map(|arg| if arg == "cpu" { "wgpu" } else { arg })
        .collect();
    let answer = succeed(&[&args[..], &["--profile"]].concat());
    assert_eq!(
        losses(&answer),
        losses(&succeed(&args)),
        "timing changes no bit"
    );
    let profile = &answer.with("profile")[0]["profile"];
    assert_eq!(profile["steps"], json!(3), "all but the one that compiles");
    let rows = profile["kernels"].as_array().unwrap();
    let sum = |key: &str, ours: bool| {
        let rows = rows
            .iter()
            .filter(|row| !ours || !row["kernel"].as_str().unwrap().starts_with("Burn: "));
        rows.map(|row| row[key].as_f64().unwrap()).sum::<f64>()
    };
    assert_eq!(
        sum("launches", true),
        profile["dispatches"].as_f64().unwrap()
    );
    assert!(
        (sum("share", false) - 1.0).abs() < 1e-9
            && (sum("ms", false) - profile["ms"].as_f64().unwrap()).abs() < 1e-9,
        "{profile}"
    );
    let launches = |kernel: &str| {
        rows.iter()
            .find(|row| row["kernel"] == kernel)
            .map_or(0.0, |row| row["launches"].as_f64().unwrap())
    };
    // The table of the letters, 9 of each of 2 layers and the last norm.
    assert_eq!(
        [
            launches("adamw_wide"),
            launches("swiglu_forward_wide"),
            launches("loss_sum")
        ],
        [20.0, 2.0, 1.0],
        "{profile}"
    );
    let known =
        |row: &&Value| tabtune::catalogue::catalogue().any(|kernel| row["kernel"] == kernel.name);
    assert!(
        rows.iter()
            .filter(known)
            .all(|row| row["ms"].as_f64().unwrap() > 0.0),
        "{profile}"
    );
    assert!(
        rows.iter()
            .all(|row| known(&row) || row["kernel"].as_str().unwrap().starts_with("Burn: ")),
        "{profile}"
    );
    let table =
        String::from_utf8(output(&[&args[..], &["--profile", "--stop-at", "1"]].concat()).stdout)
            .unwrap();
    assert!(
        table.contains("mean of 1") && table.lines().any(|line| line.starts_with("adamw_wide ")),
        "{table}"
    );
}

/// Runs a bench if there is a GPU. Returns its lines.
fn bench(subject: &str, option: &str, value: &str) -> Vec<Value> {
    if tabtune_tests::gpu().is_none() {
        return Vec::new();
    }
    succeed(&["bench", subject, option, value])
        .with("optimizer")
        .into_iter()
        .cloned()
        .collect()
}

#[test]
fn bench_counts_the_dispatches_of_a_step() {
    for line in bench("optimizers", "--elements", "8192") {
        // One more would be a copy of a tensor that should be changed in place.
        let expected = match line["optimizer"].as_str().unwrap() {
            "adafactor" => 4,
            "apollo" => 3,
            _ => 1,
        };
        assert_eq!(line["dispatches"], json!(expected), "{line}");
        assert!(line["ratio"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn bench_step_finds_as_many_buffers_after_the_last_step_as_after_the_warm_up() {
    if tabtune_tests::gpu().is_none() {
        return;
    }
    let answer = succeed(&["bench", "step", "--size", "tiny", "--steps", "3"]);
    let live = &answer.last()["live"];
    for count in ["buffers", "bytes"] {
        assert_eq!(live[count][0], live[count][1], "{live}");
    }
    // Weights and two moments, f32.
    assert!(
        live["bytes"][0].as_u64().unwrap() >= 3 * 4 * 922_752,
        "{live}"
    );
    // During a step, additionally the gradients and 512 rows of logits.
    let memory = &answer.last()["memory"];
    let [held, in_use, reserved] =
        ["held", "in_use", "reserved"].map(|key| memory[key].as_u64().unwrap());
    assert!(
        held >= 3 * 4 * 922_752
            && in_use >= held + 4 * (922_752 + 512 * 1024)
            && reserved >= in_use,
        "{memory}"
    );
}

#[test]
fn bench_memory_of_a_model_adds_up() {
    if tabtune_tests::gpu().is_none() {
        return;
    }
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/models/qwen2");
    let measured = |options: &[&str]| {
        let answer = succeed(
            &[
                &[
                    "bench",
                    "memory",
                    "--model",
                    model,
                    "--precision",
                    "f32",
                    "--seq-len",
                    "8",
                ],
                options,
            ]
            .concat(),
        );
        ["parameters", "weights", "state", "gradients", "in_use"]
            .map(|key| answer.last()[key].as_u64().unwrap())
    };
    let [parameters, weights, state, gradients, in_use] = measured(&[]);
    // Each of the 20-odd tensors may end in an allocator's unfilled 256 bytes.
    assert!(
        (4 * parameters..8 * parameters + 8192).contains(&weights) && state >= 8 * parameters,
        "{weights} {state}"
    );
    assert!(
        gradients == 4 * parameters && in_use > weights + state + gradients,
        "{in_use}"
    );
    let [_, _, _, released, _] = measured(&["--gradient-release"]);
    assert!(released < gradients, "{released}");
    let [_, _, of_block, one, least] = measured(&[
        "--block-coordinate",
        "1",
        "--gradient-accumulation-steps",
        "2",
    ]);
    assert!(
        2 * one < gradients && 2 * of_block < state && least < in_use,
        "{one} {of_block} {least}"
    );
}

#[test]
fn bench_memory_keeps_its_bounds() {
    for line in bench("memory", "--layers", "1") {
        assert_eq!(line["ok"], json!(true), "{line}");
        // At least weights and gradients: a lower figure would not be one of this model. With release, at least the table's gradients, which are
        // half of all.
        let least = match (
            line["precision"].as_str(),
            line["gradient_release"].as_bool(),
        ) {
            (Some("f32"), _) => 8.0,
            (_, None) => 6.0,
            (_, Some(_)) => 4.0,
        };
        assert!(
            line["bytes_per_parameter"].as_f64().unwrap() >= least,
            "{line}"
        );
    }
}

#[test]
fn saving_replaces_the_checkpoint_and_leaves_nothing_next_to_it() {
    let place = folder("saves");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    let args = [
        &short(&config, &data)[..],
        &["--out", &out, "--save-every", "1"],
    ]
    .concat();
    succeed(&args);
    succeed(&args);
    let mut names: Vec<_> = std::fs::read_dir(&place)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["poem.txt", "run", "tiny.json"]);
}

#[test]
fn tokenize_gives_one_id_per_character() {
    let (out, _) = checkpoint();
    let answer = succeed(&["tokenize", "--model", &out, "--text", "the wabe"]);
    let ids = answer.last()["ids"].as_array().unwrap().clone();
    assert_eq!(ids.len(), 8);
    assert_eq!(ids[2], ids[7]);
}

#[test]
fn schedule_shows_the_rates_that_training_takes() {
    let place = folder("schedule");
    let file = place.join("settings.json");
    let settings = json!({"steps": 6, "learning_rate": 0.01, "schedule": {"type": "cosine", "warmup_steps": 2, "min_learning_rate": 0.001}});
    std::fs::write(&file, settings.to_string()).unwrap();
    let planned = succeed(&["schedule", "--train-config", &text(&file)]);
    let rates: Vec<f64> = planned
        .lines
        .iter()
        .map(|line| line["learning_rate"].as_f64().unwrap())
        .collect();
    // 0 and B/2; then B and half a cosine over four steps, after which the minimum would be next.
    let half = |x: f64| 0.001 + 0.009 * 0.5 * (1.0 + (std::f64::consts::PI * x).cos());
    assert_eq!(rates.len(), 6);
    for (found, expected) in rates
        .iter()
        .zip([0.0, 0.005, 0.01, half(0.25), half(0.5), half(0.75)])
    {
        assert!((found - expected).abs() < 1e-17, "{rates:?}");
    }
    assert_eq!(
        succeed(&["schedule", "--train-config", &text(&file), "--steps", "9"]).last()["learning_rate"],
        json!(0.001)
    );
    assert_eq!(
        refuse(&["schedule", "--train-config", &text(&place.join("absent"))]).0,
        "source.read"
    );
}

#[test]
fn evaluate_counts_every_position_but_a_windows_first() {
    let (out, data) = checkpoint();
    let answer = succeed(&[
        "evaluate",
        "--model",
        &out,
        "--data",
        &data,
        "--seq-len",
        "16",
        "--max-tokens",
        "40",
        "--device",
        "cpu",
    ]);
    let line = answer.last();
    // Windows of 16, 16 and 8 tokens.
    assert_eq!(line["tokens"], json!(15 + 15 + 7));
    let (loss, perplexity) = (
        line["loss"].as_f64().unwrap(),
        line["perplexity"].as_f64().unwrap(),
    );
    assert!((loss.exp() - perplexity).abs() < 1e-9 * perplexity);
    assert!(loss > 1.0 && loss < 4.0, "{loss}");
}

#[test]
fn generate_repeats_under_a_seed_and_ranks_its_tokens() {
    let (out, _) = checkpoint();
    let args = [
        "generate",
        "--model",
        &out,
        "--prompt",
        "the ",
        "--max-tokens",
        "6",
        "--temperature",
        "1",
        "--seed",
        "3",
    ];
    let args = [&args[..], &["--top-logprobs", "3", "--device", "cpu"]].concat();
    let answer = succeed(&args);
    assert_eq!(answer.lines, succeed(&args).lines);
    assert_eq!(answer.lines.len(), 7);
    assert_eq!(answer.last(), &json!({"end": "length"}));
    for line in &answer.lines[..6] {
        assert!(line["logprob"].as_f64().unwrap() <= 0.0);
        let probs: Vec<f64> = line["top"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["prob"].as_f64().unwrap())
            .collect();
        assert_eq!(probs.len(), 3);
        assert!(probs.is_sorted_by(|a, b| a >= b));
    }
}

#[test]
fn export_reloads_with_the_same_loss() {
    let (out, data) = checkpoint();
    let to = text(&folder("export").join("model"));
    let answer = succeed(&[
        "export",
        "--checkpoint",
        &out,
        "--to",
        &to,
        "--format",
        "safetensors",
    ]);
    let files = answer.last()["files"].as_array().unwrap().clone();
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        assert!(
            files.iter().any(|f| f.as_str().unwrap().ends_with(name)),
            "{name} in {files:?}"
        );
    }
    let loss = |model: &str| {
        succeed(&[
            "evaluate", "--model", model, "--data", &data, "--device", "cpu",
        ])
        .last()["loss"]
            .clone()
    };
    assert_eq!(loss(&to), loss(&out));
}

#[test]
fn export_to_gguf_reloads_with_the_same_loss() {
    let (out, data) = checkpoint();
    let place = folder("export-gguf");
    let to = text(&place.join("tiny.gguf"));
    let answer = succeed(&[
        "export",
        "--checkpoint",
        &out,
        "--to",
        &to,
        "--format",
        "gguf",
    ]);
    assert_eq!(
        answer.last()["files"],
        json!([to, format!("{to}.receipt.json")])
    );
    let loss = |model: &str| {
        succeed(&[
            "evaluate", "--model", model, "--data", &data, "--device", "cpu",
        ])
        .last()["loss"]
            .clone()
    };
    assert_eq!(loss(&to), loss(&out));
    assert_eq!(
        std::fs::read_dir(&place).unwrap().count(),
        2,
        "nothing else is left"
    );
    assert_eq!(
        refuse(&[
            "export",
            "--checkpoint",
            &out,
            "--to",
            &to,
            "--format",
            "gguf"
        ])
        .0,
        "output.occupied"
    );
    let (other, base) = (text(&place.join("other.gguf")), text(&golden("qwen2.gguf")));
    let args = [
        "export",
        "--checkpoint",
        &out,
        "--to",
        &other,
        "--format",
        "gguf",
    ];
    assert_eq!(
        refuse(&[&args[..], &["--type", "q1000"]].concat()).0,
        "export.gguf.type"
    );
    assert_eq!(
        refuse(&[&args[..], &["--base", &base]].concat()).0,
        "export.gguf.base"
    );
    assert_eq!(
        refuse(&[
            "export",
            "--checkpoint",
            &out,
            "--to",
            &other,
            "--type",
            "f16"
        ])
        .0,
        "cli.usage"
    );
    assert!(!Path::new(&other).exists());
}

#[test]
fn export_into_the_base_keeps_what_training_did_not_change() {
    let place = folder("export-base");
    let (base, data) = (
        text(&golden("qwen2.gguf")),
        write(&place, "data.txt", "user\nassistant\n".repeat(20)),
    );
    let out = text(&place.join("run"));
    let run = [
        "train",
        "--model",
        &base,
        "--data",
        &data,
        "--device",
        "cpu",
        "--steps",
        "2",
        "--batch-size",
        "2",
        "--seq-len",
        "16",
    ];
    succeed(&[&run[..], &["--learning-rate", "0.01", "--out", &out]].concat());
    let to = text(&place.join("new.gguf"));
    succeed(&[
        "export",
        "--checkpoint",
        &out,
        "--to",
        &to,
        "--format",
        "gguf",
        "--base",
        &base,
    ]);
    let loss = |model: &str| {
        succeed(&[
            "evaluate", "--model", model, "--data", &data, "--device", "cpu",
        ])
        .last()["loss"]
            .clone()
    };
    assert_eq!(loss(&to), loss(&out));
    let (before, after) = (std::fs::read(&base).unwrap(), std::fs::read(&to).unwrap());
    let metadata = before
        .windows(17)
        .position(|at| at == b"token_embd.weight")
        .unwrap();
    assert!(
        before.len() == after.len() && before[..metadata] == after[..metadata] && before != after
    );
}

/// Returns the path of a golden model's file.
fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden/models")
        .join(name)
}

#[test]
fn inspect_answers_per_file() {
    let (out, data) = checkpoint();
    let weights = text(&Path::new(&out).join("model.safetensors"));
    let answer = succeed(&["inspect", "--as", "safetensors", &weights, &data]);
    assert_eq!(answer.lines.len(), 2);
    assert_eq!(answer.lines[0]["ok"], json!(true));
    assert!(answer.lines[0]["tensors"].as_u64().unwrap() > 10);
    assert_eq!(answer.lines[1]["ok"], json!(false));
    assert!(
        answer.lines[1]["code"]
            .as_str()
            .unwrap()
            .starts_with("safetensors.")
    );
}

#[test]
fn replay_counts_what_fails_and_what_it_skips() {
    let place = folder("replay");
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/vectors");
    let file = "sgd_bf16_philox_expected.json";
    let sound = std::fs::read_to_string(vectors.join(file)).unwrap();
    write(&place, file, &sound);
    write(
        &place,
        "told.json",
        r#"{"replay": {"class": "information", "reason": "only told"}}"#,
    );
    let dir = text(&place);
    let answer = succeed(&["replay", &dir, "--device", "cpu"]);
    assert_eq!(answer.lines.len(), 3);
    assert_eq!(
        (&answer.lines[0]["file"], &answer.lines[0]["ok"]),
        (&json!(file), &json!(true))
    );
    assert_eq!(answer.lines[1]["skipped"], json!("only told"));
    assert_eq!(
        [
            &answer.last()["files"],
            &answer.last()["failed"],
            &answer.last()["skipped"]
        ],
        [&json!(2), &json!(0), &json!(1)]
    );
    let mut root: Value = serde_json::from_str(&sound).unwrap();
    root["seed"] = json!("0x1");
    write(&place, "reseeded.json", root.to_string());
    write(&place, "stray.json", "{}");
    let answer = run(&["replay", &dir, "--device", "cpu"]);
    assert!(!answer.good);
    assert_eq!(
        [&answer.last()["files"], &answer.last()["failed"]],
        [&json!(4), &json!(2)]
    );
}

#[test]
fn bench_step_trains_the_model_of_the_other_libraries() {
    // First loss of @jax-js/jax and TensorFlow.js on the same tokens and weights, in Chromium: 6.935565.
    let answer = succeed(&[
        "bench", "step", "--size", "tiny", "--steps", "1", "--stock", "--device", "cpu",
    ]);
    let line = answer.last();
    let (ours, stock) = (
        line["first_loss"].as_f64().unwrap(),
        line["stock"]["first_loss"].as_f64().unwrap(),
    );
    // f32 sums in another order.
    assert!(
        (ours - 6.935565).abs() < 1e-5 && (stock - ours).abs() < 1e-5,
        "{line}"
    );
    let (ours, stock) = (
        line["last_loss"].as_f64().unwrap(),
        line["stock"]["last_loss"].as_f64().unwrap(),
    );
    // Three updates later; the same updates without weight decay differ by 1e-6, without bias correction by 1e-1.
    assert!(ours < 6.9 && (stock - ours).abs() < 1e-4, "{line}");
    assert_eq!(line["parameters"], json!(922_752));
}
