//! Number of kernel launches that an adapter costs in each layer of a step.

use serde_json::{Value, json};
use tabtune::config::ModelConfig;
use tabtune::device::Device;
use tabtune::train::Trainer;
use tabtune_tests::{as_a_gpu, block_on, gpu};

use super::{adapted, base, dataset, opened, settings, shape};
use crate::ops::budget::least_of_a_step;

/// Counts the launches in a step of 32 tokens of a model with this many layers, on a packed base with gradient checkpointing.
fn launched(layers: usize, adapter: &Value, device: &Device) -> u64 {
    let files = base(
        &ModelConfig {
            num_hidden_layers: layers,
            ..shape()
        },
        "q8_0",
    );
    let config = settings(adapter.clone(), json!({ "seq_len": 16 }));
    let mut trainer =
        Trainer::new(adapted(&opened(&files), &config, device), dataset(), config).unwrap();
    block_on(trainer.step()).unwrap();
    least_of_a_step(&mut trainer)
}

/// Counts the launches that three more layers cost in addition to three frozen ones: the layers behind an adapter in the first layer alone have
/// their forward and backward pass, but nothing to train.
fn above_frozen(adapter: &Value, device: &Device) -> u64 {
    let three = |adapter: &Value| launched(6, adapter, device) - launched(3, adapter, device);
    let mut first = adapter.clone();
    first["target_modules"] = json!(["q_proj"]);
    first["layers_to_transform"] = json!(0);
    three(adapter) - three(&first)
}

/// Launches for the norms of 42 factors in three layers on a GPU: 7.
const NORMS: u64 = 42 / 6;

/// At most 40 launches per layer are allowed.
#[test]
fn an_adapter_keeps_its_budget_of_dispatches_on_a_gpu() {
    let Some(device) = as_a_gpu() else { return };
    let found = above_frozen(
        &json!({ "r": 16, "alpha": 32.0, "target_modules": "all-linear" }),
        &device,
    );
    // For each matrix: x Aᵀ, which is kept for the second pass; its gradient and that of B, and that of A; AdamW for both together. The factors'
    // contributions to y and to the gradient of x are part of the matrix's own products, which add to a sum that others began: three of seven
    // frozen ones need a dispatch for that.
    assert_eq!(found, 3 * (7 * (1 + 1 + 1 + 1) - 3) + NORMS);
    assert!(found <= 3 * 40);
}

/// The register blocks of software adapters have no low-rank part, so every part of an adapter has a dispatch of its own.
#[test]
fn an_adapter_keeps_its_budget_of_dispatches_on_a_software_adapter() {
    let Some(device) = gpu() else { return };
    let found = above_frozen(
        &json!({ "r": 16, "alpha": 16.0, "target_modules": "all-linear" }),
        &device,
    );
    // For each matrix: x Aᵀ; its product with Bᵀ and the sum with y, in both passes; two gradients of each factor and the sum of those of x;
    // AdamW and the norm of the gradient of each factor.
    assert_eq!(found, 3 * 7 * (1 + 2 * 2 + 5 + 2 * 2));
}
