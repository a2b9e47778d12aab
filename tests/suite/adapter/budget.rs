//! How many kernels an adapter costs in each layer of a step.

use serde_json::{Value, json};
use tabtune::config::ModelConfig;
use tabtune::device::Device;
use tabtune::gpu::launch::dispatches;
use tabtune::train::Trainer;
use tabtune_tests::{block_on, gpu};

use super::{adapted, base, dataset, opened, settings, shape};

/// Kernels of a whole step of a model with this many layers, on a packed base with gradient checkpointing.
fn launched(layers: usize, adapter: &Value, device: &Device) -> u64 {
    let files = base(&ModelConfig { num_hidden_layers: layers, ..shape() }, "q8_0");
    let config = settings(adapter.clone(), Value::Null);
    let mut trainer = Trainer::new(adapted(&opened(&files), &config, device), dataset(), config).unwrap();
    block_on(trainer.step()).unwrap();
    let before = dispatches();
    block_on(trainer.step()).unwrap();
    dispatches() - before
}

/// A layer behind the adapter of the first layer alone has its forward and backward pass, and nothing that is trained.
#[test]
fn an_adapter_keeps_its_budget_of_dispatches() {
    let Some(device) = gpu() else { return };
    let layer = |adapter: Value| launched(3, &adapter, &device) - launched(2, &adapter, &device);
    let frozen = layer(json!({ "r": 4, "target_modules": ["q_proj"], "layers_to_transform": 0 }));
    let trained = layer(json!({ "r": 4, "target_modules": "all-linear" }));
    println!("a layer: {frozen} frozen, {trained} with an adapter on its seven matrices");
    // Of each matrix: four forward (z, its scale, the product, its sum with y), the same again before the backward pass, three backward, and for
    // each of its two factors one of the norm and one of AdamW.
    assert_eq!(trained - frozen, 7 * (4 + 4 + 3 + 2 * 2));
}
