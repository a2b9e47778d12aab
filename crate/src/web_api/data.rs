//! Inspects data for the page: by themselves, as a model would learn them, and as a run learns them.

use std::rc::Rc;

use js_sys::{Array, Promise, Reflect};
use serde::Serialize;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use super::error::{JsResult, thrown};
use super::interrupt::interrupt;
use super::model::ModelHandle;
use super::plain;
use super::reports::in_camel_case;
use super::run::Run;
use super::session::{Session, with_run};
use super::settings::{changed, keys_of, today, train_config};
use super::source::{JsSource, JsStorage};
use crate::config::{DataSettings, OnLong, TrainConfig};
use crate::data::{DataReader, DataSource, Dataset, Loader, Preview, TokenStorage};
use crate::error::{Error, Fault, Result};
use crate::formats::ByteSource;
use crate::tokenizer::Tokenizer;

/// Report on how data are learned, with the first examples.
#[derive(Serialize)]
struct DataInspection {
    report: serde_json::Value,
    preview: Vec<Preview>,
}

/// Data of a run: `{ files, validation, passedOver, storage }`. `passedOver` has the names of entries of folders that are not read, if any,
/// and `storage` is present if the tokens may be too many for memory.
pub(super) struct JsData {
    files: Vec<JsSource>,
    validation: Vec<JsSource>,
    passed_over: Vec<String>,
    storage: Option<Rc<dyn TokenStorage>>,
}

impl JsData {
    pub(super) fn new(object: &JsValue) -> JsResult<Self> {
        let field = |key: &str| Reflect::get(object, &JsValue::from_str(key));
        let list = |key: &str| field(key)?.dyn_into::<Array>()?.iter().map(JsSource::new).collect::<JsResult<Vec<_>>>();
        let passed_over = field("passedOver")?;
        let names = if passed_over.is_undefined() { Array::new() } else { passed_over.dyn_into()? };
        let passed_over = names.iter().filter_map(|name| name.as_string()).collect();
        let storage = field("storage")?;
        let storage = if storage.is_undefined() { None } else { Some(Rc::new(JsStorage::new(storage)?) as Rc<dyn TokenStorage>) };
        Ok(Self { files: list("files")?, validation: list("validation")?, passed_over, storage })
    }

    /// Returns the name by which the user knows the data.
    pub(super) fn name(&self) -> String {
        let first = self.files.first().map_or("", |file| ByteSource::name(file));
        if self.files.len() > 1 { format!("{first} and {} more", self.files.len() - 1) } else { first.to_owned() }
    }

    /// Returns all files, including those for evaluation.
    pub(super) fn all_files(&self) -> Vec<&dyn DataSource> {
        self.files.iter().chain(&self.validation).map(|file| file as &dyn DataSource).collect()
    }

    /// Reads the data; token ids need no tokenizer.
    pub(super) async fn read(&self, tokenizer: Result<&Tokenizer>, settings: &DataSettings) -> Result<Dataset> {
        if self.validation.is_empty() {
            return self.set(&self.files, &self.passed_over, tokenizer, settings).await;
        }
        if settings.validation_fraction > 0.0 {
            let fault = Fault::new("validation_fraction", "0 where validation data are given", settings.validation_fraction);
            return Err(Error::InvalidConfig(vec![fault]));
        }
        let tokenizer = tokenizer?;
        let training = self.set(&self.files, &self.passed_over, Ok(tokenizer), settings).await?;
        Ok(training.with_validation(self.set(&self.validation, &[], Ok(tokenizer), settings).await?))
    }

    async fn set(
        &self,
        files: &[JsSource],
        passed_over: &[String],
        tokenizer: Result<&Tokenizer>,
        settings: &DataSettings,
    ) -> Result<Dataset> {
        let files: Vec<&dyn DataSource> = files.iter().map(|file| file as &dyn DataSource).collect();
        let mut reader = DataReader::open(&files, tokenizer, settings, self.storage.clone())?;
        reader.passed_over(passed_over);
        while reader.advance()? {
            interrupt().pause().await?;
        }
        reader.finish()
    }
}

impl ModelHandle {
    /// Reads the data as a run with these settings does, and returns the settings as they follow from the data.
    pub(super) async fn dataset(
        &self,
        data: &JsData,
        config: TrainConfig,
        config_json: &str,
        partial: bool,
    ) -> Result<(Dataset, TrainConfig)> {
        let date = || self.tokenizer().ok().and_then(today).map(|date| date.to_string());
        let config = TrainConfig { chat_date: config.chat_date.clone().or_else(date), ..config };
        let settings = DataSettings { partial, ..config.data_settings() };
        let dataset = data.read(self.tokenizer(), &settings).await?;
        let config = config.settled_for(&dataset, &keys_of(config_json)?, self.shape().max_position_embeddings)?;
        Ok((dataset, config))
    }

    async fn data_inspection(&self, data: &JsData, config_json: &str, partial: bool, show: usize) -> Result<DataInspection> {
        let config = train_config(config_json, self.files())?;
        let (dataset, config) = self.dataset(data, config, config_json, partial).await?;
        let loader = Loader::for_run(&dataset, &config)?;
        let preview = match self.tokenizer() {
            Ok(tokenizer) => dataset.preview(&config, tokenizer, show)?,
            Err(_) => Vec::new(),
        };
        Ok(DataInspection { report: in_camel_case(&dataset.report(&config, &loader))?, preview })
    }
}

/// Length above that of every row.
const ANY_LENGTH: usize = 1 << 27;

/// Returns the settings with nothing kept back for an evaluation.
fn all_of(config: TrainConfig) -> TrainConfig {
    TrainConfig { validation_fraction: 0.0, ..config }
}

/// Returns the examples of a dataset, whole. Refuses a text, which has no examples.
fn examples(dataset: &Dataset, config: TrainConfig, tokenizer: &Tokenizer) -> Result<Vec<Preview>> {
    if !dataset.has_examples() {
        return Err(Error::InvalidConfig(vec![Fault::new("data", "rows: JSON lines, JSON, CSV or TSV", "one text")]));
    }
    dataset.preview(&TrainConfig { seq_len: ANY_LENGTH, on_long: OnLong::Cut, ..config }, tokenizer, usize::MAX)
}

/// Describes data by themselves → `FileSummary[]`. If a file is `partial`, the beginning of one, its last row is left out.
#[wasm_bindgen(js_name = inspectData)]
pub fn inspect_data(data: JsValue, config_json: &str, partial: bool) -> JsResult<JsValue> {
    let (data, config) = (JsData::new(&data)?, train_config(config_json, None).map_err(thrown)?);
    let settings = DataSettings { partial, ..config.data_settings() };
    plain(&Dataset::summaries(&data.all_files(), &settings).map_err(thrown)?)
}

#[wasm_bindgen]
impl ModelHandle {
    /// Reports what a run with these settings would learn from the data, with its first `show` examples → `DataInspection`. Nothing is
    /// trained.
    #[wasm_bindgen(js_name = inspectData)]
    pub fn inspect_data(&self, data: JsValue, config_json: String, partial: bool, show: u32) -> Promise {
        let model = self.clone();
        future_to_promise(async move {
            let data = JsData::new(&data)?;
            plain(&model.data_inspection(&data, &config_json, partial, show as usize).await.map_err(thrown)?)
        })
    }

    /// Returns the examples of the data, read with these settings and whole, token by token → `DataPreview`.
    pub fn rows(&self, data: JsValue, config_json: String) -> Promise {
        let model = self.clone();
        future_to_promise(async move {
            let data = JsData::new(&data)?;
            let config = all_of(train_config(&config_json, model.files()).map_err(thrown)?);
            let (dataset, config) = model.dataset(&data, config, &config_json, false).await.map_err(thrown)?;
            plain(&examples(&dataset, config, model.tokenizer().map_err(thrown)?).map_err(thrown)?)
        })
    }
}

/// Returns the examples of these data as the run reads its own, except for the given settings.
async fn rows_of(run: &Run, data: &JsData, config_json: &str) -> Result<Vec<Preview>> {
    let config = all_of(changed(run.trainer.config(), config_json)?);
    let dataset = data.read(run.tokenizer(), &config.data_settings()).await?;
    examples(&dataset, config, run.tokenizer()?)
}

#[wasm_bindgen]
impl Session {
    /// Returns the examples of these data as the run reads its own, except for the given settings, whole and token by token →
    /// `DataPreview`.
    pub fn rows(&self, data: JsValue, config_json: String) -> Promise {
        with_run(self.0.clone(), |run| async move {
            let rows = match JsData::new(&data) {
                Ok(data) => rows_of(&run, &data, &config_json).await.map_err(thrown).and_then(|rows| plain(&rows)),
                Err(wrong) => Err(wrong),
            };
            (run, rows)
        })
    }

    /// Returns the first `show` examples, token by token → `DataPreview[]`.
    #[wasm_bindgen(js_name = dataPreview)]
    pub fn data_preview(&self, show: u32) -> JsResult<JsValue> {
        plain(&self.read(|run| run.trainer.data_preview(run.tokenizer()?, show as usize))?)
    }
}
