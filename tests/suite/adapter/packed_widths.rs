//! A packed base gives the bits of its decoded weights at widths that choose every kernel: a sum of products may be cut into parts that a
//! narrow model does not have.

use std::collections::BTreeSet;

use serde_json::json;
use tabtune::bundle::Bundle;
use tabtune::config::ModelConfig;
use tabtune::data::Dataset;
use tabtune::device::Device;
use tabtune::gpu::trace;
use tabtune::train::Trainer;
use tabtune_tests::{as_a_gpu, block_on, gpu, in_full, weights};

use super::{adapted, base, dataset, opened, settings, shape};

/// Every packed type that an export writes.
const TYPES: [&str; 9] = [
    "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q6_k",
];
const SUBSETS: [&[&str]; 7] = [
    &["q_proj"],
    &["k_proj", "v_proj"],
    &["q_proj", "k_proj", "v_proj"],
    &["o_proj"],
    &["gate_proj"],
    &["up_proj", "down_proj"],
    &[
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "gate_proj",
        "up_proj",
        "down_proj",
    ],
];
const WIDTHS: [usize; 7] = [64, 256, 512, 576, 768, 1024, 1536];

/// Kernels of products that the runs of all cases choose between them, on a software adapter and on a GPU.
const CHOSEN: [&[&str]; 2] = [
    &[
        "linear_block",
        "linear_forward",
        "linear_backward_input",
        "linear_transpose",
    ],
    &[
        "linear_forward_tile_small",
        "linear_backward_tile_small",
        "low_rank_forward_tile_small",
        "low_rank_backward_tile_small",
    ],
];
/// Kernels that a GPU chooses for many tokens.
const CHOSEN_FOR_MANY: [&str; 4] = [
    "linear_forward_tile",
    "linear_backward_tile",
    "low_rank_forward_tile",
    "low_rank_backward_tile",
];

/// Returns a Llama of two blocks, the second of which needs the gradient of its input.
fn of_width(width: usize) -> ModelConfig {
    let mut config = shape();
    (
        config.hidden_size,
        config.intermediate_size,
        config.head_dim,
    ) = (width, 2 * width.min(512), 64);
    (config.num_attention_heads, config.num_key_value_heads) = (
        width / 64,
        if width.is_multiple_of(128) {
            width / 128
        } else {
            1
        },
    );
    config.max_position_embeddings = 256;
    config
}

/// Returns true if a matrix of this width has rows of whole blocks of the type.
fn fits(types: &str, width: usize) -> bool {
    !types.ends_with("_k") || width.is_multiple_of(256)
}

/// Trains two steps of SGD, whose weights have the bits of the gradients. Returns losses and trained weights, and adds to the kernels that ran.
fn run(
    bundle: &std::rc::Rc<Bundle>,
    storage: &str,
    (targets, batch_size, seq_len): (&[&str], usize, usize),
    device: &Device,
    kernels: &mut BTreeSet<&'static str>,
) -> (Vec<f64>, Vec<(String, Vec<u8>)>) {
    let adapter = json!({ "r": 4, "target_modules": targets });
    let sgd = json!({ "type": "sgd", "momentum": 0.0, "weight_decay": 0.0 });
    let changes = json!({ "base_storage": storage, "steps": 2, "batch_size": batch_size, "seq_len": seq_len, "learning_rate": 0.5, "optimizer": sgd,
        "max_grad_norm": 0.0 });
    let config = settings(adapter, changes);
    let tokens = (0..40_000u32)
        .map(|i| (i * (i % 997) / 3 + 5 * i) % 48)
        .collect();
    let data = if batch_size > 2 {
        Dataset::from_tokens(tokens, 0.0).unwrap()
    } else {
        dataset()
    };
    let mut trainer = Trainer::new(adapted(bundle, &config, device), data, config).unwrap();
    trace::start();
    let losses = (0..2)
        .map(|_| block_on(trainer.step()).unwrap().loss)
        .collect();
    kernels.extend(trace::finish().iter().map(|launched| launched.kernel.name));
    (losses, weights(trainer.model()))
}

/// Returns type, width, targets and length of the sequences of each case. The short form has those in which
/// a wrong order of sums was found, and a narrow model.
fn cases() -> Vec<(&'static str, usize, &'static [&'static str], usize)> {
    let lengths = |at: usize| [32, 2, 128][at % 3];
    if !in_full() {
        return vec![
            ("q8_0", 576, SUBSETS[0], 32),
            ("q4_k", 512, SUBSETS[2], 32),
            ("f16", 576, SUBSETS[4], 2),
            ("q5_0", 64, SUBSETS[5], 128),
        ];
    }
    let all = TYPES
        .iter()
        .flat_map(|&types| WIDTHS.map(|width| (types, width)))
        .filter(|(types, width)| fits(types, *width));
    all.flat_map(|(types, width)| {
        SUBSETS
            .into_iter()
            .enumerate()
            .map(move |(at, targets)| (types, width, targets, lengths(at)))
    })
    .collect()
}

#[test]
fn some_targets_of_any_width_have_the_bits_of_the_decoded_base() {
    for (device, chosen) in [gpu(), as_a_gpu()].into_iter().zip(CHOSEN) {
        let Some(device) = device else { continue };
        let mut kernels = BTreeSet::new();
        let mut last = None;
        for (types, width, targets, seq_len) in cases() {
            let of = (types, width);
            let bundle = match last.take() {
                Some((known, bundle)) if known == of => bundle,
                _ => opened(&base(&of_width(width), types)),
            };
            let [packed, decoded] = ["stored", "f32"].map(|storage| {
                run(
                    &bundle,
                    storage,
                    (targets, 2, seq_len),
                    &device,
                    &mut kernels,
                )
            });
            assert!(
                packed == decoded,
                "{targets:?} beside {types} of width {width}, {seq_len} tokens: other bits on {chosen:?}"
            );
            last = Some((of, bundle));
        }
        check_chosen(&kernels, chosen);
    }
}

/// Tiles of 64 by 64 are for products of many tokens, which only a run of [`in_full`] has: a software adapter takes minutes for them.
#[test]
fn all_targets_of_many_tokens_have_the_bits_of_the_decoded_base() {
    let Some(device) = as_a_gpu().filter(|_| in_full()) else {
        return;
    };
    let mut kernels = BTreeSet::new();
    for types in TYPES {
        let width = if types.ends_with("_k") { 256 } else { 64 };
        let bundle = opened(&base(&of_width(width), types));
        let many = (SUBSETS[6], 4096 / width, 256);
        let [packed, decoded] =
            ["stored", "f32"].map(|storage| run(&bundle, storage, many, &device, &mut kernels));
        assert!(packed == decoded, "{types} of width {width}: other bits");
    }
    check_chosen(&kernels, &CHOSEN_FOR_MANY);
}

/// Prints the kernels that ran, and fails in full if one of `chosen` did not.
fn check_chosen(kernels: &BTreeSet<&'static str>, chosen: &[&str]) {
    println!("{}", kernels.iter().copied().collect::<Vec<_>>().join(" "));
    let of_type = |end: &str| {
        end.is_empty()
            || end
                .strip_prefix('_')
                .is_some_and(|end| TYPES.contains(&end))
    };
    let runs = |name: &&&str| {
        kernels
            .iter()
            .any(|kernel| kernel.strip_prefix(**name).is_some_and(of_type))
    };
    let absent: Vec<_> = chosen.iter().filter(|name| !runs(name)).collect();
    assert!(absent.is_empty() || !in_full(), "no case chose {absent:?}");
}
