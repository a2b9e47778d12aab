//! Adapters on packed bases, compared with float64 results of another program: `golden/lora-oracle`.

use super::*;

/// Returns the output lines of `check` by the ids of the cases.
fn checked(options: &[&str]) -> Vec<(String, Value)> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/lora-oracle");
    let (cases, assets) = (text(&place.join("cases.json")), text(&place));
    let answer = succeed(&[&["check", &cases, "--assets", &assets], options].concat());
    let [lines @ .., last] = answer.lines.as_slice() else {
        panic!("no lines")
    };
    assert_eq!(
        (&last["failed"], &last["skipped"]),
        (&json!(0), &json!(0)),
        "{:?}",
        answer.lines
    );
    lines
        .iter()
        .map(|line| (line["id"].as_str().unwrap().to_string(), line.clone()))
        .collect()
}

/// Instructions of others name `tabtune check`.
#[test]
fn check_is_passed_on_to_the_program_of_developers() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/lora-oracle");
    let args = [
        &text(&place.join("cases.json")),
        "--assets",
        &text(&place),
        "--device",
        "cpu",
        "--only",
        "lora.ce.tiny-mix",
        "--json",
    ];
    let [ours, theirs] = [binary().to_path_buf(), developers_binary()].map(|program| {
        let output = Command::new(program)
            .arg("check")
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    });
    // The seconds, at the end of a line, differ.
    let figures = |text: &str| {
        text.lines()
            .next()
            .and_then(|line| line.split("\"secs\"").next())
            .unwrap()
            .to_string()
    };
    assert_eq!(figures(&ours), figures(&theirs));
    let failed = Command::new(binary())
        .args(["check", "/absent.json", "--assets", "/"])
        .output()
        .unwrap();
    assert_eq!(failed.status.code(), Some(1));
}

#[test]
fn adapters_of_packed_bases_compute_what_float64_does() {
    let stored = checked(&["--device", "cpu"]);
    assert_eq!(stored.len(), 5);
    // The device holds the types of the file, without a widened copy.
    let types = |id: &str| {
        stored
            .iter()
            .find(|(found, _)| found == id)
            .map(|(_, line)| line["storage"].clone())
            .unwrap()
    };
    assert_eq!(types("lora.train.tiny-k"), json!({ "Q4_K": 10, "Q6_K": 5 }));
    assert_eq!(
        types("lora.ce.tiny-mix"),
        json!({ "F16": 1, "F32": 1, "Q4_0": 2, "Q4_1": 2, "Q5_0": 2, "Q5_1": 2, "Q5_K": 3, "Q8_0": 2 })
    );
    // The same weights in f32 give the same bits.
    let wide = checked(&[
        "--device",
        "cpu",
        "--base-storage",
        "f32",
        "--only",
        "lora.ce",
        "lora.grad",
    ]);
    assert_eq!(wide.len(), 3);
    for (id, line) in wide {
        let packed = stored
            .iter()
            .find(|(found, _)| *found == id)
            .map(|(_, line)| line)
            .unwrap();
        assert!(
            packed["digest"].is_string() && packed["digest"] == line["digest"],
            "{id}: {packed} {line}"
        );
    }
}

#[test]
fn adapters_of_packed_bases_compute_the_same_on_the_gpu() {
    if tabtune_tests::gpu().is_none() {
        return;
    }
    let (cases, count) = if tabtune_tests::in_full() {
        (&["lora.ce", "lora.grad"][..], 3)
    } else {
        (&["lora.grad.tiny-k"][..], 1)
    };
    assert_eq!(
        checked(&[&["--device", "wgpu", "--only"], cases].concat()).len(),
        count
    );
}
