//! Checks learning rates that are set by hand.

use crate::config::{GroupConfig, TrainConfig};
use crate::error::{Error, Fault, Result};

/// Checks that every group of a run can use `rate`, which was given as `key`.
///
/// # Errors
/// [`Error::InvalidConfig`]; every fault is listed.
pub(crate) fn check_rate(config: &TrainConfig, key: &str, rate: f64) -> Result<()> {
    let mut faults = Vec::new();
    // Updates are computed in f32.
    if !((rate as f32).is_finite() && rate >= 0.0) {
        faults.push(Fault::new(key, "finite in f32 and ≥ 0", rate));
    }
    let everything = [GroupConfig::new("*")];
    let groups = if config.groups.is_empty() {
        &everything[..]
    } else {
        &config.groups
    };
    for group in groups.iter().filter(|group| !group.frozen) {
        let (scale, decay) = (
            group.learning_rate_scale,
            group.rule(&config.optimizer).weight_decay(),
        );
        if rate * scale * decay >= 1.0 {
            let rule = format!(
                "rate·scale·weight_decay < 1 (scale {scale}, weight_decay {decay} of group \"{}\")",
                group.pattern
            );
            faults.push(Fault::new(key, rule, rate));
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Error::InvalidConfig(faults))
    }
}
