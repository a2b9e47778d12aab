//! Merged PEFT adapters: the logits equal those that PEFT computes with base and adapter separate (tests/suite/portable/README.md, line 40).

use std::path::PathBuf;
use std::rc::Rc;

use safetensors::Dtype;
use tabtune::bundle::{Bundle, OpenOptions};
use tabtune::config::Precision;
use tabtune::formats::ByteSource;
use tabtune::gpu::read_f32;
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, Span, open_model, open_model_with};
use tabtune_tests::{block_on, cpu};

use super::adapter::{Stored, written};
use super::files::file;

fn golden(name: &str) -> Rc<dyn ByteSource> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file(name.rsplit('/').next().unwrap(), bytes)
}

fn of_folder(folder: &str, names: [&str; 2]) -> Vec<Rc<dyn ByteSource>> {
    names
        .iter()
        .map(|name| golden(&format!("{folder}/{name}")))
        .collect()
}

fn adapter(name: &str) -> OpenOptions {
    OpenOptions {
        adapter: Some(of_folder(
            &format!("adapters/{name}"),
            ["adapter_config.json", "adapter_model.safetensors"],
        )),
        ..OpenOptions::default()
    }
}

fn logits(bundle: &Bundle, ids: &[i32]) -> Vec<f32> {
    let model = block_on(Model::from_bundle(
        bundle,
        Precision::F32,
        &cpu().inner(),
        &Interrupt::none(),
    ))
    .unwrap();
    block_on(read_f32(model.forward(
        model.token_tensor(ids).unwrap(),
        Span::whole(1, ids.len()),
    )))
    .unwrap()
}

/// Returns the largest difference as a share of the largest logit.
fn difference(found: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let largest = expected
        .iter()
        .fold(0.0f64, |max, value| max.max(value.abs()));
    found
        .iter()
        .zip(expected)
        .map(|(a, b)| (f64::from(*a) - b).abs())
        .fold(0.0, f64::max)
        / largest
}

/// A model for training begins with the sums in f32, even if files in the base's type would round them.
#[test]
fn a_merged_base_in_bf16_is_loaded_unrounded() {
    let base = open_model(of_folder(
        "models/qwen2",
        ["config.json", "model.safetensors"],
    ))
    .unwrap();
    let halves: Vec<Stored> = base
        .names()
        .iter()
        .map(|name| {
            (
                name.to_string(),
                Dtype::BF16,
                base.shape(name).unwrap(),
                base.read_f32(name).unwrap(),
            )
        })
        .collect();
    let folder = || {
        vec![
            golden("models/qwen2/config.json"),
            file("model.safetensors", written(&halves)),
        ]
    };
    let opened = |exact| {
        open_model_with(
            folder(),
            OpenOptions {
                exact,
                ..adapter("qwen2-patterns")
            },
        )
        .unwrap()
    };
    let (rounded, exact) = (opened(false), opened(true));
    let differs = |name: &str| rounded.read_f32(name).unwrap() != exact.read_f32(name).unwrap();
    assert!(
        base.names().iter().any(|name| differs(name)),
        "what is written is rounded"
    );
    assert_eq!(logits(&rounded, &[1, 2, 3]), logits(&exact, &[1, 2, 3]));
}

#[test]
fn adapters_of_peft_give_its_logits() {
    let document = golden("adapters/logits.json");
    let document: serde_json::Value =
        serde_json::from_slice(&tabtune::formats::read_whole(document.as_ref()).unwrap()).unwrap();
    let ids: Vec<i32> = serde_json::from_value(document["ids"].clone()).unwrap();
    for name in [
        "gpt2",
        "qwen2-patterns",
        "qwen2-saved",
        "qwen2-tied-embedding",
    ] {
        let expected: Vec<Vec<f64>> =
            serde_json::from_value(document["logits"][name].clone()).unwrap();
        let expected = expected.concat();
        let family = name.split('-').next().unwrap();
        let folder = || {
            of_folder(
                &format!("models/{family}"),
                ["config.json", "model.safetensors"],
            )
        };
        let base = logits(&open_model(folder()).unwrap(), &ids);
        assert!(difference(&base, &expected) > 0.1, "{name} changes little");
        for files in [folder(), vec![golden(&format!("models/{family}.gguf"))]] {
            let merged = open_model_with(files, adapter(name)).unwrap();
            // Some hundred f32 operations deep on both sides.
            let error = difference(&logits(&merged, &ids), &expected);
            assert!(
                error < 1e-5,
                "{name} of {}: {error:e}",
                merged.source_format
            );
        }
    }
}
