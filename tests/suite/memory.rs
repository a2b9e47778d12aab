//! The planned bytes of a step against those that the allocator counts.

use std::process::Command;

use serde_json::json;
use tabtune::bundle::config_from_hf;
use tabtune::config::{ModelConfig, TrainConfig};
use tabtune::data::Dataset;
use tabtune::device::Device;
use tabtune::gpu::trace::{watch_memory, watched_memory};
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::train::{Trainer, memory_plan};
use tabtune_tests::{block_on, gpu};

/// Set in the process that measures: bytes are counted for all tests of a process.
const ALONE: &str = "TABTUNE_TESTS_ALONE";

/// Bytes in use when all that was asked of the device is done.
fn in_use(device: &Device) -> u64 {
    device.inner().sync().unwrap();
    device.inner().memory_cleanup();
    device.inner().memory_pool_usage().unwrap().bytes_in_use
}

/// Planned bytes of a step and the most in use in the second.
fn planned_and_found(shape: &ModelConfig, settings: &serde_json::Value, device: &Device) -> (u64, u64) {
    let config: TrainConfig = serde_json::from_value(settings.clone()).unwrap();
    let before = in_use(device);
    let model = block_on(Model::init(shape, 1, config.precision, &device.inner(), &Interrupt::none())).unwrap();
    let planned = memory_plan(model.config(), &config, None).unwrap().total();
    let dataset = Dataset::from_tokens((0..4000).map(|i| i * 7919 % shape.vocab_size as u32).collect(), 0.0).unwrap();
    let mut trainer = Trainer::new(model, dataset, config).unwrap();
    block_on(trainer.step()).unwrap();
    watch_memory();
    block_on(trainer.step()).unwrap();
    (planned, watched_memory().in_use - before)
}

#[test]
fn planned_bytes_are_those_in_use() {
    let Some(device) = gpu() else { return };
    if std::env::var_os(ALONE).is_none() {
        let mut alone = Command::new(std::env::current_exe().unwrap());
        let found = alone.args(["--exact", "memory::planned_bytes_are_those_in_use", "--nocapture"]).env(ALONE, "1").output().unwrap();
        assert!(found.status.success(), "{}\n{}", String::from_utf8_lossy(&found.stdout), String::from_utf8_lossy(&found.stderr));
        return;
    }
    let llama = json!({"model_type": "llama", "hidden_size": 96, "intermediate_size": 256, "num_attention_heads": 6, "num_key_value_heads": 3,
        "num_hidden_layers": 4, "max_position_embeddings": 128, "vocab_size": 700, "tie_word_embeddings": true});
    let qwen3 = json!({"model_type": "qwen3", "hidden_size": 96, "intermediate_size": 256, "num_attention_heads": 6, "num_key_value_heads": 3,
        "head_dim": 32, "num_hidden_layers": 3, "max_position_embeddings": 128, "vocab_size": 3000, "tie_word_embeddings": false});
    let gpt2 = json!({"model_type": "gpt2", "n_embd": 96, "n_head": 6, "n_layer": 4, "n_positions": 128, "vocab_size": 700});
    // Parameters decide the most bytes, or activations.
    let few = json!({"batch_size": 1, "seq_len": 16, "precision": "f32"});
    let many = json!({"batch_size": 3, "seq_len": 100, "precision": "bf16"});
    let release = json!({"gradient_release": true, "max_grad_norm": 0.0, "optimizer": {"type": "adafactor"}});
    let orthogonal = json!({"optimizer": {"type": "apollo", "rank": 48, "projector": "orthogonal"}});
    for (family, shape) in [("llama", llama), ("qwen3", qwen3), ("gpt2", gpt2)] {
        let shape = config_from_hf(&shape).unwrap();
        let modes = [json!({}), json!({"gradient_checkpointing": true}), json!({"gradient_accumulation_steps": 2}), release.clone()];
        for mode in modes.iter().chain((family == "llama").then_some(&orthogonal)) {
            for tokens in [&few, &many] {
                let mut settings = json!({"steps": 2});
                for part in [tokens, mode] {
                    settings.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
                }
                let (planned, found) = planned_and_found(&shape, &settings, &device);
                let off = planned as f64 / found as f64 - 1.0;
                println!("{family} {settings}: planned {planned}, in use {found}, {:+.2} %", 100.0 * off);
                // Not planned: what the allocator rounds up, sums of losses and norms, and which gradient comes before which.
                assert!(off.abs() < 1e-2, "{family} {settings}: planned {planned}, in use {found}");
            }
        }
    }
}
