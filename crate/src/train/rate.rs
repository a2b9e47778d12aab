//! Checks learning rates that are set by hand.

use crate::config::{Rules, TrainConfig};
use crate::error::Result;

/// Checks that every group of a run can use `rate`, which was given as `key`.
///
/// # Errors
/// [`Error::InvalidConfig`]; every fault is listed.
pub(crate) fn check_rate(config: &TrainConfig, key: &str, rate: f64) -> Result<()> {
    let mut rules = Rules::default();
    // Updates are computed in f32.
    let finite = (rate as f32).is_finite() && rate >= 0.0;
    rules.check(finite, key, "finite in f32 and ≥ 0", rate);
    for group in config
        .groups_in_force()
        .iter()
        .filter(|group| !group.frozen)
    {
        let (scale, decay) = (
            group.learning_rate_scale,
            group.rule(&config.optimizer).weight_decay(),
        );
        let rule = format!(
            "rate·scale·weight_decay < 1 (scale {scale}, weight_decay {decay} of group \"{}\")",
            group.pattern
        );
        let vanishes = rate * scale * decay >= 1.0;
        rules.check(!vanishes, key, rule, rate);
    }
    rules.result()
}
