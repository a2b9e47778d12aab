//! Reports of a step and of an evaluation.

use serde::Serialize;

use super::progress::Progress;
use crate::config::TrainConfig;
use crate::data::{DataWarning, FileReport};
use crate::error::{Error, Refusal, Result, Word, word};
use crate::model::{Adaptation, Model};
use crate::schedule;

/// Report of one optimizer step ([example](crate)).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepReport {
    /// Number of the step, counted from 1.
    pub step: u64,
    /// Number of passes over the data at the end of the step, in fractions.
    pub epoch: f64,
    /// Mean loss over the step's counted targets before the update, in nats.
    pub loss: f64,
    /// Global 2-norm of the gradients before clipping.
    pub grad_norm: f64,
    /// Learning rate of this step.
    pub learning_rate: f64,
    /// Number of counted targets of this step.
    pub tokens: u64,
    /// Wall time of this step, in seconds.
    pub secs: f64,
}

/// Report of one evaluation ([example](crate)).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvalReport {
    /// Mean loss over counted targets, in nats.
    pub loss: f64,
    /// exp(loss), if f64 has such a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub perplexity: Option<f64>,
    /// True if exp(loss) is beyond f64.
    #[doc(hidden)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub perplexity_overflow: bool,
    /// Share of the counted targets that are the arg max of the logits, which greedy generation takes; among equal logits, the lowest id.
    pub accuracy: f64,
    /// Number of counted targets.
    pub tokens: u64,
}

/// Warning: something that the caller should know, although nothing was refused ([example](crate)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notice {
    /// Stable dotted code.
    pub code: &'static str,
    /// Subject: names of parameters, or a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Description of what happened.
    pub message: String,
}

#[doc(hidden)]
impl Notice {
    /// Creates a notice without a subject, from the values of its sentence: subject, expected and found.
    pub fn filled(word: Word, values: [&str; 3]) -> Self {
        Self {
            code: word.text(),
            subject: None,
            message: Refusal::filled(word, values).to_string(),
        }
    }

    /// The notice that the saved state of these parameters is dropped, if there are any.
    pub(crate) fn of_dropped(names: &[String]) -> Option<Self> {
        let names = names.join(", ");
        (!names.is_empty()).then(|| Self {
            subject: Some(names.clone()),
            ..Self::filled(word!("optim.state-dropped"), [&names, "", ""])
        })
    }

    /// A notice for each phase of a schedule that does not fit into the rest of the run; refuses a schedule without a rate above 0.
    pub(super) fn of_schedule(config: &TrainConfig, progress: Progress) -> Result<Vec<Self>> {
        let Progress {
            completed_steps: done,
            schedule_start: start,
            manual_learning_rate,
            ..
        } = progress;
        if done >= config.steps || manual_learning_rate.is_some() {
            return Ok(Vec::new());
        }
        if schedule::highest_rate(config, done, start) <= 0.0 {
            let rule = format!(
                "a rate above 0 in one of the steps {} to {}",
                done + 1,
                config.steps
            );
            return Err(Error::invalid("schedule", rule, "0 in all of them"));
        }
        let notice = |reason: String| Self::filled(word!("schedule.misfit"), ["", "", &reason]);
        Ok(schedule::misfits(config, start)
            .into_iter()
            .map(notice)
            .collect())
    }

    /// A notice for each setting that another one leaves without effect.
    pub(super) fn of_settings(config: &TrainConfig) -> impl Iterator<Item = Self> {
        config
            .idle()
            .into_iter()
            .map(|(key, reason)| Self::filled(word!("config.idle"), [&key, "", reason]))
    }

    /// Creates the notice of a warning about the data.
    pub(super) fn of_data(warning: &DataWarning, files: &[FileReport]) -> Self {
        Self {
            code: warning.code,
            subject: None,
            message: warning.sentence(files),
        }
    }

    /// The notices about the adapter of a model.
    pub(super) fn of_adapter(model: &Model) -> Vec<Self> {
        let about = |word, subject: &String| Self {
            subject: Some(subject.clone()),
            ..Self::filled(word, [subject, "", ""])
        };
        let settings = model
            .adaptation()
            .into_iter()
            .flat_map(Adaptation::warnings)
            .map(|warning| about(warning.code, &warning.subject));
        let widened = model
            .frozen_weights()
            .widened
            .iter()
            .map(|stored| about(word!("adapter.base.widened"), stored));
        settings.chain(widened).collect()
    }
}
