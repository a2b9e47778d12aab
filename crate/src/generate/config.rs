//! Settings of generation.

use serde::{Deserialize, Serialize};

use crate::config::seed_fault;
use crate::error::{Error, Fault, Result};

/// Settings of how tokens are chosen. Unknown keys are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct GenerateConfig {
    /// Maximum number of tokens to add.
    pub max_tokens: usize,
    /// Spread of the choice. 0 is greedy: always the likeliest token.
    pub temperature: f64,
    /// Number of likeliest tokens to choose from; 0 means all. The cut by `top_p` comes after it.
    pub top_k: usize,
    /// Share of probability to choose from: the likeliest tokens, among those that `top_k` leaves, that add up to it; 1 means all.
    pub top_p: f64,
    /// Seed of the choices, at most 2^53 − 1.
    pub seed: u64,
    /// Number of likeliest tokens to report with each token.
    pub top_logprobs: usize,
}

/// A small model repeats itself when it is greedy, so tokens are drawn by default.
impl Default for GenerateConfig {
    fn default() -> Self {
        Self {
            max_tokens: 100,
            temperature: 0.8,
            top_k: 0,
            top_p: 1.0,
            seed: 0,
            top_logprobs: 0,
        }
    }
}

#[doc(hidden)]
impl GenerateConfig {
    /// Returns [`Error::InvalidConfig`] for values that cannot work; every fault is listed.
    pub fn validate(&self) -> Result<()> {
        let mut faults = Vec::new();
        if !(self.temperature.is_finite() && self.temperature >= 0.0) {
            faults.push(Fault::new(
                "temperature",
                "finite and ≥ 0",
                self.temperature,
            ));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            faults.push(Fault::new("top_p", "0 < p ≤ 1", self.top_p));
        }
        faults.extend(seed_fault(self.seed));
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Error::InvalidConfig(faults))
        }
    }
}
