//! Hyperparameters that several optimizers have, and ranges.

use super::optimizer_kind::{Hyperparameter, Range};
use super::rules::is_positive_f32;

/// Range of plain data that no table knows.
pub(crate) const FINITE: Range = Range("a finite number", |_| true);
pub(super) const NOT_NEGATIVE: Range = Range("a number >= 0", |value| value >= 0.0);
pub(super) const NEGATIVE: Range = Range("a number < 0", |value| value < 0.0);
pub(super) const POSITIVE: Range = Range("a number > 0", |value| value > 0.0);
pub(super) const FRACTION: Range =
    Range("a number >= 0 and < 1", |value| (0.0..1.0).contains(&value));
pub(super) const COUNT: Range = Range("an integer >= 1", |value| {
    value >= 1.0 && value.fract() == 0.0
});
const SWITCH: Range = Range("0 or 1", |value| value == 0.0 || value == 1.0);

/// Range of a decay factor.
pub(super) const BETA: Range = Range("0 ≤ β < 1 in f32", |value| {
    (0.0..1.0).contains(&(value as f32))
});
/// Range of a factor or divisor.
pub(super) const POSITIVE_F32: Range = Range("finite and > 0 in f32", is_positive_f32);

impl Hyperparameter {
    /// Describes a number whose settings have a range of their own.
    pub const fn new(key: &'static str, carried: Range, trained: Range) -> Self {
        Self {
            trained: Some(trained),
            ..Self::unchecked(key, carried)
        }
    }

    /// Describes a setting whose check depends on others.
    pub const fn unchecked(key: &'static str, carried: Range) -> Self {
        Self {
            key,
            carried,
            trained: None,
            words: &[],
            optional: false,
        }
    }

    /// Describes a switch.
    pub const fn switch(key: &'static str) -> Self {
        Self::unchecked(key, SWITCH)
    }

    /// Describes the same setting with these words.
    pub const fn words(self, words: &'static [(f64, Option<&'static str>)]) -> Self {
        Self { words, ..self }
    }

    /// Describes the same setting, which plain data may leave out.
    pub const fn optional(self) -> Self {
        Self {
            optional: true,
            ..self
        }
    }
}

/// The peak rate of the run, which plain data of every optimizer have and no update rule has.
pub(crate) static LEARNING_RATE: Hyperparameter =
    Hyperparameter::unchecked("learning_rate", NOT_NEGATIVE);
/// Factor of a group's learning rate.
pub(super) static LEARNING_RATE_SCALE: Hyperparameter =
    Hyperparameter::unchecked("learning_rate_scale", NOT_NEGATIVE);
/// Factor of a group's weight decay.
pub(super) static WEIGHT_DECAY_SCALE: Hyperparameter =
    Hyperparameter::unchecked("weight_decay_scale", NOT_NEGATIVE);

/// Weight decay, which is checked with the learning rate.
pub(super) static WEIGHT_DECAY: Hyperparameter =
    Hyperparameter::unchecked("weight_decay", NOT_NEGATIVE);
/// Decay factor of the first moment.
pub(super) static BETA1: Hyperparameter = Hyperparameter::new("beta1", FRACTION, BETA);
/// Decay factor of the second moment.
pub(super) static BETA2: Hyperparameter = Hyperparameter::new("beta2", FRACTION, BETA);
/// Summand of the divisor of an update.
pub(super) static EPS: Hyperparameter = Hyperparameter::new(
    "eps",
    NOT_NEGATIVE,
    Range("finite in f32 and ≥ 1.2e-38", |value| {
        (value as f32).is_finite() && value >= 1.2e-38
    }),
);
/// Switch of stochastic rounding.
pub(super) static STOCHASTIC_ROUNDING: Hyperparameter =
    Hyperparameter::switch("stochastic_rounding");
