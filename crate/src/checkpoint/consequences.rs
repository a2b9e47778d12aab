//! Consequences of a resume that change what the run does next: other steps, another rate, the order of other data. Each has a notice.

use std::borrow::Cow;

use super::{Checkpoint, settings};
use crate::config::TrainConfig;
use crate::data::{Dataset, LoaderState};
use crate::error::{Result, word};
use crate::schedule;
use crate::train::{Notice, Progress};

impl Checkpoint {
    /// Returns the settings with the steps for the same epochs, if other batches or data change them; they then count as overridden.
    pub(super) fn with_steps_of<'a>(
        &self,
        dataset: &Dataset,
        given: TrainConfig,
        overrides: &'a [String],
        notices: &mut Vec<Notice>,
    ) -> Result<(TrainConfig, Cow<'a, [String]>)> {
        let saved = &self.manifest.train;
        let batches = |config: &TrainConfig| (config.batch_size, config.gradient_accumulation_steps);
        let other_data = dataset.digest() != self.manifest.data_digest;
        // Data that are not allowed are refused with all other differences.
        let same = if other_data { !overrides.iter().any(|name| name == settings::DATA) } else { batches(saved) == batches(&given) };
        if same || given.epochs.is_none() || (given.epochs, given.steps) != (saved.epochs, saved.steps) {
            return Ok((given, overrides.into()));
        }
        // Steps that were given later do not follow from epochs.
        if !other_data && saved.clone().with_steps_of(dataset)?.steps != saved.steps {
            return Ok((given, overrides.into()));
        }
        let config = given.with_steps_of(dataset)?;
        if config.steps != saved.steps {
            let message = format!("as many epochs are {} steps now, and were {}", config.steps, saved.steps);
            notices.push(Notice { code: word!("run.steps").text(), subject: None, message });
        }
        Ok((config, [overrides, &["steps".to_owned()]].concat().into()))
    }

    /// Returns the warning that the next rate differs from the last one by more than a quarter of it, if the saved settings did not plan it.
    pub(super) fn jump_of_rate(&self, config: &TrainConfig, now: Progress) -> Result<Option<Notice>> {
        let saved = self.manifest.progress;
        let done = saved.completed_steps;
        let rate = |step: u64, config: &TrainConfig, progress: Progress| {
            let planned = schedule::learning_rate(step, config.learning_rate, &config.schedule, progress.schedule_start);
            progress.manual_learning_rate.unwrap_or(planned)
        };
        let (last, planned) = (rate(done, &self.manifest.train, saved), rate(done + 1, &self.manifest.train, saved));
        let next = rate(done + 1, config, now);
        if done == 0 || next == planned || (next - last).abs() <= last / 4.0 {
            return Ok(None);
        }
        let mut why = settings::changes_of_rate(&self.manifest.train, config)?;
        if let Some(rate) = saved.manual_learning_rate.filter(|_| now.manual_learning_rate.is_none()) {
            why.push(format!("a rate of {rate:.3e} set by hand has ended"));
        }
        let message = format!("step {} has a rate of {next:.3e}, and step {done} had {last:.3e}: {}", done + 1, why.join("; "));
        Ok(Some(Notice { code: word!("schedule.jump").text(), subject: None, message }))
    }

    /// Returns the state of the loader at the beginning of other data.
    pub(super) fn loader_of(&self, digest: String, notices: &mut Vec<Notice>) -> LoaderState {
        let saved = &self.manifest.data_digest;
        let message = format!("the run continues with other data, whose order begins anew: SHA-256 {digest}, saved with {saved}");
        notices.push(Notice { code: word!("checkpoint.data.changed").text(), subject: None, message });
        LoaderState { epoch: 0, cursor: 0, digest, ..self.manifest.loader.clone() }
    }
}
