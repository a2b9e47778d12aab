//! Runs that continue from exported state (`train --state`).

use super::*;

fn losses(answer: &Answer) -> Vec<Value> {
    let lines = answer.with("loss");
    lines.into_iter().map(|line| line["loss"].clone()).collect()
}

/// Every form of an export with its optimizer continues with the bits of the unbroken run; what does not fit is refused by name.
#[test]
fn run_continues_from_its_exports() {
    let place = folder("states");
    let at = |name: &str| text(&place.join(name));
    let (config, data) = tiny(&place);
    let constant = ["--schedule", "constant", "--warmup-steps", "0"];
    let fresh = [&short(&config, &data)[..], &constant].concat();
    let whole = losses(&succeed(&fresh));
    let half = at("half");
    succeed(&[&fresh[..], &["--out", &half, "--stop-at", "2"]].concat());
    let same = [
        "--data",
        &data,
        "--device",
        "cpu",
        "--batch-size",
        "2",
        "--seq-len",
        "16",
        "--seed",
        "7",
        "--steps",
        "4",
    ];
    let (folder, document) = (at("folder"), at("state.state_dict.json"));
    // A document has no configuration of a model.
    let model = ["--model", &half];
    for (to, format, model) in [
        (&folder, "safetensors", &[][..]),
        (&document, "json", &model),
    ] {
        let asked = [
            "export",
            "--checkpoint",
            &half,
            "--to",
            to,
            "--format",
            format,
        ];
        succeed(&[&asked[..], &["--optimizer", "--manifest"]].concat());
        let state = [&["train", "--state", to], model, &same].concat();
        assert_eq!(losses(&succeed(&state)), whole[2..], "{format}");
        let (code, _) = refuse(&[&state[..], &["--learning-rate", "0.5"]].concat());
        assert_eq!(code, "optim.resume-mismatch", "{format}");
    }
    std::fs::remove_dir_all(place).unwrap();
}
