//! Finds settings that others leave without effect.

use super::{AdafactorConfig, OptimizerConfig, Precision, TrainConfig};

impl TrainConfig {
    /// Returns each setting that was changed and that another one leaves without effect, and why.
    pub(crate) fn idle(&self) -> Vec<(String, &'static str)> {
        let of_run = idle_in(&self.optimizer, self.precision);
        let mut found: Vec<_> = of_run
            .iter()
            .map(|(key, reason)| (format!("optimizer.{key}"), *reason))
            .collect();
        for (index, group) in self.groups.iter().enumerate() {
            // The rule of a group has the run's settings where it states none.
            let own = group
                .optimizer
                .iter()
                .flat_map(|rule| idle_in(rule, self.precision))
                .filter(|one| !of_run.contains(one));
            found.extend(
                own.map(|(key, reason)| (format!("groups[{index}].optimizer.{key}"), reason)),
            );
        }
        if let (0, false) = self.schedule.warmup() {
            found.push((
                "schedule.warmup_from_zero = false".to_string(),
                "without warmup_steps",
            ));
        }
        found
    }
}

/// Returns the settings of a rule that have no effect, and why.
fn idle_in(rule: &OptimizerConfig, precision: Precision) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    if !rule.stochastic_rounding() && precision == Precision::F32 {
        found.push((
            "stochastic_rounding = false".to_string(),
            "in f32, which is not rounded",
        ));
    }
    if let OptimizerConfig::Adafactor(c) = rule
        && c.eps2 != AdafactorConfig::default().eps2
        && !c.relative_step
    {
        found.push((format!("eps2 = {}", c.eps2), "without relative_step"));
    }
    found
}
