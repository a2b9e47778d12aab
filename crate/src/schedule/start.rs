//! Decides when a decay or annealing starts, and what a resume may change about it.

use crate::config::{ANNEALING_LENGTH, DECAY_LENGTH, ScheduleConfig};
use crate::error::{Error, Result};

/// Returns start step, flag and earliest start of a schedule that can decay.
fn decay_of(schedule: &ScheduleConfig) -> Option<(i64, bool, u64)> {
    match schedule {
        ScheduleConfig::Wsd(s) => Some((s.decay_start_step, s.start_decay, s.warmup_steps)),
        ScheduleConfig::Infinite(s) => Some((
            s.annealing_start_step,
            s.start_annealing,
            s.warmup_steps.saturating_add(s.cooldown_steps),
        )),
        ScheduleConfig::Constant(_) | ScheduleConfig::Cosine(_) | ScheduleConfig::Linear(_) => None,
    }
}

/// The step at which the decay starts: the configured step; otherwise, with the flag set, the checkpoint's start, or the current
/// step (but never inside warmup or cooldown); otherwise `None`. `saved` is the checkpoint's resolved start, `completed` the number of
/// completed steps (0 in a new run).
pub fn resolve_start(schedule: &ScheduleConfig, saved: Option<u64>, completed: u64) -> Option<u64> {
    let (own, flag, earliest) = decay_of(schedule)?;
    match u64::try_from(own) {
        Ok(own) => Some(own),
        Err(_) if flag => Some(saved.unwrap_or(completed.max(earliest))),
        Err(_) => None,
    }
}

/// Starts the decay of a live run and sets the flag in its configuration, so that a resume continues it. A decay that already has a start
/// keeps it. Returns the resolved start.
///
/// # Errors
/// [`Error::InvalidConfig`] for a schedule that cannot decay, or that lacks the length of its decay.
pub fn trigger(
    schedule: &mut ScheduleConfig,
    start: Option<u64>,
    completed: u64,
) -> Result<Option<u64>> {
    let fixed = |kind: &str| {
        let rule = "wsd or infinite, which can start a decay";
        Err(Error::invalid("schedule.type", rule, kind))
    };
    match schedule {
        ScheduleConfig::Wsd(s) if s.decay_steps == 0 => {
            let key = "schedule.decay_steps";
            return Err(Error::invalid(key, DECAY_LENGTH, "absent"));
        }
        ScheduleConfig::Infinite(s) if s.annealing_steps == 0 && s.tau.is_none() => {
            let key = "schedule.annealing_steps";
            return Err(Error::invalid(key, ANNEALING_LENGTH, "absent"));
        }
        ScheduleConfig::Wsd(s) => s.start_decay = true,
        ScheduleConfig::Infinite(s) => s.start_annealing = true,
        ScheduleConfig::Constant(_) => return fixed("constant"),
        ScheduleConfig::Cosine(_) => return fixed("cosine"),
        ScheduleConfig::Linear(_) => return fixed("linear"),
    }
    Ok(start.or_else(|| decay_of(schedule).map(|(_, _, earliest)| completed.max(earliest))))
}

/// Returns whether a resume takes `key` (`schedule.tau` or `tau`) from the new configuration without comparing it with the checkpoint's.
pub fn is_config_only(schedule: &ScheduleConfig, key: &str) -> bool {
    let bare = key.strip_prefix("schedule.").unwrap_or(key);
    match schedule {
        ScheduleConfig::Infinite(_) => {
            matches!(
                bare,
                "start_annealing"
                    | "annealing_start_step"
                    | "annealing_type"
                    | "annealing_steps"
                    | "tau"
                    | "min_learning_rate"
            )
        }
        ScheduleConfig::Wsd(_) => matches!(
            bare,
            "start_decay" | "decay_start_step" | "decay_type" | "decay_steps" | "min_learning_rate"
        ),
        ScheduleConfig::Constant(_) | ScheduleConfig::Cosine(_) | ScheduleConfig::Linear(_) => {
            false
        }
    }
}
