//! The update rules in Burn's own operations, as their papers write them.

use std::collections::BTreeMap;

use burn::tensor::{Tensor, TensorData};
use tabtune::config::{
    AdafactorConfig, AdamwConfig, ApolloConfig, OptimizerConfig, Projected, ProjectorKind,
    SgdConfig,
};
use tabtune::optim::apollo::project::normal;
use tabtune::optim::orthogonal;
use tabtune::random::{self, PROJECTOR, STOCHASTIC_ROUNDING, Stream};

use super::rounding::rounded;
use super::{Planted, StockTraining};

/// A parameter [rows, columns] (a vector is [1, C]) with what its rule keeps.
pub(super) struct Parameter {
    pub name: String,
    pub value: Tensor<2>,
    pub is_matrix: bool,
    /// The tensors that the rule keeps from step to step, by the names of the crate's optimizer files; an absent one is 0.
    pub kept: BTreeMap<&'static str, Tensor<2>>,
    /// The tensors that the last step rounded to bf16, before that: the parameter under an empty name, the rest as in `kept`.
    pub unrounded: BTreeMap<&'static str, Tensor<2>>,
}

/// A step of a parameter, with its own rate and decay.
struct Now<'a> {
    training: &'a StockTraining,
    t: i32,
    rate: f64,
    decay: f64,
}

/// Result of a rule: the new parameter, and what is kept, with the noise that rounds it if it has the type of the parameter.
type Stepped = (Tensor<2>, Vec<(&'static str, Option<Stream>, Tensor<2>)>);

impl Parameter {
    /// Takes step `t`, counted from 1.
    pub fn step(&mut self, training: &StockTraining, t: i32, g: Tensor<2>) {
        let start = |(start, _): &&(String, f64)| self.name.starts_with(start);
        let scale = training
            .scales
            .iter()
            .find(start)
            .map_or(1.0, |found| found.1);
        let decays = self.is_matrix || training.planted == Some(Planted::VectorDecay);
        let mut now = Now {
            training,
            t,
            rate: training.rate * scale,
            decay: if decays {
                training.optimizer.weight_decay()
            } else {
                0.0
            },
        };
        let (value, kept) = match &training.optimizer {
            OptimizerConfig::Adamw(c) => self.adamw(c, &now, g),
            OptimizerConfig::Adafactor(c) => self.adafactor(c, &now, g),
            OptimizerConfig::Apollo(c) if self.is_projected(c) => self.apollo(c, &now, g),
            OptimizerConfig::Apollo(c) => {
                now.rate *= c.adamw_learning_rate_scale;
                let (beta1, beta2, eps) = (c.beta1, c.beta2, c.eps);
                let adamw = AdamwConfig {
                    beta1,
                    beta2,
                    eps,
                    ..AdamwConfig::default()
                };
                self.adamw(&adamw, &now, g)
            }
            OptimizerConfig::Sgd(c) => self.sgd(c, &now, g),
        };
        self.value = self.stored("", Some(Stream::P), value, &now);
        for (key, stream, tensor) in kept {
            let tensor = self.stored(key, stream, tensor, &now);
            self.kept.insert(key, tensor);
        }
    }

    /// Rounds what is kept in bf16, which vectors are not.
    fn stored(
        &mut self,
        key: &'static str,
        stream: Option<Stream>,
        x: Tensor<2>,
        now: &Now<'_>,
    ) -> Tensor<2> {
        let training = now.training;
        let Some(stream) = stream.filter(|_| training.bf16 && self.is_matrix) else {
            return x;
        };
        self.unrounded.insert(key, x.clone());
        let noise_key = random::key(STOCHASTIC_ROUNDING, training.seed, &self.name);
        let stream = match training.planted {
            Some(Planted::OneStream) => Stream::M,
            _ => stream,
        };
        let of = |i: u64| match training.planted {
            // Half of the way.
            Some(Planted::NearestRounding) => 32768.0,
            _ => random::noise(noise_key, stream, i, now.t as u64) as f32,
        };
        let noise: Vec<f32> = (0..x.shape().num_elements() as u64).map(of).collect();
        let noise = Tensor::from_data(TensorData::new(noise, x.dims()), &x.device());
        rounded(x, noise)
    }

    /// β · old + (1 − β) · new
    fn averaged(&self, key: &str, new: Tensor<2>, beta: f64) -> Tensor<2> {
        let new = new * (1.0 - beta);
        match self.kept.get(key) {
            Some(old) => old.clone() * beta + new,
            None => new,
        }
    }

    /// (1 − rate · decay) · value
    fn decayed(&self, now: &Now<'_>) -> Tensor<2> {
        self.value.clone() * (1.0 - now.rate * now.decay)
    }

    /// AdamW (arXiv:1711.05101), ε added to the root of the moment that is not corrected, as at the end of section 2 of arXiv:1412.6980.
    fn adamw(&self, c: &AdamwConfig, now: &Now<'_>, g: Tensor<2>) -> Stepped {
        let m = self.averaged("m", g.clone(), c.beta1);
        let v = self.averaged("v", g.square(), c.beta2);
        let change = m.clone() / (v.clone().sqrt() + c.eps);
        let rate = now.rate * correction(c.beta1, c.beta2, now.t);
        let value = self.decayed(now) - change * rate;
        (
            value,
            vec![("m", Some(Stream::M), m), ("v", Some(Stream::V), v)],
        )
    }

    /// Adafactor (arXiv:1804.04235, algorithms 4 and 5) with sums of rows and columns in place of means, and without a first moment.
    fn adafactor(&self, c: &AdafactorConfig, now: &Now<'_>, g: Tensor<2>) -> Stepped {
        let beta = 1.0 - f64::from(now.t).powf(c.decay_rate).max(1.0 - c.beta2_cap);
        let squares = g.clone().square() + c.eps1;
        let (v, kept) = if self.is_matrix {
            let row = self.averaged("row", squares.clone().sum_dim(1), beta);
            let col = self.averaged("col", squares.sum_dim(0), beta);
            let v = (row.clone() / row.clone().sum().reshape([1, 1])) * col.clone();
            (v, vec![("row", None, row), ("col", None, col)])
        } else {
            let row = self.averaged("row", squares, beta);
            (row.clone(), vec![("row", None, row)])
        };
        let u = g / v.sqrt();
        let clip = match now.training.planted {
            Some(Planted::UpdateClip) => mean_square(&u).ones_like(),
            _ => (mean_square(&u).sqrt() / c.clip_threshold).clamp_min(1.0),
        };
        let size = if c.relative_step {
            mean_square(&self.value).sqrt().clamp_min(c.eps2)
        } else {
            clip.ones_like()
        };
        let rate = size * now.rate;
        let value = self.value.clone() * (rate.clone() * -now.decay + 1.0) - u * (rate / clip);
        (value, kept)
    }

    /// True for matrices whose shorter side is above the rank; those outside the blocks only if all are projected.
    fn is_projected(&self, c: &ApolloConfig) -> bool {
        let side = self.value.dims().into_iter().min().unwrap_or(0);
        let in_block = self.name.contains(".layers.") || self.name.contains(".h.");
        self.is_matrix && (in_block || c.projected == Projected::All) && side > c.rank(side)
    }

    /// APOLLO (arXiv:2412.05270, algorithm 1) with the growth limiter of arXiv:2410.01623. The shorter side is projected.
    fn apollo(&self, c: &ApolloConfig, now: &Now<'_>, g: Tensor<2>) -> Stepped {
        let training = now.training;
        let [a, b] = g.dims();
        let (left, dim) = if a < b { (true, a) } else { (false, b) };
        let (rank, key) = (
            c.rank(dim),
            random::key(PROJECTOR, training.seed, &self.name),
        );
        let refresh = (now.t as u64 - 1) / c.update_steps.max(1);
        let projector = match c.projector {
            ProjectorKind::Normal => normal(key, refresh, dim, rank),
            ProjectorKind::Orthogonal => orthogonal(key, refresh, dim, rank),
        };
        let projector =
            Tensor::<2>::from_data(TensorData::new(projector, [dim, rank]), &g.device());
        let channels = if left {
            g.clone()
        } else {
            g.clone().transpose()
        };
        let sigma = match training.planted {
            Some(Planted::ProjectionScale) => 1.0,
            _ => (dim as f64 / rank as f64).sqrt(),
        };
        let r = projector.transpose().matmul(channels) * sigma;
        let m = self.averaged("m", r.clone(), c.beta1);
        let v = self.averaged("v", r.clone().square(), c.beta2);
        let adapted = m.clone() / (v.clone().sqrt() + c.eps);
        let length = |x: Tensor<2>| match c.mini {
            true => x.square().sum().sqrt().reshape([1, 1]),
            false => x.square().sum_dim(0).sqrt(),
        };
        let scales = length(adapted) / (length(r.clone()) + 1e-8);
        let scales = if left { scales } else { scales.transpose() };
        let root = c.scale(dim).sqrt();
        let (front, back) = if c.scale_front {
            (root, 1.0)
        } else {
            (1.0, root)
        };
        let u = g * scales * front;
        let norm = u.clone().square().sum().sqrt().reshape([1, 1]);
        let enough = 0.01 * (r.shape().num_elements() as f64).sqrt() * front;
        // An update is limited by the norm of the last one, if there was a real one.
        let last = self
            .kept
            .get("norm")
            .cloned()
            .unwrap_or_else(|| norm.zeros_like());
        let limit = match c.growth_limit {
            Some(most) if training.planted != Some(Planted::GrowthLimit) => {
                let growth = norm.clone() / (last.clone() + 1e-8);
                let limit = growth.clamp_min(most) / most;
                limit
                    .ones_like()
                    .mask_where(last.greater_equal_elem(enough), limit)
            }
            _ => norm.ones_like(),
        };
        let rate = now.rate * back * correction(c.beta1, c.beta2, now.t);
        let value = self.decayed(now) - u / limit.clone() * rate;
        let kept = vec![("m", None, m), ("v", None, v), ("norm", None, norm / limit)];
        (value, kept)
    }

    /// SGD with the momentum of Sutskever et al. 2013, without dampening.
    fn sgd(&self, c: &SgdConfig, now: &Now<'_>, g: Tensor<2>) -> Stepped {
        if c.momentum == 0.0 {
            return (self.decayed(now) - g * now.rate, Vec::new());
        }
        let momentum = match self.kept.get("momentum") {
            Some(old) => old.clone() * c.momentum + g.clone(),
            None => g.clone(),
        };
        let u = match c.nesterov && now.training.planted != Some(Planted::PlainMomentum) {
            true => g + momentum.clone() * c.momentum,
            false => momentum.clone(),
        };
        (
            self.decayed(now) - u * now.rate,
            vec![("momentum", Some(Stream::M), momentum)],
        )
    }
}

/// √(1 − β₂ᵗ) / (1 − β₁ᵗ)
fn correction(beta1: f64, beta2: f64, t: i32) -> f64 {
    (1.0 - beta2.powi(t)).sqrt() / (1.0 - beta1.powi(t))
}

fn mean_square(x: &Tensor<2>) -> Tensor<2> {
    x.clone().square().mean().reshape([1, 1])
}
