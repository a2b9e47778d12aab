//! Consequences of a resume that change what the run does next: other steps, another rate, the order of other data. Each has a notice.

use std::borrow::Cow;

use super::{Checkpoint, settings};
use crate::config::TrainConfig;
use crate::data::{Dataset, LoaderState};
use crate::error::{Result, word};
use crate::train::Notice;

impl Checkpoint {
    /// Gives the settings the steps for the same epochs, if other batches or data change them; they then count as overridden.
    pub(super) fn with_steps_of<'a>(
        &self,
        dataset: &Dataset,
        given: TrainConfig,
        overrides: &'a [String],
        notices: &mut Vec<Notice>,
    ) -> Result<(TrainConfig, Cow<'a, [String]>)> {
        let saved = &self.manifest.train;
        let batches =
            |config: &TrainConfig| (config.batch_size, config.gradient_accumulation_steps);
        let other_data = dataset.digest() != self.manifest.data_digest;
        // Data that are not allowed are refused with all other differences.
        let same = if other_data {
            !overrides.iter().any(|name| name == settings::DATA)
        } else {
            batches(saved) == batches(&given)
        };
        if same
            || given.epochs.is_none()
            || (given.epochs, given.steps) != (saved.epochs, saved.steps)
        {
            return Ok((given, overrides.into()));
        }
        // Steps that were given later do not follow from epochs.
        if !other_data && saved.clone().with_steps_of(dataset)?.steps != saved.steps {
            return Ok((given, overrides.into()));
        }
        let config = given.with_steps_of(dataset)?;
        if config.steps != saved.steps {
            notices.push(Notice::filled(
                word!("run.steps"),
                ["", &saved.steps.to_string(), &config.steps.to_string()],
            ));
        }
        Ok((config, [overrides, &["steps".to_owned()]].concat().into()))
    }

    /// The state of the loader at the beginning of other data.
    pub(super) fn loader_of(&self, digest: String, notices: &mut Vec<Notice>) -> LoaderState {
        let saved = &self.manifest.data_digest;
        notices.push(Notice::filled(
            word!("checkpoint.data.changed"),
            ["", saved, &digest],
        ));
        LoaderState {
            epoch: 0,
            cursor: 0,
            digest,
            ..self.manifest.loader.clone()
        }
    }
}
