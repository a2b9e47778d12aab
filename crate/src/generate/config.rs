//! Settings of generation.

use crate::config::{Rules, seed_fault, settings};
use crate::error::Result;

// A small model repeats itself when it is greedy, so tokens are drawn by default.
settings! {
    /// Settings of how tokens are chosen. Unknown keys are refused.
    pub struct GenerateConfig {
        /// Maximum number of tokens to add.
        max_tokens: usize = 100,
        /// Spread of the choice. 0 is greedy: always the likeliest token.
        temperature: f64 = 0.8,
        /// Number of likeliest tokens to choose from; 0 means all. The cut by `top_p` comes after it.
        top_k: usize = 0,
        /// Share of probability to choose from: the likeliest tokens, among those that `top_k` leaves, that add up to
        /// it; 1 means all.
        top_p: f64 = 1.0,
        /// Seed of the choices, at most 2^53 − 1.
        seed: u64 = 0,
        /// Number of likeliest tokens to report with each token.
        top_logprobs: usize = 0,
    }
}

#[doc(hidden)]
impl GenerateConfig {
    /// Checks that the values can work.
    ///
    /// # Errors
    /// `config.invalid`, listing every fault.
    pub fn validate(&self) -> Result<()> {
        let mut rules = Rules::default();
        rules.check(
            self.temperature.is_finite() && self.temperature >= 0.0,
            "temperature",
            "finite and ≥ 0",
            self.temperature,
        );
        rules.check(
            self.top_p > 0.0 && self.top_p <= 1.0,
            "top_p",
            "0 < p ≤ 1",
            self.top_p,
        );
        rules.faults.extend(seed_fault(self.seed));
        rules.result()
    }
}
