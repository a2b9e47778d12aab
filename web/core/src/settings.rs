//! Reads settings and data of a run, as the page gives them.

use std::rc::Rc;

use serde_json::{Map, Value};
use tabtune::bundle::{Bundle, ModelAssets};
use tabtune::config::TrainConfig;
use tabtune::data::Dataset;
use tabtune::error::Result;
use tabtune::model::settings_on;
use tabtune::tokenizer::{Date, Tokenizer};

/// Returns the keys of settings that are given.
pub(crate) fn keys_of(given: &Value) -> Map<String, Value> {
    given.as_object().cloned().unwrap_or_default()
}

/// Returns today's date, by the local clock, if the model's template asks for the date.
pub(crate) fn today(tokenizer: &Tokenizer) -> Option<Date> {
    let now = js_sys::Date::new_0();
    tokenizer
        .asks_for_date()
        .then(|| Date::new(now.get_full_year(), now.get_month() + 1, now.get_date()))
        .flatten()
}

/// Reads the settings of a run of these files; missing keys have their defaults. An adapter attached to the model is trained
/// further: the settings in its files apply, and `adapter` may repeat them.
pub(crate) fn train_config(given: Value, files: Option<&Bundle>) -> Result<TrainConfig> {
    match files {
        Some(bundle) => settings_on(bundle, given),
        None => TrainConfig::default().overlaid(given),
    }
}

/// Returns the changed settings of a run, with the steps of the epochs if epochs are given.
pub(crate) fn stepped(
    config: TrainConfig,
    given: &Map<String, Value>,
    dataset: &Dataset,
) -> Result<TrainConfig> {
    if given.contains_key("epochs") {
        config.with_steps_of(dataset)
    } else {
        Ok(config)
    }
}

/// Returns the documents of a run, with the tokens that end the turns of its chats if the dataset has such tokens.
pub(crate) fn with_ends(assets: Rc<ModelAssets>, dataset: &Dataset) -> Rc<ModelAssets> {
    if dataset.turn_ends().is_empty() {
        assets
    } else {
        Rc::new(ModelAssets::clone(&assets).with_ends(dataset.turn_ends()))
    }
}

/// Returns every `stride`-th step from the first, `points` of them.
pub(crate) fn strided(points: u32, stride: f64) -> impl Iterator<Item = u64> {
    (0..u64::from(points)).map(move |index| index.saturating_mul(stride as u64).saturating_add(1))
}
