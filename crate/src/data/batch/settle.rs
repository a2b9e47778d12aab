//! Settings that follow from the data: the length of sequences, and the number of steps for the given epochs.

use serde_json::json;

use super::dataset::Dataset;
use super::loader::Loader;
use crate::config::{Choices, ChosenSetting, EVAL_EVERY, TrainConfig};
use crate::error::{Error, Result};

#[doc(hidden)]
impl TrainConfig {
    /// Completes these settings for a new run on `dataset`: chooses `seq_len` by the data and the context unless it is given, makes the other
    /// `choices` that depend on the data, and computes the steps of the `epochs`.
    ///
    /// # Errors
    /// `model.context` if the given `seq_len` is beyond the context; otherwise as for [`Loader::for_run`].
    pub fn settled_for(self, dataset: &Dataset, choices: &mut Choices) -> Result<Self> {
        let (mut config, context) = (self, choices.context);
        if !choices.is_given("seq_len") {
            let proposed = dataset.proposed_seq_len(config.batch_size, config.packing, context);
            config.seq_len = proposed.unwrap_or_else(|| config.seq_len.min(context));
        }
        if config.seq_len > context {
            return Err(Error::ContextExceeded {
                found: config.seq_len,
                max: context,
            });
        }
        choices.complete(config, dataset)
    }

    /// Computes the number of steps for `epochs` on `dataset`, if `epochs` is given. The last step may reach beyond them.
    ///
    /// # Errors
    /// As for [`Loader::for_run`].
    pub fn with_steps_of(self, dataset: &Dataset) -> Result<Self> {
        let Some(epochs) = self.epochs else {
            return Ok(self);
        };
        let sequences = Loader::for_run(dataset, &self)?.sequences_in(epochs);
        let a_step = (self.batch_size * self.gradient_accumulation_steps).max(1) as f64;
        let steps = (sequences / a_step).ceil().max(1.0) as u64;
        Ok(Self {
            epochs: Some(epochs),
            ..self.overlaid(json!({ "steps": steps }))?
        })
    }
}

impl Choices {
    /// Makes the choices that depend on the data.
    fn complete(&mut self, config: TrainConfig, dataset: &Dataset) -> Result<TrainConfig> {
        /// Number of steps that an epoch should have at least: a model learns by steps.
        const STEPS: f64 = 10.0;
        /// Number of steps that new weights should have, if no more passes than [`PASSES`] are needed for it.
        const FRESH_STEPS: f64 = 300.0;
        /// Number of passes beyond which data teach new weights little more (Muennighoff et al. 2023, "Scaling Data-Constrained Language Models").
        const PASSES: f64 = 16.0;
        let mut config = config;
        if self.has("validation_fraction") && dataset.validation_tokens() == 0 {
            self.list
                .retain(|chosen| chosen.setting != "validation_fraction");
            config.validation_fraction = 0.0;
        }
        let sequences = Loader::for_run(dataset, &config)?.sequences_in(1.0);
        let accumulated = config.gradient_accumulation_steps as f64;
        let batch = (sequences / accumulated / STEPS).floor().max(1.0) as usize;
        if batch < config.batch_size {
            let reason = format!("an epoch of {sequences} sequences has more steps that way");
            config = self.choose(config, "batch_size", json!(batch), reason)?;
        }
        let epoch = (sequences / (config.batch_size as f64 * accumulated)).ceil();
        let passes = (FRESH_STEPS / epoch.max(1.0)).ceil().min(PASSES);
        if self.fresh && self.has("epochs") && config.epochs.is_some_and(|few| few < passes) {
            let reason = format!("an epoch has {epoch} steps, and new weights need some hundreds");
            config = self.choose_again(config, "epochs", json!(passes), reason)?;
        }
        let config = self.warmed_up(config.with_steps_of(dataset)?);
        if self.evaluates() {
            let epoch = epoch.max(1.0) as u64;
            self.list.push(ChosenSetting {
                setting: EVAL_EVERY,
                value: json!(epoch.min(config.steps)),
                reason: "once in each pass over the data".into(),
            });
        }
        Ok(config)
    }
}
