//! Runs of adapters: stopped and resumed, with and without their base, and their files in PEFT's format.

use serde_json::{Value, json};
use tabtune::bundle::{ModelAssets, OpenOptions};
use tabtune::checkpoint;
use tabtune::checkpoint::{Checkpoint, CheckpointBase, Environment, Origin, sha256};
use tabtune::config::{ModelConfig, TrainConfig};
use tabtune::device::Device;
use tabtune::export::{ExportFormat, ExportOptions, ExportSource, export};
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, open_model_with};
use tabtune::state::{Base, VerifyPolicy};
use tabtune::train::{Trainer, loss_sum};
use tabtune_tests::{block_on, cpu, devices, in_full, weights};

use super::{Files, adapted, base, batch, dataset, opened, settings, shape, sources, written};

pub(super) fn start(
    files: &Files,
    config: &TrainConfig,
    device: &Device,
) -> (Trainer, Origin, ModelAssets) {
    let bundle = opened(files);
    let origin = Origin {
        environment: Environment::on(&device.inner(), "test"),
        base: Some(Base::of_bundle(&bundle).pieced(&bundle).unwrap()),
    };
    let trainer =
        Trainer::new(adapted(&bundle, config, device), dataset(), config.clone()).unwrap();
    (trainer, origin, ModelAssets::of_bundle(&bundle))
}

pub(super) fn saved(trainer: &Trainer, origin: &Origin, assets: &ModelAssets) -> Files {
    let mut stream = checkpoint::write(trainer, assets, origin).unwrap();
    let mut files: Files = stream
        .files()
        .iter()
        .map(|file| (file.name.clone(), Vec::new()))
        .collect();
    while let Some(chunk) = block_on(stream.next_chunk()).unwrap() {
        stream.hashed(&sha256(&chunk.bytes)).unwrap();
        files[chunk.file].1.extend(chunk.bytes);
    }
    files
}

pub(super) fn go(trainer: &mut Trainer, last: u64) -> Vec<f64> {
    let mut losses = Vec::new();
    while trainer.progress().completed_steps < last {
        losses.push(block_on(trainer.step()).unwrap().loss);
    }
    losses
}

pub(super) fn run_settings(precision: &str) -> TrainConfig {
    let adapter = json!({ "r": 3, "alpha": 6.0, "target_modules": "all-linear", "dropout": 0.1, "modules_to_save": ["norm"] });
    let more = json!({
        "precision": precision, "gradient_accumulation_steps": 2, "groups": [
            { "pattern": "*.lora_B.weight", "learning_rate_scale": 4.0 }, { "pattern": "*.lora_A.weight" }, { "pattern": "*" }
        ]
    });
    settings(adapter, more)
}

#[test]
fn adapter_resumes_bitwise_next_to_its_base() {
    let files = base(&shape(), "q5_0");
    for device in devices() {
        for precision in if in_full() {
            &["f32", "bf16"][..]
        } else {
            &["bf16"]
        } {
            let config = run_settings(precision);
            let (mut straight, ..) = start(&files, &config, &device);
            let losses = go(&mut straight, 8);
            let (mut stopped, origin, assets) = start(&files, &config, &device);
            let mut halves = go(&mut stopped, 4);
            let written = saved(&stopped, &origin, &assets);
            drop(stopped);
            // The checkpoint contains no weight of the base, and it is a PEFT folder.
            let size: usize = written.iter().map(|(_, bytes)| bytes.len()).sum();
            let trained: usize = weights(straight.model())
                .iter()
                .map(|(_, bytes)| bytes.len())
                .sum();
            assert!(
                size <= 3 * trained + (1 << 20),
                "{size} bytes for {trained}"
            );
            assert!(
                written
                    .iter()
                    .any(|(name, _)| name == "adapter_model.safetensors")
            );
            let checkpoint = Checkpoint::open(sources(&written), Some(sources(&files))).unwrap();
            let (inner, none) = (device.inner(), Interrupt::none());
            let mut resumed =
                block_on(checkpoint.resume(dataset(), None, &[], &inner, &none)).unwrap();
            halves.extend(go(&mut resumed, 8));
            assert_eq!(halves, losses, "{precision}");
            assert!(
                weights(resumed.model()) == weights(straight.model()),
                "{precision}: other weights"
            );
        }
    }
}

#[test]
fn checkpoint_of_an_adapter_asks_for_its_base_and_takes_no_other() {
    let files = base(&shape(), "q8_0");
    let (mut trainer, origin, assets) = start(&files, &run_settings("f32"), &cpu());
    go(&mut trainer, 1);
    let written = saved(&trainer, &origin, &assets);
    let code = |base: Option<&Files>| {
        Checkpoint::open(sources(&written), base.map(sources))
            .map(|_| ())
            .unwrap_err()
            .code()
    };
    assert_eq!(code(None), "checkpoint.base.missing");
    assert_eq!(
        code(Some(&super::base(&shape(), "q4_0"))),
        "checkpoint.base.mismatch"
    );
    // A base of another shape, which the adapter would not fit.
    let other = ModelConfig {
        hidden_size: 64,
        head_dim: 16,
        ..shape()
    };
    assert_eq!(
        code(Some(&super::base(&other, "q8_0"))),
        "checkpoint.base.mismatch"
    );
    let mut changed = files.clone();
    let middle = changed[0].1.len() / 2;
    changed[0].1[middle] ^= 1;
    assert_eq!(code(Some(&changed)), "checkpoint.base.mismatch");
    // If pieces are not compared, the change is not seen, and saved checkpoints say so until they are compared again.
    let beside = |files: &Files| {
        let base = CheckpointBase::Files(sources(files), VerifyPolicy::Header);
        Checkpoint::open_with(sources(&written), base, false)
    };
    let header = beside(&changed).unwrap().manifest().base.clone().unwrap();
    assert_eq!(
        (
            header.verified,
            serde_json::to_value(&header).unwrap()["verified"].clone()
        ),
        (Some(VerifyPolicy::Header), json!("header"))
    );
    assert_eq!(
        beside(&super::base(&shape(), "q4_0"))
            .map(|_| ())
            .unwrap_err()
            .code(),
        "checkpoint.base.mismatch"
    );
    let full = Checkpoint::open(sources(&written), Some(sources(&files))).unwrap();
    assert!(full.manifest().base.as_ref().unwrap().verified.is_none());
    // The names of the files do not matter.
    let renamed = vec![("other.gguf".to_string(), files[0].1.clone())];
    assert!(Checkpoint::open(sources(&written), Some(sources(&renamed))).is_ok());
}

#[test]
fn adapter_leaves_as_a_folder_of_peft_and_comes_back() {
    let files = base(&shape(), "q8_0");
    for precision in ["f32", "bf16"] {
        let (mut trainer, origin, assets) = start(&files, &run_settings(precision), &cpu());
        go(&mut trainer, 3);
        let source = ExportSource::of_trainer(&trainer, assets, origin.base, "data").unwrap();
        let written = |options: &ExportOptions| written(&source, Vec::new(), options);
        let options = ExportOptions {
            format: ExportFormat::Peft,
            ..ExportOptions::default()
        };
        let folder = written(&options);
        assert!(folder == written(&options), "two exports differ");
        let options = OpenOptions {
            adapter: Some(sources(&folder)),
            apart: true,
            ..OpenOptions::default()
        };
        let bundle = open_model_with(sources(&files), options).unwrap();
        let adapter = serde_json::to_value(bundle.attached().unwrap().settings()).unwrap();
        let config = settings(adapter, json!({ "precision": precision }));
        let again = adapted(&bundle, &config, &cpu());
        assert!(
            weights(&again) == weights(trainer.model()),
            "{precision}: other weights"
        );
        // Merged into the base, the model has the same loss except for rounding; the base is widened for it.
        let options = OpenOptions {
            adapter: Some(sources(&folder)),
            ..OpenOptions::default()
        };
        let merged = open_model_with(sources(&files), options).unwrap();
        let merged = block_on(Model::from_bundle(
            &merged,
            tabtune::config::Precision::F32,
            &cpu().inner(),
            &Interrupt::none(),
        ))
        .unwrap();
        let loss = |model: &Model| {
            f64::from(
                block_on(tabtune::gpu::read_f32(loss_sum(model, &batch()).unwrap())).unwrap()[0],
            )
        };
        assert!(
            (loss(&merged) / loss(&again) - 1.0).abs() <= 1e-6,
            "{} and {}",
            loss(&merged),
            loss(&again)
        );
        let options = ExportOptions {
            format: ExportFormat::Json,
            ..ExportOptions::default()
        };
        assert_eq!(
            block_on(export(&source, Vec::new(), &options))
                .map(|_| ())
                .unwrap_err()
                .code(),
            "export.adapter"
        );
    }
}

#[test]
fn adapter_needs_a_base_and_settings_that_mean_something() {
    let bundle = opened(&base(&shape(), "f16"));
    let refused = |adapter: Value| {
        let config = settings(adapter, Value::Null);
        block_on(Model::for_run(
            &bundle,
            &config,
            &cpu().inner(),
            &Interrupt::none(),
        ))
        .map(|_| ())
        .unwrap_err()
        .code()
    };
    assert_eq!(
        refused(json!({ "target_modules": ["nothing"] })),
        "adapter.target.unknown"
    );
    assert_eq!(
        refused(json!({ "target_modules": ["embed_tokens"] })),
        "adapter.target.unsupported"
    );
    assert_eq!(
        refused(json!({ "modules_to_save": ["embed_tokens"] })),
        "adapter.target.tied"
    );
}
