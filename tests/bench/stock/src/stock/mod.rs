//! Models of every family and the update rules in Burn's own operations, on any device: what the kernels are measured against, and what says
//! whether their results are right.

mod model;
mod rounding;
mod rules;

use std::collections::BTreeMap;

use burn::tensor::{Bool, Device, Tensor, TensorData};
use tabtune::config::{Architecture, ModelConfig, OptimizerConfig};
use tabtune::data::Batch;

use self::model::View;
use self::rules::Parameter;

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
    /// Adafactor does not clip its updates.
    UpdateClip,
    /// APOLLO projects without the factor √(dim/rank).
    ProjectionScale,
    /// APOLLO's updates grow without a limit.
    GrowthLimit,
    /// SGD takes the momentum as it is in place of Nesterov's form.
    PlainMomentum,
    /// bf16 values are rounded to the nearest.
    NearestRounding,
    /// The noise of the first moment rounds everything.
    OneStream,
}

/// How the stock model trains.
#[derive(Debug, Clone)]
pub struct StockTraining {
    /// The rule; its decay is that of matrices, and vectors have none.
    pub optimizer: OptimizerConfig,
    /// The learning rate.
    pub rate: f64,
    /// Factors of the rate by the beginning of names.
    pub scales: Vec<(String, f64)>,
    /// True if matrices, and what is kept in their type, are rounded to bf16 by noise.
    pub bf16: bool,
    /// Seed of this noise and of projectors.
    pub seed: u64,
    /// A mistake.
    pub planted: Option<Planted>,
}

/// A tensor that a step has stored.
pub struct Stored {
    /// Name of the parameter, with a colon and the name of what its rule keeps.
    pub name: String,
    /// The values.
    pub value: Tensor<2>,
    /// The values before they were rounded to bf16, if they were.
    pub unrounded: Option<Tensor<2>>,
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
            let parameter = Parameter {
                value: Tensor::from_data(TensorData::new(values, dims), &plain),
                is_matrix: matrix,
                kept: BTreeMap::new(),
                unrounded: BTreeMap::new(),
                name: name.clone(),
            };
            (name, parameter)
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

    /// The parameters (vectors as [1, C]) and what their rules keep, as the last step has stored them.
    pub fn stored(&self) -> impl Iterator<Item = Stored> {
        self.parameters.values().flat_map(|parameter| {
            let kept = parameter.kept.iter().map(|(key, value)| (*key, value));
            kept.chain([("", &parameter.value)])
                .map(|(key, value)| Stored {
                    name: match key {
                        "" => parameter.name.clone(),
                        _ => format!("{}:{key}", parameter.name),
                    },
                    value: value.clone(),
                    unrounded: parameter.unrounded.get(key).cloned(),
                })
        })
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

    /// Performs one step; returns the loss before it, [1], not read yet.
    pub fn update(&mut self, forward: Forward) -> Tensor<1> {
        self.step += 1;
        let value = forward.loss.clone().inner();
        for (name, gradient) in self.gradients(forward) {
            if let Some(parameter) = self.parameters.get_mut(&name) {
                parameter.step(&self.training, self.step, gradient);
            }
        }
        value
    }
}
