//! One model through every container, one after the other: its weights have one digest at every station.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::json;
use tabtune::bundle::{FileStream, ModelAssets, open_bundle};
use tabtune::config::{ModelConfig, Precision, TrainConfig};
use tabtune::data::Dataset;
use tabtune::device::Device;
use tabtune::export::{ExportOptions, ExportSource, JsonEncoding, export_folder, export_gguf};
use tabtune::formats::{ByteSource, Digest, MemorySource};
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::portable::{
    ImportedBundle, PortableModelBundle, SharedFiles, TrainingGroups, open_json,
};
use tabtune::state::{NamePolicy, PortableModelImportRequest, PortableModelStateDict};
use tabtune::train::Trainer;
use tabtune_tests::{block_on, cpu, devices, family, gguf_families, golden, weights};

use super::state_g::{assert_same, sources, written};
use crate::resume::save_with;

/// Maximum size of a shard, small enough that each of the models has several.
const SHARD_BYTES: u64 = 3_000;
/// Number of tokens of the models.
const VOCABULARY: u32 = 12;

type Written = Vec<(String, Vec<u8>)>;

/// Lists the models whose GGUF file has every bit of their weights. Gemma's and Qwen3.5's have 1 added to the weights of norms, which rounds them.
fn names() -> impl Iterator<Item = &'static str> {
    let names = gguf_families().map(|family| family.name);
    names.filter(|name| !name.starts_with("gemma") && *name != "qwen3_5")
}

fn folder_of(name: &str) -> Written {
    // A GGUF file has the divisors of the frequencies; those of such a small model do not identify a rule.
    let mut config = family(name).config();
    config["rope_scaling"] = serde_json::Value::Null;
    let weights = golden(&format!("{name}/model.safetensors"));
    vec![
        ("config.json".into(), config.to_string().into_bytes()),
        ("model.safetensors".into(), weights),
    ]
}

fn boxed(files: &Written) -> Vec<Rc<dyn ByteSource>> {
    files
        .iter()
        .map(|(name, bytes)| {
            Rc::new(MemorySource::new(name.clone(), bytes.clone())) as Rc<dyn ByteSource>
        })
        .collect()
}

fn settings() -> TrainConfig {
    serde_json::from_value(json!({"steps": 5, "batch_size": 2, "seq_len": 6, "learning_rate": 1e-2, "optimizer": {"type": "adamw"}}))
        .unwrap()
}

fn dataset() -> Dataset {
    Dataset::from_tokens(
        (0..200u32).map(|n| (n * n / 3 + n) % VOCABULARY).collect(),
        0.0,
    )
    .unwrap()
}

/// Makes a run with the weights of these files.
fn run_on(device: &Device, precision: Precision, files: &Written) -> Trainer {
    let bundle = open_bundle(boxed(files)).unwrap();
    let model = block_on(Model::from_bundle(
        &bundle,
        precision,
        &device.inner(),
        &Interrupt::none(),
    ))
    .unwrap();
    Trainer::new(
        model,
        dataset(),
        TrainConfig {
            precision,
            ..settings()
        },
    )
    .unwrap()
}

/// Makes a run on the CPU, after some steps.
fn run_of(files: &Written, steps: u64) -> Trainer {
    let mut trainer = run_on(&cpu(), Precision::F32, files);
    for _ in 0..steps {
        block_on(trainer.step()).unwrap();
    }
    trainer
}

fn state_of(trainer: Trainer) -> PortableModelStateDict {
    PortableModelStateDict::from_training_groups(&TrainingGroups::new(trainer)).unwrap()
}

fn back(state: &PortableModelStateDict, model: &ModelConfig) -> TrainingGroups {
    block_on(state.to_training_groups(
        model,
        &settings(),
        dataset(),
        &cpu().inner(),
        &Interrupt::none(),
    ))
    .unwrap()
}

fn digest(imported: &ImportedBundle) -> Digest {
    block_on(imported.bundle.state_dict.weights_digest()).unwrap()
}

fn everything() -> PortableModelImportRequest {
    PortableModelImportRequest::default()
}

fn folder_digest(files: &Written) -> Digest {
    digest(
        &block_on(PortableModelBundle::import_hf_folder(
            &sources(files),
            &everything(),
        ))
        .unwrap(),
    )
}

/// Returns the files of a stream, and the digest that its receipt states.
fn folder(from: &ExportSource, options: &ExportOptions) -> (Written, Digest) {
    let files = written(export_folder(from, options).unwrap());
    let receipt: serde_json::Value = serde_json::from_slice(&files.last().unwrap().1).unwrap();
    (
        files,
        serde_json::from_value(receipt["digests"]["weights"].clone()).unwrap(),
    )
}

fn gguf(from: &ExportSource) -> Written {
    let options = ExportOptions {
        types: Some("f32".into()),
        ..ExportOptions::default()
    };
    let mut files = written(block_on(export_gguf(from, Vec::new(), &options)).unwrap());
    files.truncate(1);
    files
}

fn of_files(files: &Written) -> ExportSource {
    ExportSource::of_bundle(&Rc::new(open_bundle(boxed(files)).unwrap())).unwrap()
}

/// Lines 5 and 27 of ./README.md: Hugging Face folder → training → F32 GGUF → Hugging Face folder → training, before and after steps of it.
#[test]
fn folder_to_training_to_gguf_to_folder_keeps_the_digest() {
    for (family, steps) in names().flat_map(|family| [(family, 0), (family, 3)]) {
        let before = folder_of(family);
        let trainer = run_of(&before, steps);
        let assets = ModelAssets::of_bundle(&open_bundle(boxed(&before)).unwrap());
        let live = ExportSource::of_trainer(&trainer, assets, None, "numbers").unwrap();
        let on_device = weights(trainer.model());
        let in_gguf = gguf(&live);
        let wanted = block_on(state_of(trainer).weights_digest()).unwrap();
        // Without a step the weights are those of the folder, and afterwards others.
        assert_eq!(
            folder_digest(&before) == wanted,
            steps == 0,
            "{family} {steps}"
        );

        let hf = PortableModelImportRequest {
            names: NamePolicy::Hf,
            ..everything()
        };
        let of_gguf = block_on(PortableModelBundle::import_gguf(&sources(&in_gguf), &hf)).unwrap();
        assert_eq!(digest(&of_gguf), wanted, "{family} {steps}: GGUF");
        let (again, stated) = folder(&of_files(&in_gguf), &ExportOptions::default());
        assert_eq!(
            (folder_digest(&again), stated),
            (wanted, wanted),
            "{family} {steps}: folder of the GGUF"
        );
        // Both continue training from the same bits.
        for files in [&in_gguf, &again] {
            let resumed = run_of(files, 0);
            assert!(weights(resumed.model()) == on_device, "{family} {steps}");
            assert_eq!(
                block_on(state_of(resumed).weights_digest()).unwrap(),
                wanted,
                "{family} {steps}: in training again"
            );
        }
    }
}

/// Lines 5 and 27 of ./README.md: checkpoint → safetensors → JSON → safetensors → training → checkpoint, with every digest, and equal bytes if
/// a container occurs twice.
#[test]
fn json_safetensors_and_checkpoint_are_one_state() {
    for family in names() {
        let files = folder_of(family);
        let bundle = open_bundle(boxed(&files)).unwrap();
        let run = run_of(&files, 3);
        let saved: SharedFiles = sources(&save_with(&run, &bundle));
        let live = state_of(run);
        let wanted = block_on(live.digests()).unwrap();
        let imported = |files: &SharedFiles| {
            block_on(PortableModelBundle::import_checkpoint(files, &everything()))
                .unwrap()
                .bundle
                .state_dict
        };
        let of_checkpoint = imported(&saved);
        for encoding in [JsonEncoding::Numbers, JsonEncoding::Base64] {
            let json = |state: &PortableModelStateDict| {
                only(
                    block_on(state.export_json("m.json", Some(&state.manifest()), encoding, false))
                        .unwrap(),
                )
            };
            let safetensors = |state: &PortableModelStateDict| {
                written(block_on(state.export_safetensors(&state.manifest())).unwrap())
            };
            let read = |files: &Written| {
                block_on(PortableModelBundle::import_safetensors(sources(files)))
                    .unwrap()
                    .bundle
                    .state_dict
            };
            let in_files = safetensors(&of_checkpoint);
            let of_files = read(&in_files);
            let text = json(&of_files);
            let of_json = block_on(
                open_json(&MemorySource::new("m.json", text.clone()))
                    .unwrap()
                    .import(&everything()),
            )
            .unwrap()
            .state_dict;
            let again = safetensors(&of_json);
            let training = back(&read(&again), &bundle.config);
            let in_training = PortableModelStateDict::from_training_groups(&training).unwrap();
            let stations = [
                ("checkpoint", &of_checkpoint),
                ("safetensors", &of_files),
                ("JSON", &of_json),
                ("again", &read(&again)),
                ("training", &in_training),
            ];
            for (station, state) in stations {
                assert_eq!(
                    block_on(state.digests()).unwrap(),
                    wanted,
                    "{family}: {station}"
                );
                assert_same(state, &live);
            }
            assert!(again == in_files, "{family}: other files");
            assert!(json(&in_training) == text, "{family}: another document");
            let last = imported(&sources(&save_with(&training.trainer, &bundle)));
            assert_eq!(
                block_on(last.digests()).unwrap(),
                wanted,
                "{family}: the last checkpoint"
            );
        }
    }
}

fn only(stream: FileStream) -> Vec<u8> {
    let [(_, bytes)] = <[_; 1]>::try_from(written(stream)).unwrap();
    bytes
}

/// Lines 5 and 27 of ./README.md: one file → shards → one file → shards, with the same digest and the same bytes, of a live run and of files.
#[test]
fn shards_and_one_file_are_one_state() {
    for family in names() {
        let trainer = run_of(&folder_of(family), 3);
        let assets = ModelAssets::of_bundle(&open_bundle(boxed(&folder_of(family))).unwrap());
        let live = ExportSource::of_trainer(&trainer, assets, None, "numbers").unwrap();
        let wanted = block_on(state_of(trainer).weights_digest()).unwrap();
        let in_shards = ExportOptions {
            shard_bytes: Some(SHARD_BYTES),
            ..ExportOptions::default()
        };
        let whole = ExportOptions::default();
        let mut last: Option<ExportSource> = None;
        let mut made: BTreeMap<usize, Vec<Written>> = BTreeMap::new();
        for (station, options) in [&in_shards, &whole, &in_shards, &whole]
            .into_iter()
            .enumerate()
        {
            let (files, stated) = folder(last.as_ref().unwrap_or(&live), options);
            assert_eq!(
                (folder_digest(&files), stated),
                (wanted, wanted),
                "{family}: station {station}"
            );
            last = Some(of_files(&files));
            let of_weights = files.into_iter().filter(|(name, _)| {
                name.ends_with(".safetensors") || name.ends_with(".index.json")
            });
            made.entry(station % 2)
                .or_default()
                .push(of_weights.collect());
        }
        assert!(made[&0][0].len() > 2 && made[&1][0].len() == 1);
        assert!(
            made.values().all(|files| files[0] == files[1]),
            "{family}: other bytes"
        );
    }
}

/// Line 27 of ./README.md: the same weights on the CPU and on every device that runs shaders have one digest, in the state dict, a checkpoint, a
/// folder and a GGUF file that are written from there.
#[test]
fn line_27_weights_have_one_digest_on_every_device() {
    for (family, precision) in
        names().flat_map(|family| [(family, Precision::F32), (family, Precision::Bf16)])
    {
        let files = folder_of(family);
        let bundle = open_bundle(boxed(&files)).unwrap();
        let mut wanted = None;
        for (at, device) in devices().iter().enumerate() {
            let trainer = run_on(device, precision, &files);
            let live = ExportSource::of_trainer(
                &trainer,
                ModelAssets::of_bundle(&bundle),
                None,
                "numbers",
            )
            .unwrap();
            let saved = sources(&save_with(&trainer, &bundle));
            let (of_folder, stated) = folder(&live, &ExportOptions::default());
            let in_gguf = gguf(&live);
            let digests = block_on(state_of(trainer).digests()).unwrap();
            let (expected, gguf_expected) =
                wanted.get_or_insert_with(|| (digests, in_gguf.clone()));
            assert_eq!(
                &digests, expected,
                "{family} {precision:?}: state on device {at}"
            );
            let of_checkpoint = block_on(PortableModelBundle::import_checkpoint(
                &saved,
                &everything(),
            ))
            .unwrap()
            .bundle
            .state_dict;
            assert_eq!(
                &block_on(of_checkpoint.digests()).unwrap(),
                expected,
                "{family} {precision:?}: checkpoint of device {at}"
            );
            assert_eq!(
                [folder_digest(&of_folder), stated],
                [expected.weights; 2],
                "{family} {precision:?}: folder of device {at}"
            );
            assert!(
                in_gguf == *gguf_expected,
                "{family} {precision:?}: GGUF of device {at}"
            );
            // In F32 they are those of the files that the model came from.
            assert_eq!(
                expected.weights == folder_digest(&files),
                precision == Precision::F32,
                "{family} {precision:?}"
            );
        }
    }
}
