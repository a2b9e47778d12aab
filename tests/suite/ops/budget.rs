//! Number of kernel launches that a step makes for each layer.

use burn::tensor::Tensor;
use serde_json::json;
use tabtune::config::{Precision, TrainConfig};
use tabtune::data::{Batch, Dataset};
use tabtune::device::Device;
use tabtune::families::config_from_hf;
use tabtune::gpu::counter::dispatches;
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, ParamMap};
use tabtune::optim::{Gate, Optim};
use tabtune::train::{NamedGradients, Trainer, accumulate};
use tabtune_tests::{as_a_gpu, block_on, gpu, in_full};

struct Update {
    optim: Optim,
    gradients: NamedGradients,
    gate: Gate,
}

impl ParamMap for Update {
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
        let gradient = self
            .gradients
            .remove(name)
            .map(|gradient| gradient.reshape(tensor.dims()));
        self.optim
            .step_param(name, tensor, gradient, 1e-3, &self.gate)
            .unwrap()
    }
}

/// Counts the launches of forward and backward, and of AdamW, in one step of a model with `layers` layers.
fn launched(layers: usize, device: &Device) -> [u64; 2] {
    let json = json!({
        "model_type": "llama", "vocab_size": 256, "hidden_size": 128, "intermediate_size": 344, "num_hidden_layers": layers,
        "num_attention_heads": 4, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": true
    });
    let config = config_from_hf(&json).unwrap();
    let model = block_on(Model::init(
        &config,
        1,
        Precision::F32,
        &device.inner(),
        &Interrupt::none(),
    ))
    .unwrap();
    let ids: Vec<i32> = (0..512).map(|i| i * 37 % 256).collect();
    let batch = Batch {
        inputs: ids.clone(),
        targets: ids,
        batch_size: 4,
        seq_len: 128,
        document_starts: None,
    };
    let mut update = Update {
        optim: Optim::new(&TrainConfig::default(), &model.parameters()).unwrap(),
        gradients: NamedGradients::new(),
        gate: Gate::open(1.0, &device.inner()),
    };
    let before = dispatches();
    accumulate(
        &model,
        &batch,
        None,
        1.0 / 512.0,
        false,
        &|_| false,
        &mut update.gradients,
    )
    .unwrap();
    let gradients = dispatches();
    model.map(&mut update);
    [gradients - before, dispatches() - gradients]
}

#[test]
fn dispatches_of_a_layer_are_counted() {
    for (device, tiles) in [(gpu(), false), (as_a_gpu(), true)] {
        let Some(device) = device else { continue };
        let ([two, two_steps], [three, three_steps]) = (launched(2, &device), launched(3, &device));
        // Forward: norm, q, k, v, rope, attention, o, add and norm, gate, up, swiglu, down. Backward: the same, attention twice, each norm with
        // its column sum, no norm of its own for the stream. By tiles q, k, v are one product, and so are gate and up, forward and backward;
        // by blocks the gradients of a product are two dispatches, and before them one transposes the weights, two x and dy. Nine parameters per
        // layer, one dispatch each when they are stepped one by one.
        let passes = if tiles {
            27 - 2 * (2 + 1)
        } else {
            27 + 7 * (1 + 1 + 2)
        };
        assert_eq!(
            [three - two, three_steps - two_steps],
            [passes, 9],
            "{device:?}"
        );
    }
}

/// Counts the launches of a step of a run after the first one, when all state exists.
fn of_a_step(config: serde_json::Value, device: &Device) -> u64 {
    let config = config_from_hf(&config).unwrap();
    let train = json!({ "steps": 8, "batch_size": 1, "seq_len": 512, "learning_rate": 1e-3, "seed": 3, "optimizer": {"type": "adamw"} });
    let train: TrainConfig = serde_json::from_value(train).unwrap();
    let model = block_on(Model::init(
        &config,
        1,
        Precision::F32,
        &device.inner(),
        &Interrupt::none(),
    ))
    .unwrap();
    let tokens = Dataset::from_tokens((0..2000u32).map(|i| i * 37 % 256).collect(), 0.0).unwrap();
    let mut trainer = Trainer::new(model, tokens, train).unwrap();
    block_on(trainer.step()).unwrap();
    device.inner().sync().unwrap();
    least_of_a_step(&mut trainer)
}

fn launched_in_a_step(trainer: &mut Trainer) -> u64 {
    let before = dispatches();
    block_on(trainer.step()).unwrap();
    dispatches() - before
}

/// Returns the smaller number of launches of two steps. CubeCL's thread holds a buffer while it allocates it: a buffer that is updated at that
/// moment looks shared and is copied first, so occasionally a step has one dispatch more, with the same bits.
pub fn least_of_a_step(trainer: &mut Trainer) -> u64 {
    (0..2).map(|_| launched_in_a_step(trainer)).min().unwrap()
}

/// At most 28 launches per layer are allowed, and 850 for the whole step of SmolLM2-135M: as many layers and tokens, as large a vocabulary,
/// heads that share keys, and AdamW. Only with TABTUNE_FULL do all 30 layers run here; tests/browser/optimizers.test.mjs counts them with a
/// small vocabulary.
#[test]
fn dispatches_of_a_step_are_counted() {
    let Some(device) = as_a_gpu() else { return };
    let llama = |layers: usize, vocabulary: usize, hidden: usize| {
        let json = json!({
            "model_type": "llama", "vocab_size": vocabulary, "hidden_size": hidden, "intermediate_size": 384, "num_hidden_layers": layers,
            "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
            "tie_word_embeddings": true
        });
        of_a_step(json, &device)
    };
    let (two, four) = (llama(2, 256, 128), llama(4, 256, 128));
    // A narrow table of as many tokens costs as many launches, but for one level of the tree over its squares.
    let head = if in_full() {
        llama(2, 49152, 128)
    } else {
        two + llama(2, 49152, 32) - llama(2, 256, 32) + 1
    };
    // Two layers: passes as above, no sum of the heads that share; AdamW on two parameters each, the norm of six gradients each.
    let more = four - two;
    assert_eq!(more, 2 * 21 + 9 + 3);
    // The tree over the squares of more than 16.8 million gradients has two levels.
    let all = if in_full() {
        llama(30, 49152, 128)
    } else {
        head + 14 * more + 1
    };
    assert_eq!((head, all), (85, 842));
    assert!(all <= 850);
}

#[test]
fn dispatches_of_a_layer_without_attention_are_counted() {
    let Some(device) = as_a_gpu() else { return };
    let layers = |kind: &str, word: &str, layers: usize| {
        let json = json!({
            "model_type": kind, "vocab_size": 256, "hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": layers,
            "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "max_position_embeddings": 512,
            "layer_types": vec![word; layers], "block_auto_adjust_ff_dim": false, "tie_word_embeddings": true,
            "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 32, "linear_value_head_dim": 32
        });
        of_a_step(json, &device)
    };
    let of_a_layer = |kind, word| layers(kind, word, 3) - layers(kind, word, 2);
    // Forward: add and norm, the input, the convolution, the output, and those of the MLP. Backward: for each of them as above, and the sum of the
    // taps' parts. AdamW on eight parameters, and their norm. A delta rule adds its projections and gates, 11 launches forward and 36 backward, of
    // which seven compute again what the forward pass does not keep.
    let found = [
        of_a_layer("lfm2", "conv"),
        of_a_layer("qwen3_5_text", "linear_attention"),
    ];
    assert_eq!(found, [27, 89]);
}

/// At most 40 launches per layer are allowed.
#[test]
fn dispatches_of_a_layer_of_gpt2_are_counted() {
    let Some(device) = as_a_gpu() else { return };
    let gpt2 = |layers: usize| {
        let json = json!({ "model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": layers, "n_positions": 512, "vocab_size": 256 });
        of_a_step(json, &device)
    };
    // Forward: add and norm, c_attn, thirds, attention, c_proj, add and norm, c_fc, GELU, c_proj, bias. Backward: for four products input and
    // weight separately and the sum of the bias, GELU, attention twice, thirds, two norms with two column sums each. 12 parameters: 6
    // dispatches of AdamW, 2 of the norm.
    assert_eq!(gpt2(3) - gpt2(2), 10 + 4 * 3 + 1 + 2 + 1 + 2 * 3 + 6 + 2);
}
