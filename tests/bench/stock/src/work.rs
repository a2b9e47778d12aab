//! The benchmark's work, the same as `tests/bench/spec.mjs`: sizes, tokens, initial weights.

use std::rc::Rc;

use burn::tensor::Device;
use serde_json::json;
use tabtune::Result;
use tabtune::bundle::{Bundle, open_bundle};
use tabtune::config::{
    AdamwConfig, Architecture, DataOrder, GroupConfig, ModelConfig, OptimizerConfig, TrainConfig,
};
use tabtune::formats::{ByteSource, MemorySource, safetensors_header};

use crate::stock::{NamedTensor, Stock, StockTraining};

pub const ADAMW: AdamwConfig = AdamwConfig {
    beta1: 0.9,
    beta2: 0.99,
    eps: 1e-8,
    weight_decay: 0.01,
    stochastic_rounding: false,
};
pub const LEARNING_RATE: f64 = 1e-3;
pub const NORM_EPS: f64 = 1e-5;
pub const ROPE_BASE: f64 = 10_000.0;
/// Batches before the stream begins again.
const BATCHES: usize = 64;
const TOKEN_SEED: u32 = 0x5eed;
const WEIGHT_SEED: u32 = 1000;
const STD: f64 = 0.02;

/// Hidden size, layers, heads, intermediate size, vocabulary, and T and B of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub d: usize,
    pub layers: usize,
    pub heads: usize,
    pub ffn: usize,
    pub vocab: usize,
    pub seq_len: usize,
    pub batch_size: usize,
}

/// 0.92 M parameters, 4 sequences of 128 tokens.
pub const TINY: Shape = Shape {
    d: 128,
    layers: 4,
    heads: 4,
    ffn: 344,
    vocab: 1024,
    seq_len: 128,
    batch_size: 4,
};
/// 5.8 M parameters, 4 sequences of 256 tokens.
pub const SMALL: Shape = Shape {
    d: 256,
    layers: 6,
    heads: 8,
    ffn: 688,
    vocab: 4096,
    seq_len: 256,
    batch_size: 4,
};
/// 33.6 M parameters, 2 sequences of 512 tokens.
pub const MEDIUM: Shape = Shape {
    d: 512,
    layers: 8,
    heads: 8,
    ffn: 1376,
    vocab: 16384,
    seq_len: 512,
    batch_size: 2,
};

/// Numbers in [0, 1): a counter in steps of the golden ratio, hashed with murmur3's finaliser.
pub struct Uniforms(pub u32);

impl Uniforms {
    /// The next one.
    pub fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9);
        let mut hash = (self.0 ^ (self.0 >> 16)).wrapping_mul(0x85eb_ca6b);
        hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
        f64::from(hash ^ (hash >> 16)) / 4_294_967_296.0
    }
}

impl Shape {
    /// 64 batches and one token: half drawn by Zipf's law, half the successor 5t + 17 of the token before.
    pub fn tokens(&self) -> Vec<u32> {
        let mut total = 0.0;
        let weights: Vec<f64> = (1..=self.vocab)
            .map(|rank| {
                total += 1.0 / rank as f64;
                total
            })
            .collect();
        let mut random = Uniforms(TOKEN_SEED);
        let mut token = 0;
        (0..=BATCHES * self.batch_size * self.seq_len)
            .map(|_| {
                token = if random.draw() < 0.5 {
                    (token * 5 + 17) % self.vocab
                } else {
                    let aim = random.draw() * total;
                    weights
                        .partition_point(|&weight| weight < aim)
                        .min(self.vocab - 1)
                };
                token as u32
            })
            .collect()
    }

    /// State-dict name, shape and values of every tensor; matrices are [out, in], norms [C].
    pub fn weights(&self) -> Vec<NamedTensor> {
        let (d, f) = (self.d, self.ffn);
        let residual = STD / (2.0 * self.layers as f64).sqrt();
        let mut plan = vec![(
            "model.embed_tokens.weight".to_string(),
            vec![self.vocab, d],
            STD,
        )];
        for layer in 0..self.layers {
            let mut add = |part: &str, shape: Vec<usize>, std: f64| {
                plan.push((format!("model.layers.{layer}.{part}.weight"), shape, std))
            };
            add("input_layernorm", vec![d], 0.0);
            for part in ["q", "k", "v", "o"] {
                add(
                    &format!("self_attn.{part}_proj"),
                    vec![d, d],
                    if part == "o" { residual } else { STD },
                );
            }
            add("post_attention_layernorm", vec![d], 0.0);
            add("mlp.gate_proj", vec![f, d], STD);
            add("mlp.up_proj", vec![f, d], STD);
            add("mlp.down_proj", vec![d, f], residual);
        }
        plan.push(("model.norm.weight".into(), vec![d], 0.0));
        let filled = plan
            .into_iter()
            .zip(WEIGHT_SEED..)
            .map(|((name, shape, std), seed)| {
                let values = values(&shape, std, seed, name.starts_with("model.embed"));
                (name, shape, values)
            });
        filled.collect()
    }

    /// The model in Burn's own operations, on an autodiff `device`.
    pub fn stock(&self, device: Device) -> Stock {
        let training = StockTraining {
            optimizer: OptimizerConfig::Adamw(ADAMW),
            rate: LEARNING_RATE,
            scales: Vec::new(),
            bf16: false,
            seed: 0,
            planted: None,
        };
        Stock::new(&self.model_config(), training, self.weights(), device)
    }

    fn model_config(&self) -> ModelConfig {
        ModelConfig {
            architecture: Architecture::Llama,
            model_type: "llama".into(),
            vocab_size: self.vocab,
            hidden_size: self.d,
            intermediate_size: self.ffn,
            num_hidden_layers: self.layers,
            num_attention_heads: self.heads,
            num_key_value_heads: self.heads,
            head_dim: self.d / self.heads,
            max_position_embeddings: self.seq_len,
            norm_eps: NORM_EPS,
            rope_theta: ROPE_BASE,
            tie_word_embeddings: true,
            initializer_range: STD,
            ..ModelConfig::default()
        }
    }

    /// The model as the files of a Hugging Face folder.
    pub fn bundle(&self) -> Result<Bundle> {
        let mut tensors = self.weights();
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        let entries: Vec<_> = tensors
            .iter()
            .map(|(name, shape, _)| (name.clone(), "F32", shape.clone()))
            .collect();
        let (mut bytes, _) = safetensors_header(&entries, &std::collections::BTreeMap::new())?;
        for (.., values) in &tensors {
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        let config = json!({
            "model_type": "llama", "hidden_act": "silu", "tie_word_embeddings": true, "rms_norm_eps": NORM_EPS, "rope_theta": ROPE_BASE,
            "hidden_size": self.d, "num_hidden_layers": self.layers, "num_attention_heads": self.heads, "num_key_value_heads": self.heads,
            "intermediate_size": self.ffn, "vocab_size": self.vocab, "max_position_embeddings": self.seq_len
        });
        let sources: Vec<Rc<dyn ByteSource>> = vec![
            Rc::new(MemorySource::new("config.json", config.to_string())),
            Rc::new(MemorySource::new("model.safetensors", bytes)),
        ];
        open_bundle(sources)
    }

    /// AdamW at a constant rate, decay on matrices only, no clipping, batches in the order of the tokens.
    pub fn train_config(&self) -> TrainConfig {
        TrainConfig {
            steps: 1_000_000,
            batch_size: self.batch_size,
            seq_len: self.seq_len,
            learning_rate: LEARNING_RATE,
            max_grad_norm: 0.0,
            optimizer: OptimizerConfig::Adamw(ADAMW),
            groups: vec![
                GroupConfig {
                    weight_decay: Some(0.0),
                    ..GroupConfig::new("*norm*")
                },
                GroupConfig::new("*"),
            ],
            data_order: DataOrder::Sequential,
            ..TrainConfig::default()
        }
    }
}

/// Normal by Box and Muller, or ones where `std` is 0. Drawn for [in, out]; a linear layer takes it as [out, in].
fn values(shape: &[usize], std: f64, seed: u32, as_drawn: bool) -> Vec<f32> {
    let n: usize = shape.iter().product();
    if std == 0.0 {
        return vec![1.0; n];
    }
    let mut random = Uniforms(seed);
    let mut drawn = Vec::with_capacity(n + 1);
    while drawn.len() < n {
        let radius = std * (-2.0 * (1.0 - random.draw()).ln()).sqrt();
        let angle = std::f64::consts::TAU * random.draw();
        drawn.extend([(radius * angle.cos()) as f32, (radius * angle.sin()) as f32]);
    }
    drawn.truncate(n);
    match *shape {
        [out, input] if !as_drawn => (0..n).map(|i| drawn[i % input * out + i / input]).collect(),
        _ => drawn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a over little-endian 16-bit words, as `checksum` of `tests/bench/spec.mjs`.
    fn checksum(tokens: &[u32]) -> u32 {
        let bytes = tokens
            .iter()
            .flat_map(|&token| (token as u16).to_le_bytes());
        bytes.fold(0x811c_9dc5, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        })
    }

    #[test]
    fn tokens_are_those_of_the_browser() {
        // From `node -e` on tests/bench/spec.mjs.
        assert_eq!(checksum(&TINY.tokens()), 0x7815_95cf);
        assert_eq!(checksum(&SMALL.tokens()), 0xb6b0_d158);
    }

    #[test]
    fn weights_are_those_of_the_browser() {
        let weights = TINY.weights();
        assert_eq!(
            weights
                .iter()
                .map(|(.., values)| values.len())
                .sum::<usize>(),
            922_752
        );
        let of = |name: &str| weights.iter().find(|(n, ..)| n == name).unwrap();
        // The same; a last bit of ln, cos and sin may differ between the two languages.
        let close = |found: f32, expected: f32| {
            assert!((found - expected).abs() <= 1e-8, "{found} {expected}")
        };
        close(of("model.embed_tokens.weight").2[0], 0.009_857_394);
        close(of("model.embed_tokens.weight").2[131_071], 0.018_096_14);
        // [in, out] of the specification: wd[0][1], wd[343][5], wg[7][300].
        close(
            of("model.layers.3.mlp.down_proj.weight").2[344],
            -0.003_328_773_4,
        );
        close(
            of("model.layers.3.mlp.down_proj.weight").2[5 * 344 + 343],
            0.004_437_008,
        );
        close(
            of("model.layers.1.mlp.gate_proj.weight").2[300 * 128 + 7],
            -0.029_709_369,
        );
    }
}
