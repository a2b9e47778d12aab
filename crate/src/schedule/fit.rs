//! Finds the parts of a schedule that do not fit into the steps of its run.

use super::learning_rate;
use crate::config::{FallingSchedule, ScheduleConfig, TrainConfig};

/// The highest rate of the steps after `completed`; after its warmup no schedule rises again.
pub(crate) fn highest_rate(config: &TrainConfig, completed: u64, start: Option<u64>) -> f64 {
    let rate = |step: u64| learning_rate(step, config.learning_rate, &config.schedule, start);
    let (first, last) = (completed.saturating_add(1), config.steps);
    let peak = config
        .schedule
        .warmup()
        .0
        .saturating_add(1)
        .clamp(first, last.max(first));
    rate(first).max(rate(peak))
}

/// A sentence for each phase of the schedule that the run's steps cut off or never reach, and for a start that is stated twice. `start` is the resolved start of a decay.
pub fn misfits(config: &TrainConfig, start: Option<u64>) -> Vec<String> {
    let steps = config.steps;
    let last = || learning_rate(steps, config.learning_rate, &config.schedule, start);
    let ends = || format!("the run ends at step {steps} with a rate of {:.3e}", last());
    let (warmup, _) = config.schedule.warmup();
    if warmup >= steps && warmup > 0 {
        let highest = highest_rate(config, 0, start);
        if highest >= config.learning_rate {
            return Vec::new();
        }
        return vec![format!(
            "a warmup of {warmup} steps in a run of {steps}: its highest rate, at step {steps}, is {highest:.3e} of {:.3e}",
            config.learning_rate
        )];
    }
    let falls = |name: &str, s: &FallingSchedule| {
        if s.total_steps < steps && s.min_learning_rate <= 0.0 {
            let idle = steps - s.total_steps;
            return Some(format!(
                "a {name} over {} steps in a run of {steps}: the last {idle} steps have a rate of 0",
                s.total_steps
            ));
        }
        let cut = s.total_steps > steps && last() > s.min_learning_rate;
        cut.then(|| {
            format!(
                "a {name} over {} steps in a run of {steps}: {} of a minimum of {:.3e}",
                s.total_steps,
                ends(),
                s.min_learning_rate
            )
        })
    };
    let decays = |what: &str, length: f64| {
        let start = start?;
        if start >= steps {
            return Some(format!(
                "{what} that starts after step {start} in a run of {steps}: it never begins, and {}",
                ends()
            ));
        }
        let cut = start as f64 + length > steps as f64;
        cut.then(|| format!("{what} over {length} steps that starts after step {start} in a run of {steps}: it is cut off, and {}", ends()))
    };
    let mut found = Vec::new();
    let ignored = |flag: &str, own: &str, at: i64| {
        format!("{flag} has no effect: by {own} it starts after step {at}")
    };
    match &config.schedule {
        ScheduleConfig::Wsd(s) if s.start_decay && s.decay_start_step >= 0 => {
            found.push(ignored(
                "start_decay",
                "decay_start_step",
                s.decay_start_step,
            ));
        }
        ScheduleConfig::Infinite(s) if s.start_annealing && s.annealing_start_step >= 0 => {
            found.push(ignored(
                "start_annealing",
                "annealing_start_step",
                s.annealing_start_step,
            ));
        }
        _ => {}
    }
    match &config.schedule {
        ScheduleConfig::Constant(_) => {}
        ScheduleConfig::Cosine(s) => found.extend(falls("cosine", s)),
        ScheduleConfig::Linear(s) => found.extend(falls("line", s)),
        ScheduleConfig::Wsd(s) => found.extend(decays("a decay", s.decay_steps as f64)),
        ScheduleConfig::Infinite(s) => {
            let cooled = s.warmup_steps.saturating_add(s.cooldown_steps);
            if cooled > steps {
                found.push(format!("a cooldown that ends after step {cooled} in a run of {steps}: it is cut off, and {}", ends()));
            }
            let length = s.annealing_length(start.unwrap_or(0));
            found.extend(decays("an annealing", length));
        }
    }
    found
}
