//! Output locations of the commands: existing files stay, and locations that cannot be written are refused before the work.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::*;

/// Files with their bytes, links with their targets, and folders.
pub(super) type Contents = BTreeMap<PathBuf, Vec<u8>>;

/// Returns everything below `folder`; no link is followed.
pub(super) fn contents(folder: &Path) -> Contents {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_symlink() {
            found.insert(
                path.clone(),
                fs::read_link(&path)
                    .unwrap()
                    .into_os_string()
                    .into_encoded_bytes(),
            );
        } else if kind.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

/// Returns the options of a run of two steps with a checkpoint in `out`.
fn train<'a>(config: &'a str, data: &'a str, out: &'a str) -> Vec<&'a str> {
    [&short(config, data)[..], &["--stop-at", "2", "--out", out]].concat()
}

/// Puts files of the user into a folder. Returns their contents.
pub(super) fn put_foreign(folder: &Path) -> Contents {
    fs::create_dir_all(folder.join("thesis")).unwrap();
    for name in ["notes.txt", "data.txt", "thesis/chapter.md", ".hidden"] {
        fs::write(folder.join(name), format!("of the user: {name}")).unwrap();
    }
    contents(folder)
}

fn unchanged(before: &Contents, folder: &Path) {
    let now = contents(folder);
    for (path, bytes) in before {
        assert_eq!(now.get(path), Some(bytes), "{}", path.display());
    }
}

#[test]
fn files_of_the_user_in_and_next_to_a_checkpoint_stay() {
    let place = folder("foreign");
    let (config, data) = tiny(&place);
    let (run, beside) = (
        place.join("run"),
        ["run.previous", "run.partial"].map(|name| place.join(name)),
    );
    succeed(&train(&config, &data, &text(&run)));
    let mut before = BTreeMap::new();
    for folder in beside.iter() {
        fs::create_dir_all(folder).unwrap();
        before.extend(put_foreign(folder));
    }
    let ours: Vec<_> = contents(&run).into_keys().collect();
    before.extend(
        put_foreign(&run)
            .into_iter()
            .filter(|(path, _)| !ours.contains(path)),
    );
    let resume = [
        "train",
        "--resume",
        &text(&run),
        "--data",
        &data,
        "--device",
        "cpu",
        "--out",
        &text(&run),
        "--save-every",
        "1",
    ];
    assert_eq!(succeed(&resume).last()["step"], json!(4));
    unchanged(&before, &place);
    // Nothing else was added.
    let now = contents(&place).into_keys().collect::<Vec<_>>();
    assert!(
        now.iter().all(|path| ours.contains(path)
            || before.contains_key(path)
            || [&run, &beside[0], &beside[1]].contains(&path)
            || !path.starts_with(&run)),
        "{now:?}"
    );
    assert_eq!(
        succeed(&[
            "train",
            "--resume",
            &text(&run),
            "--data",
            &data,
            "--device",
            "cpu"
        ])
        .last()["step"],
        json!(4)
    );
}

#[test]
fn a_folder_that_is_not_ours_is_refused_and_stays() {
    let place = folder("occupied");
    let (config, data) = tiny(&place);
    let occupied = |name: &str, fill: &dyn Fn(&Path)| {
        let out = place.join(name);
        fs::create_dir_all(&out).unwrap();
        fill(&out);
        let before = contents(&out);
        let (code, message) = refuse(&train(&config, &data, &text(&out)));
        assert_eq!(code, "output.occupied", "{message}");
        assert_eq!(contents(&out), before);
        message
    };
    let message = occupied("notes", &|out| drop(put_foreign(out)));
    assert!(
        message.contains("contains .hidden, data.txt, notes.txt and 1 more"),
        "{message}"
    );
    let with = |manifest: &'static str| {
        move |out: &Path| {
            fs::write(out.join("checkpoint.json"), manifest).unwrap();
            put_foreign(out);
        }
    };
    for manifest in [
        "{}",
        "[]",
        "of somebody else",
        r#"{"format": "tabtune.checkpoint"}"#,
    ] {
        let message = occupied("manifest", &with(manifest));
        assert!(
            message.contains("checkpoint.json that no checkpoint of tabtune has"),
            "{message}"
        );
    }
    // A file that the checkpoint does not name, under a name that a save would use.
    let run = place.join("run");
    succeed(&train(&config, &data, &text(&run)));
    let manifest = run.join("checkpoint.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    json["files"]
        .as_array_mut()
        .unwrap()
        .retain(|file| file["name"] != "tokenizer.json");
    fs::write(&manifest, json.to_string()).unwrap();
    let before = contents(&run);
    let (code, message) = refuse(&train(&config, &data, &text(&run)));
    assert!(
        code == "output.occupied" && message.contains("tokenizer.json of somebody else"),
        "{message}"
    );
    assert_eq!(contents(&run), before);
    let file = write(&place, "file", "of the user");
    assert_eq!(refuse(&train(&config, &data, &file)).0, "output.occupied");
}

/// Something that a save would find in its way is found before the first step.
#[test]
fn what_is_in_the_way_of_a_save_is_refused_at_the_start() {
    let place = folder("in-the-way");
    let (config, data) = tiny(&place);
    let refused = |name: &str, fill: &dyn Fn(&Path), found: &str| {
        let run = place.join(name);
        succeed(&train(&config, &data, &text(&run)));
        fill(&run);
        let before = contents(&run);
        let out = text(&run);
        let resume = [
            "train", "--resume", &out, "--data", &data, "--device", "cpu", "--out", &out,
        ];
        for args in [&train(&config, &data, &out)[..], &resume] {
            let answer = super::run(args);
            assert!(
                !answer.good && answer.with("step").is_empty(),
                "{name}: {:?}",
                answer.lines
            );
            assert_eq!(
                answer.last()["error"]["code"],
                json!("output.occupied"),
                "{name}"
            );
            let message = answer.last()["error"]["message"].as_str().unwrap();
            assert!(
                message.contains(&format!("contains {found} of somebody else")),
                "{name}: {message}"
            );
            assert!(contents(&run) == before, "{name}");
        }
    };
    refused(
        "complete-file",
        &|run| fs::write(run.join(".tabtune-complete"), "of the user").unwrap(),
        ".tabtune-complete",
    );
    refused(
        "complete-folder",
        &|run| drop(put_foreign(&run.join(".tabtune-complete"))),
        ".tabtune-complete",
    );
    let unfinished = |run: &Path| {
        fs::create_dir(run.join(".tabtune-complete")).unwrap();
        fs::copy(
            run.join("checkpoint.json"),
            run.join(".tabtune-complete/checkpoint.json"),
        )
        .unwrap();
        fs::write(run.join(".tabtune-complete/notes"), "of the user").unwrap();
    };
    refused("complete-notes", &unfinished, ".tabtune-complete");
    let in_place = |run: &Path| {
        fs::remove_file(run.join("optimizer.safetensors")).unwrap();
        fs::create_dir(run.join("optimizer.safetensors")).unwrap();
    };
    refused("folder", &in_place, "optimizer.safetensors");
}

/// Linux refuses paths of more than 4095 bytes, and the temporary names of a save are longer than those of its files.
#[cfg(target_os = "linux")]
#[test]
fn a_path_that_is_too_long_for_the_files_is_refused_at_the_start() {
    let place = folder("long-path");
    let (config, data) = tiny(&place);
    let mut out = place.clone();
    while out.as_os_str().len() < 4095 - 40 - 200 {
        out.push("d".repeat(100));
    }
    out.push("e".repeat(4095 - 41 - out.as_os_str().len()));
    let answer = run(&train(&config, &data, &text(&out)));
    assert!(
        !answer.good && answer.lines.len() == 1,
        "{:?}",
        answer.lines
    );
    assert_eq!(answer.last()["error"]["code"], json!("sink.write"));
    assert!(
        answer.last()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("cannot be created"),
        "{:?}",
        answer.last()
    );
    // The folders that were made for it are removed.
    assert_eq!(
        fs::read_dir(&place)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().path().is_dir())
            .count(),
        0
    );
}

#[test]
fn files_that_only_the_checkpoint_before_had_are_removed() {
    let place = folder("fewer-files");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    let model = text(&place.join("model"));
    succeed(&train(&config, &data, &model));
    let ours = || {
        contents(Path::new(&out))
            .into_keys()
            .map(|path| text(&path))
            .collect::<Vec<_>>()
    };
    let beside = [
        "train",
        "--model",
        &model,
        "--data",
        &data,
        "--device",
        "cpu",
        "--batch-size",
        "2",
        "--seq-len",
        "16",
        "--lora",
    ];
    succeed(&[&beside[..], &["--steps", "2", "--out", &out]].concat());
    let before = ours();
    succeed(&train(&config, &data, &out));
    let gone: Vec<_> = before
        .iter()
        .filter(|path| !ours().contains(path))
        .collect();
    assert!(
        !gone.is_empty() && gone.iter().all(|path| path.contains("adapter")),
        "{gone:?} of {before:?}"
    );
}

#[cfg(unix)]
#[test]
fn a_link_is_followed_and_one_to_nothing_refused() {
    let place = folder("links");
    let (config, data) = tiny(&place);
    let (target, link, dangling) = (
        place.join("disk"),
        place.join("link"),
        place.join("dangling"),
    );
    fs::create_dir(&target).unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    std::os::unix::fs::symlink(place.join("absent"), &dangling).unwrap();
    succeed(&train(&config, &data, &text(&link)));
    assert!(fs::read_link(&link).unwrap() == target && target.join("checkpoint.json").is_file());
    let (code, message) = refuse(&train(&config, &data, &text(&dangling)));
    assert!(
        code == "output.occupied" && message.contains("absent, which does not exist"),
        "{message}"
    );
    let to = text(&dangling);
    let (code, _) = refuse(&[
        "export",
        "--checkpoint",
        &text(&target),
        "--format",
        "safetensors",
        "--to",
        &to,
    ]);
    assert_eq!(code, "output.occupied");
    assert!(fs::read_link(&dangling).is_ok() && !place.join("absent").exists());
}

/// A container's volume is such a folder: nothing can be renamed over it, or created next to it.
#[cfg(unix)]
#[test]
fn a_folder_in_a_closed_parent_is_written_into() {
    use std::os::unix::fs::PermissionsExt;
    let place = folder("closed");
    let (config, data) = tiny(&place);
    let (parent, out) = (place.join("parent"), place.join("parent/out"));
    fs::create_dir_all(out.join("lost+found")).unwrap();
    let close = |mode: u32, folder: &Path| {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap()
    };
    close(0o555, &parent);
    let answer = [1, 2].map(|_| run(&train(&config, &data, &text(&out))));
    let export = run(&[
        "export",
        "--checkpoint",
        &text(&out),
        "--format",
        "safetensors",
        "--to",
        &text(&place.join("exported")),
    ]);
    close(0o755, &parent);
    assert!(
        answer.iter().all(|answer| answer.good) && export.good,
        "{:?}",
        answer.map(|answer| answer.lines)
    );
    // Root may write everywhere.
    let closed = place.join("read-only");
    fs::create_dir(&closed).unwrap();
    close(0o555, &closed);
    if fs::write(closed.join("try"), "").is_err() {
        assert_eq!(
            refuse(&train(&config, &data, &text(&closed))).0,
            "sink.write"
        );
    }
    close(0o755, &closed);
}

#[test]
fn folders_that_a_refused_output_needed_are_removed() {
    let place = folder("needed");
    fs::create_dir(place.join("there")).unwrap();
    let absent = text(&place.join("no-model"));
    for (format, to) in [
        ("safetensors", "x/y/z"),
        ("gguf", "x/y/m.gguf"),
        ("safetensors", "there/z"),
        ("gguf", "there/y/m.gguf"),
    ] {
        refuse(&[
            "convert",
            "--model",
            &absent,
            "--format",
            format,
            "--to",
            &text(&place.join(to)),
        ]);
        assert!(
            !place.join("x").exists()
                && fs::read_dir(place.join("there")).unwrap().next().is_none(),
            "{to}"
        );
    }
    assert!(
        place.join("there").is_dir(),
        "an empty folder that was there before stays"
    );
}

#[test]
fn long_names_and_spaces_are_names() {
    let place = folder("names");
    let (config, data) = tiny(&place);
    for name in ["a run of mine", &"n".repeat(200)] {
        let out = text(&place.join(name));
        succeed(&train(&config, &data, &out));
        let file = text(&place.join(format!("{}.gguf", &name[..name.len().min(190)])));
        succeed(&[
            "export",
            "--checkpoint",
            &out,
            "--format",
            "gguf",
            "--to",
            &file,
        ]);
    }
}

#[test]
fn a_second_process_is_refused_at_its_start() {
    let place = folder("locked");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    let long = [
        "train",
        "--config",
        &config,
        "--data",
        &data,
        "--device",
        "cpu",
        "--steps",
        "100000",
        "--seq-len",
        "16",
        "--out",
        &out,
    ];
    let mut first = Command::new(binary())
        .args(long)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while !place.join("run/.tabtune.lock").is_file() {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(100));
    for _ in 0..20 {
        let answer = run(&long);
        assert!(
            !answer.good && answer.lines.len() == 1,
            "{:?}",
            answer.lines
        );
        assert_eq!(answer.last()["error"]["code"], json!("run.locked"));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    // The lock ended with its process.
    succeed(&train(&config, &data, &out));
    assert!(!place.join("run/.tabtune.lock").exists());
}

/// No matter which files of the new checkpoint were moved before its process was killed, the new checkpoint opens; the next save moves the rest.
#[test]
fn a_checkpoint_whose_files_are_not_all_at_their_places_is_whole() {
    let place = folder("moved");
    let (config, data) = tiny(&place);
    let [old, new] = ["old", "new"].map(|name| place.join(name));
    succeed(&train(&config, &data, &text(&old)));
    succeed(&[&short(&config, &data)[..], &["--out", &text(&new)]].concat());
    let names: Vec<_> = fs::read_dir(&new)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    let loss = |folder: &Path| {
        succeed(&[
            "evaluate",
            "--model",
            &text(folder),
            "--data",
            &data,
            "--device",
            "cpu",
        ])
        .last()["loss"]
            .clone()
    };
    let whole = loss(&new);
    assert!(names.len() > 3 && whole != loss(&old));
    // Over an older checkpoint, and as the first one.
    for (moved, first) in (0..names.len()).flat_map(|moved| [(moved, false), (moved, true)]) {
        let run = place.join(format!("moved-{moved}-{first}"));
        let complete = run.join(".tabtune-complete");
        fs::create_dir_all(&complete).unwrap();
        for entry in fs::read_dir(&old)
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|_| !first)
        {
            fs::copy(entry.path(), run.join(entry.file_name())).unwrap();
        }
        // The manifest is moved last.
        let ordered = names
            .iter()
            .filter(|name| *name != "checkpoint.json")
            .take(moved);
        let there: Vec<_> = ordered.collect();
        for name in &names {
            let folder = if there.contains(&name) {
                &run
            } else {
                &complete
            };
            fs::copy(new.join(name), folder.join(name)).unwrap();
        }
        assert_eq!(loss(&run), whole, "{moved} files moved");
        let args = [
            "train",
            "--resume",
            &text(&run),
            "--data",
            &data,
            "--device",
            "cpu",
            "--out",
            &text(&run),
        ];
        succeed(&args);
        assert!(
            !complete.exists() && loss(&run) == whole,
            "{moved} files moved"
        );
    }
}

/// Runs in a short form; `TABTUNE_FULL=1` makes three hundred attempts.
#[test]
fn a_reader_during_a_save_opens_one_checkpoint() {
    let place = folder("readers");
    let (config, data) = tiny(&place);
    let run = place.join("run");
    let out = text(&run);
    succeed(&train(&config, &data, &out));
    let resume = [
        "train",
        "--resume",
        &out,
        "--data",
        &data,
        "--device",
        "cpu",
        "--override",
        "steps",
        "--steps",
        "100000000",
    ];
    let saving = ["--save-every", "1", "--out", &out];
    let mut child = Command::new(binary())
        .args(resume)
        .args(saving)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let attempts = if tabtune_tests::in_full() { 300 } else { 10 };
    for attempt in 0..attempts {
        let to = text(&place.join(format!("exported-{attempt}")));
        succeed(&[
            "evaluate",
            "--model",
            &out,
            "--data",
            &data,
            "--device",
            "cpu",
            "--max-tokens",
            "34",
        ]);
        // An export compares each byte with the manifest, so all files must be of one step.
        succeed(&["export", "--checkpoint", &out, "--to", &to]);
        succeed(&["inspect", &out]);
    }
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Runs in a short form; `TABTUNE_FULL=1` makes sixty attempts.
#[test]
fn a_process_that_is_killed_while_it_saves_leaves_a_checkpoint() {
    let place = folder("killed");
    let (config, data) = tiny(&place);
    let run = place.join("run");
    let out = text(&run);
    succeed(&train(&config, &data, &out));
    let before: Contents = {
        let ours: Vec<_> = contents(&run).into_keys().collect();
        put_foreign(&run)
            .into_iter()
            .filter(|(path, _)| !ours.contains(path))
            .collect()
    };
    let kills = if tabtune_tests::in_full() { 60 } else { 8 };
    let mut wait = Duration::from_millis(37);
    for kill in 0..kills {
        let resume = [
            "train",
            "--resume",
            &out,
            "--data",
            &data,
            "--device",
            "cpu",
            "--override",
            "steps",
            "--steps",
            "100000",
            "--save-every",
            "1",
        ];
        let mut child = Command::new(binary())
            .args(resume)
            .args(["--out", &out])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(200) + wait);
        wait = Duration::from_micros(
            (wait.as_micros() as u64)
                .wrapping_mul(6_364_136_223)
                .wrapping_add(1_442_695)
                % 150_000,
        );
        child.kill().unwrap();
        child.wait().unwrap();
        let answer = super::run(&["inspect", &out]);
        assert!(answer.good, "kill {kill}: {:?}", answer.lines);
        let steps = [
            "train", "--resume", &out, "--data", &data, "--device", "cpu",
        ];
        // Resuming reads every byte of it; the overridden settings are in it.
        let (code, message) = refuse(&[&steps[..], &["--seed", "99"]].concat());
        assert!(
            code == "optim.resume-mismatch",
            "kill {kill}: {code} {message}"
        );
        unchanged(&before, &run);
    }
    // The next save removes the files that the killed processes left.
    succeed(&[
        "train",
        "--resume",
        &out,
        "--data",
        &data,
        "--device",
        "cpu",
        "--stop-at",
        "3",
        "--out",
        &out,
    ]);
    let left: Vec<_> = contents(&run)
        .into_keys()
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with(".tabtune")
        })
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
