//! A packed base gives the bits of its decoded weights, through whole runs.

use serde_json::{Value, json};
use tabtune::device::Device;
use tabtune::families::config_from_hf;
use tabtune::gpu::read_f32;
use tabtune::model::Span;
use tabtune::train::Trainer;
use tabtune_tests::{as_a_gpu, block_on, cpu, devices, in_full, weights};

use super::{adapted, base, dataset, gpt2, opened, settings, shape};

const TYPES: [&str; 10] = [
    "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q6_k", "q4_k_m",
];

/// Name and bits of each trained tensor.
type Trained = Vec<(String, Vec<u8>)>;

/// Results of three steps: losses, trained weights, and the storage types of the base on the device.
struct Ran {
    losses: Vec<f64>,
    trained: Trained,
    held: Vec<String>,
}

/// Rank, length of the two sequences of a step, and precision of the factors.
type Size = (u64, u64, &'static str);

fn run(types: &str, storage: &str, (rank, seq_len, precision): Size, device: &Device) -> Ran {
    // Rows of whole blocks of 256.
    let wide = types.contains("_k");
    let mut config = shape();
    if wide {
        (
            config.hidden_size,
            config.intermediate_size,
            config.head_dim,
        ) = (256, 256, 64);
    }
    let bundle = opened(&base(&config, types));
    let adapter = json!({ "r": rank, "alpha": 6.0, "target_modules": "all-linear" });
    let config = settings(
        adapter,
        json!({ "base_storage": storage, "steps": 3, "seq_len": seq_len, "precision": precision }),
    );
    let mut trainer = Trainer::new(adapted(&bundle, &config, device), dataset(), config).unwrap();
    let losses = (0..3)
        .map(|_| block_on(trainer.step()).unwrap().loss)
        .collect();
    let held = trainer
        .model()
        .frozen_weights()
        .matrices
        .keys()
        .cloned()
        .collect();
    Ran {
        losses,
        trained: weights(trainer.model()),
        held,
    }
}

/// Covers products as separate operations and, for GPUs, with the low-rank part inside. The full form has separate operations for every type on
/// every device.
#[test]
fn adapter_of_a_packed_base_has_the_bits_of_the_decoded_one() {
    let few = if in_full() {
        &TYPES[..]
    } else {
        &["q5_0", "q4_k_m"]
    };
    let by_parts = devices()
        .into_iter()
        .map(|device| (device, (3, 9, "f32"), few));
    let fused = as_a_gpu().into_iter().flat_map(|device| {
        [
            (device.clone(), (4, 16, "f32"), &TYPES[..]),
            (device, (4, 16, "bf16"), &TYPES[2..3]),
        ]
    });
    for (device, size, types) in by_parts.chain(fused) {
        for &types in types {
            let (packed, decoded) = (
                run(types, "stored", size, &device),
                run(types, "f32", size, &device),
            );
            assert_eq!(packed.losses, decoded.losses, "{types}");
            assert!(packed.trained == decoded.trained, "{types}: other weights");
            let stays = match types {
                "q4_k_m" => vec!["Q4_K", "Q6_K"],
                other => vec![other],
            };
            let stays: Vec<String> = stays.iter().map(|name| name.to_uppercase()).collect();
            assert_eq!(packed.held, stays, "{types}");
        }
    }
}

/// Covers rows and columns that a GGUF file has in another order: value heads of Qwen3.5, of whole blocks.
#[test]
fn tiled_heads_of_a_packed_base_have_the_bits_of_the_decoded_one() {
    let config = config_from_hf(&json!({
        "model_type": "qwen3_5_text", "vocab_size": 48, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32, "max_position_embeddings": 16, "initializer_range": 0.2,
        "tie_word_embeddings": true, "layer_types": ["linear_attention", "full_attention"], "linear_num_key_heads": 2,
        "linear_num_value_heads": 6, "linear_key_head_dim": 32, "linear_value_head_dim": 32,
        "rope_parameters": { "rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5 }
    }))
    .unwrap();
    let bundle = opened(&base(&config, "q8_0"));
    for device in devices() {
        let trained = |storage: &str| {
            let adapter = json!({ "r": 3, "target_modules": "all-linear" });
            let config = settings(adapter, json!({ "base_storage": storage, "steps": 2 }));
            let model = adapted(&bundle, &config, &device);
            let held = model.frozen_weights().matrices.clone();
            let mut trainer = Trainer::new(model, dataset(), config).unwrap();
            let losses = [(); 2].map(|()| block_on(trainer.step()).unwrap().loss);
            (losses, weights(trainer.model()), held)
        };
        let (packed, decoded) = (trained("stored"), trained("f32"));
        assert_eq!(packed.0, decoded.0);
        assert!(packed.1 == decoded.1, "other weights");
        assert!(packed.2["Q8_0"] > 10 && !decoded.2.contains_key("Q8_0"));
    }
}

/// Trains two steps of SGD, whose weights have the bits of the gradients. Returns losses and trained weights.
fn steps_with(
    targets: &[&str],
    rank: u64,
    types: &str,
    storage: &str,
    device: &Device,
) -> (Vec<f64>, Trained) {
    let adapter = json!({ "r": rank, "target_modules": targets });
    let sgd = json!({ "type": "sgd", "momentum": 0.0, "weight_decay": 0.0 });
    let changes = json!({ "base_storage": storage, "steps": 2, "learning_rate": 0.5, "optimizer": sgd, "max_grad_norm": 0.0 });
    let config = settings(adapter, changes);
    let mut trainer = Trainer::new(
        adapted(&opened(&base(&shape(), types)), &config, device),
        dataset(),
        config,
    )
    .unwrap();
    let losses = (0..2)
        .map(|_| block_on(trainer.step()).unwrap().loss)
        .collect();
    (losses, weights(trainer.model()))
}

/// Covers matrices of one input of which some are targets: every subset of queries, keys and values, and of gate and up. The full form combines
/// them with every rank and type.
#[test]
fn some_targets_of_one_input_have_the_bits_of_the_decoded_base() {
    let subset = |names: &[&'static str], bits: usize| -> Vec<&'static str> {
        names
            .iter()
            .enumerate()
            .filter(|(at, _)| bits >> at & 1 == 1)
            .map(|(_, name)| *name)
            .collect()
    };
    let (ranks, types) = ([1, 7, 16], ["q8_0", "q4_0", "f16"]);
    let all = (0..8).flat_map(|a| (0..4).flat_map(move |b| (0..9).map(move |c| (a, b, c))));
    let cases: Vec<(usize, usize, usize)> = if in_full() {
        all.collect()
    } else {
        (0..8).map(|at| (at, at % 4, at)).collect()
    };
    for device in devices().into_iter().chain(as_a_gpu()) {
        for &(attention, gated, kind) in &cases {
            let mut targets = [
                subset(&["q_proj", "k_proj", "v_proj"], attention),
                subset(&["gate_proj", "up_proj"], gated),
            ]
            .concat();
            if targets.is_empty() {
                targets.push("o_proj");
            }
            let (rank, types) = (ranks[kind % 3], types[kind / 3 % 3]);
            let [packed, decoded] = ["stored", "f32"]
                .map(|storage| steps_with(&targets, rank, types, storage, &device));
            assert!(
                packed == decoded,
                "{targets:?} of rank {rank} beside {types}: other bits on {}",
                device.info().adapter
            );
        }
    }
}

/// Trains two steps of a GPT-2 of this width. Returns trained weights and the bits of the logits of 1, 2, 3 and 33 rows.
fn run_gpt2(width: usize, types: &str, storage: &str, device: &Device) -> (Trained, Vec<Vec<u32>>) {
    let mut config = gpt2();
    (
        config.hidden_size,
        config.intermediate_size,
        config.head_dim,
    ) = (width, 2 * width, width / 4);
    let bundle = opened(&base(&config, types));
    let adapter = json!({ "r": 3, "alpha": 4.0, "target_modules": "all-linear" });
    let config = settings(adapter, json!({ "base_storage": storage, "steps": 2 }));
    let mut trainer = Trainer::new(adapted(&bundle, &config, device), dataset(), config).unwrap();
    for _ in 0..2 {
        block_on(trainer.step()).unwrap();
    }
    let model = trainer.model();
    let logits = [(1, 1), (1, 2), (3, 1), (3, 11)].map(|(batch, len)| {
        let ids: Vec<i32> = (0..batch * len).map(|i| (7 * i + i * i / 3) % 48).collect();
        let span = Span::whole(
            usize::try_from(batch).unwrap(),
            usize::try_from(len).unwrap(),
        );
        let logits = block_on(read_f32(
            model.forward(model.token_tensor(&ids).unwrap(), span),
        ))
        .unwrap();
        logits.into_iter().map(f32::to_bits).collect()
    });
    (weights(model), logits.to_vec())
}

/// The kernels of a product with a matrix [in, out] differ from those of its transpose: for one row `linear_row` has another order of sums.
#[test]
fn adapter_of_a_packed_gpt2_has_the_bits_of_the_decoded_one() {
    for device in devices() {
        // Rows of whole blocks, and widths that are not multiples of 32.
        for (width, types) in [
            (32, "q8_0"),
            (32, "q5_0"),
            (256, "q4_k_m"),
            (36, "f16"),
            (20, "f16"),
        ] {
            let (packed, decoded) = (
                run_gpt2(width, types, "stored", &device),
                run_gpt2(width, types, "f32", &device),
            );
            assert!(packed.0 == decoded.0, "{types} {width}: other weights");
            for (rows, (packed, decoded)) in [1, 2, 3, 33]
                .into_iter()
                .zip(packed.1.into_iter().zip(decoded.1))
            {
                assert!(
                    packed == decoded,
                    "{types} {width}: other logits of {rows} rows on {}",
                    device.info().adapter
                );
            }
        }
    }
}

/// A rank that saves nothing is reported. All types that exports write have kernels, so none is widened.
#[test]
fn adapter_runs_tell_what_is_worth_knowing() {
    let bundle = opened(&base(&shape(), "q8_0"));
    let told = |rank: u64| {
        let config = settings(json!({ "r": rank }), Value::Null);
        let trainer = Trainer::new(adapted(&bundle, &config, &cpu()), dataset(), config).unwrap();
        trainer
            .notices()
            .iter()
            .map(|notice| notice.code)
            .collect::<Vec<_>>()
    };
    assert_eq!(told(16), [""; 0]);
    // v_proj has 16 rows.
    assert_eq!(told(17), ["adapter.rank.large"]);
}

#[test]
fn adapter_next_to_a_base_counts_what_the_device_holds() {
    let bundle = opened(&base(&shape(), "q8_0"));
    let config = settings(json!({ "target_modules": "all-linear" }), Value::Null);
    let model = adapted(&bundle, &config, &cpu());
    // 14 matrices inside the blocks and the table: 34 bytes for 32 weights; five norms in f32.
    let weights = 48 * 32 + 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 64 * 32);
    assert_eq!(model.frozen_weights().matrices.get("Q8_0"), Some(&15));
    assert_eq!(model.frozen_weights().bytes, weights / 32 * 34 + 5 * 32 * 4);
}
