//! Inputs that other trainers misread (`golden/inputs`, one folder each): the text that is learned of them.
//!
//! The vocabularies are single bytes, so tokens can be counted in the text; the test contains the expected counts and digests.

use super::*;

fn input(name: &str) -> String {
    format!("{}/golden/inputs/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// First step on data: counted targets, digest of the data, and the codes of warnings with their messages.
struct Step {
    tokens: u64,
    digest: String,
    warnings: Vec<(String, String)>,
}

impl Step {
    fn warned(&self, code: &str) -> &str {
        let found = self.warnings.iter().find(|(warned, _)| warned == code);
        found
            .map(|(_, message)| message.as_str())
            .unwrap_or_else(|| panic!("{code} is not among {:?}", self.warnings))
    }
}

fn warnings(answer: &Answer) -> Vec<(String, String)> {
    let text = |warning: &Value, key: &str| warning["warning"][key].as_str().unwrap().to_owned();
    answer
        .with("warning")
        .iter()
        .map(|warning| (text(warning, "code"), text(warning, "message")))
        .collect()
}

fn step_of(model: &[&str], data: &str, seq_len: &str) -> Step {
    let place = folder(&format!("inputs-{}", data.replace(['/', '.'], "-")));
    let out = text(&place.join("run"));
    let fixed = [
        "--device",
        "cpu",
        "--steps",
        "1",
        "--batch-size",
        "1",
        "--seq-len",
        seq_len,
        "--learning-rate",
        "1e-6",
        "--out",
        &out,
    ];
    let answer = succeed(&[&["train"], model, &["--data", &input(data)], &fixed[..]].concat());
    let saved: Value =
        serde_json::from_slice(&std::fs::read(Path::new(&out).join("checkpoint.json")).unwrap())
            .unwrap();
    let digest = saved["data_digest"].as_str().unwrap().to_owned();
    let tokens = answer.with("grad_norm")[0]["tokens"].as_u64().unwrap();
    std::fs::remove_dir_all(place).unwrap();
    Step {
        tokens,
        digest,
        warnings: warnings(&answer),
    }
}

fn step(model: &str, data: &str) -> Step {
    step_of(&["--model", &input(model)], data, "64")
}

/// Returns the report of `tabtune data` for a model.
fn report(model: &str, data: &str, more: &[&str]) -> Value {
    succeed(&[&["data", &input(data), "--model", &input(model)], more].concat())
        .last()
        .clone()
}

/// Returns the text of each example that is learned.
fn learned(model: &str, data: &str) -> Vec<String> {
    let report = report(model, data, &["--show", "100", "--seq-len", "512"]);
    let of = |example: &Value| {
        let segments = example["segments"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|segment| segment["learned"] == true);
        segments
            .map(|segment| segment["text"].as_str().unwrap())
            .collect()
    };
    report["preview"]
        .as_array()
        .unwrap()
        .iter()
        .map(of)
        .collect()
}

#[test]
fn templates_that_rewrite_what_was_said_train() {
    let answer = "<think>\n\n</think>\n\n4<|im_end|>";
    assert_eq!(
        learned("rewritten/think", "rewritten/one-turn.jsonl"),
        [answer]
    );
    assert_eq!(
        learned("rewritten/think", "rewritten/two-turns.jsonl"),
        [answer, "<think>\n\n</think>\n\n6<|im_end|>"]
    );
    assert_eq!(
        report("rewritten/think", "rewritten/two-turns.jsonl", &[])["rules"],
        json!({ "per-answer": 1 })
    );
    // The end of a turn is one token.
    assert_eq!(
        step("rewritten/think", "rewritten/one-turn.jsonl").tokens,
        "<think>\n\n</think>\n\n4".len() as u64 + 1
    );
    for data in ["rewritten/one-turn.jsonl", "rewritten/reasoned.jsonl"] {
        assert_eq!(learned("rewritten/opened", data), ["4<|im_end|>"], "{data}");
        assert_eq!(step("rewritten/opened", data).tokens, 2, "{data}");
    }
    assert_eq!(
        learned("rewritten/system-last", "rewritten/system.jsonl"),
        [" 4<|im_end|>", " 6<|im_end|>"]
    );
}

#[test]
fn rows_are_found_in_every_form() {
    // A sequence of 64 holds four of the rows, each of which counts its answer of one character and the end token.
    for data in [
        "rows.jsonl",
        "rows.json",
        "rows-as-lines.json",
        "rows.txt",
        "rows.csv",
    ] {
        let Step {
            digest, warnings, ..
        } = step("forms/model", &format!("forms/{data}"));
        assert!(
            digest.starts_with("e7b4bde8ea98962d2e63"),
            "{data}: {digest}"
        );
        assert_eq!(
            warnings.iter().any(|(code, _)| code == "data.form"),
            data == "rows.txt" || data == "rows-as-lines.json",
            "{data}"
        );
    }
    for (data, shape, said) in [
        ("alpaca.jsonl", "chat", "4<|im_end|>"),
        ("sharegpt.jsonl", "chat", "4<|im_end|>"),
        ("text.jsonl", "text", "wo and two are four.<|im_end|>"),
    ] {
        let data = format!("forms/{data}");
        assert_eq!(
            report("forms/model", &data, &[])["shapes"],
            json!({ shape: 8 }),
            "{data}"
        );
        assert_eq!(learned("forms/model", &data), [said; 8], "{data}");
    }
}

#[test]
fn a_gzip_file_is_whole_or_refused() {
    let place = folder("inputs-gzip");
    let whole = std::fs::read(input("forms/rows.jsonl.gz")).unwrap();
    let shown = |name: &str, bytes: &[u8]| {
        run(&[
            "data",
            &write(&place, name, bytes),
            "--model",
            &input("forms/model"),
        ])
    };
    let digest = |answer: &Answer| {
        answer.last()["digest"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let read = shown("rows", &whole);
    assert!(
        read.good && digest(&read).starts_with("e7b4bde8ea98962d2e63"),
        "{:?}",
        read.lines
    );
    // Two gzip members are one file.
    assert_eq!(
        shown("twice", &whole.repeat(2)).last()["examples"],
        json!(80)
    );
    for step in 1..12 {
        let cut = shown("cut", &whole[..whole.len() * step / 12]);
        assert_eq!(
            (cut.good, &cut.last()["error"]["code"]),
            (false, &json!("data.gzip")),
            "{step}"
        );
        let mut changed = whole.clone();
        changed[whole.len() * step / 12] ^= 0x55;
        // The deflate decoder may accept the change; the checksum at the end does not.
        let changed = shown("changed", &changed);
        assert!(
            !changed.good
                && changed.last()["error"]["code"]
                    .as_str()
                    .unwrap()
                    .starts_with("data."),
            "{step}: {:?}",
            changed.lines
        );
    }
}

#[test]
fn a_gzip_file_may_have_several_members_and_padding_at_its_end() {
    let place = folder("inputs-gzip-members");
    let whole = std::fs::read(input("forms/rows.jsonl.gz")).unwrap();
    // A member without contents: an empty block of deflate, its checksum and its length.
    let empty = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0][..], &[0; 8]].concat();
    let zeros = vec![0; 70_000];
    let read = |name: &str, parts: &[&[u8]]| {
        run(&[
            "data",
            &write(&place, name, parts.concat()),
            "--model",
            &input("forms/model"),
        ])
    };
    let found = |answer: &Answer| {
        let report = answer.last();
        let codes: Vec<&str> = report["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|warning| warning["code"].as_str().unwrap())
            .collect();
        (
            report["examples"].as_u64().unwrap(),
            codes.contains(&"data.gzip.trailing"),
        )
    };
    for (name, parts, examples, trailing) in [
        (
            "members",
            vec![&whole[..], &empty, &whole, &empty],
            80,
            false,
        ),
        ("padded", vec![&whole[..], &zeros], 40, false),
        (
            "padded-members",
            vec![&whole[..], &zeros, &whole],
            80,
            false,
        ),
        ("garbage", vec![&whole[..], b"abc"], 40, true),
        (
            "padded-garbage",
            vec![&whole[..], &zeros, b"and more than a header has"],
            40,
            true,
        ),
    ] {
        assert_eq!(found(&read(name, &parts)), (examples, trailing), "{name}");
    }
    // A second member that is cut or damaged is a loss of rows, not garbage.
    let mut damaged = whole.clone();
    damaged[2] ^= 1;
    let cut = [1, 5, 15, whole.len() / 2, whole.len() - 1].map(|length| &whole[..length]);
    for second in cut.into_iter().chain([&damaged[..]]) {
        let refused = read("second", &[&whole, second]);
        assert_eq!(
            (refused.good, &refused.last()["error"]["code"]),
            (false, &json!("data.gzip")),
            "{}",
            second.len()
        );
    }
    let summary = succeed(&[
        "data",
        &write(&place, "rows.txt", [&whole[..], b"abc"].concat()),
    ])
    .last()
    .clone();
    let codes: Vec<&Value> = summary["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| &warning["code"])
        .collect();
    assert_eq!(
        (codes, &summary["rows"]),
        (
            vec![&json!("data.form"), &json!("data.gzip.trailing")],
            &json!(40)
        )
    );
    let ids: Vec<u8> = (0..400u32)
        .flat_map(|id| (id % 200).to_le_bytes())
        .collect();
    let ids = packed(&ids);
    let summary = succeed(&[
        "data",
        &write(&place, "a.tokens.gz", [&ids[..], &ids].concat()),
    ])
    .last()
    .clone();
    assert_eq!(
        (&summary["form"], &summary["characters"]),
        (&json!("tokens"), &json!(800))
    );
    std::fs::remove_dir_all(place).unwrap();
}

/// Packs bytes into a gzip member with one stored block (RFC 1951, section 3.2.4).
fn packed(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap();
    let sum = bytes.iter().fold(!0, |sum: u32, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            if sum & 1 == 1 {
                sum >> 1 ^ 0xedb8_8320
            } else {
                sum >> 1
            }
        })
    });
    let head = [
        &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1][..],
        &length.to_le_bytes(),
        &(!length).to_le_bytes(),
    ]
    .concat();
    [
        &head[..],
        bytes,
        &(!sum).to_le_bytes(),
        &u32::from(length).to_le_bytes(),
    ]
    .concat()
}

#[test]
fn ids_outside_the_vocabulary_are_refused_before_they_are_shown() {
    let ids: Vec<u8> = (0..400u32)
        .flat_map(|id| if id == 250 { 70_000 } else { id % 200 }.to_le_bytes())
        .collect();
    let data = write(&folder("inputs-ids"), "a.tokens", ids);
    let (code, message) = refuse(&["data", &data, "--model", &input("forms/model")]);
    assert!(
        code == "model.token-range" && message.contains("70000, at position 250"),
        "{code} {message}"
    );
}

#[test]
fn faults_of_many_rows_are_reported_one_by_one() {
    let place = folder("inputs-faults");
    let data = write(&place, "rows.jsonl", "{\"answer\": 4}\n".repeat(130));
    let args = ["data", &data, "--model", &input("forms/model")];
    let error = run(&args).last()["error"].clone();
    let faults = error["faults"].as_array().unwrap();
    assert!(
        faults.len() == 100 && faults[99].as_str().unwrap().contains("line 100: "),
        "{error}"
    );
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .ends_with(" (and 80 more)"),
        "{error}"
    );
    let plain = String::from_utf8(output(&args).stderr).unwrap();
    let lines: Vec<&str> = plain.lines().collect();
    assert!(
        lines.len() == 100
            && lines[0].starts_with("error: rows.jsonl: line 1: ")
            && lines[0].ends_with("[data.shape]"),
        "{plain}"
    );
    assert!(
        lines[99].starts_with("       rows.jsonl: line 100: ")
            && lines[99].contains("30 more rows cannot be used."),
        "{plain}"
    );
}

#[test]
fn files_of_one_name_are_distinguished() {
    let place = folder("inputs-names");
    let paths = ["one", "other"].map(|folder| {
        std::fs::create_dir_all(place.join(folder)).unwrap();
        write(
            &place,
            &format!("{folder}/rows.jsonl"),
            "{\"text\": \"a b c\"}\n{\"answer\": 4}\n",
        )
    });
    let args = [
        "data",
        &paths[0],
        &paths[1],
        "--model",
        &input("forms/model"),
    ];
    let faults = run(&args).last()["error"]["faults"].to_string();
    assert!(paths.iter().all(|path| faults.contains(path)), "{faults}");
    let files = succeed(&[&args[..], &["--on-bad-row", "skip"]].concat()).last()["files"].clone();
    assert_eq!(
        [&files[0]["name"], &files[1]["name"]],
        [&paths[0], &paths[1]]
    );
}

#[test]
fn data_for_evaluation_are_shown_too() {
    let place = folder("inputs-evaluated");
    let data = write(&place, "rows.jsonl", "{\"text\": \"a b c\"}\n");
    let other = write(
        &place,
        "other.jsonl",
        "{\"text\": \"a b c\", \"note\": 1}\n".repeat(3),
    );
    let args = [
        "data",
        &data,
        "--validation-data",
        &other,
        "--model",
        &input("forms/model"),
    ];
    let report = succeed(&args).last().clone();
    assert_eq!(report["validation"], 3);
    assert!(
        report["warnings"]
            .to_string()
            .contains("data for evaluation: "),
        "{report}"
    );
    let (code, _) = refuse(&[&args[..], &["--validation-fraction", "0.5"]].concat());
    assert_eq!(code, "cli.usage");
    let (code, message) = refuse(&[&args[..], &["--seq-len", "100000"]].concat());
    assert!(
        code == "model.context" && message.contains("100000"),
        "{message}"
    );
}

#[test]
fn the_end_of_a_text_is_found_in_every_file_of_a_model() {
    for model in ["only-config", "special-map", "reference"] {
        let Step { tokens, digest, .. } = step(&format!("ends/{model}"), "ends/one.jsonl");
        assert_eq!(tokens, 4, "{model}");
        assert!(digest.starts_with("7a0f7f4a4b456f0a"), "{model}: {digest}");
    }
}

#[test]
fn tools_reach_the_template() {
    let [with, without] = ["with", "without"].map(|which| {
        let report = report(
            "tools/model",
            &format!("tools/{which}-tools.jsonl"),
            &["--seq-len", "400"],
        );
        report["preview"][0]["segments"]
            .as_array()
            .unwrap()
            .iter()
            .map(|segment| segment["text"].as_str().unwrap())
            .collect::<String>()
    });
    let tools = r#"{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}}"#;
    assert_eq!(
        with,
        format!("<|im_start|>system\nTools:\n{tools}\n<|im_end|>\n{without}")
    );
    let digest = |data: &str| step_of(&["--model", &input("tools/model")], data, "400").digest;
    assert_ne!(
        digest("tools/with-tools.jsonl"),
        digest("tools/without-tools.jsonl")
    );
}

#[test]
fn content_may_be_null_absent_or_parts() {
    let step = |data: &str| {
        step_of(
            &["--model", &input("content/model")],
            &format!("content/{data}.jsonl"),
            "400",
        )
    };
    let [null, absent, empty] = ["null", "absent", "empty"].map(step);
    assert_eq!([&null.digest, &absent.digest], [&empty.digest; 2]);
    let call = r#"<tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>"#;
    assert_eq!(
        learned("content/model", "content/null.jsonl"),
        [format!("{call}<|im_end|>It is 4.<|im_end|>")]
    );
    assert_eq!(null.tokens, (call.len() + 1 + "It is 4.".len() + 1) as u64);
    assert_eq!(step("parts").tokens, 2);
}

#[test]
fn the_length_of_sequences_follows_the_rows_and_what_is_longer_is_reported() {
    let long = report("long/model", "long/long.jsonl", &[]);
    let (seq_len, longest) = (
        long["seq_len"].as_u64().unwrap(),
        long["lengths"]["max"].as_u64().unwrap(),
    );
    assert!(
        longest - 1 <= seq_len && seq_len % 64 == 0 && seq_len < longest + 64,
        "{seq_len} {longest}"
    );
    assert_eq!(
        (&long["cut"], &long["skipped"], &long["warnings"]),
        (&json!(0), &json!(0), &json!([]))
    );
    let args = [
        "--data",
        &input("long/long.jsonl"),
        "--device",
        "cpu",
        "--steps",
        "4",
        "--batch-size",
        "1",
    ];
    let counted = |more: &[&str]| {
        let answer =
            succeed(&[&["train", "--model", &input("long/model")], &args[..], more].concat());
        let tokens: Vec<u64> = answer
            .with("grad_norm")
            .iter()
            .map(|line| line["tokens"].as_u64().unwrap())
            .collect();
        (tokens, warnings(&answer))
    };
    let (tokens, warned) = counted(&[]);
    // The fifth row is short. Every other row is learned up to its cut end.
    let whole: Vec<u64> = learned("long/model", "long/long.jsonl")
        .iter()
        .map(|answer| answer.len() as u64 - "<|im_end|>".len() as u64 + 1)
        .collect();
    assert!(
        tokens.iter().all(|tokens| whole.contains(tokens)) && warned.is_empty(),
        "{tokens:?} {whole:?} {warned:?}"
    );
    // Here the short row has its answer beyond the 64 targets.
    let (_, warned) = counted(&["--seq-len", "64"]);
    let told = format!(
        "lines 1, 2, 3, 4: 4 of 5 examples are longer than a sequence of 64 tokens and are cut at their end. The longest has {longest}: sequences of {seq_len} hold all."
    );
    assert_eq!(warned[0], ("data.long".to_owned(), told));
    assert!(
        warned.len() == 2 && warned[1].0 == "data.untaught" && warned[1].1.starts_with("line 5: "),
        "{warned:?}"
    );
}

#[test]
fn the_end_of_a_turn_is_learned_reported_and_ends_an_answer() {
    let step = step("turn-end/model", "turn-end/chat.jsonl");
    assert_eq!(step.tokens, 2);
    assert!(
        step.digest.starts_with("f4f8ff1ddeba8f62"),
        "{}",
        step.digest
    );
    assert!(step.warned("data.end.turn").contains("<|im_end|>"));
    // The ends that a run has learned are in its checkpoint and every export too.
    let place = folder("inputs-turn-end");
    let [run, exported] = ["run", "exported"].map(|name| text(&place.join(name)));
    let args = [
        "--device",
        "cpu",
        "--steps",
        "1",
        "--batch-size",
        "1",
        "--seq-len",
        "64",
        "--out",
        &run,
    ];
    succeed(
        &[
            &[
                "train",
                "--model",
                &input("turn-end/model"),
                "--data",
                &input("turn-end/chat.jsonl"),
            ],
            &args[..],
        ]
        .concat(),
    );
    succeed(&["export", "--checkpoint", &run, "--to", &exported]);
    for folder in [&run, &exported] {
        let config: Value = serde_json::from_slice(
            &std::fs::read(Path::new(folder).join("generation_config.json")).unwrap(),
        )
        .unwrap();
        assert_eq!(config["eos_token_id"], json!([256, 258]), "{folder}");
    }
    let asked = [
        "--prompt",
        "2+2?",
        "--temperature",
        "0",
        "--max-tokens",
        "40",
        "--device",
        "cpu",
    ];
    let answer = succeed(
        &[
            &["generate", "--model", &input("turn-end/always-im-end")],
            &asked[..],
        ]
        .concat(),
    );
    assert_eq!(answer.last()["end"], json!("stop"));
}

#[test]
fn the_first_space_of_a_continuation_stays() {
    let asked = [
        "--prompt",
        "is",
        "--temperature",
        "0",
        "--max-tokens",
        "3",
        "--device",
        "cpu",
    ];
    let said = String::from_utf8(
        output(
            &[
                &["generate", "--model", &input("first-space/model")],
                &asked[..],
            ]
            .concat(),
        )
        .stdout,
    )
    .unwrap();
    assert_eq!(said.trim_end(), "is a a a");
}

#[test]
fn short_words_for_the_scaling_of_rope_change_the_arithmetic() {
    let loss = |file: &str| {
        let args = ["--data", &input("rope-scaling/t.txt"), "--device", "cpu"];
        succeed(
            &[
                &[
                    "evaluate",
                    "--model",
                    &input(&format!("rope-scaling/{file}.gguf")),
                ],
                &args[..],
            ]
            .concat(),
        )
        .last()["loss"]
            .as_f64()
            .unwrap()
    };
    let [plain, both, factor] =
        ["plain", "scaling-type-and-factor", "factor-without-type"].map(loss);
    assert!(
        (plain - 10.63315).abs() < 5e-6 && (both - 10.76511).abs() < 5e-6,
        "{plain} {both}"
    );
    assert_eq!(factor, both);
}

#[test]
fn pre_tokenizers_have_other_names() {
    let args = |file: &str| {
        [
            "tokenize",
            "--model",
            &input(&format!("pre-tokenizers/{file}.gguf")),
            "--text",
            "a 12345 b",
        ]
        .map(str::to_owned)
    };
    let ids =
        |file: &str| succeed(&args(file).each_ref().map(String::as_str)).last()["ids"].clone();
    assert_eq!(ids("deepseek-r1-qwen"), ids("qwen2"));
    for file in ["falcon3", "pixtral"] {
        assert_eq!(ids(file), ids("llama-bpe"), "{file}");
    }
    for file in ["default", "no-pre"] {
        let (code, message) = refuse(&args(file).each_ref().map(String::as_str));
        assert!(
            code.starts_with("tokenizer.") && message.contains("tokenizer.json"),
            "{code} {message}"
        );
    }
}

#[test]
fn tojson_takes_the_keywords_of_hugging_faces_filter() {
    let message = r#"{"role": "assistant", "content": "4"}"#;
    for (keyword, message) in [
        ("ensure_ascii", message),
        ("sort_keys", message),
        ("separators", r#"{"role":"assistant","content":"4"}"#),
    ] {
        let model = format!("tojson/{keyword}");
        assert_eq!(
            learned(&model, "tojson/chat.jsonl"),
            [format!("{message}<|im_end|>")]
        );
        assert_eq!(
            step_of(&["--model", &input(&model)], "tojson/chat.jsonl", "400").tokens,
            message.len() as u64 + 1,
            "{keyword}"
        );
    }
}

#[test]
fn a_new_model_has_the_characters_of_the_rows() {
    let config = input("new-model/config.json");
    let Step {
        tokens, warnings, ..
    } = step_of(&["--config", &config], "new-model/rows.jsonl", "64");
    // Four rows of 15 characters share a sequence; each learns its 7, and there is no end token.
    assert_eq!(tokens, 4 * 7);
    assert!(
        warnings.iter().any(|(code, _)| code == "data.end.unknown"),
        "{warnings:?}"
    );
}

#[test]
fn an_end_that_is_written_is_learned_once() {
    for (data, told) in [
        ("written-end/eos-written.jsonl", true),
        ("written-end/eos-not-written.jsonl", false),
    ] {
        let Step {
            tokens,
            digest,
            warnings,
        } = step("written-end/model", data);
        assert_eq!(tokens, 3, "{data}");
        assert!(digest.starts_with("a7a336aba65f05d3"), "{data}: {digest}");
        assert_eq!(
            warnings.iter().any(|(code, _)| code == "data.end.written"),
            told,
            "{data}: {warnings:?}"
        );
    }
}

#[test]
fn a_resume_on_other_data_says_how_they_were_read() {
    let place = folder("inputs-resume");
    let out = text(&place.join("run"));
    let model = input("written-end/model");
    let args = [
        "--device",
        "cpu",
        "--steps",
        "1",
        "--batch-size",
        "1",
        "--seq-len",
        "64",
        "--out",
        &out,
    ];
    succeed(
        &[
            &[
                "train",
                "--model",
                &model,
                "--data",
                &input("written-end/eos-not-written.jsonl"),
            ],
            &args[..],
        ]
        .concat(),
    );
    let other = write(
        &place,
        "rows.txt",
        "{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"prompt\": \"a\", \"completion\": \"b</s>\"}\n",
    );
    let again = [
        "train",
        "--resume",
        &out,
        "--data",
        &other,
        "--steps",
        "+1",
        "--override",
        "steps",
        "--device",
        "cpu",
        "--out",
        &out,
    ];
    let (code, message) = refuse(&again);
    assert_eq!(code, "optim.resume-mismatch", "{message}");
    assert!(
        message
            .contains("(rows.txt read as jsonl, rows: 2; data.form; data.end.written of line 2)"),
        "{message}"
    );
}

#[test]
fn the_form_in_a_checkpoint_is_not_reported_as_given() {
    let place = folder("inputs-kept-form");
    let out = text(&place.join("run"));
    let (data, table) = (input("forms/rows.jsonl"), input("forms/rows.csv"));
    let short = [
        "--device",
        "cpu",
        "--steps",
        "1",
        "--batch-size",
        "1",
        "--seq-len",
        "64",
        "--out",
        &out,
    ];
    let first = ["train", "--model", &input("forms/model"), "--data"];
    succeed(&[&first[..], &[&data, "--form", "jsonl"], &short].concat());
    let (code, message) = refuse(&[&first[..], &[&table, "--form", "jsonl"], &short].concat());
    assert!(
        code == "data.form.contradicts" && message.contains("Leave the form out"),
        "{message}"
    );
    let again = [
        "train", "--resume", &out, "--data", &table, "--device", "cpu", "--steps", "2",
    ];
    let (code, message) = refuse(&[&again[..], &["--override", "steps", "data"]].concat());
    assert!(
        code == "data.form.contradicts" && message.contains("the form in the checkpoint"),
        "{message}"
    );
    succeed(
        &[
            &again[..],
            &["--override", "steps", "data", "form", "--form", "csv"],
        ]
        .concat(),
    );
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_tokenizer_may_be_a_vocabulary_with_merges() {
    let args = [
        "--data",
        &input("no-tokenizer-json/t.txt"),
        "--device",
        "cpu",
    ];
    let evaluate = |model: &str| {
        [
            &["evaluate".to_owned(), "--model".to_owned(), input(model)][..],
            &args.map(str::to_owned),
        ]
        .concat()
    };
    let read = evaluate("no-tokenizer-json/vocab-and-merges");
    assert!(
        succeed(&read.iter().map(String::as_str).collect::<Vec<_>>()).last()["loss"].is_number()
    );
    let refused = evaluate("no-tokenizer-json/sentencepiece");
    let (_, message) = refuse(&refused.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        message.contains("tokenizer.model") && message.contains("tokenizer.json"),
        "{message}"
    );
}

#[test]
fn an_added_token_beyond_the_rows_is_reported_and_refused_in_a_text() {
    let train = [
        "train",
        "--model",
        &input("added-token/model"),
        "--data",
        &input("added-token/rows.jsonl"),
        "--device",
        "cpu",
        "--steps",
        "1",
    ];
    let told = output(&train);
    assert_eq!(told.status.code(), Some(0));
    assert!(
        String::from_utf8(told.stderr)
            .unwrap()
            .contains("no row for some added tokens")
    );
    let args = [
        "tokenize",
        "--model",
        &input("added-token/model"),
        "--text",
        "a[PAD]",
    ];
    let (_, message) = refuse(&args);
    assert!(message.contains("258"), "{message}");
}

/// Converts a model. Returns the folder and the messages on stderr.
fn converted(model: &str) -> (PathBuf, String) {
    let place = folder(&format!("inputs-convert-{}", model.replace('/', "-")));
    let to = place.join("to");
    let done = output(&["convert", "--model", &input(model), "--to", &text(&to)]);
    let told = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(0), "{told}");
    (to, told)
}

#[test]
fn a_common_prefix_too_many_or_too_few_is_reported_once() {
    for which in ["bare", "orig_mod", "module"] {
        let (to, told) = converted(&format!("prefixes/{which}"));
        assert_eq!(
            told.matches("[model.tensor.prefix]").count(),
            1,
            "{which}: {told}"
        );
        let found = succeed(&[
            "evaluate",
            "--model",
            &text(&to),
            "--data",
            &input("rope-scaling/t.txt"),
            "--device",
            "cpu",
        ]);
        assert!(found.last()["loss"].is_number(), "{which}");
    }
}

#[test]
fn a_missing_key_of_a_config_has_its_published_default() {
    let (_, told) = converted("no-context/model");
    assert!(
        told.contains("max_position_embeddings: 2048. [model.config.default]"),
        "{told}"
    );
}

#[test]
fn every_file_of_a_tokenizer_is_carried() {
    let (to, _) = converted("tokenizer-files/model");
    for file in [
        "tokenizer.model",
        "added_tokens.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ] {
        let bytes = |folder: &Path| std::fs::read(folder.join(file)).unwrap();
        assert!(
            bytes(&to) == bytes(Path::new(&input("tokenizer-files/model"))),
            "{file}"
        );
    }
}

#[test]
fn every_command_knows_the_day() {
    let place = folder("inputs-day");
    let model = place.join("model");
    std::fs::create_dir_all(&model).unwrap();
    for file in std::fs::read_dir(input("forms/model")).unwrap() {
        let path = file.unwrap().path();
        std::fs::copy(&path, model.join(path.file_name().unwrap())).unwrap();
    }
    let template =
        "{% for m in messages %}{{ strftime_now('%Y') }} {{ m.content }}<|im_end|>{% endfor %}";
    write(&model, "chat_template.jinja", template);
    let (model, data) = (text(&model), input("content/parts.jsonl"));
    let shown = succeed(&["data", &data, "--model", &model]).last()["preview"].to_string();
    assert!(shown.contains("20") && !shown.contains("2024"), "{shown}");
    succeed(&[
        "evaluate", "--model", &model, "--data", &data, "--device", "cpu",
    ]);
    succeed(&[
        "chat",
        "--model",
        &model,
        "--message",
        "a",
        "--max-tokens",
        "1",
        "--device",
        "cpu",
    ]);
    let messages = write(
        &place,
        "messages.json",
        r#"[{"role": "user", "content": "a"}]"#,
    );
    succeed(&[
        "score",
        "--model",
        &model,
        "--messages",
        &messages,
        "--device",
        "cpu",
    ]);
}

#[test]
fn evaluation_reads_what_training_reads() {
    let tokens = |data: &str| {
        let args = [
            "evaluate",
            "--model",
            &input("evaluation/model"),
            "--data",
            &input(&format!("evaluation/{data}")),
            "--device",
            "cpu",
        ];
        succeed(&args).last()["tokens"].clone()
    };
    let cut = [
        "evaluate",
        "--model",
        &input("long/model"),
        "--data",
        &input("long/long.jsonl"),
        "--seq-len",
        "64",
        "--device",
        "cpu",
    ];
    let told = warnings(&succeed(&cut));
    assert!(
        told.iter()
            .any(|(code, message)| code == "data.long" && message.starts_with("4 of 5 examples")),
        "{told:?}"
    );
    // Four answers of a character, each with its end; eight ids. JSON lines are recognised under any file name.
    assert_eq!(
        [tokens("val.jsonl"), tokens("val.txt"), tokens("val.tokens")],
        [json!(8), json!(8), json!(7)]
    );
}
