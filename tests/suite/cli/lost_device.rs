//! A device that is lost in the middle of a run: the run continues on another one, and a run that ends leaves its last save.

use super::ends::step_of;
use super::*;

/// Builds the layer that loses the device, once, with the description by which Vulkan finds it.
fn layer() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let place = folder("lost-device-layer");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite/cli/lost_device/layer.rs");
        let mut compile = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        compile.args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort", "-D", "warnings", "-o"]);
        assert!(compile.arg(place.join("liblayer.so")).arg(source).status().unwrap().success());
        let layer = json!({ "name": "VK_LAYER_TABTUNE_lost_device", "type": "GLOBAL", "library_path": "./liblayer.so", "api_version": "1.3.0",
            "implementation_version": "1", "description": "loses the device" });
        write(&place, "layer.json", json!({ "file_format_version": "1.2.0", "layer": layer }).to_string());
        place
    })
}

/// A run of twelve steps that is saved after every second one, and the same run unbroken.
struct Runs {
    place: PathBuf,
    config: String,
    data: String,
}

impl Runs {
    fn new(name: &str) -> Self {
        let place = folder(name);
        let (config, data) = tiny(&place);
        Self {
            place,
            config,
            data,
        }
    }

    fn args<'a>(&'a self, out: &'a str) -> Vec<&'a str> {
        let run = [
            "--device",
            "wgpu",
            "--steps",
            "12",
            "--batch-size",
            "2",
            "--seq-len",
            "16",
            "--learning-rate",
            "0.01",
        ];
        let run = run
            .into_iter()
            .chain(["--validation-fraction", "0.3", "--out", out]);
        ["train", "--config", &self.config, "--data", &self.data]
            .into_iter()
            .chain(run)
            .collect()
    }

    /// Trains until the n-th device is lost at the n-th of the submissions `at`. This model needs some four per step, and more for a save.
    fn losing(&self, out: &str, at: &str, more: &[&str]) -> (Option<i32>, String, String) {
        let mut run = Command::new(binary());
        run.args(self.args(out)).args(more);
        run.env("VK_LAYER_PATH", layer())
            .env("VK_INSTANCE_LAYERS", "VK_LAYER_TABTUNE_lost_device")
            .env("LOSE_AT", at);
        let ended = run.output().unwrap();
        let [lines, told] =
            [ended.stdout, ended.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(
            !told.contains("Backtrace") && !told.contains("panicked"),
            "{at}: {told}"
        );
        (ended.status.code(), lines, told)
    }

    /// Checks that the checkpoint is that of an unbroken run at its step, which is returned.
    fn is_unbroken(&self, out: &str) -> u64 {
        let step = step_of(out);
        let whole = text(&self.place.join(format!("unbroken-{step}")));
        if !Path::new(&whole).exists() {
            succeed(&[&self.args(&whole)[..], &["--stop-at", &step.to_string()]].concat());
        }
        for name in ["model.safetensors", "optimizer.safetensors"] {
            let read = |folder: &str| std::fs::read(Path::new(folder).join(name)).unwrap();
            assert!(read(out) == read(&whole), "{name} of step {step}");
        }
        step
    }
}

/// A device may be lost at any time: in steps before the first save, between saves, during a save and during an evaluation. A submission
/// reports it, or a wait.
#[test]
fn a_run_whose_device_is_lost_continues_on_another_one() {
    if tabtune_tests::gpu().is_none() {
        return;
    }
    let runs = Runs::new("lost-device");
    let more = ["--save-every", "2", "--eval-every", "3", "--json"];
    let mut from = Vec::new();
    for at in [
        "15", "25", "40", "55", "70", "85", "40,25", "wait:15", "wait:40", "wait:70",
    ] {
        let out = text(
            &runs
                .place
                .join(format!("run-{}", at.replace([':', ','], "-"))),
        );
        let (status, lines, told) = runs.losing(&out, at, &more);
        assert_eq!(status, Some(0), "{at}: {lines} {told}");
        assert_eq!(runs.is_unbroken(&out), 12);
        let lines: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let numbers = |key: &str| -> Vec<u64> {
            lines
                .iter()
                .filter(|line| line.get(key).is_some())
                .map(|line| line["step"].as_u64().unwrap())
                .collect()
        };
        assert_eq!(numbers("loss"), Vec::from_iter(1..=12), "{at}: {lines:?}");
        assert_eq!(numbers("eval_loss"), [3, 6, 9, 12], "{at}: {lines:?}");
        let warnings = lines
            .iter()
            .filter_map(|line| line.get("warning"))
            .filter(|warning| warning["code"] == "device.lost");
        let warnings: Vec<&str> = warnings
            .map(|warning| warning["message"].as_str().unwrap())
            .collect();
        assert_eq!(warnings.len(), at.split(',').count(), "{at}: {warnings:?}");
        from.push(warnings[0].to_owned());
    }
    assert!(
        from.iter()
            .any(|message| message.contains("from the beginning, since no step is saved")),
        "{from:?}"
    );
    assert!(
        from.iter().any(|message| message.contains(", saved in ")),
        "{from:?}"
    );
}

/// A third loss without a new step or save between them ends the run. The state of the steps since the last save was on the device.
#[test]
fn devices_that_are_lost_again_and_again_leave_the_last_save() {
    if tabtune_tests::gpu().is_none() {
        return;
    }
    let runs = Runs::new("lost-devices");
    let mut steps = Vec::new();
    for at in [15, 40, 70] {
        let out = text(&runs.place.join(format!("run-{at}")));
        let (status, _, told) = runs.losing(&out, &format!("{at},1,1"), &["--save-every", "2"]);
        let last = told.lines().last().unwrap();
        assert!(
            status == Some(1)
                && last.starts_with("error: the GPU was lost: ")
                && last.ends_with("[device.lost]"),
            "{at}: {told}"
        );
        if !Path::new(&out).exists() {
            steps.push(0);
            continue;
        }
        let step = runs.is_unbroken(&out);
        steps.push(step);
        assert!(
            told.contains(&format!("the steps since {step} could not be saved")),
            "{at}: {told}"
        );
        succeed(&[
            "train", "--resume", &out, "--data", &runs.data, "--device", "wgpu", "--out", &out,
        ]);
        assert_eq!(runs.is_unbroken(&out), 12);
    }
    assert!(
        steps.contains(&0) && steps.iter().any(|step| (2..12).contains(step)),
        "none was lost before the first save, or none after: {steps:?}"
    );
}
