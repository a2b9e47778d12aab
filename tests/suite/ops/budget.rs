//! How many kernels a step launches for each layer.

use burn::tensor::Tensor;
use serde_json::json;
use tabtune::bundle::config_from_hf;
use tabtune::config::{Precision, TrainConfig};
use tabtune::data::Batch;
use tabtune::device::Device;
use tabtune::gpu::launch::dispatches;
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, ParamMap};
use tabtune::optim::{Gate, Optim};
use tabtune::train::{NamedGradients, accumulate};
use tabtune_tests::{as_a_gpu, block_on, gpu};

struct Update {
    optim: Optim,
    gradients: NamedGradients,
    gate: Gate,
}

impl ParamMap for Update {
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
        let gradient = self.gradients.remove(name).map(|gradient| gradient.reshape(tensor.dims()));
        self.optim.step_param(name, tensor, gradient, 1e-3, &self.gate).unwrap()
    }
}

/// Kernels of forward and backward, and of AdamW, in one step of a model with `layers` layers.
fn launched(layers: usize, device: &Device) -> [u64; 2] {
    let json = json!({
        "model_type": "llama", "vocab_size": 256, "hidden_size": 128, "intermediate_size": 344, "num_hidden_layers": layers,
        "num_attention_heads": 4, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": true
    });
    let config = config_from_hf(&json).unwrap();
    let model = block_on(Model::init(&config, 1, Precision::F32, &device.inner(), &Interrupt::none())).unwrap();
    let ids: Vec<i32> = (0..512).map(|i| i * 37 % 256).collect();
    let batch = Batch { inputs: ids.clone(), targets: ids, batch_size: 4, seq_len: 128, document_starts: None };
    let mut update = Update {
        optim: Optim::new(&TrainConfig::default(), &model.parameters()).unwrap(),
        gradients: NamedGradients::new(),
        gate: Gate::open(1.0, &device.inner()),
    };
    let before = dispatches();
    accumulate(&model, &batch, None, 1.0 / 512.0, false, &|_| false, &mut update.gradients).unwrap();
    let gradients = dispatches();
    model.map(&mut update);
    [gradients - before, dispatches() - gradients]
}

#[test]
fn dispatches_of_a_layer_are_counted() {
    for device in [gpu(), as_a_gpu()].into_iter().flatten() {
        let ([two, two_steps], [three, three_steps]) = (launched(2, &device), launched(3, &device));
        // Forward: norm, q, k, v, rope, attention, o, add and norm, gate, up, swiglu, down. Backward: the same, attention twice, each norm with
        // its column sum, no norm of its own for the stream. Nine parameters a layer, one dispatch each.
        assert_eq!([three - two, three_steps - two_steps], [27, 9], "{device:?}");
    }
}
