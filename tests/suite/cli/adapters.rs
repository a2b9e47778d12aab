//! Adapters in the terminal: trained beside a model, resumed with it, exported, trained on.

use super::*;

/// A model folder: the checkpoint of a short run is one.
fn base() -> (String, String) {
    checkpoint()
}

fn lora<'a>(model: &'a str, data: &'a str, out: &'a str) -> Vec<&'a str> {
    let mut args = vec!["train", "--model", model, "--data", data, "--device", "cpu", "--out", out];
    args.extend(["--steps", "4", "--batch-size", "2", "--seq-len", "16", "--learning-rate", "0.02", "--seed", "7"]);
    args
}

fn losses(answer: &Answer) -> Vec<f64> {
    answer.with("grad_norm").iter().map(|line| line["loss"].as_f64().unwrap()).collect()
}

#[test]
fn lora_is_trained_resumed_with_its_base_and_exported() {
    let (model, data) = base();
    let place = folder("lora");
    let at = |name: &str| text(&place.join(name));
    let options = ["--lora", "--lora-r", "2", "--lora-alpha", "4", "--lora-targets", "all-linear", "--rslora"];
    let straight = losses(&succeed(&[&lora(&model, &data, &at("straight"))[..], &options].concat()));
    let run = at("run");
    let mut halves = losses(&succeed(&[&lora(&model, &data, &run)[..], &options, &["--stop-at", "2"]].concat()));
    let resume = ["train", "--resume", &run, "--data", &data, "--device", "cpu", "--out", &run];
    assert_eq!(refuse(&resume).0, "checkpoint.base.missing");
    halves.extend(losses(&succeed(&[&resume[..], &["--model", &model]].concat())));
    assert_eq!(halves, straight);
    let files: Vec<String> = std::fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(files.contains(&"adapter_model.safetensors".to_string()) && !files.contains(&"model.safetensors".to_string()), "{files:?}");

    let peft = at("peft");
    succeed(&["export", "--checkpoint", &run, "--base", &model, "--format", "peft", "--to", &peft]);
    let config: Value = serde_json::from_slice(&std::fs::read(Path::new(&peft).join("adapter_config.json")).unwrap()).unwrap();
    assert_eq!((&config["r"], &config["use_rslora"], &config["peft_type"]), (&json!(2), &json!(true), &json!("LORA")));
    assert_eq!(refuse(&["export", "--checkpoint", &run, "--to", &at("whole")]).0, "checkpoint.base.missing");
    // It is trained on with its own settings, and others are refused.
    let place_on = at("on");
    let on = [&lora(&model, &data, &place_on)[..], &["--adapter", &peft]].concat();
    let first = losses(&succeed(&on))[0];
    assert!(first < straight[0], "{first} after {straight:?}");
    let other = write(&place, "t.json", r#"{"adapter": {"r": 3}}"#);
    assert_eq!(refuse(&[&on[..], &["--train-config", &other]].concat()).0, "adapter.settings");
}

#[test]
fn lora_options_that_mean_nothing_are_refused() {
    let (model, data) = base();
    let place = folder("lora-refused");
    let out = text(&place.join("run"));
    let train = lora(&model, &data, &out);
    assert_eq!(refuse(&[&train[..], &["--lora", "--lora-targets", "nothing"]].concat()).0, "adapter.target.unmatched");
    assert_eq!(refuse(&[&train[..], &["--lora", "--lora-r", "0"]].concat()).0, "config.invalid");
    let dora = write(&place, "t.json", r#"{"adapter": {"use_dora": true}}"#);
    assert_eq!(refuse(&[&train[..], &["--train-config", &dora]].concat()).0, "config.invalid");
    let (config, _) = tiny(&place);
    let adapter = write(&place, "a.json", r#"{"adapter": {}}"#);
    assert_eq!(refuse(&[&short(&config, &data)[..], &["--train-config", &adapter]].concat()).0, "config.invalid");
}

/// A short run that trains an adapter beside the checkpoint of another: model, data, its folder of PEFT.
fn trained(place: &Path) -> (String, String, String) {
    let (model, data) = base();
    let (run, peft) = (text(&place.join("run")), text(&place.join("peft")));
    succeed(&[&lora(&model, &data, &run)[..], &["--lora", "--lora-r", "3", "--lora-targets", "all-linear", "--lora-alpha", "9"]].concat());
    succeed(&["export", "--checkpoint", &run, "--base", &model, "--format", "peft", "--to", &peft]);
    (model, data, peft)
}

#[test]
fn lora_is_evaluated_and_writes_beside_its_base() {
    let place = folder("lora-apart");
    let (model, data, peft) = trained(&place);
    let merged = text(&place.join("merged"));
    succeed(&["adapter", "merge", "--model", &model, "--adapter", &peft, "--to", &merged]);
    let evaluate = |more: &[&str]| {
        let answer = succeed(&[&["evaluate", "--data", &data, "--device", "cpu", "--seq-len", "16"], more].concat());
        answer.last()["loss"].as_f64().unwrap()
    };
    let generate = |more: &[&str]| -> Vec<(u64, f64)> {
        let args = ["generate", "--prompt", "Twas ", "--temperature", "0", "--max-tokens", "24", "--device", "cpu"];
        let token = |line: &Value| (line["id"].as_u64().unwrap(), line["logprob"].as_f64().unwrap());
        succeed(&[&args[..], more].concat()).lines.iter().map(token).collect()
    };
    let differs = |one: &[(u64, f64)], other: &[(u64, f64)]| {
        assert_eq!(one.len(), other.len());
        one.iter().zip(other).any(|(one, other)| one.0 != other.0 || (one.1 - other.1).abs() > 1e-5)
    };
    let text_of_merged = generate(&["--model", &merged]);
    assert!(differs(&generate(&["--model", &model]), &text_of_merged));
    let of_base = evaluate(&["--model", &model]);
    assert_eq!(evaluate(&["--model", &model, "--base-storage", "stored"]), of_base);
    let expected = evaluate(&["--model", &merged]);
    assert!((of_base / expected - 1.0).abs() > 1e-3, "{of_base} and {expected}");
    // A checkpoint of the run has the adapter too.
    for adapter in [&peft, &text(&place.join("run"))] {
        let found = evaluate(&["--model", &model, "--adapter", adapter]);
        assert!((found / expected - 1.0).abs() <= 1e-6, "{found} and {expected}");
        assert_eq!(evaluate(&["--model", &model, "--adapter", adapter, "--base-storage", "f32"]), found);
        assert!(!differs(&generate(&["--model", &model, "--adapter", adapter]), &text_of_merged));
    }
    let narrow = evaluate(&["--model", &model, "--adapter", &peft, "--base-storage", "bf16"]);
    assert!(narrow != expected && (narrow / expected - 1.0).abs() < 1e-2, "{narrow} and {expected}");
    // The factors of another shape fit no matrix.
    let (other, _) = tiny(&folder("lora-other"));
    let wide = std::fs::read_to_string(&other).unwrap().replace("\"hidden_size\":16", "\"hidden_size\":32");
    let config = write(&place, "wide.json", wide);
    let run = text(&place.join("wide"));
    succeed(&[&short(&config, &data)[..], &["--out", &run]].concat());
    assert_eq!(refuse(&["evaluate", "--model", &run, "--data", &data, "--adapter", &peft, "--device", "cpu"]).0, "adapter.shape");
}

#[test]
fn lora_is_estimated_without_a_device() {
    let place = folder("lora-estimate");
    let (model, _, peft) = trained(&place);
    let estimate = |more: &[&str]| succeed(&[&["estimate"], more].concat()).last().clone();
    let run = ["--batch-size", "2", "--seq-len", "16"];
    let options = ["--lora", "--lora-r", "3", "--lora-targets", "all-linear"];
    let beside = estimate(&[&["--model", &model], &run[..], &options].concat());
    let sum: u64 = beside["parts"].as_object().unwrap().values().map(|part| part.as_u64().unwrap()).sum();
    assert_eq!(beside["needBytes"].as_u64(), Some(sum));
    // q and o 16 to 16, k and v 16 to 8, gate, up and down 16 to 24, in two layers.
    assert_eq!(beside["trained"], json!(2 * 3 * (2 * 32 + 2 * 24 + 3 * 40)));
    assert_eq!(beside["parts"]["adapter"], json!(4 * 2 * 3 * (2 * 32 + 2 * 24 + 3 * 40)));
    assert!(beside["fits"].as_object().unwrap().values().all(Value::is_boolean));
    // The same of a folder of PEFT, which says what is trained.
    assert_eq!(estimate(&[&["--model", &model, "--adapter", &peft], &run[..]].concat()), beside);
    let full = estimate(&[&["--model", &model], &run[..]].concat());
    assert!(full["parts"].get("base").is_none() && full["parts"]["weights"].is_u64(), "{full}");
    let halves = estimate(&[&["--model", &model, "--type", "f16"], &run[..], &options].concat());
    assert!(halves["parts"]["base"].as_u64() < beside["parts"]["base"].as_u64());
    let plain = output(&[&["estimate", "--model", &model], &run[..], &options].concat());
    assert!(String::from_utf8(plain.stdout).unwrap().starts_with("needs 0."), "in words");
    let (config, _) = tiny(&place);
    assert_eq!(refuse(&["estimate", "--config", &config, "--lora", "--type", "q9"]).0, "export.gguf.type");
    assert_eq!(refuse(&["estimate", "--config", &config, "--seq-len", "64"]).0, "model.context");
    assert_eq!(
        refuse(&[&["estimate", "--config", &config, "--lora", "--lora-targets", "x"], &run[..]].concat()).0,
        "adapter.target.unmatched"
    );
    assert_eq!(refuse(&["estimate", "--lora"]).0, "cli.usage");
}
