//! Models of every family and AdamW in Burn's own operations, on any device: what the kernels are measured against, and what says whether their
//! results are right.

mod model;

use std::collections::BTreeMap;

use burn::tensor::{Bool, Device, Tensor, TensorData};
use tabtune::config::{AdamwConfig, Architecture, ModelConfig};
use tabtune::data::Batch;

use self::model::View;

/// State-dict name, shape and values of a tensor.
pub type NamedTensor = (String, Vec<usize>, Vec<f32>);

/// A mistake that is made on purpose, so that a comparison shows that it finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// Rotary positions turn neighbours in place of the two halves of a head.
    RopePairs,
    /// The ε of norms is added to the root in place of the mean square.
    NormEps,
    /// Weight decay on vectors.
    VectorDecay,
}

/// How the stock model trains.
#[derive(Debug, Clone)]
pub struct StockTraining {
    /// The rule; its decay is that of matrices, and vectors have none.
    pub adamw: AdamwConfig,
    /// The learning rate.
    pub rate: f64,
    /// Factors of the rate by the beginning of names.
    pub scales: Vec<(String, f64)>,
    /// A mistake.
    pub planted: Option<Planted>,
}

/// A parameter [rows, columns] (a vector is [1, C]) with its moments.
struct Parameter {
    value: Tensor<2>,
    m: Tensor<2>,
    v: Tensor<2>,
    decays: bool,
    scale: f64,
}

/// A model with its optimizer.
pub struct Stock {
    config: ModelConfig,
    training: StockTraining,
    device: Device,
    parameters: BTreeMap<String, Parameter>,
    /// cos and sin [1, 1, T, H/2] of every position; none in families that have a table of positions.
    turns: Option<[Tensor<4>; 2]>,
    /// [1, 1, T, T], true where a key comes after its query.
    later: Tensor<4, Bool>,
    step: i32,
}

/// A forward pass.
pub struct Forward {
    weights: BTreeMap<String, Tensor<2>>,
    loss: Tensor<1>,
}

impl Stock {
    /// A model whose positions are not stretched, of these weights by their state-dict names, on an autodiff `device`. Matrices are [out, in],
    /// those of GPT-2's layers [in, out].
    pub fn new(
        config: &ModelConfig,
        training: StockTraining,
        weights: impl IntoIterator<Item = NamedTensor>,
        device: Device,
    ) -> Self {
        let plain = device.clone().inner();
        let parameters = weights.into_iter().map(|(name, dims, values)| {
            let (matrix, dims) = if let [rows, columns] = *dims {
                (true, [rows, columns])
            } else {
                (false, [1, dims[0]])
            };
            let value = Tensor::from_data(TensorData::new(values, dims), &plain);
            let scale = training
                .scales
                .iter()
                .find(|(start, _)| name.starts_with(start))
                .map_or(1.0, |(_, scale)| *scale);
            let decays = matrix || training.planted == Some(Planted::VectorDecay);
            (
                name,
                Parameter {
                    m: Tensor::zeros(dims, &plain),
                    v: Tensor::zeros(dims, &plain),
                    value,
                    decays,
                    scale,
                },
            )
        });
        let parameters = parameters.collect();
        let (t, half) = (config.max_position_embeddings, config.head_dim / 2);
        let table = |of: fn(f64) -> f64| {
            let angles = (0..t * half).map(|i| {
                (i / half) as f64 * config.rope_theta.powf(-((i % half) as f64) / half as f64)
            });
            let values: Vec<f32> = angles.map(|angle| of(angle) as f32).collect();
            Tensor::<4>::from_data(TensorData::new(values, [1, 1, t, half]), &device)
        };
        let turns =
            (config.architecture != Architecture::Gpt2).then(|| [table(f64::cos), table(f64::sin)]);
        // `tril_mask` is true above the diagonal.
        let later = Tensor::<2, Bool>::tril_mask([t, t], 0, &device).reshape([1, 1, t, t]);
        Self {
            config: config.clone(),
            training,
            parameters,
            turns,
            later,
            step: 0,
            device,
        }
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.parameters
            .values()
            .map(|p| p.value.shape().num_elements())
            .sum()
    }

    /// The parameters by name, vectors as [1, C].
    pub fn values(&self) -> impl Iterator<Item = (&str, Tensor<2>)> {
        self.parameters
            .iter()
            .map(|(name, parameter)| (name.as_str(), parameter.value.clone()))
    }

    /// The mean loss of `batch`, with all that its backward pass needs.
    pub fn forward(&self, batch: &Batch) -> Forward {
        let track = |(name, p): (&String, &Parameter)| {
            (
                name.clone(),
                Tensor::from_inner(p.value.clone()).require_grad(),
            )
        };
        let weights: BTreeMap<_, _> = self.parameters.iter().map(track).collect();
        Forward {
            loss: View {
                stock: self,
                weights: &weights,
                batch,
            }
            .loss(),
            weights,
        }
    }

    /// The gradients of a forward pass by name.
    pub fn gradients(&self, Forward { weights, loss }: Forward) -> BTreeMap<String, Tensor<2>> {
        let mut gradients = loss.backward();
        weights
            .into_iter()
            .filter_map(|(name, weight)| Some((name, weight.grad_remove(&mut gradients)?)))
            .collect()
    }

    /// Performs one step of AdamW (arXiv:1711.05101), ε added to the root of the moment that is not corrected, as at the end of section 2 of arXiv:1412.6980;
    /// the loss before it, [1], not read yet.
    pub fn update(&mut self, forward: Forward) -> Tensor<1> {
        self.step += 1;
        let value = forward.loss.clone().inner();
        let gradients = self.gradients(forward);
        let AdamwConfig {
            beta1,
            beta2,
            eps,
            weight_decay,
            ..
        } = self.training.adamw;
        let correction = (1.0 - beta2.powi(self.step)).sqrt() / (1.0 - beta1.powi(self.step));
        for (name, g) in gradients {
            let Some(parameter) = self.parameters.get_mut(&name) else {
                continue;
            };
            let rate = self.training.rate * parameter.scale;
            parameter.m = parameter.m.clone() * beta1 + g.clone() * (1.0 - beta1);
            parameter.v = parameter.v.clone() * beta2 + g.square() * (1.0 - beta2);
            let change = parameter.m.clone() / (parameter.v.clone().sqrt() + eps);
            let decay = if parameter.decays {
                rate * weight_decay
            } else {
                0.0
            };
            parameter.value =
                parameter.value.clone() * (1.0 - decay) - change * (rate * correction);
        }
        value
    }
}
