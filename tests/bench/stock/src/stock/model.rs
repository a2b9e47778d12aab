//! The forward pass: Llama with what Qwen2 and Qwen3 add to it, OLMo 2, and GPT-2, as their papers write them.

use std::collections::BTreeMap;
use std::f64::consts::PI;

use burn::tensor::activation::{log_softmax, silu, softmax};
use burn::tensor::{Bool, Int, Tensor, TensorData};
use tabtune::config::{Architecture, ModelConfig};
use tabtune::data::Batch;

use super::{Planted, Stock};

/// A model whose weights are tracked, and the batch that it reads.
pub(super) struct View<'a> {
    pub stock: &'a Stock,
    pub weights: &'a BTreeMap<String, Tensor<2>>,
    pub batch: &'a Batch,
}

impl View<'_> {
    /// Mean loss of the targets that count, [1].
    pub fn loss(&self) -> Tensor<1> {
        let (n, counted) = (self.batch.inputs.len(), self.batch.counted());
        let logits = match self.stock.config.architecture {
            Architecture::Llama | Architecture::SmolLm3 => self.llama(),
            Architecture::Gpt2 => self.gpt2(),
            Architecture::Olmo2 => self.olmo2(),
            other => panic!("the stock model has no formula of {other:?}"),
        };
        let targets = self
            .batch
            .targets
            .iter()
            .map(|&target| target.max(0))
            .collect();
        let losses = log_softmax(logits, 1)
            .gather(1, self.ids(targets).reshape([n, 1]))
            .neg();
        if counted == n {
            return losses.mean();
        }
        let counts: Vec<f32> = self
            .batch
            .targets
            .iter()
            .map(|&target| if target < 0 { 0.0 } else { 1.0 })
            .collect();
        (losses * Tensor::from_data(TensorData::new(counts, [n, 1]), &self.stock.device)).sum()
            / counted.max(1) as f64
    }

    fn ids(&self, values: Vec<i32>) -> Tensor<1, Int> {
        let n = values.len();
        Tensor::from_data(TensorData::new(values, [n]), &self.stock.device)
    }

    /// The parameter of this name; every family has those that its forward pass asks for.
    fn weight(&self, name: &str) -> Tensor<2> {
        self.weights
            .get(name)
            .unwrap_or_else(|| panic!("the stock model was made without {name}"))
            .clone()
    }

    /// x [n, k] · w [m, k]ᵀ, and its bias if there is one.
    fn linear(&self, x: &Tensor<2>, layer: &str) -> Tensor<2> {
        let product = x
            .clone()
            .matmul(self.weight(&format!("{layer}.weight")).transpose());
        match self.weights.get(&format!("{layer}.bias")) {
            Some(bias) => product + bias.clone(),
            None => product,
        }
    }

    /// x [n, k] · w [k, m] + b.
    fn conv1d(&self, x: &Tensor<2>, layer: &str) -> Tensor<2> {
        x.clone().matmul(self.weight(&format!("{layer}.weight")))
            + self.weight(&format!("{layer}.bias"))
    }

    /// 1 / √(mean + ε) of rows.
    fn over_root<const D: usize>(&self, x: Tensor<D>, mean: Tensor<D>) -> Tensor<D> {
        let eps = self.stock.config.norm_eps;
        match self.stock.training.planted {
            Some(Planted::NormEps) => x / (mean.sqrt() + eps),
            _ => x / (mean + eps).sqrt(),
        }
    }

    fn rms_norm(&self, x: Tensor<2>, layer: &str) -> Tensor<2> {
        let mean = x.clone().square().mean_dim(1);
        self.over_root(x, mean) * self.weight(&format!("{layer}.weight"))
    }

    fn layer_norm(&self, x: Tensor<2>, layer: &str) -> Tensor<2> {
        let centred = x.clone() - x.mean_dim(1);
        let mean = centred.clone().square().mean_dim(1);
        self.over_root(centred, mean) * self.weight(&format!("{layer}.weight"))
            + self.weight(&format!("{layer}.bias"))
    }

    /// Rows of a table.
    fn rows(&self, table: &str, rows: Vec<i32>) -> Tensor<2> {
        self.weight(table).select(0, self.ids(rows))
    }

    /// [B·T, heads·H] → [B, heads, T, H].
    fn heads(&self, x: Tensor<2>, heads: usize) -> Tensor<4> {
        x.reshape([
            self.batch.batch_size,
            self.batch.seq_len,
            heads,
            self.stock.config.head_dim,
        ])
        .swap_dims(1, 2)
    }

    /// Rotary positions (arXiv:2104.09864): the two halves of a head are turned.
    fn turned(&self, x: Tensor<4>) -> Tensor<4> {
        let Some(turns) = &self.stock.turns else {
            return x;
        };
        let [cos, sin] = turns.clone().map(|table| self.of_length(table));
        let [b, h, t, width] = x.dims();
        if self.stock.training.planted == Some(Planted::RopePairs) {
            let pairs = x.reshape([b, h, t, width / 2, 2]);
            let half = |i| pairs.clone().narrow(4, i, 1).reshape([b, h, t, width / 2]);
            let [first, second] = turn([half(0), half(1)], cos, sin);
            return Tensor::<4>::stack::<5>(vec![first, second], 4).reshape([b, h, t, width]);
        }
        let halves = x.chunk(2, 3);
        Tensor::cat(
            turn([halves[0].clone(), halves[1].clone()], cos, sin).to_vec(),
            3,
        )
    }

    /// The first T positions of a table of all.
    fn of_length(&self, table: Tensor<4>) -> Tensor<4> {
        if table.dims()[2] == self.batch.seq_len {
            table
        } else {
            table.narrow(2, 0, self.batch.seq_len)
        }
    }

    /// True where a query does not see a key: it is later, or of another document. [B, heads, T, T]
    fn unseen(&self) -> Tensor<4, Bool> {
        let Batch {
            batch_size,
            seq_len,
            ..
        } = *self.batch;
        let all = [
            batch_size,
            self.stock.config.num_attention_heads,
            seq_len,
            seq_len,
        ];
        if let Some(starts) = &self.batch.document_starts {
            let of_row = |(at, &start): (usize, &i32)| {
                (0..seq_len).map(move |key| key > at % seq_len || (key as i32) < start)
            };
            let hidden: Vec<bool> = starts.iter().enumerate().flat_map(of_row).collect();
            let hidden = Tensor::<4, Bool>::from_data(
                TensorData::new(hidden, [batch_size, 1, seq_len, seq_len]),
                &self.stock.device,
            );
            return hidden.expand(all);
        }
        let later = self.stock.later.clone();
        let later = if later.dims()[2] == seq_len {
            later
        } else {
            later.narrow(2, 0, seq_len).narrow(3, 0, seq_len)
        };
        later.expand(all)
    }

    /// softmax(q·kᵀ/√H)·v of what each query sees. → [B·T, heads·H]
    fn attention(&self, q: Tensor<4>, k: Tensor<4>, v: Tensor<4>) -> Tensor<2> {
        let [b, heads, t, h] = q.dims();
        let repeated = |x: Tensor<4>| {
            let kv = x.dims()[1];
            if kv == heads {
                return x;
            }
            x.reshape([b, kv, 1, t, h])
                .expand([b, kv, heads / kv, t, h])
                .reshape([b, heads, t, h])
        };
        let scores = q.matmul(repeated(k).swap_dims(2, 3)) / (h as f64).sqrt();
        let mixed = softmax(scores.mask_fill(self.unseen(), -1e9), 3).matmul(repeated(v));
        mixed.swap_dims(1, 2).reshape([b * t, heads * h])
    }

    fn llama(&self) -> Tensor<2> {
        let ModelConfig {
            num_hidden_layers,
            num_attention_heads,
            num_key_value_heads,
            ..
        } = self.stock.config;
        let table = "model.embed_tokens.weight";
        let mut x = self.rows(table, self.batch.inputs.clone());
        for layer in 0..num_hidden_layers {
            let of = |part: &str| format!("model.layers.{layer}.{part}");
            let normed = self.rms_norm(x.clone(), &of("input_layernorm"));
            let projected = |part: &str, heads: usize| {
                self.heads(
                    self.linear(&normed, &of(&format!("self_attn.{part}_proj"))),
                    heads,
                )
            };
            let (q, k) = (
                projected("q", num_attention_heads),
                projected("k", num_key_value_heads),
            );
            let is_turned = !self.stock.config.no_rope_layers.contains(&layer);
            let [q, k] = [(q, "q"), (k, "k")].map(|(y, part)| {
                let normed = self.head_norm(y, &of(&format!("self_attn.{part}_norm")));
                if is_turned {
                    self.turned(normed)
                } else {
                    normed
                }
            });
            let attended = self.attention(q, k, projected("v", num_key_value_heads));
            x = x + self.linear(&attended, &of("self_attn.o_proj"));
            let normed = self.rms_norm(x.clone(), &of("post_attention_layernorm"));
            x = x + self.swiglu(&normed, &of("mlp"));
        }
        self.rms_norm(x, "model.norm")
            .matmul(self.weight(self.head(table)).transpose())
    }

    /// OLMo 2 (arXiv:2501.00656): norms of the outputs instead of the inputs, and of all queries and all keys before they are heads.
    fn olmo2(&self) -> Tensor<2> {
        let ModelConfig {
            num_hidden_layers,
            num_attention_heads,
            num_key_value_heads,
            ..
        } = self.stock.config;
        let table = "model.embed_tokens.weight";
        let mut x = self.rows(table, self.batch.inputs.clone());
        for layer in 0..num_hidden_layers {
            let of = |part: &str| format!("model.layers.{layer}.{part}");
            let projected = |part: &str| self.linear(&x, &of(&format!("self_attn.{part}_proj")));
            let normed =
                |part: &str| self.rms_norm(projected(part), &of(&format!("self_attn.{part}_norm")));
            let q = self.turned(self.heads(normed("q"), num_attention_heads));
            let k = self.turned(self.heads(normed("k"), num_key_value_heads));
            let attended = self.attention(q, k, self.heads(projected("v"), num_key_value_heads));
            let attended = self.linear(&attended, &of("self_attn.o_proj"));
            x = x + self.rms_norm(attended, &of("post_attention_layernorm"));
            let hidden = self.swiglu(&x, &of("mlp"));
            x = x + self.rms_norm(hidden, &of("post_feedforward_layernorm"));
        }
        self.rms_norm(x, "model.norm")
            .matmul(self.weight(self.head(table)).transpose())
    }

    /// down(silu(gate(x)) · up(x))
    fn swiglu(&self, x: &Tensor<2>, mlp: &str) -> Tensor<2> {
        let gated = silu(self.linear(x, &format!("{mlp}.gate_proj")))
            * self.linear(x, &format!("{mlp}.up_proj"));
        self.linear(&gated, &format!("{mlp}.down_proj"))
    }

    /// The weight of the head, which may be the table.
    fn head<'a>(&self, table: &'a str) -> &'a str {
        if self.stock.config.tie_word_embeddings {
            table
        } else {
            "lm_head.weight"
        }
    }

    /// RMSNorm of each head, in a family that has it. [B, heads, T, H]
    fn head_norm(&self, x: Tensor<4>, layer: &str) -> Tensor<4> {
        let Some(weight) = self.weights.get(&format!("{layer}.weight")) else {
            return x;
        };
        let mean = x.clone().square().mean_dim(3);
        self.over_root(x, mean)
            * weight
                .clone()
                .reshape([1, 1, 1, self.stock.config.head_dim])
    }

    fn gpt2(&self) -> Tensor<2> {
        let ModelConfig {
            num_hidden_layers,
            num_attention_heads: heads,
            hidden_size: c,
            ..
        } = self.stock.config;
        let seq_len = self.batch.seq_len;
        let starts = self.batch.document_starts.as_ref();
        let position = |at: usize| (at % seq_len) as i32 - starts.map_or(0, |starts| starts[at]);
        let positions = (0..self.batch.inputs.len()).map(position).collect();
        let mut x = self.rows("transformer.wte.weight", self.batch.inputs.clone())
            + self.rows("transformer.wpe.weight", positions);
        for layer in 0..num_hidden_layers {
            let of = |part: &str| format!("transformer.h.{layer}.{part}");
            let qkv = self.conv1d(&self.layer_norm(x.clone(), &of("ln_1")), &of("attn.c_attn"));
            let third = |i: usize| self.heads(qkv.clone().narrow(1, i * c, c), heads);
            let attended = self.attention(third(0), third(1), third(2));
            x = x + self.conv1d(&attended, &of("attn.c_proj"));
            let hidden = self.conv1d(&self.layer_norm(x.clone(), &of("ln_2")), &of("mlp.c_fc"));
            x = x + self.conv1d(&gelu(hidden), &of("mlp.c_proj"));
        }
        let normed = self.layer_norm(x, "transformer.ln_f");
        normed.matmul(self.weight(self.head("transformer.wte.weight")).transpose())
    }
}

/// (a cos − b sin, b cos + a sin)
fn turn([a, b]: [Tensor<4>; 2], cos: Tensor<4>, sin: Tensor<4>) -> [Tensor<4>; 2] {
    [
        a.clone() * cos.clone() - b.clone() * sin.clone(),
        b * cos + a * sin,
    ]
}

/// GELU in its tanh form (arXiv:1606.08415): x/2 · (1 + tanh(√(2/π)·(x + 0.044715 x³))).
fn gelu(x: Tensor<2>) -> Tensor<2> {
    let inner = (x.clone() + x.clone().powi_scalar(3) * 0.044715) * (2.0 / PI).sqrt();
    x * 0.5 * (inner.tanh() + 1.0)
}
