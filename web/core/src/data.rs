//! Data of the page: its files, and the storage of their tokens.

use std::rc::Rc;

use tabtune::config::DataSettings;
use tabtune::data::{DataReader, DataSource, DataWarning, Dataset, TokenStorage};
use tabtune::error::{Error, Fault, Result};
use tabtune::formats::ByteSource;
use tabtune::tokenizer::Tokenizer;
use wasm_bindgen::prelude::*;

use crate::error::JsResult;
use crate::interrupt::interrupt;
use crate::source::{JsSource, JsStorage, Source, Storage};

#[wasm_bindgen(typescript_custom_section)]
const INTERFACE: &str = "
/** Data of a run; tokens that are too many for memory go to `storage`. */
export interface JsData {
  files: JsSource[];
  validation: JsSource[];
  /** Names of folder entries that are not read. */
  passedOver?: string[];
  storage?: JsStorage | undefined;
}
";

#[wasm_bindgen]
extern "C" {
    /// Data of the worker.
    #[wasm_bindgen(typescript_type = "JsData")]
    pub type JsData;
    #[wasm_bindgen(method, getter)]
    fn files(this: &JsData) -> Vec<JsSource>;
    #[wasm_bindgen(method, getter)]
    fn validation(this: &JsData) -> Vec<JsSource>;
    #[wasm_bindgen(method, getter, js_name = passedOver)]
    fn passed_over(this: &JsData) -> Option<Vec<String>>;
    #[wasm_bindgen(method, getter)]
    fn storage(this: &JsData) -> Option<JsStorage>;
}

/// Data of a run.
pub(crate) struct Data {
    files: Vec<Source>,
    validation: Vec<Source>,
    passed_over: Vec<String>,
    storage: Option<Rc<dyn TokenStorage>>,
}

impl Data {
    pub(crate) fn new(object: &JsData) -> JsResult<Self> {
        let list = |files: Vec<JsSource>| -> JsResult<Vec<Source>> {
            files.into_iter().map(Source::new).collect()
        };
        let shared = |storage| Rc::new(Storage::new(storage)) as Rc<dyn TokenStorage>;
        Ok(Self {
            files: list(object.files())?,
            validation: list(object.validation())?,
            passed_over: object.passed_over().unwrap_or_default(),
            storage: object.storage().map(shared),
        })
    }

    /// Returns the name by which the user knows the data.
    pub(crate) fn name(&self) -> String {
        let first = self.files.first().map_or("", |file| ByteSource::name(file));
        if self.files.len() > 1 {
            format!("{first} and {} more", self.files.len() - 1)
        } else {
            first.to_owned()
        }
    }

    /// Returns all files, including those for evaluation.
    pub(crate) fn all_files(&self) -> Vec<&dyn DataSource> {
        self.files
            .iter()
            .chain(&self.validation)
            .map(|file| file as &dyn DataSource)
            .collect()
    }

    /// Returns true if there are separate data for evaluation.
    pub(crate) fn evaluates_apart(&self) -> bool {
        !self.validation.is_empty()
    }

    /// Returns a warning about the folder entries that are not read, if there are any.
    pub(crate) fn passed_over(&self) -> Option<DataWarning> {
        DataWarning::passed_over(&self.passed_over)
    }

    /// Reads the data; token ids need no tokenizer.
    pub(crate) async fn read(
        &self,
        tokenizer: Result<&Tokenizer>,
        settings: &DataSettings,
    ) -> Result<Dataset> {
        if self.validation.is_empty() {
            return self
                .set(&self.files, &self.passed_over, tokenizer, settings)
                .await;
        }
        if settings.validation_fraction > 0.0 {
            let fault = Fault::new(
                "validation_fraction",
                "0 where validation data are given",
                settings.validation_fraction,
            );
            return Err(Error::InvalidConfig(vec![fault]));
        }
        let tokenizer = tokenizer?;
        let training = self
            .set(&self.files, &self.passed_over, Ok(tokenizer), settings)
            .await?;
        Ok(training.with_validation(
            self.set(&self.validation, &[], Ok(tokenizer), settings)
                .await?,
        ))
    }

    async fn set(
        &self,
        files: &[Source],
        passed_over: &[String],
        tokenizer: Result<&Tokenizer>,
        settings: &DataSettings,
    ) -> Result<Dataset> {
        let files: Vec<&dyn DataSource> =
            files.iter().map(|file| file as &dyn DataSource).collect();
        let mut reader = DataReader::open(&files, tokenizer, settings, self.storage.clone())?;
        reader.passed_over(passed_over);
        while reader.advance()? {
            reader.pause(&interrupt()).await?;
        }
        reader.finish()
    }
}
