//! Planned bytes of a step compared with those that the allocator counts.

use std::process::Command;

use serde_json::{Value, json};
use tabtune::config::{ModelConfig, TrainConfig};
use tabtune::data::Dataset;
use tabtune::device::Device;
use tabtune::families::config_from_hf;
use tabtune::gpu::launch::is_software;
use tabtune::gpu::profile::{KernelTimes, Profile};
use tabtune::gpu::trace::{watch_memory, watched_memory};
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::train::{Trainer, memory_plan};
use tabtune_tests::{as_a_gpu, block_on, gpu, in_full};

/// Environment variable of the process that measures. It is a process of its own, because bytes are counted for all tests of a process.
const ALONE: &str = "TABTUNE_TESTS_ALONE";

/// Returns true if this process is to measure; otherwise runs the test of this name in a process of its own.
fn measures(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut alone = Command::new(std::env::current_exe().unwrap());
    let found = alone
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    assert!(
        found.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&found.stdout),
        String::from_utf8_lossy(&found.stderr)
    );
    false
}

/// Returns the bytes in use after all work of the device is done.
fn in_use(device: &Device) -> u64 {
    device.inner().sync().unwrap();
    device.inner().memory_cleanup();
    device.inner().memory_pool_usage().unwrap().bytes_in_use
}

/// Returns the peak of the bytes in use in the second step of a run, and, if it is `profiled`, the one that a profile reports for the third.
fn found(
    model: impl FnOnce() -> Model,
    config: TrainConfig,
    device: &Device,
    profiled: bool,
) -> Vec<u64> {
    let before = in_use(device);
    let model = model();
    let vocabulary = u32::try_from(model.config().vocab_size).unwrap();
    let dataset =
        Dataset::from_tokens((0..4000).map(|i| i * 7919 % vocabulary).collect(), 0.0).unwrap();
    let mut trainer = Trainer::new(model, dataset, config).unwrap();
    block_on(trainer.step()).unwrap();
    watch_memory();
    block_on(trainer.step()).unwrap();
    let watched = watched_memory().in_use;
    if !profiled {
        return vec![watched - before];
    }
    let mut times = KernelTimes::default();
    let profile = Profile::start();
    block_on(trainer.step()).unwrap();
    block_on(profile.add_to(&mut times));
    let report = times.report();
    assert!(report.reserved_bytes >= report.in_use_bytes);
    vec![watched - before, report.in_use_bytes - before]
}

/// Compares with a bound, because some bytes are not planned: the allocator's rounding, sums of losses and norms, and the order of gradients.
fn compare(what: &str, planned: u64, found: Vec<u64>, bound: f64) {
    for found in found {
        let off = planned as f64 / found as f64 - 1.0;
        println!(
            "{what}: planned {planned}, in use {found}, {:+.2} %",
            100.0 * off
        );
        assert!(
            off.abs() < bound,
            "{what}: planned {planned}, in use {found}"
        );
    }
}

fn merged(parts: &[&Value]) -> TrainConfig {
    let mut settings = json!({"steps": 3});
    for part in parts {
        settings
            .as_object_mut()
            .unwrap()
            .extend(part.as_object().unwrap().clone());
    }
    serde_json::from_value(settings).unwrap()
}

#[test]
fn planned_bytes_are_those_in_use() {
    let (Some(device), Some(software)) = (as_a_gpu(), gpu()) else {
        return;
    };
    if !measures("memory::planned_bytes_are_those_in_use") {
        return;
    }
    let llama = json!({"model_type": "llama", "hidden_size": 96, "intermediate_size": 256, "num_attention_heads": 6, "num_key_value_heads": 3,
        "num_hidden_layers": 4, "max_position_embeddings": 128, "vocab_size": 700, "tie_word_embeddings": true});
    let qwen3 = json!({"model_type": "qwen3", "hidden_size": 96, "intermediate_size": 256, "num_attention_heads": 6, "num_key_value_heads": 3,
        "head_dim": 32, "num_hidden_layers": 3, "max_position_embeddings": 128, "vocab_size": 3000, "tie_word_embeddings": false});
    let gpt2 = json!({"model_type": "gpt2", "n_embd": 96, "n_head": 6, "n_layer": 4, "n_positions": 128, "vocab_size": 700});
    let olmo2 = json!({"model_type": "olmo2", "hidden_size": 96, "intermediate_size": 256, "num_attention_heads": 6, "num_key_value_heads": 3,
        "num_hidden_layers": 3, "max_position_embeddings": 128, "vocab_size": 700});
    // The peak is determined by parameters, or by activations.
    let few = json!({"batch_size": 1, "seq_len": 16, "precision": "f32"});
    let many = json!({"batch_size": 3, "seq_len": 50, "precision": "bf16"});
    let release =
        json!({"gradient_release": true, "max_grad_norm": 0.0, "optimizer": {"type": "adafactor"}});
    let orthogonal = json!({"optimizer": {"type": "apollo", "rank": 48, "projector": "orthogonal", "projected": "all"}});
    let apollo = json!({"optimizer": {"type": "apollo"}});
    // The first turn takes most, because every block has its backward pass. If the table trains in each turn, the last one takes most.
    let lowest = json!({"order": "ascending"});
    let blocks = [
        json!({"block_coordinate": lowest, "gradient_checkpointing": true, "gradient_accumulation_steps": 2}),
        json!({"block_coordinate": lowest}),
        json!({"block_coordinate": {"order": "descending", "blocks": 2, "norm": true, "embedding": true}, "gradient_checkpointing": true}),
    ];
    for (family, shape) in [
        ("llama", llama),
        ("qwen3", qwen3),
        ("gpt2", gpt2),
        ("olmo2", olmo2),
    ] {
        let shape = config_from_hf(&shape).unwrap();
        let modes = [
            json!({}),
            json!({"gradient_checkpointing": true}),
            json!({"gradient_accumulation_steps": 2}),
            release.clone(),
        ];
        // The full form has every mode and all blocks for each family, with few tokens in each.
        let whole = family == "llama" || in_full();
        let turns = if in_full() { 3 } else { usize::from(whole) };
        for (index, mode) in modes
            .iter()
            .take(if whole { 4 } else { 1 })
            .chain(&blocks[..turns])
            .chain((family == "llama").then_some(&orthogonal))
            .chain((family == "qwen3").then_some(&apollo))
            .enumerate()
        {
            let sizes = if (whole && index == 0) || in_full() {
                &[&few, &many][..]
            } else {
                &[&many]
            };
            for tokens in sizes {
                let config = merged(&[*tokens, mode]);
                let what = format!("{family} {tokens} {mode}");
                let compare = |kernels: &str, device: &Device, bound: f64| {
                    let planned = memory_plan(&shape, &config, None, is_software(&device.inner()))
                        .unwrap()
                        .total();
                    let model = || {
                        block_on(Model::init(
                            &shape,
                            1,
                            config.precision,
                            &device.inner(),
                            &Interrupt::none(),
                        ))
                        .unwrap()
                    };
                    compare(
                        &format!("{what} {kernels}"),
                        planned,
                        found(model, config.clone(), device, index == 0 || in_full()),
                        bound,
                    );
                };
                compare("as a GPU", &device, 5e-3);
                if (whole && index == 0) || in_full() {
                    compare("as software", &software, 1e-2);
                }
            }
        }
    }
}

#[test]
fn planned_bytes_of_mixed_blocks_are_those_in_use() {
    let Some(device) = as_a_gpu() else {
        return;
    };
    if !measures("memory::planned_bytes_of_mixed_blocks_are_those_in_use") {
        return;
    }
    let shape = |more: Value| {
        let mut shape = json!({"hidden_size": 96, "intermediate_size": 256, "num_attention_heads": 6, "num_key_value_heads": 3,
            "num_hidden_layers": 5, "max_position_embeddings": 512, "vocab_size": 700, "tie_word_embeddings": true});
        let fields = shape.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        config_from_hf(&shape).unwrap()
    };
    let shapes = [
        shape(
            json!({"model_type": "gemma3_text", "head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 64,
            "sliding_window_pattern": 3}),
        ),
        shape(
            json!({"model_type": "lfm2", "layer_types": ["conv", "conv", "full_attention", "conv", "full_attention"],
            "block_auto_adjust_ff_dim": false}),
        ),
        shape(
            json!({"model_type": "qwen3_5_text", "head_dim": 32, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
            "linear_key_head_dim": 32, "linear_value_head_dim": 32}),
        ),
    ];
    for (shape, mode) in shapes.iter().flat_map(|shape| {
        [json!({}), json!({"gradient_checkpointing": true})].map(|mode| (shape, mode))
    }) {
        let tokens = json!({"batch_size": 1, "seq_len": 512});
        let config = merged(&[&tokens, &mode]);
        let planned = memory_plan(shape, &config, None, false).unwrap().total();
        let model = || {
            block_on(Model::init(
                shape,
                1,
                config.precision,
                &device.inner(),
                &Interrupt::none(),
            ))
            .unwrap()
        };
        let what = format!("{} {mode}", shape.model_type);
        compare(
            &what,
            planned,
            found(model, config.clone(), &device, false),
            1e-2,
        );
    }
}

/// Returns the shape of a base whose adapter has factors on every matrix.
fn adapter_shape(vocabulary: usize, mlp: usize) -> ModelConfig {
    config_from_hf(
        &json!({"model_type": "qwen2", "hidden_size": 256, "intermediate_size": mlp, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 3, "max_position_embeddings": 128, "vocab_size": vocabulary, "tie_word_embeddings": true}),
    )
    .unwrap()
}

#[test]
fn planned_bytes_of_adapters_are_those_in_use() {
    let (Some(device), Some(software)) = (as_a_gpu(), gpu()) else {
        return;
    };
    if !measures("memory::planned_bytes_of_adapters_are_those_in_use") {
        return;
    }
    let few = json!({"batch_size": 1, "seq_len": 16});
    let many = json!({"batch_size": 3, "seq_len": 100});
    let some = json!({"batch_size": 2, "seq_len": 64});
    let again = json!({"gradient_checkpointing": true});
    let kept = json!({"gradient_checkpointing": false, "gradient_accumulation_steps": 2});
    // A vocabulary and an MLP whose sums are cut into slices, and ones whose sums are not. With few targets a block keeps less; that run is in f32.
    let (small, sliced) = (adapter_shape(700, 768), adapter_shape(9000, 4864));
    let [all, two] = [json!("all-linear"), json!(["q_proj", "v_proj"])];
    let runs = [
        (&sliced, "q8_0", "bf16", [&few, &kept], &all),
        (&small, "q4_k_m", "f32", [&many, &again], &all),
        (&small, "q8_0", "f32", [&many, &kept], &two),
        (&small, "q8_0", "bf16", [&many, &kept], &all),
        (&sliced, "q8_0", "bf16", [&some, &again], &all),
        (&small, "q4_0", "f32", [&few, &again], &all),
        (&small, "f16", "bf16", [&many, &again], &all),
        (&small, "q8_0", "f32", [&many, &again], &two),
        (&small, "f32", "f32", [&many, &again], &two),
    ];
    for (index, (shape, types, precision, parts, targets)) in runs
        .into_iter()
        .take(if in_full() { 9 } else { 2 })
        .enumerate()
    {
        let bundle = super::adapter::opened(&super::adapter::base(shape, types));
        let adapter =
            json!({"precision": precision, "adapter": {"r": 16, "target_modules": targets}});
        let config = merged(&[parts[0], parts[1], &adapter]);
        let all = [("a GPU", &device, 1e-2), ("software", &software, 1.5e-2)];
        for (kernels, device, bound) in
            all.into_iter()
                .take(if index == 0 || in_full() { 2 } else { 1 })
        {
            let planned = memory_plan(shape, &config, Some(&bundle), is_software(&device.inner()))
                .unwrap()
                .total();
            let what = format!(
                "{types} {} {precision} {parts:?} as {kernels}",
                shape.vocab_size
            );
            let model = || super::adapter::adapted(&bundle, &config, device);
            compare(
                &what,
                planned,
                found(model, config.clone(), device, index == 0 || in_full()),
                bound,
            );
        }
    }
}
