//! Inspects data for the page: by themselves, as a model would learn them, and as a run learns them.

use js_sys::Promise;
use serde_json::Value;
use tabtune::config::{DataSettings, OnLong, TrainConfig};
use tabtune::data::{Dataset, Loader, Preview, summaries};
use tabtune::error::{Error, Fault, Result};
use tabtune::tokenizer::Tokenizer;
use tabtune_border::DataInspection;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::data::{Data, JsData};
use crate::error::{JsResult, thrown};
use crate::interrupt::interrupt;
use crate::model::ModelHandle;
use crate::run::Run;
use crate::session::{Session, with_run};
use crate::settings::train_config;
use crate::values::{Report, Values, plain, value};

impl ModelHandle {
    async fn data_inspection(
        &self,
        data: &Data,
        given: &Value,
        partial: bool,
        show: usize,
    ) -> Result<DataInspection> {
        let config = train_config(given.clone(), self.files())?;
        // The choices depend on all of the data.
        let read = self.dataset(data, config, given, partial, !partial);
        let (dataset, config, chosen) = read.await?;
        dataset.check_vocabulary(self.shape().vocab_size)?;
        let loader = Loader::for_run(&dataset, &config)?;
        let preview = match self.tokenizer() {
            Ok(tokenizer) => dataset.preview(&config, tokenizer, show)?,
            Err(_) => Vec::new(),
        };
        Ok(DataInspection {
            report: dataset.report(&config, &loader),
            preview,
            config,
            chosen,
        })
    }
}

/// Length above that of every row.
const ANY_LENGTH: usize = 1 << 27;

/// Returns the settings with nothing kept back for an evaluation.
fn all_of(config: TrainConfig) -> TrainConfig {
    TrainConfig {
        validation_fraction: 0.0,
        ..config
    }
}

/// Returns the examples of a dataset, whole. Refuses a text, which has no examples.
fn examples(dataset: &Dataset, config: TrainConfig, tokenizer: &Tokenizer) -> Result<Vec<Preview>> {
    if !dataset.has_examples() {
        return Err(Error::InvalidConfig(vec![Fault::new(
            "data",
            "rows: JSON lines, JSON, CSV or TSV",
            "one text",
        )]));
    }
    dataset.preview(
        &TrainConfig {
            seq_len: ANY_LENGTH,
            on_long: OnLong::Cut,
            ..config
        },
        tokenizer,
        usize::MAX,
    )
}

/// Describes data by themselves → `FileSummary[]`. If a file is `partial`, the beginning of one, its last row is left out. The warning
/// about entries of folders that are not read is one of the first file's.
#[wasm_bindgen(js_name = inspectData, unchecked_return_type = "Promise<unknown>")]
pub fn inspect_data(data: JsData, config: Values, partial: bool) -> Promise {
    future_to_promise(async move {
        let config = value(config).and_then(|given| train_config(given, None));
        let (data, config) = (Data::new(&data)?, config.map_err(thrown)?);
        let settings = DataSettings {
            partial,
            ..config.data_settings()
        };
        let mut summaries = summaries(&data.all_files(), &settings, &interrupt())
            .await
            .map_err(thrown)?;
        if let Some(first) = summaries.first_mut() {
            first.warnings.extend(data.passed_over());
        }
        plain(&summaries).map(Into::into)
    })
}

#[wasm_bindgen]
impl ModelHandle {
    /// Reports what a run with these settings would learn from the data, with its first `show` examples → `DataInspection`. Nothing is
    /// trained.
    #[wasm_bindgen(js_name = inspectData, unchecked_return_type = "Promise<unknown>")]
    pub fn inspect_data(&self, data: JsData, config: Values, partial: bool, show: u32) -> Promise {
        let model = self.clone();
        future_to_promise(async move {
            let (data, given) = (Data::new(&data)?, value(config).map_err(thrown)?);
            let inspected = model.data_inspection(&data, &given, partial, show as usize);
            plain(&inspected.await.map_err(thrown)?).map(Into::into)
        })
    }

    /// Returns the examples of the data, read with these settings and whole, token by token → `DataPreview`.
    #[wasm_bindgen(unchecked_return_type = "Promise<unknown>")]
    pub fn rows(&self, data: JsData, config: Values) -> Promise {
        let model = self.clone();
        future_to_promise(async move {
            let data = Data::new(&data)?;
            let rows = async {
                let given = value(config)?;
                let config = all_of(train_config(given.clone(), model.files())?);
                let read = model.dataset(&data, config, &given, false, false);
                let (dataset, config, _) = read.await?;
                examples(&dataset, config, model.tokenizer()?)
            };
            plain(&rows.await.map_err(thrown)?).map(Into::into)
        })
    }
}

/// Returns the examples of these data as the run reads its own, except for the given settings.
async fn rows_of(run: &Run, data: &Data, config: Values) -> Result<Vec<Preview>> {
    let config = all_of(run.trainer.config().overlaid(value(config)?)?);
    let dataset = data.read(run.tokenizer(), &config.data_settings()).await?;
    examples(&dataset, config, run.tokenizer()?)
}

#[wasm_bindgen]
impl Session {
    /// Returns the examples of these data as the run reads its own, except for the given settings, whole and token by token →
    /// `DataPreview`.
    #[wasm_bindgen(unchecked_return_type = "Promise<unknown>")]
    pub fn rows(&self, data: JsData, config: Values) -> Promise {
        with_run(self.0.clone(), |run| async move {
            let rows = match Data::new(&data) {
                Ok(data) => rows_of(&run, &data, config)
                    .await
                    .map_err(thrown)
                    .and_then(|rows| plain(&rows)),
                Err(wrong) => Err(wrong),
            };
            (run, rows)
        })
    }

    /// Returns the first `show` examples, token by token → `DataPreview[]`.
    #[wasm_bindgen(js_name = dataPreview)]
    pub fn data_preview(&self, show: u32) -> JsResult<Report> {
        plain(&self.read(|run| run.trainer.data_preview(run.tokenizer()?, show as usize))?)
    }
}
