//! Computes the learning rate as a function of the step.

use std::f64::consts::PI;

use crate::config::{DecayType, FallingSchedule, InfiniteSchedule, ScheduleConfig, WsdSchedule};

/// Final rate of a decay as a share of the rate before it, if `min_learning_rate` is not given.
const DEFAULT_MINIMUM: f64 = 0.1;

/// The rate of optimizer step `step`, counted from 1. `base` is the run's `learning_rate` B; `start` is the resolved start of the
/// decay ([example](crate::schedule::Scheduler)).
pub fn learning_rate(step: u64, base: f64, schedule: &ScheduleConfig, start: Option<u64>) -> f64 {
    let n = step.saturating_sub(1);
    let (warmup_steps, from_zero) = schedule.warmup();
    if n < warmup_steps {
        return warmup(n, base, warmup_steps, from_zero);
    }
    match schedule {
        ScheduleConfig::Constant(_) => base,
        ScheduleConfig::Cosine(s) => {
            // μ + (B − μ)·½(1 + cos(π·x))
            falling(n, base, s, |x| {
                s.min_learning_rate + (base - s.min_learning_rate) * 0.5 * (1.0 + (PI * x).cos())
            })
        }
        ScheduleConfig::Linear(s) => {
            // μ + (B − μ)·(1 − x)
            falling(n, base, s, |x| {
                s.min_learning_rate + (base - s.min_learning_rate) * (1.0 - x)
            })
        }
        ScheduleConfig::Wsd(s) => wsd(n, base, s, start),
        ScheduleConfig::Infinite(s) => infinite(n, base, s, start),
    }
}

/// The rates of `steps`, for a plot.
pub fn preview(
    steps: impl IntoIterator<Item = u64>,
    base: f64,
    schedule: &ScheduleConfig,
    start: Option<u64>,
) -> impl Iterator<Item = f64> {
    steps
        .into_iter()
        .map(move |step| learning_rate(step, base, schedule, start))
}

/// Clamps a rate, because rounding must not move it past either end.
fn between(low: f64, high: f64, rate: f64) -> f64 {
    rate.max(low).min(high)
}

/// The rate of the warmup, B·n/W, or B·(n + 1)/W, for n < W.
fn warmup(n: u64, base: f64, warmup_steps: u64, from_zero: bool) -> f64 {
    let done = if from_zero { n } else { n.saturating_add(1) };
    (base * done as f64 / warmup_steps as f64).min(base)
}

/// The rate after a warmup: of `curve` at x = (n − W)/(T − W), then the minimum.
fn falling(n: u64, base: f64, s: &FallingSchedule, curve: impl Fn(f64) -> f64) -> f64 {
    if n >= s.total_steps {
        return s.min_learning_rate;
    }
    between(
        s.min_learning_rate,
        base,
        curve((n - s.warmup_steps) as f64 / (s.total_steps - s.warmup_steps) as f64),
    )
}

fn wsd(n: u64, base: f64, s: &WsdSchedule, start: Option<u64>) -> f64 {
    let minimum = s.min_learning_rate.unwrap_or(DEFAULT_MINIMUM * base);
    match start {
        Some(start) if n >= start => {
            decay(n - start, s.decay_steps as f64, s.decay_type, base, minimum)
        }
        _ => base,
    }
}

fn infinite(n: u64, base: f64, s: &InfiniteSchedule, start: Option<u64>) -> f64 {
    let constant = s.constant_rate(base);
    let cooled = n - s.warmup_steps;
    if cooled < s.cooldown_steps {
        // c + ((B − c)/2)·(1 + cos(π(n − W)/C))
        let share = cooled as f64 / s.cooldown_steps as f64;
        return between(
            constant,
            base,
            constant + (base - constant) / 2.0 * (1.0 + (PI * share).cos()),
        );
    }
    let minimum = s.min_learning_rate.unwrap_or(DEFAULT_MINIMUM * constant);
    match start {
        Some(start) if n >= start => {
            let length = s.annealing_length(start);
            decay(n - start, length, s.annealing_type, constant, minimum)
        }
        _ => constant,
    }
}

/// The rate of a decay from `high` to `minimum` over `length` steps after `done` complete ones; from `length` on exactly `minimum`.
fn decay(done: u64, length: f64, form: DecayType, high: f64, minimum: f64) -> f64 {
    let x = done as f64 / length;
    // Written so that a length of 0 (x is NaN or infinite) also gives the minimum.
    let inside = x < 1.0;
    if !inside {
        return minimum;
    }
    let rate = match form {
        DecayType::Harmonic => 1.0 / (x / minimum + (1.0 - x) / high),
        DecayType::Exponential => high * (minimum / high).powf(x),
        DecayType::Linear => minimum + (high - minimum) * (1.0 - x),
        DecayType::OneMinusSqrt => minimum + (high - minimum) * (1.0 - x.sqrt()),
    };
    between(minimum, high, rate)
}
