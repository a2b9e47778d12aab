//! `bench gpu`: every kernel of its list, steps of a model, and PyTorch's steps for comparison.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tabtune::catalogue::catalogue;

use super::{Answer, binary, folder, text, write};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/models/qwen2");
const MEASURED: [&str; 13] = [
    "multiply-adds",
    "copy",
    "linear forward",
    "linear dX",
    "linear dW",
    "attention forward, 512",
    "attention backward, 512",
    "attention forward, 2048",
    "attention backward, 2048",
    "RMS norm forward",
    "RMS norm backward",
    "AdamW f32",
    "AdamW bf16",
];
const LAYERS: [&str; 5] = ["q, o", "k, v", "gate, up", "down", "head"];

/// Makes a program of this name that prints `lines` for every request.
fn program(place: &Path, name: &str, lines: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = write(
        place,
        name,
        format!("#!/bin/sh\n[ \"$1\" = -c ] && cat > /dev/null\ncat <<'END'\n{lines}\nEND\n"),
    );
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Runs `bench gpu` with these options, with the programs in `place`, such as `nvidia-smi`, first in PATH.
fn bench(place: &Path, options: &[&str]) -> Answer {
    let args = [
        "bench",
        "gpu",
        "--quick",
        "--json",
        "--model",
        MODEL,
        "--seq-len",
        "8",
    ];
    let path = format!("{}:{}", text(place), std::env::var("PATH").unwrap());
    let output = Command::new(binary())
        .args(args)
        .args(options)
        .env("PATH", path)
        .output()
        .unwrap();
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

fn number(value: &Value, key: &str) -> f64 {
    value[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} of {value}"))
}

#[test]
fn bench_gpu_measures_its_list_and_steps_compared_with_pytorch() {
    if tabtune_tests::gpu().is_none() {
        return;
    }
    let place = folder("gpu");
    program(&place, "nvidia-smi", "Some GPU, 1.2, 1980 MHz");
    let run = |precision: &str, batch_size: usize| {
        json!({ "precision": precision, "batch_size": batch_size, "ms": [9.0, 9.0, 1.0, 2.0, 3.0], "losses": [1.0, 1.0, 1.0, 1.0, 1.0] })
            .to_string()
    };
    let runs = [run("f32", 1), run("bf16", 1), run("f32", 8), run("bf16", 8)].join("\n");
    let python = program(
        &place,
        "python",
        &format!("{{\"torch\":\"2.9\",\"device\":\"a GPU\"}}\n{runs}"),
    );
    let answer = bench(&place, &["--torch", &python]);
    assert!(answer.good, "{:?}", answer.last());

    let gpu = &answer.with("gpu")[0]["gpu"];
    assert_eq!(gpu["clocks"], json!("Some GPU, 1.2, 1980 MHz"));
    let (peak, copy) = (
        number(gpu, "peak_gflop_per_sec"),
        number(gpu, "copy_gb_per_sec"),
    );
    assert!(
        peak > 0.0 && copy > 0.0 && gpu["adapter"] != json!("") && gpu["driver"] != json!(""),
        "{gpu}"
    );

    let rows: Vec<&Value> = answer
        .with("kernel")
        .iter()
        .map(|line| &line["kernel"])
        .collect();
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    let products = LAYERS
        .iter()
        .flat_map(|layer| ["forward", "dX", "dW"].map(|product| format!("{layer} {product}")));
    assert_eq!(
        names,
        MEASURED
            .map(String::from)
            .into_iter()
            .chain(products)
            .collect::<Vec<_>>()
    );
    let known: BTreeSet<&str> = catalogue().map(|kernel| kernel.name).collect();
    for row in &rows {
        let stems: Vec<&str> = row["kernels"]
            .as_array()
            .unwrap()
            .iter()
            .map(|stem| stem.as_str().unwrap())
            .collect();
        assert!(
            !stems.is_empty() && stems.iter().all(|stem| known.contains(stem)),
            "{row}"
        );
        assert!(
            number(row, "ms") > 0.0
                && number(row, "gb_per_sec") > 0.0
                && number(row, "fraction") > 0.0,
            "{row}"
        );
        if row["of"] == json!("peak") {
            assert!(
                (number(row, "gflop_per_sec") / peak - number(row, "fraction")).abs() < 1e-9,
                "{row}"
            );
        }
    }
    let stems = |row: usize| rows[row]["kernels"].to_string();
    assert!(
        stems(0).contains("\"fma\"")
            && stems(1).contains("\"u32_copy\"")
            && stems(2).contains("linear_block"),
        "{rows:?}"
    );
    assert!(
        stems(6).contains("attention_backward_query")
            && stems(6).contains("attention_backward_key_value"),
        "{}",
        stems(6)
    );
    assert!(
        stems(11).contains("adamw_wide") && stems(12).contains("adamw_bf16"),
        "{rows:?}"
    );
    assert_eq!(
        (number(rows[0], "fraction"), number(rows[1], "fraction")),
        (1.0, 1.0)
    );
    assert!(
        number(
            &answer.with("linear_of_step")[0]["linear_of_step"],
            "fraction"
        ) > 0.0
    );

    let steps: Vec<&Value> = answer
        .with("step")
        .iter()
        .map(|line| &line["step"])
        .collect();
    let of = |library: &str| {
        steps
            .iter()
            .filter(|step| step["library"] == json!(library))
            .copied()
            .collect::<Vec<_>>()
    };
    let (ours, theirs) = (of("tabtune"), of("torch"));
    assert_eq!((ours.len(), theirs.len()), (4, 4));
    assert_eq!(answer.with("torch")[0]["torch"]["torch"], json!("2.9"));
    for (own, other) in ours.iter().zip(&theirs) {
        assert_eq!(
            (&own["precision"], &own["batch_size"], &own["seq_len"]),
            (&other["precision"], &other["batch_size"], &json!(8))
        );
        let losses: Vec<f64> = own["losses"]
            .as_array()
            .unwrap()
            .iter()
            .map(|loss| loss.as_f64().unwrap())
            .collect();
        assert!(
            losses.len() == 5 && losses.iter().all(|loss| loss.is_finite()),
            "{own}"
        );
        assert!(
            number(own, "ms_10") <= number(own, "ms") && number(own, "ms") <= number(own, "ms_90"),
            "{own}"
        );
        assert!(
            own["profile"]["kernels"]
                .as_array()
                .unwrap()
                .iter()
                .any(|row| row["kernel"] == json!("adamw_wide")
                    || row["kernel"] == json!("adamw_bf16")),
            "{own}"
        );
        // Two warm-up steps are left out.
        assert_eq!(
            [
                number(other, "ms"),
                number(other, "ms_10"),
                number(other, "ms_90")
            ],
            [2.0, 1.0, 3.0]
        );
        assert!(
            (number(other, "ratio") - number(own, "ms") / 2.0).abs() < 1e-9,
            "{own} {other}"
        );
        let worst = losses
            .iter()
            .map(|loss| (loss - 1.0).abs())
            .fold(0.0, f64::max);
        assert!(
            (number(other, "loss_difference") - worst).abs() < 1e-9,
            "{own} {other}"
        );
    }
}

#[test]
fn bench_gpu_continues_without_pytorch_and_says_so() {
    let place = folder("gpu-refused");
    let without = program(
        &place,
        "python",
        "{\"missing\":\"No module named 'torch'\"}",
    );
    let answer = bench(&place, &["--torch", &without, "--device", "cpu"]);
    let refused = &answer.with("refused")[0]["refused"];
    assert_eq!(refused["code"], json!("bench.torch"));
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("No module named 'torch'"),
        "{refused}"
    );
    // The CPU, where kernels run as their twins, is refused as well.
    assert_eq!(
        (answer.good, &answer.last()["error"]["code"]),
        (false, &json!("device.no-adapter"))
    );
    let absent = bench(&place, &["--torch", "/no/such/python", "--device", "cpu"]);
    assert_eq!(
        absent.with("refused")[0]["refused"]["code"],
        json!("bench.torch")
    );
}
