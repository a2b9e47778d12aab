//! Adapters that are trained on an unchanged base: arithmetic, packed bases, runs that are stopped and resumed, files.

mod beside;
mod budget;
mod estimate;
mod gguf_form;
mod gradients;
mod inference;
mod leaving;
mod merged;
mod packed;
mod packed_widths;
mod reference;
mod runs;
mod scores;

use std::rc::Rc;

use serde_json::{Value, json};
use tabtune::bundle::{Bundle, ModelAssets};
use tabtune::config::{ModelConfig, TrainConfig};
use tabtune::data::{Batch, Dataset};
use tabtune::device::Device;
use tabtune::export::{ExportFormat, ExportOptions, ExportSource, Weights, export};
use tabtune::families::config_from_hf;
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, open_model};
use tabtune_tests::{block_on, cpu};

pub type Files = Vec<(String, Vec<u8>)>;

/// Returns a Llama with rows of whole blocks of 32 and two blocks, so that their numbers matter. A pair of attention heads shares its keys.
pub fn shape() -> ModelConfig {
    let json = json!({
        "model_type": "llama", "vocab_size": 48, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 16, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": true, "initializer_range": 0.2
    });
    config_from_hf(&json).unwrap()
}

/// Returns a GPT-2, whose matrices are [in, out], and [out, in] in a GGUF file.
pub fn gpt2() -> ModelConfig {
    config_from_hf(&json!({ "model_type": "gpt2", "n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 16, "vocab_size": 48,
        "initializer_range": 0.2 }))
    .unwrap()
}

/// Exports a model of this shape as one GGUF file whose matrices are of this type.
pub fn base(config: &ModelConfig, types: &str) -> Files {
    let model = block_on(Model::init(
        config,
        7,
        tabtune::config::Precision::F32,
        &cpu().inner(),
        &Interrupt::none(),
    ))
    .unwrap();
    let source = ExportSource::of_weights(
        Weights::of_model(&model),
        ModelAssets::of_config(model.config(), None),
    );
    let options = ExportOptions {
        format: ExportFormat::Gguf,
        types: Some(types.into()),
        ..ExportOptions::default()
    };
    let mut files = written(&source, Vec::new(), &options);
    files.retain(|(name, _)| name.ends_with(".gguf"));
    files
}

/// Collects the files of an export.
pub fn written(
    source: &ExportSource,
    base: Vec<Rc<dyn ByteSource>>,
    options: &ExportOptions,
) -> Files {
    let mut stream = block_on(export(source, base, options)).unwrap();
    let mut files: Files = stream
        .files()
        .iter()
        .map(|file| (file.name.clone(), Vec::new()))
        .collect();
    while let Some(chunk) = block_on(stream.next_chunk()).unwrap() {
        files[chunk.file].1.extend(chunk.bytes);
    }
    files
}

pub fn sources(files: &Files) -> Vec<Rc<dyn ByteSource>> {
    files
        .iter()
        .map(|(name, bytes)| {
            Rc::new(MemorySource::new(name.clone(), bytes.clone())) as Rc<dyn ByteSource>
        })
        .collect()
}

pub fn opened(files: &Files) -> Rc<Bundle> {
    Rc::new(open_model(sources(files)).unwrap())
}

/// Returns the settings of a run with this adapter.
pub fn settings(adapter: Value, more: Value) -> TrainConfig {
    let json = json!({ "steps": 8, "batch_size": 2, "seq_len": 9, "learning_rate": 2e-2, "seed": 3, "adapter": adapter });
    let config = TrainConfig::default().overlaid(json).unwrap();
    if more.is_null() {
        config
    } else {
        config.overlaid(more).unwrap()
    }
}

pub fn adapted(bundle: &Bundle, config: &TrainConfig, device: &Device) -> Model {
    block_on(Model::for_run(
        bundle,
        config,
        &device.inner(),
        &Interrupt::none(),
    ))
    .unwrap()
}

pub fn dataset() -> Dataset {
    Dataset::from_tokens((0..600u32).map(|i| (i * i / 3 + 5 * i) % 48).collect(), 0.0).unwrap()
}

/// Makes two windows of nine tokens.
pub fn batch() -> Batch {
    let token = |i: i32| (i * i / 3 + 5 * i) % 48;
    let (inputs, targets) = (0..18).map(|i| (token(i), token(i + 1))).unzip();
    Batch {
        inputs,
        targets,
        batch_size: 2,
        seq_len: 9,
        document_starts: None,
    }
}
