//! The loss of a small Llama with an adapter in f64, computed from its formulas alone, and the slopes of that loss by central differences.

use std::collections::BTreeMap;

use tabtune::bundle::Bundle;
use tabtune::config::ModelConfig;
use tabtune::data::Batch;
use tabtune::model::{Adaptation, Model};
use tabtune::ops::DropoutStep;
use tabtune::random::{key, philox};
use tabtune_tests::weights;

/// Rows of equal width, one after another.
type Rows = Vec<f64>;

/// A model whose weights are f64.
pub struct Reference {
    config: ModelConfig,
    /// Base and trained weights by name.
    pub weights: BTreeMap<String, Vec<f64>>,
    /// Scale s of each module with factors.
    scales: BTreeMap<String, f64>,
    /// Dropout rate of the factors' inputs, seed of the masks, and the step and micro-batch.
    dropout: Option<(f64, u64, DropoutStep)>,
}

impl Reference {
    /// Makes the reference for `model`, which was made from `bundle`; its trained tensors are f32.
    pub fn of(model: &Model, bundle: &Bundle, dropout: Option<(f64, u64, DropoutStep)>) -> Self {
        let wide = |values: &[f32]| {
            values
                .iter()
                .map(|&value| f64::from(value))
                .collect::<Vec<f64>>()
        };
        let mut all: BTreeMap<String, Vec<f64>> = bundle
            .names()
            .into_iter()
            .map(|name| (name.clone(), wide(&bundle.read_f32(&name).unwrap())))
            .collect();
        for (name, bytes) in weights(model) {
            let values: Vec<f32> = bytes
                .chunks_exact(4)
                .map(|four| f32::from_le_bytes(four.try_into().unwrap()))
                .collect();
            all.insert(name, wide(&values));
        }
        let targets = model.adaptation().map(Adaptation::targets).unwrap();
        let scales = targets
            .iter()
            .map(|(module, target)| (module.clone(), target.scale))
            .collect();
        Self {
            config: model.config().clone(),
            weights: all,
            scales,
            dropout,
        }
    }

    fn weight(&self, name: &str) -> &[f64] {
        &self.weights[name]
    }

    /// Computes x Wᵀ, plus s·d(x)·Aᵀ·Bᵀ for a target.
    fn linear(&self, module: &str, x: &Rows, width: usize) -> Rows {
        let mut y = product(x, self.weight(&format!("{module}.weight")), width);
        if let Some(scale) = self.scales.get(module) {
            let [a, b] = ["lora_A", "lora_B"]
                .map(|factor| self.weight(&format!("{module}.{factor}.weight")));
            let z = product(&self.kept(module, x), a, width);
            let low = product(&z, b, a.len() / width);
            y.iter_mut().zip(low).for_each(|(y, low)| *y += scale * low);
        }
        y
    }

    /// Computes d(x): an element whose word of noise is below p·2³² becomes 0, the others are divided by 1 − p.
    fn kept(&self, module: &str, x: &Rows) -> Rows {
        let Some((p, seed, DropoutStep { step, micro_batch })) = self.dropout else {
            return x.clone();
        };
        let key = key("dropout:", seed, module);
        let word = |e: usize| {
            philox(
                [e as u32, micro_batch, step as u32, (step >> 32) as u32],
                key,
            )[0]
        };
        let keeps = |e: usize| f64::from(word(e)) >= (p * 2f64.powi(32)).floor();
        x.iter()
            .enumerate()
            .map(|(e, x)| if keeps(e) { x / (1.0 - p) } else { 0.0 })
            .collect()
    }

    /// Computes x / √(mean x² + ε) ⊙ w for each row.
    fn norm(&self, name: &str, x: &Rows) -> Rows {
        let w = self.weight(name);
        let row = |row: &[f64]| {
            let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
            let scale = 1.0 / (mean + self.config.norm_eps).sqrt();
            row.iter()
                .zip(w)
                .map(|(x, w)| x * scale * w)
                .collect::<Vec<f64>>()
        };
        x.chunks(w.len()).flat_map(row).collect()
    }

    /// Rotates each head's halves (x₁, x₂) by position · θ^(−2i/H).
    fn rotated(&self, mut x: Rows, heads: usize, seq_len: usize) -> Rows {
        let (width, half) = (self.config.head_dim, self.config.head_dim / 2);
        for (at, head) in x.chunks_mut(width).enumerate() {
            let position = (at / heads % seq_len) as f64;
            for i in 0..half {
                let angle = position * self.config.rope_theta.powf(-2.0 * i as f64 / width as f64);
                let (first, second) = (head[i], head[i + half]);
                head[i] = first * angle.cos() - second * angle.sin();
                head[i + half] = second * angle.cos() + first * angle.sin();
            }
        }
        x
    }

    /// Computes softmax(q kᵀ / √H) v over this and earlier tokens of a sequence.
    fn attended(&self, q: &Rows, k: &Rows, v: &Rows, seq_len: usize) -> Rows {
        let (heads, kv_heads, width) = (
            self.config.num_attention_heads,
            self.config.num_key_value_heads,
            self.config.head_dim,
        );
        let of = |x: &Rows, all: usize, token: usize, head: usize| {
            x[(token * all + head) * width..][..width].to_vec()
        };
        let mut y = Vec::new();
        for token in 0..q.len() / heads / width {
            for head in 0..heads {
                let (query, shared) = (of(q, heads, token, head), head * kv_heads / heads);
                let seen: Vec<usize> = (token - token % seq_len..=token).collect();
                let scores: Vec<f64> = seen
                    .iter()
                    .map(|&at| {
                        (dot(&query, &of(k, kv_heads, at, shared)) / (width as f64).sqrt()).exp()
                    })
                    .collect();
                let total: f64 = scores.iter().sum();
                let mut mean = vec![0.0; width];
                for (&at, score) in seen.iter().zip(&scores) {
                    mean.iter_mut()
                        .zip(of(v, kv_heads, at, shared))
                        .for_each(|(sum, v)| *sum += score / total * v);
                }
                y.extend(mean);
            }
        }
        y
    }

    fn block(&self, layer: usize, x: Rows, seq_len: usize) -> Rows {
        let c = self.config.hidden_size;
        let at = |name: &str| format!("model.layers.{layer}.{name}");
        let normed = self.norm(&at("input_layernorm.weight"), &x);
        let [q, k, v] = ["q_proj", "k_proj", "v_proj"]
            .map(|name| self.linear(&at(&format!("self_attn.{name}")), &normed, c));
        let q = self.rotated(q, self.config.num_attention_heads, seq_len);
        let k = self.rotated(k, self.config.num_key_value_heads, seq_len);
        let attended = self.attended(&q, &k, &v, seq_len);
        let width = self.config.num_attention_heads * self.config.head_dim;
        let x = sum(x, &self.linear(&at("self_attn.o_proj"), &attended, width));
        let normed = self.norm(&at("post_attention_layernorm.weight"), &x);
        let [gate, up] = ["gate_proj", "up_proj"]
            .map(|name| self.linear(&at(&format!("mlp.{name}")), &normed, c));
        let gated = gate
            .iter()
            .zip(&up)
            .map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up)
            .collect();
        sum(
            x,
            &self.linear(&at("mlp.down_proj"), &gated, self.config.intermediate_size),
        )
    }

    /// Returns the sum of the token losses; each sequence is one document.
    pub fn loss(&self, batch: &Batch) -> f64 {
        let c = self.config.hidden_size;
        let table = self.weight("model.embed_tokens.weight");
        let embedded: Rows = batch
            .inputs
            .iter()
            .flat_map(|&id| table[usize::try_from(id).unwrap() * c..][..c].to_vec())
            .collect();
        let x = (0..self.config.num_hidden_layers)
            .fold(embedded, |x, layer| self.block(layer, x, batch.seq_len));
        let logits = product(&self.norm("model.norm.weight", &x), table, c);
        let loss = |(row, &target): (&[f64], &i32)| {
            row.iter().map(|x| x.exp()).sum::<f64>().ln() - row[usize::try_from(target).unwrap()]
        };
        logits
            .chunks(self.config.vocab_size)
            .zip(&batch.targets)
            .map(loss)
            .sum()
    }

    /// Returns the slopes of the loss along the values of a tensor, one of every `each`. A step of 1e-5 leaves errors of 1e-10 from curvature
    /// and 1e-10 from rounding.
    pub fn slopes(&mut self, name: &str, batch: &Batch, each: usize) -> Vec<f64> {
        const STEP: f64 = 1e-5;
        let count = self.weights[name].len();
        let slope = |place: usize| {
            let value = self.weights[name][place];
            let [above, below] = [STEP, -STEP].map(|step| {
                self.weights.get_mut(name).unwrap()[place] = value + step;
                self.loss(batch)
            });
            self.weights.get_mut(name).unwrap()[place] = value;
            (above - below) / (2.0 * STEP)
        };
        (0..count).step_by(each).map(slope).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Computes x Wᵀ with x [n, width] and w [m, width].
fn product(x: &[f64], w: &[f64], width: usize) -> Rows {
    x.chunks(width)
        .flat_map(|x| w.chunks(width).map(|w| dot(x, w)))
        .collect()
}

fn sum(mut x: Rows, y: &[f64]) -> Rows {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
    x
}
