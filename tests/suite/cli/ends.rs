//! Ends of a run: however it ends, the checkpoint is that of its last complete step, bit for bit that of an unbroken run, and the exit status
//! shows the reason.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use super::*;

/// Returns the options of a run too long to end by itself.
pub(super) fn long<'a>(config: &'a str, data: &'a str, out: &'a str) -> Vec<&'a str> {
    [
        "train",
        "--config",
        config,
        "--data",
        data,
        "--device",
        "cpu",
        "--steps",
        "100000",
        "--batch-size",
        "2",
        "--seq-len",
        "16",
    ]
    .into_iter()
    .chain(["--learning-rate", "0.01", "--seed", "7", "--out", out])
    .collect()
}

pub(super) fn step_of(folder: &str) -> u64 {
    let manifest: Value =
        serde_json::from_slice(&fs::read(Path::new(folder).join("checkpoint.json")).unwrap())
            .unwrap();
    manifest["progress"]["completed_steps"].as_u64().unwrap()
}

/// Checks that the checkpoint equals that of a run that was stopped at its step. Returns the step.
pub(super) fn is_that_of_an_unbroken_run(out: &str, args: &[&str], place: &Path) -> u64 {
    let step = step_of(out);
    let whole = text(&place.join("whole"));
    let _ = fs::remove_dir_all(&whole);
    let mut args = args.to_vec();
    *args.last_mut().unwrap() = &whole;
    succeed(&[&args[..], &["--stop-at", &step.to_string()]].concat());
    for name in ["model.safetensors", "optimizer.safetensors"] {
        let read = |folder: &str| fs::read(Path::new(folder).join(name)).unwrap();
        assert!(read(out) == read(&whole), "{name} of step {step}");
    }
    step
}

#[cfg(unix)]
#[test]
fn signals_end_a_run_after_its_step() {
    let place = folder("signals");
    let (config, data) = tiny(&place);
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let out = text(&place.join(signal));
        let args = long(&config, &data, &out);
        let mut child = Command::new(binary())
            .args(&args)
            .arg("--json")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        while lines.next().unwrap()["step"] != json!(3) {}
        let kill = ["-c", &format!("kill -{signal} {}", child.id())].map(str::to_string);
        assert!(Command::new("sh").args(kill).status().unwrap().success());
        let last = lines.last().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(status), "{signal}");
        let step = is_that_of_an_unbroken_run(&out, &args, &place);
        assert!(step >= 3);
        assert_eq!(
            last,
            json!({ "done": false, "step": step, "checkpoint": out, "signal": format!("SIG{signal}") })
        );
    }
}

/// The evaluation has some forty thousand batches. At the last step the run is saved already.
#[cfg(unix)]
#[test]
fn a_signal_interrupts_an_evaluation() {
    let place = folder("in-evaluation");
    let (config, data) = tiny(&place);
    let many = write(&place, "many.txt", POEM.repeat(10_000));
    for steps in ["100000", "3"] {
        let out = text(&place.join(steps));
        let mut args = long(&config, &data, &out);
        args[8] = steps;
        let more = ["--json", "--validation-data", &many, "--eval-every", "3"];
        let mut child = Command::new(binary())
            .args(&args)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        while lines.next().unwrap()["step"] != json!(3) {}
        std::thread::sleep(std::time::Duration::from_millis(300));
        let kill = ["-c", &format!("kill -TERM {}", child.id())].map(str::to_string);
        assert!(Command::new("sh").args(kill).status().unwrap().success());
        let last: Vec<Value> = lines.collect();
        assert_eq!(child.wait().unwrap().code(), Some(143), "{last:?}");
        assert_eq!(
            last,
            [json!({ "done": false, "step": 3, "checkpoint": out, "signal": "SIGTERM" })]
        );
        assert_eq!(step_of(&out), 3);
    }
}

/// The folder of a run, or its manifest, is removed after a save: the next save makes it again.
#[cfg(unix)]
#[test]
fn what_is_removed_from_the_folder_during_a_run_is_saved_again() {
    let place = folder("removed");
    let (config, data) = tiny(&place);
    type Remove = fn(&Path) -> std::io::Result<()>;
    let ways: [(&str, Remove); 3] = [
        ("all", |out| fs::remove_dir_all(out)),
        ("manifest", |out| {
            fs::remove_file(out.join("checkpoint.json"))
        }),
        ("lock", |out| fs::remove_file(out.join(".tabtune.lock"))),
    ];
    for (name, remove) in ways {
        let out = text(&place.join(name));
        let args = long(&config, &data, &out);
        let more = ["--json", "--save-every", "200"];
        let mut child = Command::new(binary())
            .args(&args)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        while lines.next().unwrap()["step"] != json!(201) {}
        assert_eq!(step_of(&out), 200);
        remove(Path::new(&out)).unwrap();
        while lines.next().unwrap()["step"] != json!(401) {}
        assert_eq!(step_of(&out), 400, "{name}");
        let kill = ["-c", &format!("kill -TERM {}", child.id())].map(str::to_string);
        assert!(Command::new("sh").args(kill).status().unwrap().success());
        let last = lines.last().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(143), "{name}: {last}");
        let mut told = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut told)
            .unwrap();
        assert_eq!(
            told.contains("was removed since it was claimed"),
            name != "manifest",
            "{told}"
        );
        assert!(
            is_that_of_an_unbroken_run(&out, &args, &place) >= 401,
            "{name}"
        );
        assert!(!Path::new(&out).join(".tabtune.lock").exists(), "{name}");
    }
}

/// A save that was removed is not called one when an error ends the run, and the files that the user has put in its place stay.
#[cfg(unix)]
#[test]
fn a_save_that_was_removed_is_not_called_saved() {
    let place = folder("removed-then-taken");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    let args = [
        &long(&config, &data, &out)[..],
        &["--json", "--save-every", "200"],
    ]
    .concat();
    let mut child = Command::new(binary())
        .args(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    while lines.next().unwrap()["step"] != json!(201) {}
    fs::remove_dir_all(&out).unwrap();
    let of_user = Path::new(&out).join("notes.txt");
    fs::create_dir(&out).unwrap();
    fs::write(&of_user, "of the user").unwrap();
    let last = lines.last().unwrap();
    let mut told = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), &last["error"]["code"]),
        (Some(1), &json!("output.occupied")),
        "{last}"
    );
    assert!(
        told.contains("no step of this run is saved") && !told.contains("is saved in"),
        "{told}"
    );
    assert_eq!(fs::read_to_string(&of_user).unwrap(), "of the user");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
}

#[test]
fn an_output_that_nobody_reads_costs_no_step() {
    let place = folder("closed");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    let args = long(&config, &data, &out);
    let mut child = Command::new(binary())
        .args(&args)
        .arg("--json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    // Closes the reader after one line, as `head -1` does.
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    let mut told = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let step = is_that_of_an_unbroken_run(&out, &args, &place);
    assert!(
        step >= 1
            && told.contains(&format!("step {step} is saved in {out}"))
            && told.contains("[cli.stdout]"),
        "{told}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_log_costs_no_step() {
    let place = folder("full");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    let args = long(&config, &data, &out);
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let status = Command::new(binary())
        .args(&args)
        .arg("--json")
        .stdout(full())
        .stderr(full())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
    assert_eq!(is_that_of_an_unbroken_run(&out, &args, &place), 1);
}

/// By plain gradient descent at a rate of 1e38 the weights are as large after step 1, so that an evaluation fails, and so does step 2.
#[test]
fn a_step_that_is_not_finite_leaves_the_one_before_and_a_failed_evaluation_is_a_warning() {
    let place = folder("wild");
    let (config, data) = tiny(&place);
    let wild = write(
        &place,
        "wild.json",
        r#"{"optimizer": {"type": "sgd"}, "max_grad_norm": 0.0, "learning_rate": 1e38, "steps": 9, "seq_len": 16, "validation_fraction": 0.3}"#,
    );
    let out = text(&place.join("run"));
    let args = [
        "train",
        "--config",
        &config,
        "--data",
        &data,
        "--device",
        "cpu",
        "--train-config",
        &wild,
        "--out",
        &out,
    ];
    let answer = run(&[&args[..], &["--eval-every", "1"]].concat());
    assert!(!answer.good);
    let warnings = answer.with("warning");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let message = warnings[0]["warning"]["message"].as_str().unwrap();
    assert!(
        warnings[0]["warning"]["code"] == "run.evaluation"
            && message.starts_with("step 1: an evaluation failed, and the run continues: "),
        "{message}"
    );
    assert_eq!(answer.last()["error"]["code"], json!("train.non-finite"));
    assert_eq!(is_that_of_an_unbroken_run(&out, &args, &place), 1);
}

/// By plain gradient descent at a rate of 1e4 the loss of step 3 is still finite, but its gradient is not.
#[test]
fn a_gradient_that_is_not_finite_leaves_the_step_before() {
    let place = folder("gradient");
    let (config, data) = tiny(&place);
    let wild = write(
        &place,
        "wild.json",
        r#"{"optimizer": {"type": "sgd"}, "max_grad_norm": 0.0, "learning_rate": 1e4, "steps": 9, "seq_len": 16}"#,
    );
    let out = text(&place.join("run"));
    let train = [
        "train",
        "--config",
        &config,
        "--data",
        &data,
        "--device",
        "cpu",
        "--train-config",
        &wild,
    ];
    // The reports of step 2 are unread, or its checkpoint is saved already.
    for more in [&[][..], &["--report-every", "4"], &["--save-every", "1"]] {
        let args = [&train[..], more, &["--out", &out]].concat();
        let output = output(&[&args[..], &["--json"]].concat());
        assert_eq!(output.status.code(), Some(1), "{more:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        let error: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(
            error["error"]["code"] == "train.non-finite" && message.starts_with("the gradient of "),
            "{more:?}: {message}"
        );
        assert_eq!(
            is_that_of_an_unbroken_run(&out, &args, &place),
            2,
            "{more:?}"
        );
        fs::remove_dir_all(&out).unwrap();
    }
}

/// With gradient release the parameters of step 3 have changed before its gradient is known.
#[test]
fn a_released_gradient_that_is_not_finite_says_what_is_saved() {
    let place = folder("released");
    let (config, data) = tiny(&place);
    let wild = write(
        &place,
        "wild.json",
        r#"{"optimizer": {"type": "sgd"}, "max_grad_norm": 0.0, "learning_rate": 1e4, "steps": 9, "seq_len": 16, "gradient_release": true}"#,
    );
    let out = text(&place.join("run"));
    let train = [
        "train",
        "--config",
        &config,
        "--data",
        &data,
        "--device",
        "cpu",
        "--train-config",
        &wild,
    ];
    for (more, kept) in [
        (&[][..], "no step of this run is saved"),
        (
            &["--save-every", "1"],
            &*format!("step 2 is saved in {out}"),
        ),
    ] {
        let args = [&train[..], more, &["--out", &out]].concat();
        let answer = run(&args);
        let error = &answer.last()["error"];
        let message = error["message"].as_str().unwrap();
        assert!(
            !answer.good
                && error["code"] == "train.non-finite"
                && message.starts_with("the grad_norm of step 3 is "),
            "{error}"
        );
        assert!(message.ends_with(&format!("{kept}.")), "{message}");
        let warned = answer
            .with("warning")
            .iter()
            .any(|line| line["warning"]["code"] == "run.unprotected");
        assert_eq!(warned, more.is_empty());
        if more.is_empty() {
            assert!(!Path::new(&out).exists());
        } else {
            assert_eq!(is_that_of_an_unbroken_run(&out, &args, &place), 2);
        }
    }
}

#[test]
fn evaluations_without_data_are_refused_before_the_first_step() {
    let place = folder("nothing-kept");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    for share in ["0", "0.005"] {
        let args = [
            &short(&config, &data)[..],
            &[
                "--eval-every",
                "1000",
                "--validation-fraction",
                share,
                "--out",
                &out,
            ],
        ]
        .concat();
        let answer = run(&args);
        assert_eq!(answer.lines.len(), 1, "{:?}", answer.lines);
        assert_eq!(
            answer.last()["error"]["code"],
            json!("data.no-validation"),
            "{:?}",
            answer.last()
        );
        assert!(!Path::new(&out).exists());
    }
}

#[test]
fn a_run_with_nothing_left_says_so_and_evaluates() {
    let place = folder("nothing-left");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    succeed(
        &[
            &short(&config, &data)[..],
            &["--validation-fraction", "0.3", "--out", &out],
        ]
        .concat(),
    );
    let resume = [
        "train",
        "--resume",
        &out,
        "--data",
        &data,
        "--device",
        "cpu",
        "--eval-every",
        "3",
    ];
    let answer = succeed(&resume);
    assert_eq!(
        answer.with("warning")[0]["warning"]["code"],
        json!("run.nothing-left")
    );
    assert_eq!(answer.with("eval_loss").len(), 1);
    // Fewer steps than the run has made: the checkpoint keeps those that it has made.
    let passed = text(&place.join("passed"));
    succeed(
        &[
            &resume[..],
            &["--steps", "2", "--override", "steps", "--out", &passed],
        ]
        .concat(),
    );
    let manifest: Value =
        serde_json::from_slice(&fs::read(Path::new(&passed).join("checkpoint.json")).unwrap())
            .unwrap();
    assert_eq!(
        [
            &manifest["train"]["steps"],
            &manifest["progress"]["completed_steps"]
        ],
        [&json!(4), &json!(4)]
    );
    // Settings and data that no step uses are not those of the run.
    let other = [
        "train",
        "--resume",
        &out,
        "--device",
        "cpu",
        "--out",
        &passed,
        "--override",
    ];
    let answer = succeed(
        &[
            &other[..],
            &[
                "all",
                "--data",
                &data,
                "--learning-rate",
                "5",
                "--batch-size",
                "8",
            ],
        ]
        .concat(),
    );
    assert_eq!(answer.with("warning").len(), 2, "{:?}", answer.lines);
    assert!(
        answer.with("warning")[0]["warning"]["message"]
            .as_str()
            .unwrap()
            .ends_with("its settings stay as they are.")
    );
    let kept: Value =
        serde_json::from_slice(&fs::read(Path::new(&passed).join("checkpoint.json")).unwrap())
            .unwrap();
    assert_eq!(kept["train"], manifest["train"]);
    let new = write(&place, "new.txt", POEM.repeat(5));
    let (code, message) = refuse(&[&other[..], &["data", "--data", &new]].concat());
    assert!(
        code == "config.invalid" && message.contains("no step left"),
        "{message}"
    );
}

#[test]
fn data_kept_for_an_evaluation_that_never_comes_are_reported() {
    let (config, data) = tiny(&folder("kept"));
    let answer = succeed(
        &[
            &short(&config, &data)[..],
            &["--validation-fraction", "0.3"],
        ]
        .concat(),
    );
    assert_eq!(
        answer.with("warning")[0]["warning"]["code"],
        json!("data.validation.unused")
    );
    assert!(
        succeed(
            &[
                &short(&config, &data)[..],
                &["--validation-fraction", "0.3", "--eval-every", "9"]
            ]
            .concat()
        )
        .with("warning")
        .is_empty()
    );
}

#[test]
fn a_log_has_lines_with_losses() {
    let place = folder("log");
    let (config, data) = tiny(&place);
    let output = output(&[
        "train",
        "--config",
        &config,
        "--data",
        &data,
        "--device",
        "cpu",
        "--steps",
        "40",
        "--seq-len",
        "16",
    ]);
    let log = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("loss ")).collect();
    assert_eq!(
        lines
            .iter()
            .map(|line| line.split('/').next().unwrap())
            .collect::<Vec<_>>(),
        ["4", "8", "12", "16", "20", "24", "28", "32", "36", "40"]
    );
    for line in lines {
        assert!(
            ["loss ", "rate ", "tokens/s", " left"]
                .iter()
                .all(|word| line.contains(word)),
            "{line}"
        );
    }
}

/// The loss in a card and a receipt belongs to these weights, or there is none; the best checkpoint is kept.
#[test]
fn an_evaluation_belongs_to_its_step() {
    let place = folder("evaluations");
    let (config, data) = tiny(&place);
    let (out, best) = (text(&place.join("run")), text(&place.join("best")));
    let kept = [
        "--validation-fraction",
        "0.3",
        "--eval-every",
        "2",
        "--keep-best",
        &best,
        "--out",
        &out,
    ];
    let answer = succeed(&[&short(&config, &data)[..], &kept, &["--stop-at", "2"]].concat());
    let loss = answer.with("eval_loss")[0]["eval_loss"].clone();
    let manifest = |folder: &str| -> Value {
        serde_json::from_slice(&fs::read(Path::new(folder).join("checkpoint.json")).unwrap())
            .unwrap()
    };
    let saved = manifest(&out);
    let digest = &saved["data_digest"];
    let expected = json!({ "loss": loss, "step": 2, "data_digest": digest });
    assert_eq!(
        [
            &saved["progress"]["evaluation"],
            &manifest(&best)["progress"]["evaluation"]
        ],
        [&expected, &expected]
    );
    let exported = |folder: &str, to: &str| -> Value {
        let to = place.join(to);
        succeed(&["export", "--checkpoint", folder, "--to", &text(&to)]);
        let receipt: Value =
            serde_json::from_slice(&fs::read(to.join("tabtune.receipt.json")).unwrap()).unwrap();
        let card = fs::read_to_string(to.join("README.md")).unwrap();
        assert_eq!(
            card.contains("evaluation after step 2, of these weights"),
            !receipt["training"]["losses"]["evaluation"].is_null(),
            "{card}"
        );
        receipt
    };
    assert_eq!(
        exported(&out, "first")["training"]["losses"]["evaluation"],
        expected
    );
    // The best of this run is not compared with the losses of another one.
    let other = text(&place.join("other"));
    let (code, message) =
        refuse(&[&short(&config, &data)[..], &kept[..6], &["--out", &other]].concat());
    assert!(
        code == "output.occupied"
            && message.contains(&best)
            && message.contains("another run, at step 2"),
        "{code}: {message}"
    );
    assert_eq!(manifest(&best)["progress"]["evaluation"], expected);
    assert!(!Path::new(&other).exists());
    // Two further steps without an evaluation.
    succeed(&[
        "train", "--resume", &out, "--data", &data, "--device", "cpu", "--out", &out,
    ]);
    assert_eq!(
        exported(&out, "second")["training"]["losses"]["evaluation"],
        Value::Null
    );
    // A receipt that states another step is refused.
    let receipt = place.join("first/tabtune.receipt.json");
    let forged = fs::read_to_string(&receipt)
        .unwrap()
        .replace("\"step\": 2", "\"step\": 1");
    fs::write(&receipt, forged).unwrap();
    let answer = run(&["verify", &text(&place.join("first"))]);
    let check = answer.last()["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "evaluation")
        .unwrap()
        .clone();
    assert!(!answer.good && check["result"] == "differs", "{check}");
}

#[test]
fn phases_that_do_not_fit_and_jumps_of_the_rate_are_reported() {
    let place = folder("rates");
    let (config, data) = tiny(&place);
    let told = |answer: &Answer| {
        answer
            .with("warning")
            .iter()
            .map(|line| line["warning"]["message"].as_str().unwrap().to_string())
            .collect::<Vec<_>>()
    };
    let train = |more: &[&str]| told(&succeed(&[&short(&config, &data)[..], more].concat()));
    assert_eq!(
        train(&["--warmup-steps", "1000"]),
        [
            "the schedule does not fit the run: a warmup of 1000 steps in a run of 4: its highest rate, at step 4, is 3.000e-5 of 1.000e-2."
        ]
    );
    let cut = write(
        &place,
        "cut.json",
        r#"{"schedule": {"type": "wsd", "decay_start_step": 2, "decay_steps": 10, "decay_type": "linear"}}"#,
    );
    assert_eq!(
        train(&["--train-config", &cut]),
        [
            "the schedule does not fit the run: a decay over 10 steps that starts after step 2 in a run of 4: it is cut off, and the run ends at step 4 with a rate of 9.100e-3."
        ]
    );
    let late = write(
        &place,
        "late.json",
        r#"{"schedule": {"type": "cosine", "total_steps": 8}}"#,
    );
    let message = train(&["--train-config", &late]);
    assert!(
        message[0]
            .contains("a cosine over 8 steps in a run of 4: the run ends at step 4 with a rate of"),
        "{message:?}"
    );
    let early = write(
        &place,
        "early.json",
        r#"{"schedule": {"type": "linear", "total_steps": 2}}"#,
    );
    assert_eq!(
        train(&["--train-config", &early]),
        [
            "the schedule does not fit the run: a line over 2 steps in a run of 4: the last 2 steps have a rate of 0."
        ]
    );
    assert!(train(&["--schedule", "cosine"]).is_empty());
    // The rate is 0 in all steps.
    let nothing = [
        &short(&config, &data)[..],
        &["--warmup-steps", "3", "--stop-at", "1"],
    ]
    .concat();
    succeed(&nothing);
    let one = [
        "train",
        "--config",
        &config,
        "--data",
        &data,
        "--device",
        "cpu",
        "--steps",
        "1",
        "--seq-len",
        "16",
        "--warmup-steps",
        "3",
    ];
    let (code, message) = refuse(&one);
    assert!(
        code == "config.invalid"
            && message.contains("must be a rate above 0 in one of the steps 1 to 1"),
        "{message}"
    );
    // A constant run that continues with a cosine schedule.
    let out = text(&place.join("run"));
    succeed(
        &[
            &short(&config, &data)[..],
            &["--stop-at", "3", "--out", &out],
        ]
        .concat(),
    );
    let resume = [
        "train", "--resume", &out, "--data", &data, "--device", "cpu",
    ];
    let message = told(&succeed(
        &[
            &resume[..],
            &["--schedule", "cosine", "--override", "schedule"],
        ]
        .concat(),
    ));
    assert_eq!(message.len(), 1, "{message:?}");
    assert!(
        message[0].starts_with("the learning rate jumps: step 4 has a rate of 1.464e-3, and step 3 had 1.000e-2: schedule."),
        "{message:?}"
    );
    assert!(
        message[0].contains("schedule.type: \"constant\", now \"cosine\""),
        "{message:?}"
    );
    assert!(told(&succeed(&resume)).is_empty());
    // The factor of a group counts as the rate itself does, even if that of another group is larger.
    let groups = |name: &str, scale: f64| {
        let text = format!(
            r#"{{"groups": [{{"pattern": "*norm*", "learning_rate_scale": 8}}, {{"pattern": "*", "learning_rate_scale": {scale}}}]}}"#
        );
        write(&place, name, &text)
    };
    let (small, large) = (groups("small.json", 1.0), groups("large.json", 4.0));
    let grouped = text(&place.join("grouped"));
    succeed(
        &[
            &short(&config, &data)[..],
            &[
                "--train-config",
                &small,
                "--stop-at",
                "3",
                "--out",
                &grouped,
            ],
        ]
        .concat(),
    );
    let resume = [
        "train", "--resume", &grouped, "--data", &data, "--device", "cpu",
    ];
    assert_eq!(
        told(&succeed(
            &[
                &resume[..],
                &["--train-config", &large, "--override", "groups"]
            ]
            .concat()
        )),
        [
            "the learning rate jumps: step 4 has a rate of 4.000e-2 in the group \"*\", and step 3 had 1.000e-2: groups[1].learning_rate_scale: 1.0, now 4.0."
        ]
    );
    assert!(told(&succeed(&resume)).is_empty());
}

#[test]
fn an_evaluation_that_is_no_number_fails() {
    let place = folder("no-number");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    succeed(&[&short(&config, &data)[..], &["--out", &out]].concat());
    let weights = Path::new(&out).join("model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&weights, bytes).unwrap();
    // The folder is a model's alone now, with no sums that the value would contradict.
    fs::remove_file(Path::new(&out).join("checkpoint.json")).unwrap();
    let (code, message) = refuse(&[
        "evaluate", "--model", &out, "--data", &data, "--device", "cpu",
    ]);
    assert!(
        code == "train.non-finite" && message.contains("is NaN"),
        "{code} {message}"
    );
}
