//! Comparison of two runs of one subject.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tabtune::config::Precision;

use crate::track::{Named, Track};

/// Maximum distances between two runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Relative L2 distance of the gradients of the first step, for each tensor.
    pub gradient: f64,
    /// Relative L2 distance of the first step's changes, which have the noise of the gradients divided by their root mean squares.
    pub change: f64,
    /// Relative distance of losses.
    pub loss: f64,
}

impl Bounds {
    /// Bounds for products in f32.
    pub const F32: Self = Self {
        gradient: 1e-5,
        change: 1e-4,
        loss: 1e-5,
    };
    /// Bounds for products with the ten mantissa bits of TF32.
    pub const TF32: Self = Self {
        gradient: 2e-3,
        change: 2e-2,
        loss: 2e-3,
    };
    /// Bound of the losses in bf16, where values that differ in the last bit of f32 may be stored one unit apart, 2⁻⁸ of them.
    const BF16_LOSS: f64 = 2e-3;

    /// Returns the bounds for a run with this storage type.
    pub fn in_precision(self, precision: Precision) -> Self {
        match precision {
            Precision::F32 => self,
            Precision::Bf16 => Self {
                loss: self.loss.max(Self::BF16_LOSS),
                ..self
            },
        }
    }
}

/// Comparison of the bf16 values that two runs store for a tensor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rounding {
    /// Number of values.
    pub values: usize,
    /// Number of values that are equal before rounding, to the bit.
    pub equal: usize,
    /// Number of these that differ after it.
    pub split: usize,
    /// Number of the other values that are farther apart after rounding than one unit in addition to their distance before it.
    pub far: usize,
}

impl Rounding {
    fn of(a: &[[f32; 2]], b: &[[f32; 2]]) -> Self {
        let values = a.len().max(b.len());
        let mut rounding = Self {
            values,
            far: values - a.len().min(b.len()),
            ..Self::default()
        };
        for ([x, stored_x], [y, stored_y]) in a.iter().zip(b) {
            if x.to_bits() == y.to_bits() {
                rounding.equal += 1;
                rounding.split += usize::from(stored_x != stored_y);
            } else {
                let [before, after] = [(x, y), (stored_x, stored_y)]
                    .map(|(x, y)| (f64::from(*x) - f64::from(*y)).abs());
                let unit = unit(*stored_x).max(unit(*stored_y));
                rounding.far += usize::from(after > before + unit);
            }
        }
        rounding
    }
}

/// Returns the distance from a bf16 value to the next one away from zero.
fn unit(x: f32) -> f64 {
    let bits = x.abs().to_bits();
    f64::from(f32::from_bits(bits + 0x1_0000)) - f64::from(f32::from_bits(bits))
}

/// Distances between two runs.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Distances of the first step's gradients by tensor: ‖a − b‖ / ‖b‖.
    pub gradients: Vec<(String, f64)>,
    /// Distances of the first step's changes by tensor.
    pub changes: Vec<(String, f64)>,
    /// Comparison of the bf16 values that the first step stores, by tensor.
    pub roundings: Vec<(String, Rounding)>,
    /// Distance of each loss: |a − b| / |b|.
    pub losses: Vec<f64>,
}

/// Returns the distance of a run from another one. Values that only one of them has are infinitely far.
pub fn compare(run: &Track, witness: &Track) -> Comparison {
    let steps = run.losses.len().max(witness.losses.len());
    let at = |losses: &[f64], step: usize| losses.get(step).copied().unwrap_or(f64::INFINITY);
    let loss = |step| {
        let (a, b) = (at(&run.losses, step), at(&witness.losses, step));
        distance_or_infinity((a - b).abs() / b.abs())
    };
    Comparison {
        gradients: distances(&run.gradients, &witness.gradients),
        changes: distances(&run.first_changes, &witness.first_changes),
        roundings: by_name(&run.rounded, &witness.rounded, Rounding::of),
        losses: (0..steps).map(loss).collect(),
    }
}

fn distances(a: &Named, b: &Named) -> Vec<(String, f64)> {
    by_name(a, b, distance)
}

/// Compares the values of each name; of a name that only one side has, the other has none.
fn by_name<V, R>(
    a: &BTreeMap<String, Vec<V>>,
    b: &BTreeMap<String, Vec<V>>,
    compare: impl Fn(&[V], &[V]) -> R,
) -> Vec<(String, R)> {
    let names = a
        .keys()
        .chain(b.keys().filter(|name| !a.contains_key(*name)));
    names
        .map(|name| {
            let [a, b] = [a, b].map(|side| side.get(name).map_or(&[][..], Vec::as_slice));
            (name.clone(), compare(a, b))
        })
        .collect()
}

/// Returns ‖a − b‖ / ‖b‖.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    let difference: f64 = a
        .iter()
        .zip(b)
        .map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2))
        .sum();
    let norm: f64 = b.iter().map(|b| f64::from(*b).powi(2)).sum();
    if difference == 0.0 {
        0.0
    } else {
        distance_or_infinity((difference / norm).sqrt())
    }
}

/// Replaces NaN, which exceeds no bound, by infinity.
fn distance_or_infinity(distance: f64) -> f64 {
    if distance.is_nan() {
        f64::INFINITY
    } else {
        distance
    }
}

fn worst<'a>(distances: impl IntoIterator<Item = (&'a str, f64)>) -> (&'a str, f64) {
    distances.into_iter().fold(
        ("", 0.0),
        |worst, next| if next.1 > worst.1 { next } else { worst },
    )
}

impl Comparison {
    /// Returns the tensor whose change is farthest, with its distance.
    pub fn worst_change(&self) -> (&str, f64) {
        worst(
            self.changes
                .iter()
                .map(|(name, distance)| (name.as_str(), *distance)),
        )
    }

    /// Returns the sum of the comparisons of bf16 values.
    pub fn rounding(&self) -> Rounding {
        let sum = |a: Rounding, b: &(String, Rounding)| Rounding {
            values: a.values + b.1.values,
            equal: a.equal + b.1.equal,
            split: a.split + b.1.split,
            far: a.far + b.1.far,
        };
        self.roundings.iter().fold(Rounding::default(), sum)
    }

    /// Returns the largest distance of losses.
    pub fn worst_loss(&self) -> f64 {
        self.losses.iter().copied().fold(0.0, f64::max)
    }

    /// Describes each bound that is exceeded, with the tensor or the step; the farthest tensors come first.
    pub fn faults(&self, bounds: Bounds) -> Vec<String> {
        let far = |what: &str, distances: &[(String, f64)], bound: f64| {
            let mut far: Vec<_> = distances
                .iter()
                .filter(|(_, distance)| *distance > bound)
                .collect();
            far.sort_by(|a, b| b.1.total_cmp(&a.1));
            far.into_iter()
                .map(|(name, distance)| {
                    format!("{what} of {name}: {distance:.1e} apart, at most {bound:.0e}")
                })
                .collect::<Vec<_>>()
        };
        let mut faults = far("the gradient", &self.gradients, bounds.gradient);
        faults.extend(far("the first change", &self.changes, bounds.change));
        for (name, rounding) in &self.roundings {
            let Rounding { split, far, .. } = rounding;
            if split + far > 0 {
                faults.push(format!(
                    "the rounding of {name}: {split} values differ that were equal before it, {far} others are more than one unit farther apart than before"
                ));
            }
        }
        let step = self
            .losses
            .iter()
            .position(|distance| *distance > bounds.loss);
        faults.extend(step.map(|step| {
            format!(
                "the loss of step {}: {:.1e} apart, at most {:.0e}",
                step + 1,
                self.losses[step],
                bounds.loss
            )
        }));
        faults
    }

    /// Returns the distances and the faults as JSON.
    pub fn json(&self, bounds: Bounds) -> Value {
        let named = |distances: &[(String, f64)]| {
            distances
                .iter()
                .map(|(name, distance)| (name.clone(), json!(distance)))
                .collect::<serde_json::Map<_, _>>()
        };
        let Rounding {
            values,
            equal,
            split,
            far,
        } = self.rounding();
        json!({
            "gradients": named(&self.gradients), "first_changes": named(&self.changes), "losses": self.losses,
            "rounding": { "values": values, "equal": equal, "split": split, "far": far },
            "faults": self.faults(bounds)
        })
    }
}
