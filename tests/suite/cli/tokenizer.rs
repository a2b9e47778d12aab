//! `tabtune tokenizer train`, and a new model with what it wrote.

use super::*;

#[test]
fn learned_tokenizer_is_that_of_a_new_model() {
    let place = folder("tokenizer");
    let (config, data) = tiny(&place);
    let other = write(
        &place,
        "more.txt",
        "Beware the Jabberwock, my son!\n".repeat(8),
    );
    let (out, run) = (
        text(&place.join("new/tokenizer.json")),
        text(&place.join("run")),
    );
    let asked = ["tokenizer", "train", &data, &other, "--out", &out];
    let specials = ["--special", "<|im_start|>", "<|im_end|>"];
    let sized = [&asked[..], &["--vocab-size", "300"], &specials[..]].concat();
    let made = succeed(&sized);
    assert_eq!(made.last(), &json!({"file": out, "vocab_size": 300}));
    let document: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let added = document["added_tokens"].as_array().unwrap().iter();
    let added: Vec<&Value> = added.map(|token| &token["content"]).collect();
    assert_eq!(added, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]);
    // A file that exists stays.
    assert_eq!(refuse(&asked).0, "output.occupied");
    // The texts are two documents, each with an end.
    let steps = ["--out", &run, "--tokenizer", &out];
    let asked = [&short(&config, &data)[..], &steps].concat();
    let at = asked.iter().position(|word| *word == data).unwrap() + 1;
    let asked = [&asked[..at], &[other.as_str()], &asked[at..]].concat();
    let trained = succeed(&asked);
    assert!(trained.with("warning").is_empty());
    let shape = std::fs::read(place.join("run/config.json")).unwrap();
    let shape: Value = serde_json::from_slice(&shape).unwrap();
    assert_eq!(shape["vocab_size"], 300);
    let ids = succeed(&[
        "tokenize",
        "--model",
        &run,
        "--text",
        "the slithy toves<|endoftext|>",
    ]);
    let ids: Vec<u64> = serde_json::from_value(ids.last()["ids"].clone()).unwrap();
    assert!(ids.len() < 12 && ids.last() == Some(&0), "{ids:?}");
    let kept = std::fs::read(place.join("run/tokenizer_config.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    assert_eq!(kept["eos_token"], "<|endoftext|>");
}

#[test]
fn tokenizers_that_cannot_be_learned_are_refused_and_leave_nothing() {
    let place = folder("tokenizer-refused");
    let (config, data) = tiny(&place);
    let out = text(&place.join("new/tokenizer.json"));
    let refused = |data: &str, more: &[&str]| {
        let asked = ["tokenizer", "train", data, "--out", &out];
        let (code, message) = refuse(&[&asked[..], more].concat());
        assert!(!place.join("new").exists());
        (code, message)
    };
    let (code, message) = refused(&data, &["--vocab-size", "256"]);
    assert_eq!(code, "config.invalid");
    assert!(message.contains("257"), "{message}");
    assert_eq!(
        refused(&data, &["--special", "<|endoftext|>"]).0,
        "config.invalid"
    );
    let empty = write(&place, "empty.txt", "");
    assert_eq!(refused(&empty, &[]).0, "data.empty");
    assert_eq!(
        refused(&text(&place.join("absent.txt")), &[]).0,
        "source.read"
    );
    // A tokenizer belongs to a new model.
    let (model, tokenizer) = (checkpoint().0, write(&place, "tokenizer.json", "{}"));
    let mut asked = short(&config, &data);
    (asked[1], asked[2]) = ("--model", &model);
    asked.extend(["--tokenizer", &tokenizer]);
    assert_eq!(refuse(&asked).0, "cli.usage");
}

/// Ends the process while it reads.
#[cfg(unix)]
#[test]
fn a_signal_ends_the_reading_and_leaves_nothing() {
    use std::io::Read as _;
    use std::process::Stdio;

    let place = folder("tokenizer-signal");
    let large = write(&place, "large.txt", POEM.repeat(400_000));
    let out = place.join("new/tokenizer.json");
    let mut child = Command::new(binary())
        .args(["tokenizer", "train", &large, "--out", &text(&out)])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // The first line of progress.
    let mut told = child.stderr.take().unwrap();
    told.read_exact(&mut [0; 1]).unwrap();
    let ended = Command::new("kill").arg(child.id().to_string()).status();
    assert!(ended.unwrap().success());
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143), "{rest}");
    assert!(rest.contains("cli.ended"), "{rest}");
    assert!(!place.join("new").exists());
}
