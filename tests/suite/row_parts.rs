//! Tables and heads that lie in parts, since a kernel could not bind them as a whole: the bits of a whole table, through steps, evaluation,
//! generation, files and resumes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tabtune::bundle::Bundle;
use tabtune::config::{BaseStorage, ModelConfig, TrainConfig};
use tabtune::data::Dataset;
use tabtune::device::{Device, DeviceLimits};
use tabtune::error::Error;
use tabtune::families::config_from_hf;
use tabtune::gpu::launch::set_binding_limit;
use tabtune::gpu::{read_f32, trace};
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, Span};
use tabtune::ops::linear::parts::{UNIT, row_parts};
use tabtune::train::{Trainer, check_limits, estimate};
use tabtune_tests::{as_a_gpu, block_on, gpu, weights};

use crate::adapter::{adapted, base, opened};
use crate::resume::{open, save_with};

/// A vocabulary of three units and a rest.
const VOCAB: usize = 3 * UNIT + 12;

/// A width at which the parts of a sum on a software adapter do not end where a unit ends.
const WIDTH: usize = 96;

/// The most bytes of a binding: two parts, one of them with more than one unit.
const LIMIT: u64 = 4 * 96 * 8400;

fn shape_of(width: usize, vocab: usize, tied: bool) -> ModelConfig {
    let json = json!({
        "model_type": "llama", "vocab_size": vocab, "hidden_size": width, "intermediate_size": 64, "num_hidden_layers": 1,
        "num_attention_heads": width / 32, "num_key_value_heads": width / 32, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5, "tie_word_embeddings": tied, "initializer_range": 0.1
    });
    config_from_hf(&json).unwrap()
}

fn shape(vocab: usize, tied: bool) -> ModelConfig {
    shape_of(WIDTH, vocab, tied)
}

fn settings(changes: &Value) -> TrainConfig {
    let json = json!({
        "steps": 8, "batch_size": 1, "seq_len": 40, "learning_rate": 1e-2, "seed": 3, "max_grad_norm": 0.5,
        "optimizer": {"type": "adamw"}
    });
    TrainConfig::default()
        .overlaid(tabtune::config::overlay(json, changes.clone()))
        .unwrap()
}

/// Tokens of all parts, those next to their ends among them.
fn dataset(vocab: usize) -> Dataset {
    let (vocab, unit) = (vocab as u32, UNIT as u32);
    let near = [unit - 1, unit, 2 * unit - 1, 2 * unit, vocab - 1, 0];
    let token = |i: u32| match i % 5 {
        0 => near[(i / 5) as usize % near.len()],
        _ => (i * i * 7919 + 13 * i) % vocab,
    };
    Dataset::from_tokens((0..600).map(token).collect(), 0.2).unwrap()
}

/// A device like this one whose kernels bind at most this many bytes.
fn limited(device: &Device, bytes: u64) -> Device {
    let own = block_on(device.reopen()).unwrap();
    set_binding_limit(&own.inner(), bytes);
    own
}

fn devices() -> Vec<Device> {
    [gpu(), as_a_gpu()].into_iter().flatten().collect()
}

fn fresh(config: &ModelConfig, train: &TrainConfig, device: &Device) -> Model {
    let (inner, none) = (device.inner(), Interrupt::none());
    block_on(Model::init(config, 5, train.precision, &inner, &none)).unwrap()
}

/// Losses and norms, the evaluation, the weights and the optimizer's state.
#[derive(Debug, PartialEq)]
struct Ran {
    reports: Vec<(f64, f64)>,
    evaluation: f64,
    weights: BTreeMap<String, Vec<u8>>,
    state: BTreeMap<String, Vec<u8>>,
}

fn ran(mut trainer: Trainer, steps: usize) -> (Ran, Trainer) {
    let reports = (0..steps).map(|_| block_on(trainer.step()).unwrap());
    let reports = reports
        .map(|report| (report.loss, report.grad_norm))
        .collect();
    let bytes = |tensor: tabtune::state::Tensor| block_on(tensor.all_bytes()).unwrap().to_vec();
    let weights = trainer.model().stream_tensors().into_iter();
    let state = trainer.state_stream().into_iter();
    let ran = Ran {
        reports,
        evaluation: block_on(trainer.evaluate(Some(2))).unwrap().loss,
        weights: weights
            .map(|tensor| (tensor.name.clone(), bytes(tensor)))
            .collect(),
        state: state
            .map(|tensor| (tensor.name.clone(), bytes(tensor)))
            .collect(),
    };
    (ran, trainer)
}

/// Says which entries differ, since their values are long.
fn assert_same(whole: &Ran, parts: &Ran, case: &str) {
    assert_eq!(whole.reports, parts.reports, "{case}");
    assert_eq!(whole.evaluation, parts.evaluation, "{case}");
    for (whole, parts) in [
        (&whole.weights, &parts.weights),
        (&whole.state, &parts.state),
    ] {
        let names = |of: &BTreeMap<String, Vec<u8>>| of.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(whole), names(parts), "{case}");
        let other: Vec<&String> = whole
            .keys()
            .filter(|name| whole[*name] != parts[*name])
            .collect();
        assert!(other.is_empty(), "{case}: {other:?} differ");
    }
}

fn parts_of(model: &Model, table: &str) -> usize {
    let infos = model.parameters();
    infos
        .iter()
        .filter(|info| info.name.starts_with(table))
        .count()
}

#[test]
fn a_table_in_parts_trains_to_the_bits_of_a_whole_one() {
    let cases = [
        (VOCAB, true, json!({})),
        (
            VOCAB,
            false,
            json!({ "precision": "bf16", "gradient_accumulation_steps": 2 }),
        ),
        (
            VOCAB,
            true,
            json!({ "precision": "bf16", "gradient_checkpointing": true, "seq_len": 8 }),
        ),
        (
            VOCAB + 1,
            true,
            json!({ "precision": "bf16", "seq_len": 24 }),
        ),
        (
            VOCAB + 1,
            false,
            json!({ "optimizer": {"type": "sgd", "momentum": 0.9}, "seq_len": 9 }),
        ),
        (
            VOCAB,
            true,
            json!({ "precision": "bf16", "gradient_release": true, "max_grad_norm": 0.0, "document_mask": false }),
        ),
    ];
    for device in devices() {
        let small = limited(&device, LIMIT);
        for (vocab, tied, changes) in &cases {
            let (config, train) = (shape(*vocab, *tied), settings(changes));
            assert_same_in_parts(&config, &train, [&device, &small], 2);
        }
    }
}

/// Trains a new model on a device that has its table whole and on one that has it in two parts.
fn assert_same_in_parts(config: &ModelConfig, train: &TrainConfig, on: [&Device; 2], steps: usize) {
    let run = |device: &Device| {
        let model = fresh(config, train, device);
        let parts = parts_of(&model, "model.embed_tokens.weight");
        let trainer = Trainer::new(model, dataset(config.vocab_size), train.clone()).unwrap();
        (parts, ran(trainer, steps).0)
    };
    let [(one, whole), (several, parts)] = on.map(run);
    assert_eq!([one, several], [1, 2]);
    let (width, vocab) = (config.hidden_size, config.vocab_size);
    assert_same(&whole, &parts, &format!("{width} {vocab} {train:?}"));
}

/// Sums over the width are cut otherwise in each.
#[test]
fn tables_of_other_widths_have_the_bits_of_whole_ones() {
    for device in devices() {
        for (width, tied, changes) in [
            (64, true, json!({})),
            (640, false, json!({ "precision": "bf16", "seq_len": 24 })),
            (1024, true, json!({ "precision": "bf16", "seq_len": 8 })),
        ] {
            let small = limited(&device, (4 * width * 8400) as u64);
            let (config, train) = (shape_of(width, VOCAB, tied), settings(&changes));
            assert_same_in_parts(&config, &train, [&device, &small], 1);
        }
    }
}

#[test]
fn parts_are_few_and_end_with_units() {
    let cut = |rows: usize, most: usize| row_parts(rows, &|rows| rows <= most);
    assert_eq!(
        cut(262_144, 52_428),
        Some([vec![45_056; 4], vec![40_960; 2]].concat())
    );
    assert_eq!(cut(50_257, 50_257), Some(vec![50_257]));
    assert_eq!(cut(50_257, UNIT), None, "the rest stays with the last unit");
    assert_eq!(cut(13, 12), None);
    for rows in [UNIT, 2 * UNIT + 1, 99_999, 151_936] {
        for most in [UNIT, 2 * UNIT - 1, 3 * UNIT, 40_000] {
            let Some(parts) = cut(rows, most) else {
                continue;
            };
            let (last, before) = parts.split_last().unwrap();
            assert_eq!(before.iter().sum::<usize>() + last, rows);
            assert!(before.iter().all(|part| part.is_multiple_of(UNIT)) && *last >= UNIT.min(rows));
            assert!(parts.iter().all(|part| *part <= most));
            assert!(cut(rows, most * 2).unwrap().len() <= parts.len());
        }
    }
}

/// Files of a model, in f32 and as one GGUF of Q8_0.
fn bundle(types: &str) -> std::rc::Rc<Bundle> {
    opened(&base(&shape(VOCAB, true), types))
}

fn adapter() -> Value {
    json!({ "adapter": { "r": 3, "alpha": 6.0, "target_modules": "all-linear" }, "base_storage": "stored", "precision": "bf16" })
}

#[test]
fn an_adapter_trains_on_a_packed_table_in_parts() {
    let bundle = bundle("q8_0");
    let train = settings(&adapter());
    // 102 bytes of Q8_0 have the weights of a row.
    let limit = 102 * 5000;
    for device in devices() {
        let small = limited(&device, limit);
        let run = |device: &Device| {
            trace::start();
            let model = adapted(&bundle, &train, device);
            let held = model.frozen_weights().clone();
            let (ran, trainer) = ran(
                Trainer::new(model, dataset(VOCAB), train.clone()).unwrap(),
                2,
            );
            let launches = trace::finish().into_iter();
            let packed = launches.filter(|launch| launch.kernel.name.ends_with("q8_0"));
            let table = 4 * packed.map(|launch| launch.words[0]).max().unwrap() as u64;
            (ran, weights(trainer.model()), held, table)
        };
        let (whole, parts) = (run(&device), run(&small));
        assert_same(&whole.0, &parts.0, "adapter");
        assert_eq!(whole.1, parts.1);
        assert_eq!(whole.2, parts.2);
        assert!(
            whole.3 > limit && parts.3 <= limit,
            "{} {}",
            whole.3,
            parts.3
        );
    }
}

#[test]
fn a_run_continues_from_whole_to_parts_and_back() {
    let (bundle, train) = (bundle("f32"), settings(&json!({ "precision": "bf16" })));
    let (none, device) = (Interrupt::none(), gpu());
    let Some(device) = device else { return };
    let small = limited(&device, LIMIT);
    let begun = |device: &Device| {
        let inner = device.inner();
        let model = block_on(Model::for_run(&bundle, &train, &inner, &none)).unwrap();
        Trainer::new(model, dataset(VOCAB), train.clone()).unwrap()
    };
    let whole = ran(begun(&device), 4).0;
    for [from, to] in [[&device, &small], [&small, &device]] {
        let (_, trainer) = ran(begun(from), 2);
        let checkpoint = open(save_with(&trainer, &bundle));
        let inner = to.inner();
        let resumed = checkpoint.resume(dataset(VOCAB), None, &[], &inner, &none);
        let (parts, _) = ran(block_on(resumed).unwrap(), 2);
        let other = Ran {
            reports: whole.reports[2..].to_vec(),
            ..ran(begun(&device), 4).0
        };
        assert_same(&other, &parts, "resumed");
    }
}

#[test]
fn steps_in_parts_run_as_recorded_and_bind_little() {
    let (config, train) = (
        shape(VOCAB, true),
        settings(&json!({ "precision": "bf16", "seq_len": 16 })),
    );
    for device in devices() {
        let small = limited(&device, LIMIT);
        let begun = |device: &Device| {
            Trainer::new(
                fresh(&config, &train, device),
                dataset(VOCAB),
                train.clone(),
            )
            .unwrap()
        };
        let mut recorded = begun(&small);
        recorded.record_steps();
        let (launched, (recorded, trainer)) = (ran(begun(&device), 6).0, ran(recorded, 6));
        assert_same(&launched, &recorded, "recorded");
        let mut trainer = trainer;
        trace::start();
        block_on(trainer.step()).unwrap();
        let words = trace::finish().into_iter().flat_map(|launch| launch.words);
        assert!(4 * words.max().unwrap() as u64 <= LIMIT);
    }
}

#[test]
fn a_model_in_parts_writes_the_same_text() {
    let ids: Vec<i32> = (0..12).map(|i| (i * 997) % VOCAB as i32).collect();
    for device in devices() {
        let small = limited(&device, 102 * 5000);
        for (types, storage) in [("f32", BaseStorage::F32), ("q8_0", BaseStorage::Stored)] {
            let bundle = bundle(types);
            let logits = |device: &Device| {
                let (inner, none) = (device.inner(), Interrupt::none());
                let model =
                    block_on(Model::for_inference(&bundle, storage, &inner, &none)).unwrap();
                let ids = model.token_tensor(&ids).unwrap();
                let logits = model.forward(ids, Span::whole(1, 12));
                block_on(read_f32(logits)).unwrap()
            };
            let (whole, parts) = (logits(&device), logits(&small));
            assert!(
                whole
                    .iter()
                    .zip(&parts)
                    .all(|(a, b)| a.to_bits() == b.to_bits()),
                "{types}"
            );
        }
    }
}

#[test]
fn only_rules_that_step_each_element_take_parts() {
    let config = shape(VOCAB, true);
    let limits = DeviceLimits {
        max_buffer_size: LIMIT,
        max_storage_buffer_binding_size: LIMIT,
    };
    let check = |changes: Value| check_limits(&config, &settings(&changes), None, limits);
    check(json!({})).unwrap();
    check(json!({ "optimizer": {"type": "sgd"} })).unwrap();
    check(json!({ "optimizer": {"type": "apollo", "rank": 4} })).unwrap();
    for optimizer in [
        json!({"type": "adafactor"}),
        json!({"type": "apollo", "rank": 4, "projected": "all"}),
    ] {
        let refused = check(json!({ "optimizer": optimizer })).unwrap_err();
        assert!(matches!(refused, Error::LimitExceeded { .. }), "{refused}");
    }
    let fits = |changes: Value| {
        let train = settings(&changes);
        let estimate = estimate(&shape(400_000, true), &train, &|_| None).unwrap();
        estimate.fits[0].1
    };
    assert!(fits(json!({})) && !fits(json!({ "optimizer": {"type": "adafactor"} })));
    let Some(device) = gpu() else { return };
    let small = limited(&device, LIMIT);
    let train = settings(&json!({ "optimizer": {"type": "adafactor"} }));
    let refused = Trainer::new(
        fresh(&config, &train, &small),
        dataset(VOCAB),
        train.clone(),
    );
    let refused = refused.map(drop).unwrap_err().to_string();
    assert!(
        refused.contains("adamw or sgd for model.embed_tokens.weight"),
        "{refused}"
    );
}
