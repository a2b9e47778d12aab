//! Signals that arrive while an output is written, and processes that are killed there.
#![cfg(unix)]

use std::fs;
use std::io::Read;
use std::process::Stdio;

use super::places::contents;
use super::*;

/// Makes a model of 61 MB, which takes a while to encode.
fn large(place: &Path) -> String {
    let config = json!({"model_type": "llama", "vocab_size": 60_000, "hidden_size": 256, "intermediate_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 4, "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "tie_word_embeddings": true});
    let layer = |name: &str| format!("model.layers.0.{name}.weight");
    let mut shapes = vec![
        ("model.embed_tokens.weight".to_owned(), vec![60_000, 256]),
        ("model.norm.weight".to_owned(), vec![256]),
    ];
    shapes.extend(
        ["input_layernorm", "post_attention_layernorm"].map(|name| (layer(name), vec![256])),
    );
    shapes.extend(
        ["q", "k", "v", "o"].map(|name| (layer(&format!("self_attn.{name}_proj")), vec![256, 256])),
    );
    shapes.extend(["gate", "up"].map(|name| (layer(&format!("mlp.{name}_proj")), vec![4, 256])));
    shapes.push((layer("mlp.down_proj"), vec![256, 4]));
    let zeros = vec![0; 60_000 * 256 * 4];
    let view = |shape: &Vec<usize>| {
        let bytes = &zeros[..4 * shape.iter().product::<usize>()];
        safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes).unwrap()
    };
    let tensors: Vec<_> = shapes
        .iter()
        .map(|(name, shape)| (name, view(shape)))
        .collect();
    write(place, "config.json", config.to_string());
    write(
        place,
        "model.safetensors",
        safetensors::serialize(tensors, None).unwrap(),
    );
    text(place)
}

/// Returns the temporary folder of a process that has begun to write its output into `folder`.
fn begun(folder: &Path) -> Option<PathBuf> {
    let all = fs::read_dir(folder)
        .ok()?
        .map(|entry| entry.unwrap().path());
    let mut temporary = all.filter(|path| {
        path.file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with(".tabtune-")
    });
    // Locations are tried out with files and folders of such names as well, in which nothing is written.
    let written = |path: PathBuf| fs::metadata(path).is_ok_and(|found| found.len() > 0);
    temporary.find(|path| {
        fs::read_dir(path)
            .is_ok_and(|mut files| files.any(|file| file.is_ok_and(|file| written(file.path()))))
    })
}

#[test]
fn a_signal_leaves_nothing_of_an_output() {
    let [model, place] = ["ends-large", "ends-outputs"].map(folder);
    let model = large(&model);
    for (to, asked) in [
        ("m.gguf", &["--format", "gguf", "--type", "q4_k_m"][..]),
        ("m", &["--dtype", "bf16"]),
    ] {
        let to = text(&place.join(to));
        let convert = [
            &["convert", "--model", &model, "--to", &to, "--json"],
            asked,
        ]
        .concat();
        let mut child = Command::new(binary())
            .args(convert)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while begun(&place).or_else(|| begun(Path::new(&to))).is_none() {
            assert!(
                child.try_wait().unwrap().is_none(),
                "it ended before it could be ended"
            );
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(
            Command::new("kill")
                .arg(child.id().to_string())
                .status()
                .unwrap()
                .success()
        );
        let mut told = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut told)
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(143), "{told}");
        assert!(
            told.contains("cli.ended") && told.contains("SIGTERM"),
            "{told}"
        );
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    }
}

#[test]
fn what_a_killed_process_left_is_removed_by_the_next_one() {
    let [model, place] = ["killed-large", "killed-outputs"].map(folder);
    let (model, (small, _)) = (large(&model), checkpoint());
    let at = |name: &str| text(&place.join(name));
    let start = |to: &str| {
        let convert = [
            "convert", "--model", &model, "--format", "gguf", "--type", "q4_k_m", "--to", to,
        ];
        let mut child = Command::new(binary())
            .args(convert)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let locked = |part: PathBuf| {
            fs::read_to_string(part.join(".tabtune.lock")).is_ok_and(|mark| !mark.is_empty())
        };
        while !begun(&place).is_some_and(locked) {
            assert!(
                child.try_wait().unwrap().is_none(),
                "it ended before it could be seen"
            );
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child
    };
    let next = |to: &str| {
        succeed(&[
            "convert",
            "--model",
            &small,
            "--format",
            "gguf",
            "--to",
            &at(to),
        ])
    };
    // A process that is still writing keeps its files.
    let mut child = start(&at("first.gguf"));
    next("second.gguf");
    assert!(child.wait().unwrap().success());
    let mut child = start(&at("third.gguf"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(begun(&place).is_some());
    next("fourth.gguf");
    assert_eq!(begun(&place), None);
    // A process that was killed while it tried out its place; no process has this number.
    let tried = place.join("tried");
    fs::create_dir(&tried).unwrap();
    fs::write(
        tried.join(".tabtune-ffffffff0123456789abcdef.a"),
        "ffffffff0123456789abcdef",
    )
    .unwrap();
    succeed(&["convert", "--model", &small, "--to", &text(&tried)]);
    assert_eq!(
        contents(&tried)
            .into_keys()
            .filter(|path| path.to_string_lossy().contains(".tabtune-"))
            .count(),
        0
    );
    // A file of the user with such a name stays.
    let own = place.join("own");
    fs::create_dir(&own).unwrap();
    let file = own.join(".tabtune-ffffffff0123456789abcdef.a");
    fs::write(&file, "of the user").unwrap();
    assert_eq!(
        refuse(&["convert", "--model", &small, "--to", &text(&own)]).0,
        "output.occupied"
    );
    assert_eq!(fs::read(&file).unwrap(), b"of the user");
    // Folders of the user have such names too.
    let foreign =
        [".tabtune-notes", ".tabtune-0000002a0123456789abcdef"].map(|name| place.join(name));
    for folder in &foreign {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join(".tabtune.lock"), "of the user").unwrap();
    }
    next("fifth.gguf");
    assert!(
        foreign
            .iter()
            .all(|folder| folder.join(".tabtune.lock").is_file())
    );
    let names = ["first", "second", "fourth", "fifth"];
    assert!(
        names
            .iter()
            .all(|name| place.join(format!("{name}.gguf")).is_file())
            && !place.join("third.gguf").exists()
    );
}
