//! A device that is lost in the middle of a run: the last save is whole, and the run can be resumed from it.

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

/// The device may be lost at any time: in steps before the first save, between saves, and during a save. The state of the steps since the last
/// save was on the device.
#[test]
fn a_lost_device_leaves_the_last_save() {
    if tabtune_tests::gpu().is_none() {
        return;
    }
    let place = folder("lost-device");
    let (config, data) = tiny(&place);
    let args = |out: &str| -> Vec<String> {
        let run =
            ["--device", "wgpu", "--steps", "12", "--batch-size", "2", "--seq-len", "16", "--learning-rate", "0.01", "--save-every", "2"];
        ["train", "--config", &config, "--data", &data].into_iter().chain(run).chain(["--out", out]).map(str::to_string).collect()
    };
    let unbroken = |step: u64| {
        let out = text(&place.join(format!("unbroken-{step}")));
        if !Path::new(&out).exists() {
            let args = args(&out);
            succeed(&[&args.iter().map(String::as_str).collect::<Vec<_>>()[..], &["--stop-at", &step.to_string()]].concat());
        }
        out
    };
    let same = |out: &str, step: u64| {
        for name in ["model.safetensors", "optimizer.safetensors"] {
            let read = |folder: &str| std::fs::read(Path::new(folder).join(name)).unwrap();
            assert!(read(out) == read(&unbroken(step)), "{name} of step {step}");
        }
    };
    let mut steps = Vec::new();
    // Counted in submissions: this model needs some four per step, and more for a save.
    for at in [20, 40, 55, 70, 85] {
        let out = text(&place.join(format!("run-{at}")));
        let mut run = Command::new(binary());
        run.args(args(&out))
            .env("VK_LAYER_PATH", layer())
            .env("VK_INSTANCE_LAYERS", "VK_LAYER_TABTUNE_lost_device")
            .env("LOSE_AT", at.to_string());
        let ended = run.output().unwrap();
        let told = String::from_utf8(ended.stderr).unwrap();
        let last = told.lines().last().unwrap();
        assert!(
            ended.status.code() == Some(1) && last.starts_with("error: device lost: ") && last.ends_with("[device.lost]"),
            "{at}: {told}"
        );
        assert!(!told.contains("Backtrace") && !told.contains("panicked"), "{at}: {told}");
        if !Path::new(&out).exists() {
            steps.push(0);
            continue;
        }
        let step = step_of(&out);
        same(&out, step);
        steps.push(step);
        let words = format!("the steps since {step} could not be saved");
        assert!(told.contains(&words), "{at}: {told}");
        succeed(&["train", "--resume", &out, "--data", &data, "--device", "wgpu", "--out", &out]);
        same(&out, 12);
    }
    assert!(
        steps.contains(&0) && steps.iter().any(|step| (2..12).contains(step)),
        "none was lost before the first save, or none after: {steps:?}"
    );
}
