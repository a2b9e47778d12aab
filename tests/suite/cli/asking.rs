//! Queries to a model: an answer in a conversation, the probabilities of a text, the text of token ids.

use std::io::Write;
use std::process::Stdio;

use super::*;

/// Makes a model of a short run with a chat template that uses only characters of the training text.
fn talking(place: &Path) -> String {
    let (run, _) = checkpoint();
    let to = place.join("talking");
    std::fs::create_dir_all(&to).unwrap();
    for file in std::fs::read_dir(run).unwrap() {
        let path = file.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
    // A copy with a changed file would not be a valid checkpoint, so it becomes a plain model folder.
    let _ = std::fs::remove_file(to.join("checkpoint.json"));
    let template = "{% for t in tools or [] %}{{ t.name }} {% endfor %}{% for m in messages %}{{ m.content }}\n{% endfor %}";
    write(&to, "chat_template.jinja", template);
    text(&to)
}

fn chat<'a>(model: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [
        &[
            "chat",
            "--model",
            model,
            "--device",
            "cpu",
            "--temperature",
            "0",
            "--max-tokens",
            "3",
        ],
        more,
    ]
    .concat()
}

#[test]
fn a_conversation_continues_and_computes_what_is_new() {
    let place = folder("chat");
    let model = talking(&place);
    let said = succeed(&chat(
        &model,
        &["--system", "the", "--message", "wabe", "gyre"],
    ));
    let answers = said.with("answer");
    assert_eq!(answers.len(), 2);
    let first = answers[0]["answer"].as_str().unwrap();
    let tokens: String = said
        .with("token")
        .iter()
        .take(3)
        .map(|line| line["token"]["text"].as_str().unwrap())
        .collect();
    assert_eq!(
        (tokens.as_str(), &answers[0]["end"], &answers[0]["tokens"]),
        (first, &json!("length"), &json!(3))
    );
    // "the\nwabe\n", then the answer, its last character, the line end after it, and "gyre\n".
    assert_eq!(
        answers[0]["prompt_tokens"],
        json!({ "cached": 0, "computed": 9 })
    );
    assert_eq!(
        answers[1]["prompt_tokens"],
        json!({ "cached": 11, "computed": 7 })
    );
    // The same as one text.
    let prompt = format!("the\nwabe\n{first}\ngyre\n");
    let text_of = |answer: &Answer| -> Vec<String> {
        answer
            .lines
            .iter()
            .filter_map(|line| {
                line.get("text")
                    .or(line.pointer("/token/text"))?
                    .as_str()
                    .map(str::to_string)
            })
            .collect()
    };
    let plain = [
        "generate",
        "--model",
        &model,
        "--device",
        "cpu",
        "--temperature",
        "0",
        "--max-tokens",
        "3",
        "--prompt",
        &prompt,
    ];
    assert_eq!(text_of(&succeed(&plain)), text_of(&said)[3..]);
    // Each line of stdin is a message, except for empty ones.
    let mut command = Command::new(binary());
    command.args(chat(&model, &["--system", "the", "--json"]));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"wabe\n\ngyre\n")
        .unwrap();
    let printed = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let lines: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines, said.lines);
    let tools = write(&place, "tools.json", r#"[{"name": "slithy"}]"#);
    let told = succeed(&chat(&model, &["--tools", &tools, "--message", "wabe"]));
    assert_eq!(
        told.with("answer")[0]["prompt_tokens"]["computed"],
        json!("slithy wabe\n".len())
    );
}

#[test]
fn what_is_no_conversation_is_refused() {
    let place = folder("chat-refused");
    let model = talking(&place);
    let (bare, _) = checkpoint();
    let (code, message) = refuse(&chat(&bare, &["--message", "wabe"]));
    assert!(
        code == "tokenizer.template" && message.contains("no chat template"),
        "{code} {message}"
    );
    let tools = write(&place, "tools.json", r#"{"name": "slithy"}"#);
    let (code, message) = refuse(&chat(&model, &["--message", "wabe", "--tools", &tools]));
    assert!(
        code == "cli.json" && message.contains("expected a list of tools"),
        "{message}"
    );
    assert_eq!(
        refuse(&chat(&model, &["--message", &"wabe ".repeat(9)])).0,
        "model.context"
    );
    assert_eq!(
        refuse(&chat(&model, &["--message", "wabe", "--base"])).0,
        "cli.usage"
    );
}

#[test]
fn the_base_answers_next_to_its_adapter() {
    let place = folder("chat-base");
    let model = talking(&place);
    let (_, data) = checkpoint();
    let run = text(&place.join("run"));
    let mut train = vec![
        "train", "--model", &model, "--data", &data, "--device", "cpu", "--out", &run, "--lora",
        "--lora-r", "2",
    ];
    train.extend([
        "--steps",
        "6",
        "--batch-size",
        "2",
        "--seq-len",
        "16",
        "--learning-rate",
        "0.5",
    ]);
    succeed(&train);
    let both = succeed(&chat(
        &model,
        &["--adapter", &run, "--base", "--message", "wabe", "gyre"],
    ));
    let of = |answer: &Answer, by: &str| -> Vec<Value> {
        answer
            .with("answer")
            .into_iter()
            .filter(|line| line["by"] == json!(by))
            .map(|line| line["answer"].clone())
            .collect()
    };
    assert_eq!(
        of(&both, "adapter"),
        of(
            &succeed(&chat(
                &model,
                &["--adapter", &run, "--message", "wabe", "gyre"]
            )),
            "adapter"
        )
    );
    assert_eq!(
        of(&both, "base"),
        of(
            &succeed(&chat(&model, &["--message", "wabe", "gyre"])),
            "model"
        )
    );
    assert!(of(&both, "adapter") != of(&both, "base") && of(&both, "base").len() == 2);
}

#[test]
fn the_mean_of_a_score_is_the_loss_of_an_evaluation() {
    let place = folder("score");
    let model = talking(&place);
    let line = "the slithy toves\ndid gyre and g";
    let data = write(&place, "line.txt", line);
    let loss = succeed(&[
        "evaluate", "--model", &model, "--data", &data, "--device", "cpu",
    ])
    .last()["loss"]
        .as_f64()
        .unwrap();
    let score = |more: &[&str]| {
        succeed(
            &[
                &["score", "--model", &model, "--device", "cpu", "--top", "20"],
                more,
            ]
            .concat(),
        )
    };
    let scored = score(&["--text", line]);
    let tokens = scored.with("id");
    assert_eq!(tokens.len(), line.len());
    assert!(
        tokens[0]["logprob"].is_null()
            && tokens[0]["rank"].is_null()
            && tokens[0]["top"] == json!([])
    );
    let sum: f64 = tokens[1..]
        .iter()
        .map(|token| -token["logprob"].as_f64().unwrap())
        .sum();
    let mean = sum / (line.len() - 1) as f64;
    assert!(
        (mean - loss).abs() < 1e-6
            && (mean - scored.last()["loss"].as_f64().unwrap()).abs() < 1e-12,
        "{mean} {loss}"
    );
    for token in &tokens[1..] {
        let top = token["top"].as_array().unwrap();
        assert_eq!(top.len(), 20);
        let prob = |at: usize| top[at]["prob"].as_f64().unwrap();
        assert!((1..20).all(|at| prob(at) <= prob(at - 1)));
        let (rank, logprob) = (
            token["rank"].as_u64().unwrap() as usize,
            token["logprob"].as_f64().unwrap(),
        );
        if rank <= 20 {
            assert!(
                top[rank - 1]["id"] == token["id"] && (prob(rank - 1).ln() - logprob).abs() < 1e-9,
                "{token}"
            );
        } else {
            assert!(logprob.exp() <= prob(19));
        }
    }
    // A conversation is the text that its template writes.
    let messages = write(
        &place,
        "chat.json",
        r#"[{"role": "user", "content": [{"type": "text", "text": "the "}, {"text": "wabe"}]}, {"role": "assistant", "content": "gyre", "name": null}]"#,
    );
    assert_eq!(
        score(&["--messages", &messages]).lines,
        score(&["--text", "the wabe\ngyre\n"]).lines
    );
    for (wrong, path) in [
        (r#"[]"#, "messages is "),
        (
            r#"[{"role": "user", "content": "a"}, {"content": "b"}]"#,
            "messages[1].role is ",
        ),
        (
            r#"[{"role": "user", "content": [{"type": "image"}]}]"#,
            "messages[0].content[0] is ",
        ),
        (
            r#"[{"role": "user", "content": 3}]"#,
            "messages[0].content is ",
        ),
        (
            r#"{"messages": [{"role": "user", "content": "a"}], "tool": []}"#,
            "tool is ",
        ),
        (
            r#"{"messages": [{"role": "user", "content": "a"}], "tools": {}}"#,
            "tools is ",
        ),
    ] {
        let file = write(&place, "wrong.json", wrong);
        let (code, message) = refuse(&[
            "score",
            "--model",
            &model,
            "--device",
            "cpu",
            "--messages",
            &file,
        ]);
        assert!(
            code == "config.invalid" && message.contains(path),
            "{wrong}: {message}"
        );
    }
    assert_eq!(
        refuse(&[
            "score", "--model", &model, "--device", "cpu", "--text", line, "--top", "21"
        ])
        .0,
        "config.invalid"
    );
    assert_eq!(
        refuse(&[
            "score",
            "--model",
            &model,
            "--device",
            "cpu",
            "--text",
            &line.repeat(2)
        ])
        .0,
        "model.context"
    );
    assert_eq!(
        refuse(&["score", "--model", &model, "--device", "cpu", "--text", ""]).0,
        "config.invalid"
    );
}

#[test]
fn ids_give_the_text_back_and_those_of_no_token_are_refused() {
    let (model, _) = checkpoint();
    let ids = succeed(&["tokenize", "--model", &model, "--text", "slithy"]).last()["ids"].clone();
    let words: Vec<String> = ids
        .as_array()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    let given: Vec<&str> = words.iter().map(String::as_str).collect();
    let back = ["detokenize", "--model", &model, "--ids"];
    assert_eq!(
        succeed(&[&back[..], &given].concat()).last(),
        &json!({ "text": "slithy" })
    );
    let (code, message) = refuse(&[&back[..], &[given[0], "4096"]].concat());
    assert!(
        code == "model.token-range" && message.contains("4096, at position 1"),
        "{code} {message}"
    );
}

/// The validation rows of a run have the same loss in `evaluate`, bit for bit, with the same T and B: long rows are cut at the same place.
#[test]
fn the_loss_of_a_runs_validation_is_that_of_an_evaluation() {
    let place = folder("evaluate-rows");
    let (config, _) = tiny(&place);
    let row = |at: usize, words: usize| {
        let said: Vec<&str> = POEM
            .split_whitespace()
            .cycle()
            .skip(at)
            .take(words)
            .collect();
        json!({ "prompt": format!("{}: ", said[0]), "completion": said[1..].join(" ") }).to_string()
    };
    let rows = |from: usize, count: usize| {
        (from..from + count)
            .map(|at| row(at, 3 + at % 7))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let (data, held) = (
        write(&place, "rows.jsonl", rows(0, 24)),
        write(&place, "held.jsonl", rows(5, 9)),
    );
    for (device, precision) in [
        ("cpu", "f32"),
        ("cpu", "bf16"),
        ("wgpu", "f32"),
        ("wgpu", "bf16"),
    ] {
        if device == "wgpu" && tabtune_tests::gpu().is_none() {
            continue;
        }
        let run = text(&place.join(format!("run-{device}-{precision}")));
        let mut train = vec![
            "train",
            "--config",
            &config,
            "--data",
            &data,
            "--validation-data",
            &held,
            "--device",
            device,
            "--out",
            &run,
        ];
        train.extend([
            "--steps",
            "3",
            "--batch-size",
            "4",
            "--seq-len",
            "20",
            "--learning-rate",
            "0.01",
            "--precision",
            precision,
        ]);
        train.extend(["--eval-every", "3"]);
        let of_run = succeed(&train).with("eval_loss")[0].clone();
        let evaluate = |more: &[&str]| {
            let args = [
                "evaluate",
                "--model",
                &run,
                "--data",
                &held,
                "--device",
                device,
                "--batch-size",
                "4",
            ];
            succeed(&[&args[..], more].concat()).last().clone()
        };
        let report = evaluate(&["--seq-len", "20"]);
        assert_eq!(
            (&report["loss"], &report["accuracy"]),
            (&of_run["eval_loss"], &of_run["eval_accuracy"]),
            "{device} {precision}"
        );
        // Some rows are longer: with all their tokens the loss differs.
        assert!(evaluate(&[])["tokens"].as_u64() > report["tokens"].as_u64());
    }
}
