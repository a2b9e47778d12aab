//! Settings that follow from the data: the length of sequences, and the number of steps for the given epochs.

use serde_json::{Map, Value, json};

use super::dataset::Dataset;
use super::loader::Loader;
use crate::config::TrainConfig;
use crate::error::{Error, Result};

#[doc(hidden)]
impl TrainConfig {
    /// Completes these settings for a new run on `dataset`: chooses `seq_len` by the data and the context unless the user's settings `given`
    /// contain it, and computes the steps of the `epochs`. `context` is the model's.
    ///
    /// # Errors
    /// `model.context` if the given `seq_len` is beyond the context; otherwise as for [`Loader::for_run`].
    pub fn settled_for(
        self,
        dataset: &Dataset,
        given: &Map<String, Value>,
        context: usize,
    ) -> Result<Self> {
        let mut config = self;
        if !given.contains_key("seq_len") {
            let proposed = dataset.proposed_seq_len(config.batch_size, config.packing, context);
            config.seq_len = proposed.unwrap_or_else(|| config.seq_len.min(context));
        }
        if config.seq_len > context {
            return Err(Error::ContextExceeded {
                found: config.seq_len,
                max: context,
            });
        }
        config.with_steps_of(dataset)
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
