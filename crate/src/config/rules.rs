//! Checks that several settings share, and a collector of the faults that they find.

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

/// Collects faults under one prefix.
pub(super) struct Rules<'a> {
    pub(super) prefix: &'a str,
    pub(super) faults: Vec<Fault>,
}

impl Rules<'_> {
    pub(super) fn check(&mut self, holds: bool, key: &str, rule: &str, value: impl std::fmt::Display) {
        if !holds {
            self.faults.push(Fault::new(format!("{}.{key}", self.prefix), rule, value));
        }
    }

    pub(super) fn beta(&mut self, key: &str, beta: f64) {
        self.check((0.0..1.0).contains(&(beta as f32)), key, "0 ≤ β < 1 in f32", beta);
    }

    pub(super) fn positive(&mut self, key: &str, value: f64) {
        self.check(is_positive_f32(value), key, "finite and > 0 in f32", value);
    }

    pub(super) fn moments(&mut self, beta1: f64, beta2: f64, eps: f64) {
        self.beta("beta1", beta1);
        self.beta("beta2", beta2);
        self.check((eps as f32).is_finite() && eps >= 1.2e-38, "eps", "finite in f32 and ≥ 1.2e-38", eps);
    }
}
