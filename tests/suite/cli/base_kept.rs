//! The base of a run stays: a run that would save over the files that it starts from is refused before its first step.

use std::fs;

use super::places::contents;
use super::*;

/// Makes the checkpoint of a short run, for use as a base.
fn base(place: &Path, name: &str) -> (String, String) {
    let (config, data) = tiny(place);
    let base = text(&place.join(name));
    succeed(
        &[
            &short(&config, &data)[..],
            &["--stop-at", "2", "--out", &base],
        ]
        .concat(),
    );
    (base, data)
}

/// Expects a refusal in which the folder is described with these words, and that its files stay.
fn refused(args: &[&str], folder: &str, words: &str) {
    let before = contents(Path::new(folder));
    let answer = run(args);
    assert!(
        !answer.good && answer.lines.len() == 1,
        "{args:?}: {:?}",
        answer.lines
    );
    let error = &answer.last()["error"];
    let message = error["message"].as_str().unwrap();
    assert!(
        error["code"] == "output.occupied" && message.contains(words),
        "{args:?}: {error}"
    );
    assert!(contents(Path::new(folder)) == before, "{args:?}");
}

#[test]
fn a_run_is_not_saved_over_its_base() {
    let place = folder("over-base");
    let (base, data) = base(&place, "base");
    let start = [
        "train",
        "--data",
        &data,
        "--device",
        "cpu",
        "--steps",
        "2",
        "--seq-len",
        "16",
        "--batch-size",
        "2",
    ];
    let of_base = [&start[..], &["--model", &base]].concat();
    let lora = [
        &of_base[..],
        &["--lora", "--lora-r", "2", "--lora-targets", "all-linear"],
    ]
    .concat();
    let (out, adapter) = (text(&place.join("out")), text(&place.join("adapter")));
    let best = [
        "--validation-fraction",
        "0.3",
        "--eval-every",
        "1",
        "--keep-best",
        &base,
    ];
    refused(
        &[&lora[..], &["--out", &base]].concat(),
        &base,
        "files that --model reads",
    );
    refused(
        &[&of_base[..], &["--out", &base]].concat(),
        &base,
        "files that --model reads",
    );
    refused(
        &[&lora[..], &best, &["--out", &out]].concat(),
        &base,
        "the checkpoint of another run",
    );
    succeed(&[&lora[..], &["--out", &adapter]].concat());
    let resume = [
        "train", "--resume", &adapter, "--model", &base, "--data", &data, "--device", "cpu",
        "--steps", "+1",
    ];
    let resume = [&resume[..], &["--override", "steps", "--out"]].concat();
    refused(
        &[&resume[..], &[&base]].concat(),
        &base,
        "files that --model reads",
    );
    // One file of the folder, and the folder of an adapter.
    let weights = text(&Path::new(&base).join("model.safetensors"));
    refused(
        &[&start[..], &["--model", &weights, "--out", &base]].concat(),
        &base,
        "files that --model reads",
    );
    refused(
        &[&of_base[..], &["--adapter", &adapter, "--out", &adapter]].concat(),
        &adapter,
        "files that --adapter reads",
    );
    refused(
        &[
            &of_base[..],
            &["--merge-adapter", &adapter, "--out", &adapter],
        ]
        .concat(),
        &adapter,
        "files that --merge-adapter reads",
    );
    // A run continues in its own folder, and in another one next to the base's files.
    succeed(&[&resume[..], &[&adapter]].concat());
    succeed(
        &[
            &lora[..],
            &["--out", &text(&Path::new(&base).join("adapter"))],
        ]
        .concat(),
    );
}

/// Hugging Face's cache is a folder of links.
#[cfg(unix)]
#[test]
fn a_run_is_not_saved_over_files_that_its_base_links_to() {
    let place = folder("linked-base");
    let (base, data) = base(&place, "base");
    let [links, other] = ["links", "other-name"].map(|name| place.join(name));
    fs::create_dir(&links).unwrap();
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        std::os::unix::fs::symlink(Path::new(&base).join(name), links.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(&base, &other).unwrap();
    for model in [links, other].map(|path| text(&path)) {
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
            "--seq-len",
            "16",
            "--out",
            &base,
        ];
        refused(&args, &base, "files that --model reads");
    }
}
