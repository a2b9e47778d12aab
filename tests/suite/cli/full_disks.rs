//! Runs with a full disk: a full disk for the log costs no step, a full disk for the checkpoint costs no earlier checkpoint.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::ends::{is_that_of_an_unbroken_run, long, step_of};
use super::*;

/// The disk is full after some dozen lines, so that a line is cut off in its middle.
#[test]
fn a_log_that_fills_its_disk_costs_no_step() {
    let place = folder("log-disk");
    let (config, data) = tiny(&place);
    let (out, disk) = (text(&place.join("run")), place.join("disk"));
    fs::create_dir(&disk).unwrap();
    let Some(mount) = super::mounts::Mount::new(&disk, 1 << 14, "a log that fills its disk") else {
        return;
    };
    let log = || {
        File::options()
            .append(true)
            .create(true)
            .open(mount.seen(&disk).join("log"))
            .unwrap()
    };
    let args = long(&config, &data, &out);
    let status = Command::new(binary())
        .args(&args)
        .arg("--json")
        .stdout(log())
        .stderr(log())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
    let written = fs::read_to_string(mount.seen(&disk).join("log")).unwrap();
    assert_eq!(written.len(), 1 << 14);
    // Each complete line reports a step, and the step whose line found no room, or not for all of it, is saved.
    let step = is_that_of_an_unbroken_run(&out, &args, &place);
    assert!(
        step > 50 && written.matches('\n').count() as u64 + 1 >= step,
        "{step}: {written}"
    );
}

/// The limit of a file's size is a signal, which would end the process.
#[test]
fn a_log_that_reaches_its_limit_costs_no_step() {
    let place = folder("log-limit");
    let (config, data) = tiny(&place);
    let (out, log) = (text(&place.join("run")), place.join("log"));
    let args = long(&config, &data, &out);
    // 128 KiB: more than a checkpoint's largest file, less than the lines of the run.
    let script = "ulimit -f 256; log=\"$1\"; shift; exec \"$0\" \"$@\" --json > \"$log\"";
    let status = Command::new("sh")
        .args(["-c", script])
        .arg(binary())
        .arg(&log)
        .args(&args)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
    let written = fs::read_to_string(&log).unwrap();
    let step = is_that_of_an_unbroken_run(&out, &args, &place);
    assert!(
        step > 50 && written.matches('\n').count() as u64 + 1 >= step,
        "{step}"
    );
}

/// Progress is for people, and a run continues without it.
#[test]
fn a_full_disk_for_the_progress_ends_no_run() {
    let place = folder("progress");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    let full = File::options().write(true).open("/dev/full").unwrap();
    let args = [&short(&config, &data)[..], &["--out", &out]].concat();
    let status = Command::new(binary())
        .args(&args)
        .stdout(Stdio::null())
        .stderr(full)
        .status()
        .unwrap();
    assert_eq!((status.code(), step_of(&out)), (Some(0), 4));
}

/// The earlier checkpoint stays whole, and the run ends at the first save for which there is no room.
#[test]
fn a_disk_that_is_full_at_a_save_keeps_the_checkpoint_before() {
    let place = folder("save-disk");
    let (config, data) = tiny(&place);
    let disk = place.join("disk");
    fs::create_dir(&disk).unwrap();
    let Some(mount) = super::mounts::Mount::new(&disk, 1 << 19, "a disk that fills during a run")
    else {
        return;
    };
    let out = text(&disk.join("run"));
    let args = long(&config, &data, &out);
    let mut child = Command::new(&mount.inside[0])
        .args(&mount.inside[1..])
        .arg(binary())
        .args(&args)
        .args(["--save-every", "10", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    while lines.next().unwrap()["step"] != json!(15) {}
    mount.fill(&disk, 0);
    let last = lines.last().unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), &last["error"]["code"]),
        (Some(1), &json!("sink.write")),
        "{last}"
    );
    let mut names: Vec<_> = fs::read_dir(mount.seen(Path::new(&out)))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.retain(|name| name.to_string_lossy().starts_with('.'));
    assert!(names.is_empty(), "{names:?} are left");
    let kept = place.join("kept");
    fs::create_dir(&kept).unwrap();
    for entry in fs::read_dir(mount.seen(Path::new(&out)))
        .unwrap()
        .map(|entry| entry.unwrap())
    {
        fs::copy(entry.path(), kept.join(entry.file_name())).unwrap();
    }
    let step = is_that_of_an_unbroken_run(&text(&kept), &args, &place);
    assert!(step >= 10 && step.is_multiple_of(10), "{step}");
}

/// The best checkpoint goes to another disk, which has no room for it: this is refused before the first step.
#[test]
fn a_disk_without_room_for_the_best_is_refused_at_the_start() {
    let place = folder("best-disk");
    let (config, data) = tiny(&place);
    let disk = place.join("disk");
    fs::create_dir(&disk).unwrap();
    let Some(mount) = super::mounts::Mount::new(&disk, 1 << 15, "a best that has no room") else {
        return;
    };
    let (out, best) = (text(&place.join("run")), text(&disk.join("best")));
    let args = [
        &short(&config, &data)[..],
        &[
            "--out",
            &out,
            "--keep-best",
            &best,
            "--eval-every",
            "1",
            "--json",
        ],
    ]
    .concat();
    let more = ["--validation-fraction", "0.2"];
    let ended = Command::new(&mount.inside[0])
        .args(&mount.inside[1..])
        .arg(binary())
        .args(args)
        .args(more)
        .output()
        .unwrap();
    let printed = String::from_utf8(ended.stdout).unwrap();
    let [only] = &printed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .collect::<Vec<_>>()[..]
    else {
        panic!("{printed}")
    };
    assert_eq!(
        (ended.status.code(), &only["error"]["code"]),
        (Some(1), &json!("sink.write")),
        "{only}"
    );
    assert!(
        only["error"]["message"]
            .as_str()
            .unwrap()
            .contains("best: expected room for"),
        "{only}"
    );
    assert!(
        !Path::new(&out).exists(),
        "nothing is left of the run's own folder"
    );
}

/// The disk has room for the bytes of a checkpoint, but not for the names of its files.
#[test]
fn a_disk_without_names_for_the_checkpoint_is_refused_at_the_start() {
    let place = folder("few-names");
    let (config, data) = tiny(&place);
    let disk = place.join("disk");
    fs::create_dir(&disk).unwrap();
    let Some(mount) = super::mounts::Mount::with(&disk, "nr_inodes=6", "a disk without names")
    else {
        return;
    };
    let out = text(&disk.join("run"));
    let args = [&short(&config, &data)[..], &["--out", &out, "--json"]].concat();
    let ended = Command::new(&mount.inside[0])
        .args(&mount.inside[1..])
        .arg(binary())
        .args(args)
        .output()
        .unwrap();
    let printed = String::from_utf8(ended.stdout).unwrap();
    let [only] = &printed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .collect::<Vec<_>>()[..]
    else {
        panic!("{printed}")
    };
    assert_eq!(
        (ended.status.code(), &only["error"]["code"]),
        (Some(1), &json!("sink.write")),
        "{only}"
    );
    assert!(
        only["error"]["message"]
            .as_str()
            .unwrap()
            .contains("files of the output cannot be created"),
        "{only}"
    );
    assert!(!mount.seen(Path::new(&out)).exists());
}
