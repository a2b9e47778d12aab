//! Settings that are chosen for a run, and chat templates that are given.

use super::*;

const CHAT: &str = r#"{"messages": [{"role": "user", "content": "one and one"}, {"role": "assistant", "content": "two of them"}]}"#;

/// Returns the path of an input of the tests.
fn given(name: &str) -> String {
    format!("{}/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_run_without_a_rate_says_what_was_chosen_and_does_it() {
    let place = folder("chosen-run");
    let rows = write(&place, "rows.jsonl", format!("{CHAT}\n").repeat(20));
    let (model, best) = (given("inputs/forms/model"), text(&place.join("best")));
    let args = [
        "train", "--model", &model, "--data", &rows, "--device", "cpu",
    ];
    let told = |more: &[&str]| succeed(&[&args[..], more].concat());
    let answer = told(&["--keep-best", &best]);
    let chosen = &answer.with("chosen")[0]["chosen"];
    let value = |name: &str| {
        let mut list = chosen.as_array().unwrap().iter();
        let found = list.find(|chosen| chosen["setting"] == name);
        found.unwrap_or_else(|| panic!("{name}: {chosen}"))["value"].clone()
    };
    let steps = answer.with("loss");
    assert_eq!(
        steps.len(),
        3 * value("eval_every").as_u64().unwrap() as usize
    );
    assert_eq!(answer.with("eval_loss").len(), 3);
    assert!(steps.last().unwrap()["learning_rate"].as_f64() < value("learning_rate").as_f64());
    assert_eq!(value("precision"), "bf16");
    assert!(Path::new(&best).join("checkpoint.json").exists());
    let fixed = told(&["--learning-rate", "1e-3", "--steps", "1"]);
    assert_eq!(fixed.with("chosen").len(), 0);
    assert_eq!(fixed.with("eval_loss").len(), 0);
    let (code, message) = refuse(
        &[
            &args[..],
            &[
                "--learning-rate",
                "1e-3",
                "--keep-best",
                &text(&place.join("other")),
            ],
        ]
        .concat(),
    );
    assert!(
        code == "cli.usage" && message.contains("--eval-every"),
        "{message}"
    );
}

#[test]
fn many_passes_over_few_rows_are_a_warning() {
    let place = folder("chosen-passes");
    let rows = write(&place, "rows.jsonl", format!("{CHAT}\n").repeat(4));
    let model = given("inputs/forms/model");
    let warned = |steps: &str| {
        let run = [
            "train", "--model", &model, "--data", &rows, "--device", "cpu",
        ];
        let fixed = [
            "--learning-rate",
            "1e-3",
            "--batch-size",
            "1",
            "--steps",
            steps,
        ];
        let answer = succeed(&[&run[..], &fixed, &["--no-packing", "--seq-len", "64"]].concat());
        let warnings = answer.with("warning").into_iter();
        warnings
            .filter(|line| line["warning"]["code"] == "run.epochs")
            .count()
    };
    assert_eq!([warned("20"), warned("21")], [0, 1]);
}

#[test]
fn a_template_is_given_by_a_word_a_file_or_next_to_gguf() {
    let place = folder("chosen-template");
    let rows = write(&place, "rows.jsonl", format!("{CHAT}\n"));
    let own = "{% for m in messages %}{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}";
    let file = write(&place, "own.jinja", own);
    let shown = |model: &str, more: &[&str]| {
        let args = ["data", &rows, "--model", model, "--show", "1"];
        succeed(&[&args[..], more].concat()).last()["preview"].to_string()
    };
    let model = given("inputs/forms/model");
    assert!(shown(&model, &["--chat-template", "chatml"]).contains("<|im_start|>"));
    assert!(!shown(&model, &["--chat-template", &file]).contains("<|im_start|>"));
    // The file goes with an export, and is used next to a GGUF file.
    let gguf = place.join("gguf");
    std::fs::create_dir_all(&gguf).unwrap();
    let model_file = text(&gguf.join("model.gguf"));
    succeed(&[
        "convert",
        "--model",
        &model,
        "--to",
        &model_file,
        "--format",
        "gguf",
    ]);
    let before = shown(&model_file, &[]);
    write(&gguf, "chat_template.jinja", own);
    let after = shown(&text(&gguf), &[]);
    assert!(before != after, "{after}");
    assert_eq!(after, shown(&model, &["--chat-template", &file]));
}
