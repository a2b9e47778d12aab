//! Settings that are chosen for a new run whose learning rate is not given, by what it begins with.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{DataSettings, ModelConfig, OptimizerConfig, ScheduleConfig, TrainConfig};
use crate::error::Result;

/// Width from which on a trained model gets the lowest rates, a new one from a quarter of it: updates by Adam change the outputs of a layer in proportion to its width.
const WIDE: f64 = 2048.0;
/// Name of the schedule among the settings.
const SCHEDULE: &str = "schedule";
/// Number of rows from which on a share of them is kept for evaluation.
const ENOUGH_ROWS: usize = 20;

/// The setting of a run's driver: the number of steps between evaluations.
pub const EVAL_EVERY: &str = "eval_every";

/// A setting that was chosen for a run, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChosenSetting {
    /// Name of the setting.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub setting: &'static str,
    /// Its value.
    pub value: Value,
    /// Reason for the value.
    pub reason: String,
}

/// The beginning of a run.
#[derive(Debug, Clone, Copy)]
pub struct Beginning<'a> {
    /// The model.
    pub model: &'a ModelConfig,
    /// True for new weights, false for those of files.
    pub fresh: bool,
    /// False if nothing is chosen: the run continues a state, whose settings it has, or data are only shown.
    pub chooses: bool,
    /// True if other data are given for evaluation.
    pub evaluates_apart: bool,
}

/// The settings of a user, and those that were chosen in addition.
#[derive(Debug, Default)]
pub struct Choices {
    given: Map<String, Value>,
    chooses: bool,
    evaluates_apart: bool,
    /// True for new weights.
    pub(crate) fresh: bool,
    pub(crate) context: usize,
    /// The chosen settings, in the order of their choice.
    pub list: Vec<ChosenSetting>,
}

impl Choices {
    /// Chooses all that does not depend on the data, unless the user's settings, `given`, contain a learning rate.
    ///
    /// # Errors
    /// The errors of [`TrainConfig::overlaid`].
    pub fn begin(
        config: TrainConfig,
        given: &Map<String, Value>,
        beginning: Beginning<'_>,
    ) -> Result<(TrainConfig, Self)> {
        let mut choices = Self {
            given: given.clone(),
            chooses: beginning.chooses && !given.contains_key("learning_rate"),
            evaluates_apart: beginning.evaluates_apart,
            fresh: beginning.fresh,
            context: beginning.model.max_position_embeddings,
            list: Vec::new(),
        };
        let adapter = config.adapter.is_some();
        let mut config = config;
        if let Some((rate, reason)) = rate(&config.optimizer, beginning, adapter) {
            config = choices.choose(config, "learning_rate", json!(rate), reason)?;
        }
        let cosine = json!({ "type": "cosine", "warmup_from_zero": false });
        let falls = "the rate rises in the first tenth of the steps and falls to 0 by the end";
        config = choices.choose(config, SCHEDULE, cosine, falls.into())?;
        if !beginning.fresh && !adapter {
            let half = "half the memory; stochastic rounding keeps small updates";
            config = choices.choose(config, "precision", json!("bf16"), half.into())?;
        }
        if choices.lacks("steps") {
            let (epochs, reason) = if beginning.fresh {
                (
                    4,
                    "new weights gain about as much from four passes as from as much new data",
                )
            } else {
                (3, "a trained model begins to memorise after a few passes")
            };
            config = choices.choose(config, "epochs", json!(epochs), reason.into())?;
        }
        if !beginning.evaluates_apart {
            let share = format!(
                "a tenth, where there are {ENOUGH_ROWS} rows, shows if more than these rows is learned"
            );
            config = choices.choose(config, "validation_fraction", json!(0.1), share)?;
        }
        Ok((config, choices))
    }

    /// True if this setting is to be chosen.
    pub(crate) fn lacks(&self, setting: &str) -> bool {
        self.chooses && !self.given.contains_key(setting)
    }

    /// True if the user's settings contain this one.
    pub(crate) fn is_given(&self, setting: &str) -> bool {
        self.given.contains_key(setting)
    }

    /// True if a driver is to evaluate, although the user did not say how often.
    pub(crate) fn evaluates(&self) -> bool {
        self.chooses && (self.evaluates_apart || self.has("validation_fraction"))
    }

    /// True if this setting was chosen.
    pub(crate) fn has(&self, setting: &str) -> bool {
        self.list.iter().any(|chosen| chosen.setting == setting)
    }

    /// Adds a setting, unless it is given.
    pub(crate) fn choose(
        &mut self,
        config: TrainConfig,
        setting: &'static str,
        value: Value,
        reason: String,
    ) -> Result<TrainConfig> {
        if !self.lacks(setting) {
            return Ok(config);
        }
        let config = config.overlaid(json!({ setting: value }))?;
        self.list.push(ChosenSetting {
            setting,
            value,
            reason,
        });
        Ok(config)
    }

    /// Replaces a setting that was chosen before, and its reason.
    pub(crate) fn choose_again(
        &mut self,
        config: TrainConfig,
        setting: &'static str,
        value: Value,
        reason: String,
    ) -> Result<TrainConfig> {
        let config = config.overlaid(json!({ setting: value }))?;
        for chosen in &mut self.list {
            if chosen.setting == setting {
                (chosen.value, chosen.reason) = (value.clone(), reason.clone());
            }
        }
        Ok(config)
    }

    /// Lets a schedule that was chosen warm up in the first tenth of the steps.
    pub fn warmed_up(&mut self, mut config: TrainConfig) -> TrainConfig {
        let chosen = self
            .list
            .iter_mut()
            .find(|chosen| chosen.setting == SCHEDULE);
        if let (Some(chosen), ScheduleConfig::Cosine(cosine)) = (chosen, &mut config.schedule) {
            cosine.warmup_steps = config.steps.div_ceil(10).min(config.steps - 1);
            chosen.value["warmup_steps"] = json!(cosine.warmup_steps);
        }
        config
    }

    /// The settings that control how the data of the run are read. A share that was chosen is kept back only from enough data.
    pub fn data_settings(&self, config: &TrainConfig) -> DataSettings {
        let least = if self.has("validation_fraction") {
            ENOUGH_ROWS
        } else {
            0
        };
        DataSettings {
            divided_from: [least, least * (config.seq_len + 1)],
            ..config.data_settings()
        }
    }
}

/// The peak rate, if one is usual for the optimizer, and the reason.
fn rate(
    optimizer: &OptimizerConfig,
    beginning: Beginning<'_>,
    adapter: bool,
) -> Option<(f64, String)> {
    match optimizer {
        OptimizerConfig::Sgd(_) => return None,
        OptimizerConfig::Adafactor(config) if config.relative_step => return None,
        _ => {}
    }
    let (widest, most, wide, what) = if beginning.fresh {
        (1e-3, 2e-3, WIDE / 4.0, "new weights")
    } else if adapter {
        (2e-4, 2e-3, WIDE, "new factors on weights that rest")
    } else {
        (2e-5, 2.5e-4, WIDE, "weights that have learned before")
    };
    let width = beginning.model.hidden_size;
    let rate = (widest * wide / width as f64).clamp(widest, most);
    // Two digits.
    let unit = 10f64.powi(rate.log10().floor() as i32 - 1);
    let rate = ((rate / unit).round() * unit * 1e12).round() / 1e12;
    let reason =
        format!("for {what}: {widest:e} in wide models, more in narrow ones (width {width})");
    Some((rate, reason))
}
