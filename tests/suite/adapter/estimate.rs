//! Memory estimates for runs of well-known shapes, and runs that a device cannot hold.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tabtune::Error;
use tabtune::config::{ModelConfig, TrainConfig};
use tabtune::device::DeviceLimits;
use tabtune::export::GgufTypes;
use tabtune::families::config_from_hf;
use tabtune::model::{ParameterRequest, files_form};
use tabtune::train::{Estimate, check_limits, estimate};

use super::{base, opened, settings, shape};

/// Reads the shapes of `golden/shapes.json`.
fn shapes() -> BTreeMap<String, ModelConfig> {
    let bytes =
        std::fs::read(format!("{}/golden/shapes.json", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let all: BTreeMap<String, Value> = serde_json::from_slice(&bytes).unwrap();
    all.into_iter()
        .map(|(name, config)| (name, config_from_hf(&config).unwrap()))
        .collect()
}

fn train(precision: &str) -> TrainConfig {
    let adapter = json!({ "r": 16, "alpha": 32.0, "target_modules": "all-linear" });
    settings(
        adapter,
        json!({ "batch_size": 1, "seq_len": 512, "precision": precision }),
    )
}

fn estimated(model: &ModelConfig, types: &str, train: &TrainConfig) -> Estimate {
    let types = GgufTypes::from_word(types).unwrap();
    estimate(model, train, &|request: &ParameterRequest| {
        types.planned_form(request, model)
    })
    .unwrap()
}

/// Figures computed by hand for r = 16 on every matrix and one sequence of 512 tokens with recomputed blocks: megabytes of the base in Q4_K_M and
/// in Q8_0, millions of trained values, megabytes of the block inputs and of one block.
const PAPER: [(&str, [f64; 2], f64, [f64; 2]); 5] = [
    ("Qwen2.5-0.5B", [392.0, 525.0], 8.8, [46.0, 54.0]),
    ("Qwen2.5-1.5B", [980.0, 1640.0], 18.5, [91.0, 97.0]),
    ("Llama-3.2-3B", [2011.0, 3413.0], 24.3, [182.0, 116.0]),
    ("Mistral-7B", [4371.0, 7701.0], 41.9, [277.0, 181.0]),
    ("Qwen2.5-7B", [4676.0, 8091.0], 40.4, [213.0, 209.0]),
];
/// Megabytes of 64 MiB of logits and of their gradient, which is as large.
const LOGITS: f64 = 134.0;

/// Returns the megabytes of the logits of a run: as many rows as fit into 64 MiB, in tiles of 64.
fn logits_of_a_run(vocab_size: usize) -> f64 {
    let rows = ((64 << 20) / 4 / vocab_size / 64 * 64).min(512);
    (4 * rows * vocab_size) as f64 / 1e6
}

fn near(name: &str, found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() <= 0.05,
        "{name}: {found}, on paper {expected}"
    );
}

/// The figures by hand add up the logits, their gradient, a block and all gradients. They never exist at once: the gradient of the logits is
/// written in their place, the head is finished before the blocks' backward pass, the factors get their gradients after that, and the input of a
/// block's last layer is freed before its gradient is made. A run needs less, but at least the largest of them.
#[test]
fn estimates_are_those_on_paper() {
    let shapes = shapes();
    for (name, bases, trained, [inputs, block]) in PAPER {
        let model = &shapes[name];
        for (types, base) in ["q4_k_m", "q8_0"].into_iter().zip(bases) {
            for (precision, each) in [("f32", 16.0), ("bf16", 10.0)] {
                let found = estimated(model, types, &train(precision));
                let (name, mb) = (format!("{name} {types} {precision}"), |bytes: u64| {
                    bytes as f64 / 1e6
                });
                let parts = found.parts;
                let rotary = mb(4 * (model.max_position_embeddings * model.head_dim) as u64);
                near(&name, mb(parts.base.unwrap()) - rotary, base);
                near(&name, found.trained as f64 / 1e6, trained);
                near(
                    &name,
                    mb(parts.adapter.unwrap() + parts.grads + parts.optimizer),
                    each * trained,
                );
                let (peak, grads) = (mb(parts.grads + parts.activations), mb(parts.grads));
                let block_at_once = block - mb(4 * 512 * model.intermediate_size as u64);
                assert!(
                    peak >= 0.95 * (inputs + block_at_once.max(logits_of_a_run(model.vocab_size))),
                    "{name}: {peak}"
                );
                assert!(
                    peak <= 1.05 * (grads + inputs + block + LOGITS),
                    "{name}: {peak}"
                );
                println!(
                    "{name}: {:.0} MB, on paper {:.0}",
                    mb(found.need_bytes),
                    base + each * trained + inputs + block + LOGITS
                );
                let sum = [parts.base, parts.adapter, parts.weights]
                    .into_iter()
                    .flatten()
                    .sum::<u64>();
                assert_eq!(
                    sum + parts.grads + parts.optimizer + parts.activations,
                    found.need_bytes
                );
            }
        }
    }
}

/// Rows of 896 and of 576 weights are not whole blocks of 256.
#[test]
fn estimates_count_the_types_that_rows_fall_back_to() {
    let shapes = shapes();
    let table =
        |name: &str, types: &str| estimated(&shapes[name], types, &train("f32")).largest_tensor;
    // Q6_K becomes Q8_0: 34 bytes for 32 weights.
    assert_eq!(
        table("Qwen2.5-0.5B", "q4_k_m").bytes,
        151_936 * 896 / 32 * 34
    );
    assert_eq!(
        table("Qwen2.5-1.5B", "q4_k_m").bytes,
        151_936 * 1536 / 256 * 210
    );
    assert_eq!(
        (
            table("Qwen2.5-7B", "q4_k_m").name,
            table("Llama-3.2-3B", "q4_k_m").name
        ),
        ("lm_head.weight".into(), "model.embed_tokens.weight".into())
    );
    assert_eq!(table("SmolLM2-135M", "q4_1").bytes, 49_152 * 576 / 32 * 20);
    // All weights in f32, and their moments.
    let full = estimated(
        &shapes["SmolLM2-135M"],
        "q4_1",
        &TrainConfig {
            adapter: None,
            ..train("f32")
        },
    );
    assert_eq!(
        (full.trained, full.parts.base, full.parts.optimizer),
        (134_515_008, None, 8 * 134_515_008)
    );
}

/// The estimate from the files of a base equals the one planned from their types.
#[test]
fn estimates_of_files_are_those_of_their_types() {
    let mut wide = shape();
    (wide.hidden_size, wide.intermediate_size, wide.head_dim) = (256, 512, 64);
    for (model, types) in [
        (shape(), "q8_0"),
        (shape(), "q4_k_m"),
        (wide, "q4_k_m"),
        (shape(), "bf16"),
        (shape(), "f16"),
    ] {
        let train = settings(json!({ "target_modules": "all-linear" }), Value::Null);
        let bundle = opened(&base(&model, types));
        assert_eq!(
            estimate(&bundle.config, &train, &files_form(Some(&bundle))).unwrap(),
            estimated(&model, types, &train),
            "{types}"
        );
    }
}

/// The table in README equals the estimates.
#[test]
fn estimates_are_those_of_the_readme() {
    let shapes = shapes();
    let readme =
        std::fs::read_to_string(format!("{}/../README.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let rows = [
        "Qwen2.5-0.5B",
        "Qwen2.5-1.5B",
        "Llama-3.2-3B",
        "Mistral-7B",
        "Qwen2.5-7B",
    ]
    .map(|name| {
        let of = |types: &str| estimated(&shapes[name], types, &train("f32"));
        let gb = |types: &str| format!("{:.1}", of(types).need_bytes as f64 / 1e9);
        let tensor = of("q4_k_m").largest_tensor.bytes as f64 / 1e6;
        let fits = of("q4_k_m").fits;
        let mut memory = fits
            .iter()
            .filter_map(|(limit, fits)| limit.strip_prefix("memory of ").filter(|_| *fits));
        let least = memory.next().unwrap();
        format!(
            "| {} | {} | {} | {least} | {tensor:.0} MB |",
            name.replace('-', " "),
            gb("q4_k_m"),
            gb("q8_0")
        )
    });
    let lacking: Vec<&String> = rows
        .iter()
        .filter(|row| !readme.lines().any(|line| line == *row))
        .collect();
    assert!(lacking.is_empty(), "README.md lacks {lacking:#?}");
}

#[test]
fn estimates_say_what_runs_fit() {
    let shapes = shapes();
    let fits = |name: &str, limit: &str| {
        estimated(&shapes[name], "q4_k_m", &train("f32"))
            .fits
            .contains(&(limit, true))
    };
    // Tables may lie in parts; the MLP of 7B is 18,944 wide.
    assert!(fits("Qwen2.5-0.5B", "buffers of 128 MiB") && fits("Qwen2.5-7B", "buffers of 128 MiB"));
    assert!(
        fits("Qwen2.5-1.5B", "memory of 2 GB")
            && !fits("Llama-3.2-3B", "memory of 2 GB")
            && fits("Llama-3.2-3B", "memory of 4 GB")
    );
    assert!(fits("Qwen2.5-7B", "memory of 8 GB") && !fits("Qwen2.5-7B", "memory of 6 GB"));
}

#[test]
fn runs_beyond_a_limit_are_refused_before_anything_is_there() {
    let model = shape();
    let bundle = opened(&base(&model, "q8_0"));
    let limits = |most: u64| DeviceLimits {
        max_buffer_size: 1 << 30,
        max_storage_buffer_binding_size: most,
    };
    let refused = |train: &TrainConfig, most: u64| {
        check_limits(&bundle.config, train, Some(&bundle), limits(most)).unwrap_err()
    };
    // gate_proj [64, 32] as stored, and the widest activation of one token.
    let packed = settings(json!({ "r": 1 }), json!({ "batch_size": 1, "seq_len": 2 }));
    check_limits(
        &bundle.config,
        &packed,
        Some(&bundle),
        limits(64 * 32 / 32 * 34),
    )
    .unwrap();
    assert!(matches!(
        refused(&packed, 2175),
        Error::LimitExceeded {
            limit: "maxStorageBufferBindingSize",
            need: 2176,
            have: 2175
        }
    ));
    let widened = TrainConfig {
        base_storage: tabtune::config::BaseStorage::F32,
        ..packed.clone()
    };
    assert!(matches!(
        refused(&widened, 2176),
        Error::LimitExceeded {
            need: 8192,
            have: 2176,
            ..
        }
    ));
    let long = TrainConfig {
        batch_size: 4,
        seq_len: 16,
        ..packed
    };
    assert!(matches!(
        refused(&long, 4096),
        Error::LimitExceeded {
            need: 16_384,
            have: 4096,
            ..
        }
    ));
    // A trained head has a gradient in f32.
    let shapes = shapes();
    let big = &shapes["Qwen2.5-7B"];
    let saved = settings(json!({ "modules_to_save": ["lm_head"] }), Value::Null);
    assert_eq!(
        estimated(big, "q4_k_m", &saved).largest_tensor.bytes,
        4 * 152_064 * 3584
    );
}
