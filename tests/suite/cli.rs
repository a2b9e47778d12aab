//! Tests of the binary `tabtune` as a process: its output lines, its refusals, and that it never panics.

mod adapters;
mod asking;
mod base_kept;
#[cfg(unix)]
mod bench_gpu;
mod best;
mod checkpoints;
mod chosen;
mod deltas;
mod ends;
#[cfg(target_os = "linux")]
mod full_disks;
#[cfg(unix)]
mod hub;
mod idle_options;
mod inputs;
#[cfg(target_os = "linux")]
mod locks;
#[cfg(target_os = "linux")]
mod lost_device;
mod merge_matrix;
mod merges;
#[cfg(target_os = "linux")]
mod mounts;
mod oracle;
mod parts;
mod places;
#[cfg(target_os = "linux")]
mod places_table;
mod recipes;
mod refusals;
mod registers;
mod runs;
mod settings;
mod signals;
mod states;
mod templates;
mod text_to_ids;
mod tokenizer;
mod told;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::{Value, json};

/// Returns the binary that `TABTUNE` names, as `npm test` sets it. Without it, the binary is built here, because `cargo test` does not build the
/// binaries of other packages.
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(named) = std::env::var_os("TABTUNE") {
            return named.into();
        }
        let folder = std::env::current_exe()
            .unwrap()
            .parent()
            .unwrap()
            .parent()
            .unwrap()
            .to_path_buf();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build
            .current_dir(root)
            .args([
                "build",
                "--workspace",
                "--bins",
                "--locked",
                "--quiet",
                "--target-dir",
            ])
            .arg(folder.parent().unwrap());
        if folder.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success());
        folder.join(format!("tabtune{}", std::env::consts::EXE_SUFFIX))
    })
}

/// Output of a command with `--json`.
pub(crate) struct Answer {
    lines: Vec<Value>,
    good: bool,
}

impl Answer {
    pub(crate) fn last(&self) -> &Value {
        self.lines.last().expect("at least one line")
    }

    /// Returns the lines that have `key`.
    pub fn with(&self, key: &str) -> Vec<&Value> {
        self.lines
            .iter()
            .filter(|line| line.get(key).is_some())
            .collect()
    }
}

/// Returns the program that has the command of these arguments.
fn program(args: &[&str]) -> PathBuf {
    match args {
        ["check" | "replay" | "schema", ..] | ["generate", "--check", ..] => developers_binary(),
        ["bench", subject, ..] if *subject != "gpu" => developers_binary(),
        _ => binary().to_path_buf(),
    }
}

/// Returns the path of `tabtune-dev`, which is next to `tabtune`.
fn developers_binary() -> PathBuf {
    binary().with_file_name(format!("tabtune-dev{}", std::env::consts::EXE_SUFFIX))
}

pub(crate) fn output(args: &[&str]) -> Output {
    let output = Command::new(program(args)).args(args).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!errors.contains("panicked"), "{args:?}: {errors}");
    output
}

/// Runs a command with `--json`; every line of stdout must be an object.
fn run(args: &[&str]) -> Answer {
    let output = output(&[args, &["--json"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| {
            serde_json::from_str(line).unwrap_or_else(|_| panic!("{args:?} printed {line:?}"))
        })
        .collect();
    assert!(lines.iter().all(Value::is_object));
    Answer {
        lines,
        good: output.status.code() == Some(0),
    }
}

pub(crate) fn succeed(args: &[&str]) -> Answer {
    let answer = run(args);
    assert!(answer.good, "{args:?}: {:?}", answer.lines.last());
    answer
}

/// Runs a command that must be refused, with and without `--json`. Returns code and message.
pub(crate) fn refuse(args: &[&str]) -> (String, String) {
    let answer = run(args);
    assert!(!answer.good, "{args:?} was not refused");
    let error = &answer.last()["error"];
    assert_eq!(
        answer
            .lines
            .iter()
            .filter(|line| line.get("error").is_some())
            .count(),
        1
    );
    let plain = output(args);
    assert_eq!(plain.status.code(), Some(1), "{args:?}");
    let readable = String::from_utf8(plain.stderr).unwrap();
    assert_eq!(
        readable
            .trim_end()
            .lines()
            .filter(|line| line.starts_with("error: "))
            .count(),
        1,
        "{readable}"
    );
    let text = |key: &str| {
        error[key]
            .as_str()
            .unwrap_or_else(|| panic!("{args:?}: {error}"))
            .to_string()
    };
    (text("code"), text("message"))
}

/// Makes an empty folder for the files of one test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tabtune-cli-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub(crate) fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    text(&path)
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().unwrap().to_string()
}

const POEM: &str = "Twas brillig, and the slithy toves\nDid gyre and gimble in the wabe:\nAll mimsy were the borogoves,\nAnd the mome raths outgrabe.\n";

/// Writes a Llama of two layers and a text as files: (config.json, data).
fn tiny(folder: &Path) -> (String, String) {
    let config = json!({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "hidden_size": 16, "intermediate_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "tie_word_embeddings": true, "vocab_size": 1, "initializer_range": 0.02
    });
    (
        write(folder, "tiny.json", config.to_string()),
        write(folder, "poem.txt", POEM.repeat(6)),
    )
}

/// Returns the options of a short run on the CPU.
fn short<'a>(config: &'a str, data: &'a str) -> Vec<&'a str> {
    let mut args = vec![
        "train", "--config", config, "--data", data, "--device", "cpu",
    ];
    args.extend([
        "--steps",
        "4",
        "--batch-size",
        "2",
        "--seq-len",
        "16",
        "--learning-rate",
        "0.01",
        "--seed",
        "7",
    ]);
    args
}

/// Copies the files of a folder into another, which may be new.
fn copy_folder(from: &str, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Returns the checkpoint and the data of a short run, which is made once.
fn checkpoint() -> (String, String) {
    static MADE: OnceLock<(String, String)> = OnceLock::new();
    MADE.get_or_init(|| {
        let place = folder("checkpoint");
        let (config, data) = tiny(&place);
        let out = text(&place.join("run"));
        let answer = succeed(&[&short(&config, &data)[..], &["--out", &out]].concat());
        assert_eq!(answer.last()["checkpoint"], json!(out));
        (out, data)
    })
    .clone()
}
