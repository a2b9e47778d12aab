//! Settings that are chosen for a new run on a model.

use serde_json::Value;
use tabtune::config::{Beginning, Choices, TrainConfig};
use tabtune::error::Result;
use tabtune::schedule;
use wasm_bindgen::prelude::*;

use crate::error::{JsResult, thrown};
use crate::model::ModelHandle;
use crate::settings::{keys_of, strided, train_config};
use crate::values::{Values, value};

impl ModelHandle {
    /// Chooses settings for a new run on this model, if it `chooses`.
    pub(crate) fn choices(
        &self,
        config: TrainConfig,
        given: &Value,
        chooses: bool,
        evaluates_apart: bool,
    ) -> Result<(TrainConfig, Choices)> {
        let beginning = Beginning {
            model: self.shape(),
            fresh: self.files().is_none(),
            chooses,
            evaluates_apart,
        };
        Choices::begin(config, &keys_of(given), beginning)
    }
}

#[wasm_bindgen]
impl ModelHandle {
    /// Returns the learning rates that a new run on this model plans for every `stride`-th step from the first, `points` of them. Without
    /// `steps` among its settings, they are its whole length.
    #[wasm_bindgen(js_name = previewSchedule)]
    pub fn preview_schedule(&self, config: Values, points: u32, stride: f64) -> JsResult<Vec<f64>> {
        let mut given = value(config).map_err(thrown)?;
        if let Some(keys) = given.as_object_mut() {
            let steps = (f64::from(points) * stride).max(1.0) as u64;
            if !keys.contains_key("steps") {
                keys.remove("epochs");
                keys.insert("steps".into(), steps.into());
            }
        }
        let config = train_config(given.clone(), self.files()).map_err(thrown)?;
        let choices = self.choices(config, &given, true, false);
        let (config, mut choices) = choices.map_err(thrown)?;
        let config = choices.warmed_up(config);
        let start = schedule::resolve_start(&config.schedule, None, 0);
        let steps = strided(points, stride);
        Ok(schedule::preview(steps, config.learning_rate, &config.schedule, start).collect())
    }
}
