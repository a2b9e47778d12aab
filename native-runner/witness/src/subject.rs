//! Subject that both sides train: a small model of each type, with its weights, batches and settings.

use std::rc::Rc;

use serde_json::{Value, json};
use tabtune::Result;
use tabtune::bf16::{round_nearest, widen};
use tabtune::bundle::{Bundle, open_bundle};
use tabtune::config::{GroupConfig, ModelConfig, Precision, TrainConfig};
use tabtune::data::{Batch, Dataset, IGNORE_INDEX};
use tabtune::families::config_from_hf;
use tabtune::formats::{ByteSource, MemorySource, safetensors_header};
use tabtune::model::planned_parameters;
use tabtune_bench::stock::{NamedTensor, Planted, StockTraining};
use tabtune_bench::work::Uniforms;

use crate::method::Method;

/// Model types of which the stock operations have a formula.
pub const MODEL_TYPES: [&str; 7] = [
    "llama", "mistral", "qwen2", "qwen3", "gpt2", "olmo2", "smollm3",
];

const CONFIG: &str = "config.json";
const VOCAB: usize = 61;
const HIDDEN: usize = 32;
const SEQ_LEN: usize = 24;
const BATCH_SIZE: usize = 2;
/// Token that ends a document.
const END: u32 = 0;
/// ε of the norms, added to squares of about 0.03 and of about 1, where a misplaced one is visible.
const NORM_EPS: f64 = 1e-3;
/// Learning rate of the embeddings, as a share of the others' rate.
const EMBEDDING_SCALE: f64 = 0.5;
/// Seeds of the weights and of the tokens.
const SEEDS: [u32; 2] = [0x77, 0x1234];
/// Seed of the noise and of the projectors.
const RUN_SEED: u64 = 5;

/// Returns the configuration of a small model of this type: some have tied heads, and the heads of Qwen3 are wider than the model's width
/// divided by their number.
fn document(model_type: &str) -> Value {
    if model_type == "gpt2" {
        return json!({
            "model_type": "gpt2", "n_embd": HIDDEN, "n_layer": 2, "n_head": 4, "n_positions": SEQ_LEN, "n_inner": 2 * HIDDEN,
            "vocab_size": VOCAB, "layer_norm_epsilon": NORM_EPS, "activation_function": "gelu_new", "tie_word_embeddings": true
        });
    }
    let mut document = json!({
        "model_type": model_type, "hidden_act": "silu", "hidden_size": HIDDEN, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": SEQ_LEN, "rms_norm_eps": NORM_EPS,
        "rope_theta": 500.0, "vocab_size": VOCAB, "tie_word_embeddings": !matches!(model_type, "qwen2" | "olmo2")
    });
    match model_type {
        "qwen3" => document["head_dim"] = json!(16),
        "smollm3" => document["no_rope_layers"] = json!([1, 0]),
        _ => {}
    }
    document
}

/// A model with its weights, its batches and its settings.
pub struct Subject {
    /// Model type, as in `config.json`.
    pub model_type: &'static str,
    /// Model as files.
    pub bundle: Bundle,
    /// Weights of the model: state-dict name, shape, values.
    pub weights: Vec<NamedTensor>,
    /// One batch for each step: sequences of several documents, which do not attend to each other in every second step. Some targets do not count.
    pub batches: Vec<Batch>,
    /// Settings of tabtune's trainer.
    pub train: TrainConfig,
    /// Settings of the model of Burn's operations.
    pub stock: StockTraining,
}

impl Subject {
    /// Makes a model of a type (one of [`tabtune::families::model_types`]), and `steps` batches. A method in bf16 has matrices of bf16 values.
    ///
    /// # Errors
    /// The crate's refusal of the configuration or the files.
    pub fn new(
        model_type: &'static str,
        method: Method,
        steps: usize,
        planted: Option<Planted>,
    ) -> Result<Self> {
        let document = document(model_type);
        let mut weights = weights(&config_from_hf(&document)?)?;
        let bf16 = method.precision == Precision::Bf16;
        for (_, shape, values) in weights.iter_mut().filter(|_| bf16) {
            if shape.len() == 2 {
                values
                    .iter_mut()
                    .for_each(|x| *x = widen(round_nearest(*x)));
            }
        }
        let bundle = bundle(&document, &weights)?;
        let half = |pattern: &str| GroupConfig {
            learning_rate_scale: EMBEDDING_SCALE,
            ..GroupConfig::new(pattern)
        };
        let spared = |pattern: &str| GroupConfig {
            weight_decay: Some(0.0),
            ..GroupConfig::new(pattern)
        };
        let train = TrainConfig {
            steps: steps as u64,
            batch_size: BATCH_SIZE,
            seq_len: SEQ_LEN,
            learning_rate: method.rule.learning_rate(),
            max_grad_norm: 0.0,
            seed: RUN_SEED,
            precision: method.precision,
            optimizer: method.rule.config(),
            groups: vec![
                half("{*embed_tokens*,*wte*,*wpe*}"),
                spared("{*norm*,*.ln_*,*bias}"),
                GroupConfig::new("*"),
            ],
            ..TrainConfig::default()
        };
        let scales = [
            "model.embed_tokens.",
            "transformer.wte.",
            "transformer.wpe.",
        ]
        .map(|start| (start.to_string(), EMBEDDING_SCALE));
        let stock = StockTraining {
            optimizer: method.rule.config(),
            rate: method.rule.learning_rate(),
            scales: scales.to_vec(),
            bf16,
            seed: RUN_SEED,
            planted,
        };
        Ok(Self {
            model_type,
            bundle,
            weights,
            batches: batches(steps),
            train,
            stock,
        })
    }

    /// Returns data of the right length. Its contents do not matter, because the steps are given their batches.
    ///
    /// # Errors
    /// The crate's refusal of the tokens.
    pub fn dataset(&self) -> Result<Dataset> {
        Dataset::from_tokens(vec![END; 2 * SEQ_LEN], 0.0)
    }
}

/// Draws a normal value by the method of Box and Muller.
fn normal(random: &mut Uniforms) -> f64 {
    let radius = (-2.0 * (1.0 - random.draw()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.draw()).cos()
}

/// Makes matrices of about unit gain, norms of about 1, biases of about 0: all random, so that no parameter can be mistaken for another.
fn weights(config: &ModelConfig) -> Result<Vec<NamedTensor>> {
    let mut random = Uniforms(SEEDS[0]);
    let filled = planned_parameters(config)?
        .into_iter()
        .map(|(name, shape)| {
            let (mean, spread) = match *shape {
                [_, _] => (0.0, 1.0 / (HIDDEN as f64).sqrt()),
                _ if name.ends_with("bias") => (0.0, 0.1),
                _ => (1.0, 0.1),
            };
            let count = shape.iter().product::<usize>();
            let values = (0..count)
                .map(|_| (mean + spread * normal(&mut random)) as f32)
                .collect();
            (name, shape, values)
        });
    Ok(filled.collect())
}

fn bundle(document: &Value, weights: &[NamedTensor]) -> Result<Bundle> {
    let mut tensors: Vec<_> = weights.iter().collect();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let entries: Vec<_> = tensors
        .iter()
        .map(|(name, shape, _)| (name.clone(), "F32", shape.clone()))
        .collect();
    let (mut bytes, _) = safetensors_header(&entries, &std::collections::BTreeMap::new())?;
    bytes.extend(
        tensors
            .iter()
            .flat_map(|(.., values)| values)
            .flat_map(|value| value.to_le_bytes()),
    );
    let files: Vec<Rc<dyn ByteSource>> = vec![
        Rc::new(MemorySource::new(CONFIG, document.to_string())),
        Rc::new(MemorySource::new("model.safetensors", bytes)),
    ];
    open_bundle(files)
}

/// Makes sequences that follow a rule half of the time, so that there is something to learn, with documents of uneven lengths and targets that
/// do not count.
fn batches(steps: usize) -> Vec<Batch> {
    let mut random = Uniforms(SEEDS[1]);
    let batch = |step: usize| {
        let mut rows = Vec::new();
        for _ in 0..BATCH_SIZE {
            let mut token = 1;
            let mut row = Vec::with_capacity(SEQ_LEN + 1);
            for _ in 0..=SEQ_LEN {
                let drawn = random.draw();
                token = if drawn < 0.1 {
                    END as usize
                } else if drawn < 0.6 {
                    (3 * token + 7) % VOCAB
                } else {
                    1 + (random.draw() * (VOCAB - 1) as f64) as usize
                };
                row.push(token as i32);
            }
            rows.push(row);
        }
        let inputs = rows
            .iter()
            .flat_map(|row| &row[..SEQ_LEN])
            .copied()
            .collect();
        let targets = rows
            .iter()
            .flat_map(|row| &row[1..])
            .map(|&id| {
                if random.draw() < 0.2 {
                    IGNORE_INDEX
                } else {
                    id
                }
            })
            .collect();
        let mut batch = Batch {
            inputs,
            targets,
            batch_size: BATCH_SIZE,
            seq_len: SEQ_LEN,
            document_starts: None,
        };
        if step.is_multiple_of(2) {
            batch.mask_documents(&[END]);
        }
        batch
    };
    (0..steps).map(batch).collect()
}
