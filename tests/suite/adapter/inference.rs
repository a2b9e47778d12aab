//! Inference with a separate adapter: the same results as with the adapter merged, the base again without it, and samples of a run.

use std::rc::Rc;

use serde_json::{Value, json};
use tabtune::bundle::{Bundle, ModelAssets, OpenOptions};
use tabtune::config::{BaseStorage, Precision};
use tabtune::device::Device;
use tabtune::export::{ExportFormat, ExportOptions, ExportSource, export};
use tabtune::generate::{GenerateConfig, GeneratedToken, Generator};
use tabtune::gpu::read_f32;
use tabtune::interrupt::Interrupt;
use tabtune::model::{AttachedAdapter, Model, Span, open_model_with};
use tabtune::state::Base;
use tabtune::tokenizer::Tokenizer;
use tabtune::train::{Trainer, loss_sum};
use tabtune_tests::{block_on, cpu, devices};

use super::{Files, adapted, base, batch, dataset, gpt2, opened, settings, shape, sources};

const PROMPT: [u32; 4] = [5, 17, 40, 2];

/// Trains some steps with an adapter on every matrix and one saved tensor.
fn run(files: &Files, saved: &str, device: &Device) -> Trainer {
    let adapter = json!({ "r": 3, "alpha": 6.0, "target_modules": "all-linear", "dropout": 0.1, "modules_to_save": [saved] });
    let config = settings(adapter, Value::Null);
    let mut trainer =
        Trainer::new(adapted(&opened(files), &config, device), dataset(), config).unwrap();
    for _ in 0..6 {
        block_on(trainer.step()).unwrap();
    }
    trainer
}

/// Exports the adapter of a run as PEFT files.
fn peft(trainer: &Trainer, files: &Files) -> Files {
    let bundle = opened(files);
    let source = ExportSource::of_trainer(
        trainer,
        ModelAssets::of_bundle(&bundle),
        Some(Base::of_bundle(&bundle)),
        "data",
    )
    .unwrap();
    let options = ExportOptions {
        format: ExportFormat::Peft,
        ..ExportOptions::default()
    };
    let mut stream = block_on(export(&source, Vec::new(), &options)).unwrap();
    let mut folder: Files = stream
        .files()
        .iter()
        .map(|file| (file.name.clone(), Vec::new()))
        .collect();
    while let Some(chunk) = block_on(stream.next_chunk()).unwrap() {
        folder[chunk.file].1.extend(chunk.bytes);
    }
    folder
}

fn with(files: &Files, adapter: &Files, apart: bool) -> Rc<Bundle> {
    let options = OpenOptions {
        adapter: Some(sources(adapter)),
        apart,
        ..OpenOptions::default()
    };
    Rc::new(open_model_with(sources(files), options).unwrap())
}

fn inferring(bundle: &Bundle, storage: BaseStorage, device: &Device) -> Model {
    block_on(Model::for_inference(
        bundle,
        storage,
        &device.inner(),
        &Interrupt::none(),
    ))
    .unwrap()
}

fn loss(model: &Model) -> f32 {
    block_on(read_f32(loss_sum(model, &batch()).unwrap())).unwrap()[0]
}

/// Generates tokens one by one with cached keys and values, greedily.
fn texts(model: &Model) -> Vec<GeneratedToken> {
    let characters: String = ('A'..).take(48).collect();
    let tokenizer = Tokenizer::characters(&characters).unwrap();
    let config = GenerateConfig {
        max_tokens: 12,
        temperature: 0.0,
        ..GenerateConfig::default()
    };
    let mut generator = Generator::from_ids(model, Vec::new(), &PROMPT, config).unwrap();
    let mut tokens = Vec::new();
    while let Some(token) = block_on(generator.next(model, &tokenizer)).unwrap() {
        tokens.push(token);
    }
    tokens
}

fn ids(tokens: &[GeneratedToken]) -> Vec<u32> {
    tokens.iter().map(|token| token.id).collect()
}

/// Generates the most likely tokens without a cache: for each, the whole text before it goes through the model.
fn uncached(model: &Model) -> Vec<u32> {
    let mut ids = PROMPT.to_vec();
    for _ in 0..12 {
        let tokens: Vec<i32> = ids.iter().map(|&id| i32::try_from(id).unwrap()).collect();
        let logits = block_on(read_f32(model.forward(
            model.token_tensor(&tokens).unwrap(),
            Span::whole(1, ids.len()),
        )))
        .unwrap();
        let last = &logits[logits.len() - 48..];
        let best = (0..48)
            .max_by(|&a, &b| last[a].total_cmp(&last[b]))
            .unwrap();
        ids.push(u32::try_from(best).unwrap());
    }
    ids.split_off(PROMPT.len())
}

#[test]
fn adapter_apart_is_the_model_that_it_is_merged_into() {
    for (config, saved) in [(shape(), "norm"), (gpt2(), "ln_f")] {
        for types in ["f32", "q8_0", "q4_0", "q5_1"] {
            let files = base(&config, types);
            let adapter = peft(&run(&files, saved, &cpu()), &files);
            let (apart, merged) = (with(&files, &adapter, true), with(&files, &adapter, false));
            for device in devices() {
                let none = Interrupt::none();
                let merged = block_on(Model::from_bundle(
                    &merged,
                    Precision::F32,
                    &device.inner(),
                    &none,
                ))
                .unwrap();
                let packed = inferring(&apart, BaseStorage::Stored, &device);
                assert!(
                    packed
                        .frozen_weights()
                        .matrices
                        .contains_key(&types.to_uppercase()),
                    "{:?}",
                    packed.frozen_weights()
                );
                let (found, expected) = (loss(&packed), loss(&merged));
                assert!(
                    (f64::from(found) / f64::from(expected) - 1.0).abs() <= 1e-6,
                    "{types}: {found} and {expected}"
                );
                let (text, of_merged) = (texts(&packed), texts(&merged));
                assert_eq!(text.len(), 12);
                assert_eq!(ids(&text), ids(&of_merged), "{types}");
                assert_eq!(ids(&text), uncached(&packed), "{types}: cached");
                // A packed base has the bits of the decoded one.
                let decoded = inferring(&apart, BaseStorage::F32, &device);
                assert_eq!(
                    (loss(&decoded), texts(&decoded)),
                    (found, text),
                    "{types} {saved} on {}",
                    device.info().adapter
                );
            }
        }
    }
}

#[test]
fn model_without_its_adapter_is_the_base_again() {
    for (config, saved) in [(shape(), "norm"), (gpt2(), "ln_f")] {
        let files = base(&config, "q8_0");
        let adapter = peft(&run(&files, saved, &cpu()), &files);
        let bundle = with(&files, &adapter, true);
        for device in devices() {
            let beside = inferring(&bundle, BaseStorage::Stored, &device);
            let again = block_on(beside.without_adapter(&bundle, &Interrupt::none())).unwrap();
            let base = inferring(&opened(&files), BaseStorage::Stored, &device);
            assert_ne!(loss(&beside), loss(&base));
            assert_eq!((loss(&again), texts(&again)), (loss(&base), texts(&base)));
            assert!(
                again
                    .adaptation()
                    .is_some_and(|adaptation| adaptation.targets().is_empty())
            );
            // The model with the adapter is unchanged.
            assert_eq!(
                loss(&inferring(&bundle, BaseStorage::Stored, &device)),
                loss(&beside)
            );
        }
    }
}

/// Samples drawn during a run equal those from its exported files; dropout is not applied.
#[test]
fn samples_of_an_adapter_in_training_are_those_of_its_files() {
    let files = base(&shape(), "q4_0");
    for device in devices() {
        let mut trainer = run(&files, "norm", &device);
        let bundle = with(&files, &peft(&trainer, &files), true);
        let sample = texts(trainer.model());
        assert_eq!(
            sample,
            texts(&inferring(&bundle, BaseStorage::Stored, &device))
        );
        assert_ne!(
            sample,
            texts(&inferring(&opened(&files), BaseStorage::Stored, &device))
        );
        // A sample between two steps does not change the next step.
        let mut other = run(&files, "norm", &device);
        assert_eq!(
            block_on(trainer.step()).unwrap().loss,
            block_on(other.step()).unwrap().loss
        );
    }
}

#[test]
fn adapter_next_to_a_model_says_what_it_is() {
    let files = base(&shape(), "q8_0");
    assert_eq!(AttachedAdapter::of(&opened(&files)).unwrap(), None);
    let adapter = peft(&run(&files, "norm", &cpu()), &files);
    let found = AttachedAdapter::of(&with(&files, &adapter, true))
        .unwrap()
        .unwrap();
    let weights = adapter
        .iter()
        .find(|(name, _)| name == "adapter_model.safetensors")
        .unwrap();
    // q, k, v, o, gate, up, down of both blocks at rank 3, and every norm: a saved module is known by the end of its name.
    let sides = 2 * 64 + 2 * 48 + 3 * 96;
    assert_eq!((found.r, found.alpha, found.targets.len()), (3, 6.0, 14));
    assert_eq!(
        (found.parameters, found.bytes),
        (2 * 3 * sides + 5 * 32, weights.1.len() as u64)
    );
    assert_eq!(
        AttachedAdapter::of(&with(&files, &adapter, false)).unwrap(),
        None
    );
}
