//! Models of several files that are named by one of them, names that are not UTF-8, and what the operating system refuses.

use super::*;
use crate::bundle::files::{Meta, gguf, ramp};

/// Returns part `number` of two of a GGUF file.
fn part(number: u32) -> Vec<u8> {
    let mut metadata = vec![
        ("split.no", Meta::U32(number)),
        ("split.count", Meta::U32(2)),
        ("split.tensors.count", Meta::U32(2)),
    ];
    let counts = [
        ("llama.context_length", 16),
        ("llama.embedding_length", 8),
        ("llama.block_count", 1),
        ("llama.feed_forward_length", 4),
    ];
    metadata.push(("general.architecture", Meta::Text("llama")));
    metadata.extend(counts.map(|(key, count)| (key, Meta::U32(count))));
    metadata.extend([
        ("llama.attention.head_count", Meta::U32(2)),
        ("llama.attention.layer_norm_rms_epsilon", Meta::F32(1e-5)),
    ]);
    let tensor = if number == 0 {
        ("token_embd.weight", vec![3, 8], ramp(24, 0.0))
    } else {
        ("output_norm.weight", vec![8], ramp(8, 0.0))
    };
    gguf(&metadata, &[tensor])
}

#[test]
fn a_part_of_a_split_file_opens_with_the_parts_next_to_it() {
    let place = folder("parts");
    let first = write(&place, "m-00001-of-00002.gguf", part(0));
    let contract = |path: &str| {
        ["inspect", "--contract"]
            .into_iter()
            .chain([path])
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let run_on = |path: &str| {
        run(&contract(path)
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>())
    };
    write(&place, "other-00002-of-00002.gguf", part(1));
    let alone = refuse(&[
        "convert",
        "--model",
        &first,
        "--format",
        "safetensors",
        "--to",
        &text(&place.join("out")),
    ]);
    assert_eq!(alone.0, "gguf.split.incomplete");
    assert!(alone.1.contains("m-00002-of-00002.gguf"), "{}", alone.1);
    assert_eq!(
        run(&["inspect", &first]).last()["code"],
        "gguf.split.incomplete"
    );
    let second = write(&place, "m-00002-of-00002.gguf", part(1));
    for path in [&first, &second] {
        let found = run_on(path);
        assert!(
            found.good && !found.last().to_string().contains("split"),
            "{}",
            found.last()
        );
        assert_eq!(run(&["inspect", path]).last()["ok"], true);
    }
    // Names of parts may be in capital letters.
    let first = write(&place, "M-00001-OF-00002.GGUF", part(0));
    let alone = refuse(&[
        "convert",
        "--model",
        &first,
        "--format",
        "safetensors",
        "--to",
        &text(&place.join("out")),
    ]);
    assert!(
        alone.0 == "gguf.split.incomplete" && alone.1.contains("M-00002-OF-00002.GGUF"),
        "{}",
        alone.1
    );
    let second = write(&place, "M-00002-OF-00002.GGUF", part(1));
    for path in [&first, &second] {
        let found = run_on(path);
        assert!(
            found.good && !found.last().to_string().contains("split"),
            "{}",
            found.last()
        );
        assert_eq!(run(&["inspect", path]).last()["ok"], true);
    }
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_shard_or_an_index_opens_the_model_of_its_folder() {
    let (model, data) = checkpoint();
    let place = folder("shards");
    let shards = text(&place.join("shards"));
    succeed(&[
        "convert",
        "--model",
        &model,
        "--format",
        "safetensors",
        "--to",
        &shards,
        "--shard-bytes",
        "4000",
    ]);
    let names: Vec<String> = std::fs::read_dir(&shards)
        .unwrap()
        .map(|entry| text(&entry.unwrap().path()))
        .filter(|name| name.contains(".safetensors"))
        .collect();
    let index = names
        .iter()
        .find(|name| name.ends_with(".index.json"))
        .unwrap();
    let first = names
        .iter()
        .find(|name| name.contains("-00001-of-"))
        .unwrap();
    // Another model in the same folder is none of theirs.
    write(Path::new(&shards), "other.gguf", "GGUF");
    let loss = |path: &str| {
        succeed(&[
            "evaluate", "--model", path, "--data", &data, "--device", "cpu",
        ])
        .last()["loss"]
            .clone()
    };
    let expected = loss(&model);
    for path in [index, first] {
        assert_eq!(loss(path), expected, "{path}");
    }
    let last = names
        .iter()
        .filter(|name| name.ends_with(".safetensors"))
        .max()
        .unwrap();
    std::fs::remove_file(last).unwrap();
    let (code, message) = refuse(&[
        "evaluate", "--model", index, "--data", &data, "--device", "cpu",
    ]);
    let name = Path::new(last).file_name().unwrap().to_str().unwrap();
    assert!(
        code == "index.shard.missing" && message.contains(name),
        "{message}"
    );
    std::fs::remove_dir_all(place).unwrap();
}

/// Names of files are bytes on Linux: a receipt is found by them.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf8_are_verified_as_they_are_written() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let (model, _) = checkpoint();
    let place = folder("names");
    let file = place.join(OsStr::from_bytes(b"m\xff.gguf"));
    let run = |args: &[&OsStr]| {
        let output = Command::new(binary()).args(args).output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let os = OsStr::new;
    let written = run(&[
        os("convert"),
        os("--model"),
        os(&model),
        os("--format"),
        os("gguf"),
        os("--to"),
        file.as_os_str(),
    ]);
    assert_eq!(written.0, Some(0), "{}", written.1);
    let good = run(&[os("verify"), file.as_os_str()]);
    assert_eq!(good.0, Some(0), "{}", good.1);
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    bytes[200] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let bad = run(&[os("verify"), file.as_os_str()]);
    assert_eq!(bad.0, Some(1), "{}", bad.1);
    std::fs::remove_dir_all(place).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn too_many_open_files_are_reported_with_what_to_do() {
    let (model, _) = checkpoint();
    let command = format!(
        "ulimit -n 4; exec {} tokenize --model {model} --text a",
        binary().display()
    );
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && told.contains("ulimit -n"),
        "{told}"
    );
}

#[cfg(unix)]
#[test]
fn help_that_nobody_reads_to_its_end_is_no_failure() {
    let command = format!("{} train --help | true", binary().display());
    let output = Command::new("bash")
        .args(["-c", &format!("set -o pipefail; {command}")])
        .output()
        .unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn numbers_of_steps_that_others_cannot_read_are_refused() {
    let place = folder("many-steps");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    let args = [
        "train", "--config", &config, "--data", &data, "--device", "cpu", "--out", &out,
    ];
    let (code, message) = refuse(&[&args[..], &["--steps", "9007199254740992"]].concat());
    assert!(
        code == "config.invalid" && message.contains("9007199254740991"),
        "{code} {message}"
    );
    std::fs::remove_dir_all(place).unwrap();
}
