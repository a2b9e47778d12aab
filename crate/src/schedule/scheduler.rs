//! Provides the schedules as Burn's `LrScheduler`.

use burn::lr_scheduler::{LrScheduler, LrSchedulerRecord};

use super::{learning_rate, resolve_start, trigger};
use crate::config::{ScheduleConfig, TrainConfig};
use crate::error::Result;

/// Any schedule of this crate as Burn's `LrScheduler`: each step returns the rate of the next optimizer step.
///
/// A loaded record continues by the rule that the trainer has for a resume: an explicit start step wins; with the flag set, a saved start is kept,
/// or else the decay starts now, though never inside warmup or cooldown; without the flag the rate is that of the constant phase.
///
/// ```
/// use burn::lr_scheduler::LrScheduler;
/// use tabtune::config::{ScheduleConfig, WsdSchedule};
/// use tabtune::schedule::Scheduler;
///
/// # fn main() -> tabtune::Result<()> {
/// let wsd = ScheduleConfig::Wsd(WsdSchedule { decay_steps: 50, ..WsdSchedule::default() });
/// let mut scheduler = Scheduler::new(1e-3, wsd)?;
/// assert_eq!((0..100).map(|_| scheduler.step()).last(), Some(1e-3));
/// // The decay starts, and a run that is saved and resumed continues it.
/// scheduler.start_decay()?;
/// let (schedule, record) = (scheduler.schedule().clone(), scheduler.to_record());
/// let mut resumed = Scheduler::new(1e-3, schedule)?;
/// resumed.load_record(record);
/// assert_eq!(resumed.step(), scheduler.step());
/// assert!(resumed.step() < 1e-3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Scheduler {
    schedule: ScheduleConfig,
    base: f64,
    start: Option<u64>,
    completed: u64,
}

impl Scheduler {
    /// Creates a scheduler for `schedule` with the peak rate `learning_rate`, before its first step.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidConfig`](crate::Error::InvalidConfig) for settings that cannot work; every fault is listed.
    pub fn new(learning_rate: f64, schedule: ScheduleConfig) -> Result<Self> {
        TrainConfig {
            learning_rate,
            schedule: schedule.clone(),
            ..TrainConfig::default()
        }
        .validate()?;
        let start = resolve_start(&schedule, None, 0);
        Ok(Self {
            schedule,
            base: learning_rate,
            start,
            completed: 0,
        })
    }

    /// The schedule in force: that of [`Self::new`], with the flag set once [`Self::start_decay`] was called. A run that is resumed with it and the
    /// record continues the decay.
    pub fn schedule(&self) -> &ScheduleConfig {
        &self.schedule
    }

    /// Starts the decay or annealing at the current step, or where warmup and cooldown end; one that has a start keeps it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidConfig`](crate::Error::InvalidConfig) for a schedule that cannot decay.
    pub fn start_decay(&mut self) -> Result<()> {
        self.start = trigger(&mut self.schedule, self.start, self.completed)?;
        Ok(())
    }
}

impl LrScheduler for Scheduler {
    fn step(&mut self) -> f64 {
        self.completed += 1;
        learning_rate(self.completed, self.base, &self.schedule, self.start)
    }

    fn to_record(&self) -> LrSchedulerRecord {
        let record = LrSchedulerRecord::new().with_scalar("completed_steps", self.completed);
        self.start.into_iter().fold(record, |record, start| {
            record.with_scalar("schedule_start", start)
        })
    }

    /// Loads the record. The trait cannot refuse it: a record without a count starts at the first step.
    fn load_record(&mut self, record: LrSchedulerRecord) {
        self.completed = record.scalar("completed_steps").unwrap_or(0);
        self.start = resolve_start(
            &self.schedule,
            record.scalar("schedule_start"),
            self.completed,
        );
    }
}
