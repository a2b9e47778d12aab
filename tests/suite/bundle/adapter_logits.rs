//! Adapters that PEFT wrote, merged: the logits are those that PEFT computes with base and adapter apart. line 40.

use std::path::PathBuf;

use tabtune::bundle::{Bundle, ByteSource, OpenOptions};
use tabtune::config::Precision;
use tabtune::gpu::read_f32;
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, Span, open_model, open_model_with};
use tabtune_tests::{block_on, cpu};

use super::files::file;

fn golden(name: &str) -> Box<dyn ByteSource> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file(name.rsplit('/').next().unwrap(), bytes)
}

fn of_folder(folder: &str, names: [&str; 2]) -> Vec<Box<dyn ByteSource>> {
    names.iter().map(|name| golden(&format!("{folder}/{name}"))).collect()
}

fn adapter(name: &str) -> OpenOptions {
    OpenOptions {
        adapter: Some(of_folder(&format!("adapters/{name}"), ["adapter_config.json", "adapter_model.safetensors"])),
        ..OpenOptions::default()
    }
}

fn logits(bundle: &Bundle, ids: &[i32]) -> Vec<f32> {
    let model = block_on(Model::from_bundle(bundle, Precision::F32, &cpu().inner(), &Interrupt::none())).unwrap();
    block_on(read_f32(model.forward(model.token_tensor(ids).unwrap(), Span::whole(1, ids.len())))).unwrap()
}

/// Largest difference as a share of the largest logit.
fn difference(found: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0f64, |max, value| max.max(value.abs()));
    found.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max) / largest
}

#[test]
fn adapters_of_peft_give_its_logits() {
    let document = golden("adapters/logits.json");
    let document: serde_json::Value = serde_json::from_slice(&tabtune::bundle::read_whole(document.as_ref()).unwrap()).unwrap();
    let ids: Vec<i32> = serde_json::from_value(document["ids"].clone()).unwrap();
    for name in ["gpt2", "qwen2-patterns", "qwen2-saved", "qwen2-tied-embedding"] {
        let expected: Vec<Vec<f64>> = serde_json::from_value(document["logits"][name].clone()).unwrap();
        let expected = expected.concat();
        let family = name.split('-').next().unwrap();
        let folder = || of_folder(&format!("models/{family}"), ["config.json", "model.safetensors"]);
        let base = logits(&open_model(folder()).unwrap(), &ids);
        assert!(difference(&base, &expected) > 0.1, "{name} changes little");
        for files in [folder(), vec![golden(&format!("models/{family}.gguf"))]] {
            let merged = open_model_with(files, adapter(name)).unwrap();
            // Some hundred f32 operations deep on both sides.
            let error = difference(&logits(&merged, &ids), &expected);
            assert!(error < 1e-5, "{name} of {}: {error:e}", merged.source_format);
        }
    }
}
