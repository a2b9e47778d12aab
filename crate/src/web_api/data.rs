//! Data as the page asks about them: by themselves, as a model would learn them, and as a run learns them.

use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::error::{JsResult, thrown};
use super::model::ModelHandle;
use super::plain;
use super::reports::in_camel_case;
use super::session::Session;
use super::settings::{dataset, keys_of, train_config};
use super::source::JsSource;
use crate::bundle::{ByteSource, read_whole};
use crate::config::{DataSettings, TrainConfig};
use crate::data::{DataFile, Dataset, Loader, Preview};
use crate::error::Result;

/// What data are learned as.
#[derive(Serialize)]
struct DataInspection {
    report: serde_json::Value,
    preview: Vec<Preview>,
}

impl ModelHandle {
    /// The data as a run of these settings reads them, and the settings as they follow from the data.
    pub(super) fn dataset(&self, data: &JsSource, config: TrainConfig, config_json: &str, partial: bool) -> Result<(Dataset, TrainConfig)> {
        let asks = self.tokenizer().is_ok_and(|tokenizer| tokenizer.chat_template().is_some_and(|text| text.contains("strftime_now")));
        let today = || String::from(js_sys::Date::new_0().to_iso_string()).get(..10).map(str::to_owned);
        let config = match &config.chat_date {
            None if asks => TrainConfig { chat_date: today(), ..config },
            _ => config,
        };
        let settings = DataSettings { partial, ..config.data_settings() };
        let dataset = dataset(std::slice::from_ref(data), self.tokenizer(), &settings)?;
        let config = config.settled_for(&dataset, &keys_of(config_json)?, self.shape().max_position_embeddings)?;
        Ok((dataset, config))
    }
}

/// What data are, by themselves: `FileSummary[]`. Of a `partial` file, the beginning of one, the last row is left out.
#[wasm_bindgen(js_name = inspectData)]
pub fn inspect_data(data: JsValue, config_json: &str, partial: bool) -> JsResult<JsValue> {
    let (data, config) = (JsSource::new(data)?, train_config(config_json, None).map_err(thrown)?);
    let settings = DataSettings { partial, ..config.data_settings() };
    let bytes = read_whole(&data).map_err(thrown)?;
    plain(&Dataset::summaries(&[DataFile { name: data.name(), bytes: &bytes }], &settings).map_err(thrown)?)
}

#[wasm_bindgen]
impl ModelHandle {
    /// What a run of these settings would learn of the data, with its first `show` examples → `DataInspection`. Nothing is trained.
    #[wasm_bindgen(js_name = inspectData)]
    pub fn inspect_data(&self, data: JsValue, config_json: &str, partial: bool, show: u32) -> JsResult<JsValue> {
        let data = JsSource::new(data)?;
        let config = train_config(config_json, self.files()).map_err(thrown)?;
        let inspect = || {
            let (dataset, config) = self.dataset(&data, config, config_json, partial)?;
            let loader = Loader::for_run(&dataset, &config)?;
            let preview = match self.tokenizer() {
                Ok(tokenizer) => dataset.preview(&config, tokenizer, show as usize)?,
                Err(_) => Vec::new(),
            };
            Ok(DataInspection { report: in_camel_case(&dataset.report(&config, &loader))?, preview })
        };
        plain(&inspect().map_err(thrown)?)
    }
}

#[wasm_bindgen]
impl Session {
    /// The first `show` examples token by token → `DataPreview[]`.
    #[wasm_bindgen(js_name = dataPreview)]
    pub fn data_preview(&self, show: u32) -> JsResult<JsValue> {
        plain(&self.read(|run| run.trainer.data_preview(run.tokenizer()?, show as usize))?)
    }
}
