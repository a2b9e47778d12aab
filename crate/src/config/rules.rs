//! Checks that several settings share, and a collector of the faults that they find.

use super::optimizer_kind::{Hyperparameter, OptimizerKind, Range};
use crate::error::{Error, Fault, Result};

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
    /// The description of its kind.
    fn kind(&self) -> &'static OptimizerKind;

    /// Checks these values at this learning rate; 0 if it is not known yet. The weight decay is checked for every rule.
    fn check(&self, rules: &mut Rules<'_>, learning_rate: f64);
}

/// Checks rules of settings, and collects the faults where one is broken.
#[derive(Default)]
pub(crate) struct Rules<'a> {
    /// Key of the settings in those around them, if they are not the outermost.
    prefix: &'a str,
    pub faults: Vec<Fault>,
}

impl<'a> Rules<'a> {
    /// Makes a collector for the settings at the key `prefix`.
    pub fn of(prefix: &'a str) -> Self {
        Self {
            prefix,
            faults: Vec::new(),
        }
    }

    pub fn check(
        &mut self,
        holds: bool,
        key: &str,
        rule: impl Into<String>,
        value: impl std::fmt::Display,
    ) {
        if !holds {
            let dot = if self.prefix.is_empty() { "" } else { "." };
            let key = format!("{}{dot}{key}", self.prefix);
            self.faults.push(Fault::new(key, rule, value));
        }
    }

    /// Lists every fault in one error, if there are any.
    ///
    /// # Errors
    /// `config.invalid`.
    pub fn result(self) -> Result<()> {
        Error::of_faults(self.faults)
    }

    /// Checks a setting by the range of its hyperparameter.
    pub fn within(&mut self, of: &Hyperparameter, value: f64) {
        self.within_shown(of, value, value);
    }

    /// Does the same as [`Self::within`] for a value that a fault shows in another form.
    pub fn within_shown(&mut self, of: &Hyperparameter, value: f64, shown: impl std::fmt::Display) {
        if let Some(Range(rule, holds)) = of.trained {
            self.check(holds(value), of.key, rule, shown);
        }
    }
}
