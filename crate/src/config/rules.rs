//! Checks that several settings share, and a collector of the faults that they find.

use super::optimizer_kind::{Hyperparameter, OptimizerKind, Range};
use crate::error::Fault;

/// Text of the rule that [`is_decay`] checks.
pub(super) const DECAY_RULE: &str = "finite, ≥ 0, learning_rate·weight_decay < 1";

/// Returns true for values above 0 in the arithmetic of the kernels, where 1e-40 may be 0 and 1e39 is infinite.
pub(super) fn is_positive_f32(value: f64) -> bool {
    let value = value as f32;
    value.is_normal() && value > 0.0
}

/// Returns true if a weight decay shrinks weights at this positive rate and never changes their sign. It is then finite in f32 as well.
pub(super) fn is_decay(decay: f64, rate: f64) -> bool {
    decay >= 0.0 && rate * decay < 1.0
}

/// Settings of an update rule.
pub(super) trait RuleSettings {
    /// Returns the description of its kind.
    fn kind(&self) -> &'static OptimizerKind;

    /// Checks these values at this learning rate; 0 if it is not known yet. The weight decay is checked for every rule.
    fn check(&self, rules: &mut Rules<'_>, learning_rate: f64);
}

/// Collects faults under one prefix.
pub(super) struct Rules<'a> {
    pub(super) prefix: &'a str,
    pub(super) faults: Vec<Fault>,
}

impl Rules<'_> {
    pub(super) fn check(
        &mut self,
        holds: bool,
        key: &str,
        rule: &str,
        value: impl std::fmt::Display,
    ) {
        if !holds {
            self.faults
                .push(Fault::new(format!("{}.{key}", self.prefix), rule, value));
        }
    }

    /// Checks a setting by the range of its hyperparameter.
    pub(super) fn within(&mut self, of: &Hyperparameter, value: f64) {
        self.within_shown(of, value, value);
    }

    /// Does the same as [`Self::within`] for a value that a fault shows in another form.
    pub(super) fn within_shown(
        &mut self,
        of: &Hyperparameter,
        value: f64,
        shown: impl std::fmt::Display,
    ) {
        if let Some(Range(rule, holds)) = of.trained {
            self.check(holds(value), of.key, rule, shown);
        }
    }
}
