//! Every kind of output location for each command that writes: the output is there and complete, or the command is refused before its work
//! and nothing has changed.

mod made;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use self::made::Kind::{self, *};
use self::made::{Inputs, Place, Use, inputs, make};
use super::mounts::Mount;
use super::places::contents;
use super::*;

/// Outcome of a command in a location.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Written,
    Refused(&'static str),
}
use End::*;

const OCCUPIED: End = Refused("output.occupied");
const NOT_WRITABLE: End = Refused("sink.write");
const NOTHING_TO_RESUME: End = Refused("checkpoint.corrupt");

/// Outcomes per kind of location: a folder for checkpoints, the folder of the resumed checkpoint, a folder for one output, a file.
const TABLE: [(Kind, [End; 4]); 19] = [
    (New, [Written, NOTHING_TO_RESUME, Written, Written]),
    (Empty, [Written, NOTHING_TO_RESUME, Written, OCCUPIED]),
    (Checkpoint, [Written, Written, OCCUPIED, OCCUPIED]),
    (Export, [OCCUPIED, OCCUPIED, OCCUPIED, OCCUPIED]),
    (CheckpointAndForeign, [Written, Written, OCCUPIED, OCCUPIED]),
    (ExportAndForeign, [OCCUPIED, OCCUPIED, OCCUPIED, OCCUPIED]),
    (ForeignManifest, [OCCUPIED, OCCUPIED, OCCUPIED, OCCUPIED]),
    (File, [OCCUPIED, OCCUPIED, OCCUPIED, OCCUPIED]),
    (Link, [Written, Written, Written, OCCUPIED]),
    (DanglingLink, [OCCUPIED, OCCUPIED, OCCUPIED, OCCUPIED]),
    (MountPoint, [Written, Written, Written, Written]),
    (InClosedParent, [Written, Written, Written, OCCUPIED]),
    (
        NewInClosedParent,
        [NOT_WRITABLE, NOT_WRITABLE, NOT_WRITABLE, NOT_WRITABLE],
    ),
    (
        ReadOnly,
        [NOT_WRITABLE, NOT_WRITABLE, NOT_WRITABLE, NOT_WRITABLE],
    ),
    (
        Full,
        [NOT_WRITABLE, NOT_WRITABLE, NOT_WRITABLE, NOT_WRITABLE],
    ),
    (
        NearlyFull,
        [NOT_WRITABLE, NOT_WRITABLE, NOT_WRITABLE, NOT_WRITABLE],
    ),
    (Small, [NOT_WRITABLE, NOT_WRITABLE, Written, Written]),
    (Spaces, [Written, Written, Written, Written]),
    (LongName, [Written, Written, Written, Written]),
];

fn is_ours(name: &std::ffi::OsStr) -> bool {
    Path::new(&inputs().half).join(name).exists()
}

/// Starts the command as its location requires. Returns its lines and its success.
fn start(place: &Place, args: &[&str]) -> Answer {
    let binary = text(binary());
    let all: Vec<&str> = place
        .start
        .iter()
        .map(String::as_str)
        .chain([&*binary])
        .chain(args.iter().copied())
        .chain(["--json"])
        .collect();
    let output = Command::new(all[0]).args(&all[1..]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !told.contains("panicked") && matches!(output.status.code(), Some(0 | 1)),
        "{args:?}: {:?} {told}",
        output.status
    );
    let lines = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    Answer {
        lines,
        good: output.status.success(),
    }
}

/// Runs the command in the location and returns the outcome.
fn end_of(place: &Place, usage: Use, command: &[&str], told: &str) -> End {
    let out = text(&place.out);
    let args: Vec<&str> = command
        .iter()
        .map(|word| if *word == "OUT" { &out } else { *word })
        .collect();
    let answer = start(place, &args);
    let now = contents(&place.around);
    if !answer.good {
        assert!(
            answer.with("step").is_empty() && answer.with("error").len() == 1,
            "{told}: {:?}",
            answer.lines
        );
        assert!(
            now == place.before,
            "{told}: {:?} before, now {:?}",
            place.before.keys(),
            now.keys()
        );
        let code = answer.last()["error"]["code"].as_str().unwrap().to_string();
        return Refused(code.leak());
    }
    let replaces = matches!(usage, Use::Checkpoints | Use::InPlace);
    let replaced = |path: &Path| {
        replaces && path.parent() == Some(&place.home) && is_ours(path.file_name().unwrap())
    };
    for (path, bytes) in place.before.iter().filter(|(path, _)| !replaced(path)) {
        assert!(
            now.get(path) == Some(bytes),
            "{told}: {} has changed",
            path.display()
        );
    }
    let receipt = PathBuf::from(format!("{}.receipt.json", place.home.display()));
    for path in now.keys().filter(|path| !place.before.contains_key(*path)) {
        let named = path.starts_with(&place.home) || (usage == Use::OneFile && *path == receipt);
        assert!(
            named && !path.file_name().unwrap().to_string_lossy().starts_with('.'),
            "{told}: {} is left",
            path.display()
        );
    }
    let opens: &[&[&str]] = match usage {
        Use::Checkpoints | Use::InPlace => &[&[
            "evaluate",
            "--model",
            &out,
            "--data",
            &inputs().data,
            "--device",
            "cpu",
        ]],
        Use::Folder => &[&["verify", &out], &["inspect", "--read", &out]],
        Use::OneFile => &[
            &["verify", &format!("{out}.receipt.json")],
            &["inspect", "--read", &out],
        ],
    };
    for open in opens {
        let answer = start(place, open);
        assert!(answer.good, "{told}: {open:?}: {:?}", answer.lines);
    }
    if replaces {
        assert_eq!(answer.last()["step"], json!(4), "{told}");
    }
    Written
}

/// Runs `command` in each location of the table; `OUT` is replaced by the location.
fn each_place(name: &str, usage: Use, command: &[&str]) {
    let root = folder(name);
    let wrong: Vec<String> = TABLE
        .iter()
        .filter_map(|(kind, ends)| {
            let around = root.join(format!("{kind:?}"));
            fs::create_dir(&around).unwrap();
            let (place, expected) = (make(*kind, usage, &around)?, ends[usage as usize]);
            let found = end_of(&place, usage, command, &format!("{name}: {kind:?}"));
            if around.join("parent").exists() {
                fs::set_permissions(around.join("parent"), Permissions::from_mode(0o755)).unwrap();
            }
            (found != expected).then(|| format!("{kind:?}: expected {expected:?}, found {found:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
}

#[test]
fn train_takes_or_refuses_each_place() {
    let Inputs { config, data, .. } = inputs();
    each_place(
        "table-train",
        Use::Checkpoints,
        &[&short(config, data)[..], &["--out", "OUT"]].concat(),
    );
}

#[test]
fn a_resume_takes_or_refuses_each_place() {
    let resume = [
        "train",
        "--resume",
        &inputs().half,
        "--data",
        &inputs().data,
        "--device",
        "cpu",
        "--save-every",
        "1",
        "--out",
        "OUT",
    ];
    each_place("table-resume", Use::Checkpoints, &resume);
}

#[test]
fn a_resume_in_place_takes_or_refuses_each_place() {
    let resume = [
        "train",
        "--resume",
        "OUT",
        "--data",
        &inputs().data,
        "--device",
        "cpu",
        "--save-every",
        "1",
        "--out",
        "OUT",
    ];
    each_place("table-in-place", Use::InPlace, &resume);
}

#[test]
fn an_export_takes_or_refuses_each_place() {
    let export = ["export", "--checkpoint", &inputs().half, "--to", "OUT"];
    each_place("table-export", Use::Folder, &export);
    each_place(
        "table-export-file",
        Use::OneFile,
        &[&export[..], &["--format", "gguf"]].concat(),
    );
}

#[test]
fn a_conversion_takes_or_refuses_each_place() {
    let convert = ["convert", "--model", &inputs().half, "--to", "OUT"];
    each_place("table-convert", Use::Folder, &convert);
    each_place(
        "table-convert-file",
        Use::OneFile,
        &[&convert[..], &["--format", "gguf"]].concat(),
    );
}

#[test]
fn a_merge_takes_or_refuses_each_place() {
    let merge = [
        "adapter",
        "merge",
        "--model",
        &inputs().half,
        "--adapter",
        &inputs().adapter,
        "--to",
        "OUT",
    ];
    each_place("table-merge", Use::Folder, &merge);
    each_place(
        "table-merge-file",
        Use::OneFile,
        &[&merge[..], &["--format", "gguf"]].concat(),
    );
}

#[test]
fn an_extraction_takes_or_refuses_each_place() {
    let Inputs { half, tuned, .. } = inputs();
    each_place(
        "table-extract",
        Use::Folder,
        &[
            "adapter", "extract", "--model", tuned, "--base", half, "--rank", "2", "--to", "OUT",
        ],
    );
}

/// For any amount of room, the run is complete or has not begun.
#[test]
fn no_step_is_trained_without_room_for_its_checkpoint() {
    let (
        root,
        Inputs {
            config, data, half, ..
        },
    ) = (folder("room"), inputs());
    let disk = root.join("disk");
    fs::create_dir(&disk).unwrap();
    let Some(mount) = Mount::new(&disk, 1 << 18, "the room of a checkpoint") else {
        return;
    };
    let out = text(&disk.join("run"));
    let train = [&short(config, data)[..], &["--out", &out, "--json"]].concat();
    let resume = [
        "train", "--resume", half, "--data", data, "--device", "cpu", "--out", &out, "--json",
    ];
    for args in [&train[..], &resume] {
        let mut done = [0, 0];
        for free in (1..=44).map(|pages| pages << 12) {
            let seen = mount.seen(&disk);
            let _ = (
                fs::remove_file(seen.join("filler")),
                fs::remove_dir_all(seen.join("run")),
            );
            mount.fill(&disk, free);
            let output = Command::new(&mount.inside[0])
                .args(&mount.inside[1..])
                .arg(binary())
                .args(args)
                .output()
                .unwrap();
            let lines = String::from_utf8(output.stdout).unwrap();
            done[usize::from(output.status.success())] += 1;
            assert!(
                output.status.success() || !lines.contains("grad_norm"),
                "{free} bytes are free: {lines}"
            );
            assert_eq!(
                seen.join("run").exists(),
                output.status.success(),
                "{free} bytes are free"
            );
        }
        assert!(done.iter().all(|count| *count > 5), "{done:?}");
    }
}
