//! Reference cases and the comparison with them, as pure functions that use no files and no device.

pub mod judge;
pub mod lora;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Bound of the error of a logit, relative to the largest absolute expected logit: f32 on a GPU against the float64 of the case.
pub const LOGIT: f64 = 1e-4;
/// Bound of the relative error of the mean loss of a batch.
pub const LOSS: f64 = 1e-5;
/// Bound of the relative error of the mean loss for a model with a merged adapter. The case adds the product exactly, and merging rounds to
/// the base's dtype: in F16 that alone moves the two public cases by 6.6e-6 and 9.6e-6, and the adapters themselves by 2e-3 and 6e-3.
pub const MERGED_LOSS: f64 = 1e-4;
/// Bound of the relative error of gradient norms.
pub const NORM: f64 = 1e-4;
/// Difference of logits below which two tokens may swap places.
pub const TIE: f64 = 0.01;

/// A file of cases. Each case is parsed on its own, so that a bad one does not fail the others.
#[derive(Debug, Deserialize)]
pub struct Oracle {
    /// Unparsed cases.
    pub cases: Vec<Value>,
}

/// A reference case.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// Path of the model, relative to the assets folder.
    pub model: String,
    /// Path of the model's tokenizer.json.
    pub tokenizer: String,
    /// Path of an adapter that is merged into the model first.
    #[serde(default)]
    pub lora: Option<String>,
    /// Computation, and its expected results.
    #[serde(flatten)]
    pub task: Task,
}

/// Computation of a case, with its inputs and expected results.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Task {
    /// The most likely next tokens after a prompt.
    Next { prompt: String, expect: NextExpect },
    /// The most likely token, chosen `count` times.
    Greedy {
        prompt: String,
        count: usize,
        expect: GreedyExpect,
    },
    /// Cross-entropy of the `count` tokens after `start`.
    Ce {
        text: String,
        start: usize,
        count: usize,
        expect: CeExpect,
    },
    /// Loss and gradients of one batch.
    Grad {
        text: String,
        starts: Vec<usize>,
        length: usize,
        expect: GradExpect,
    },
    /// Losses of a short run.
    Train {
        text: String,
        length: usize,
        steps: Vec<Vec<usize>>,
        optimizer: Value,
        expect: TrainExpect,
    },
}

/// Expected logit and probability of one of the most likely tokens.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Likely {
    /// Token id.
    pub id: usize,
    /// Logit of the token.
    pub logit: f64,
    /// Probability of the token.
    pub prob: f64,
}

/// Expected results of a `next` case.
#[derive(Debug, Deserialize)]
pub struct NextExpect {
    /// Token ids of the prompt.
    pub ids: Vec<u32>,
    /// The five most likely tokens, in descending order of probability.
    pub top5: Vec<Likely>,
}

/// Expected results of a `greedy` case.
#[derive(Debug, Deserialize)]
pub struct GreedyExpect {
    /// Ids of the new tokens.
    pub ids: Vec<u32>,
    /// Text of the new tokens.
    pub text: String,
}

/// Expected results of a `ce` case, in nats.
#[derive(Debug, Deserialize)]
pub struct CeExpect {
    /// First token ids of the span.
    pub first_ids: Vec<u32>,
    /// Mean cross-entropy over all targets.
    pub mean: f64,
    /// Cross-entropy of the first target.
    pub first: f64,
    /// Cross-entropy of the last target.
    pub last: f64,
}

/// Expected results of a `grad` case.
#[derive(Debug, Deserialize)]
pub struct GradExpect {
    /// Loss of the batch.
    pub loss: f64,
    /// Gradient norm over all parameters.
    pub norm: f64,
    /// Gradient norm of each parameter.
    pub norms: serde_json::Map<String, Value>,
    /// First four elements of some gradients.
    #[serde(default)]
    pub samples: serde_json::Map<String, Value>,
    /// Path of a safetensors file with the gradient of every parameter in f32, relative to the assets folder.
    #[serde(default)]
    pub gradients: Option<String>,
}

/// Expected results of a `train` case.
#[derive(Debug, Deserialize)]
pub struct TrainExpect {
    /// Loss before each step.
    pub losses: Vec<f64>,
    /// Gradient norm of each step, before clipping.
    pub grad_norms: Vec<f64>,
    /// Loss of the last batch, after the last step.
    pub final_loss: f64,
    /// Norm of all parameters, after the last step.
    pub param_norm: f64,
}

/// One compared figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// Name of the figure.
    pub name: String,
    /// Error of the figure.
    pub error: f64,
    /// Bound of the error.
    pub bound: f64,
}

impl Measure {
    /// Returns true if the error is within its bound; false for NaN.
    pub fn ok(&self) -> bool {
        self.error <= self.bound
    }

    fn strain(&self) -> f64 {
        match (self.ok(), self.bound > 0.0) {
            (true, true) => self.error / self.bound,
            (true, false) => 0.0,
            (false, true) if self.error.is_finite() => self.error / self.bound,
            (false, _) => f64::INFINITY,
        }
    }
}

/// All compared figures of one case.
#[derive(Debug, Default)]
pub struct Verdict {
    measures: Vec<Measure>,
}

impl Verdict {
    /// Returns true if there is a figure and every figure is within its bound.
    pub fn ok(&self) -> bool {
        !self.measures.is_empty() && self.measures.iter().all(Measure::ok)
    }

    /// Returns the figure that is closest to its bound, or furthest beyond it.
    pub fn worst(&self) -> Option<&Measure> {
        self.measures
            .iter()
            .max_by(|a, b| a.strain().total_cmp(&b.strain()))
    }

    /// Iterates over the figures that exceed their bounds.
    pub fn failures(&self) -> impl Iterator<Item = &Measure> {
        self.measures.iter().filter(|m| !m.ok())
    }

    /// Adds the figure `|got − want|`, bounded by `bound`.
    pub fn near(&mut self, name: impl Into<String>, got: f64, want: f64, bound: f64) {
        self.measures.push(Measure {
            name: name.into(),
            error: (got - want).abs(),
            bound,
        });
    }

    /// Adds the figure `|got − want| / |want|`, bounded by `bound`.
    pub fn relative(&mut self, name: impl Into<String>, got: f64, want: f64, bound: f64) {
        let scale = want.abs().max(f64::MIN_POSITIVE);
        self.measures.push(Measure {
            name: name.into(),
            error: (got - want).abs() / scale,
            bound,
        });
    }

    /// Adds the number of positions at which two lists differ; its bound is 0.
    pub fn equal<T: PartialEq>(&mut self, name: impl Into<String>, got: &[T], want: &[T]) {
        let common = got.iter().zip(want).filter(|(a, b)| a != b).count();
        self.measures.push(Measure {
            name: name.into(),
            error: (common + got.len().abs_diff(want.len())) as f64,
            bound: 0.0,
        });
    }

    /// Compares the logits and probabilities of the expected tokens, and their order. `row` has shape `[V]`.
    pub fn top(&mut self, row: &[f32], want: &[Likely]) {
        let at = |id: usize| row.get(id).map_or(f64::NAN, |x| f64::from(*x));
        let bound = LOGIT * want.iter().map(|w| w.logit.abs()).fold(0.0, f64::max);
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = row.iter().map(|x| f64::from(x - top).exp()).sum();
        for (place, w) in want.iter().enumerate() {
            self.near(format!("top5[{place}].logit"), at(w.id), w.logit, bound);
            // |dp| ≤ p(1−p)·2·|dlogit| ≤ |dlogit| / 2
            self.near(
                format!("top5[{place}].prob"),
                (at(w.id) - f64::from(top)).exp() / sum,
                w.prob,
                bound / 2.0,
            );
        }
        let mut swapped = 0;
        for (i, a) in want.iter().enumerate() {
            swapped += want[i + 1..]
                .iter()
                .filter(|b| a.logit - b.logit > TIE && at(a.id) <= at(b.id))
                .count();
        }
        if let Some(last) = want.last() {
            let listed = |id: usize| want.iter().any(|w| w.id == id);
            swapped += row
                .iter()
                .enumerate()
                .filter(|(id, x)| !listed(*id) && f64::from(**x) - last.logit > TIE)
                .count();
        }
        self.measures.push(Measure {
            name: "order".into(),
            error: swapped as f64,
            bound: 0.0,
        });
    }

    /// Compares whole gradients: the 2-norm of each difference, relative to the 2-norm of the expected gradient.
    pub fn whole(&mut self, want: &BTreeMap<String, Vec<f32>>, got: &BTreeMap<String, Vec<f32>>) {
        self.equal(
            "names",
            &got.keys().collect::<Vec<_>>(),
            &want.keys().collect::<Vec<_>>(),
        );
        for (name, want) in want {
            let got = got.get(name).filter(|got| got.len() == want.len());
            let off = got.map_or(f64::NAN, |got| {
                got.iter()
                    .zip(want)
                    .map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2))
                    .sum()
            });
            self.near(
                format!("{name} whole"),
                (off / square_sum(want)).sqrt(),
                0.0,
                NORM,
            );
        }
    }

    /// Compares norms and samples of gradients in f64. `gradient` finds a gradient by its name; `names` is the number of gradients.
    pub fn gradients<'a>(
        &mut self,
        want: &GradExpect,
        gradient: impl Fn(&str) -> Option<&'a [f32]>,
        names: usize,
    ) {
        self.equal("parameters", &[names], &[want.norms.len()]);
        let mut total = 0.0;
        for (name, norm) in &want.norms {
            let got: f64 = gradient(name).map_or(f64::NAN, square_sum);
            total += got;
            self.relative(name, got.sqrt(), norm.as_f64().unwrap_or(f64::NAN), NORM);
        }
        self.relative("norm", total.sqrt(), want.norm, NORM);
        for (name, values) in &want.samples {
            let values: Vec<f64> = values
                .as_array()
                .into_iter()
                .flatten()
                .map(|v| v.as_f64().unwrap_or(f64::NAN))
                .collect();
            let Some(got) = gradient(name) else { continue };
            // An element may be small by cancellation, so it is compared relative to the size of its neighbours.
            let rms = (square_sum(got) / got.len().max(1) as f64).sqrt();
            let scale = values.iter().fold(rms, |a, v| a.max(v.abs()));
            for (place, value) in values.iter().enumerate() {
                self.near(
                    format!("{name}[{place}]"),
                    got.get(place).map_or(f64::NAN, |x| f64::from(*x)),
                    *value,
                    NORM * scale,
                );
            }
        }
    }
}

/// Returns Σx² in f64.
pub fn square_sum(values: &[f32]) -> f64 {
    values.iter().map(|x| f64::from(*x).powi(2)).sum()
}

/// Returns the cross-entropy in nats of `target` under one row of logits `[V]`, in f64.
pub fn cross_entropy(row: &[f32], target: usize) -> f64 {
    let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|x| f64::from(x - top).exp()).sum();
    row.get(target)
        .map_or(f64::NAN, |x| sum.ln() + f64::from(top) - f64::from(*x))
}

#[cfg(test)]
mod tests;
