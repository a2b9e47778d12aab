//! Data of the page: its files, and the storage of their tokens.

use std::rc::Rc;

use js_sys::{Array, Reflect};
use tabtune::config::DataSettings;
use tabtune::data::{DataReader, DataSource, DataWarning, Dataset, TokenStorage};
use tabtune::error::{Error, Fault, Result};
use tabtune::formats::ByteSource;
use tabtune::tokenizer::Tokenizer;
use wasm_bindgen::{JsCast, JsValue};

use crate::error::JsResult;
use crate::interrupt::interrupt;
use crate::source::{JsSource, JsStorage};

/// Data of a run: `{ files, validation, passedOver, storage }`. `passedOver` has the names of entries of folders that are not read, if any,
/// and `storage` is present if the tokens may be too many for memory.
pub(crate) struct JsData {
    files: Vec<JsSource>,
    validation: Vec<JsSource>,
    passed_over: Vec<String>,
    storage: Option<Rc<dyn TokenStorage>>,
}

impl JsData {
    pub(crate) fn new(object: &JsValue) -> JsResult<Self> {
        let field = |key: &str| Reflect::get(object, &JsValue::from_str(key));
        let list = |key: &str| {
            field(key)?
                .dyn_into::<Array>()?
                .iter()
                .map(JsSource::new)
                .collect::<JsResult<Vec<_>>>()
        };
        let passed_over = field("passedOver")?;
        let names = if passed_over.is_undefined() {
            Array::new()
        } else {
            passed_over.dyn_into()?
        };
        let passed_over = names.iter().filter_map(|name| name.as_string()).collect();
        let storage = field("storage")?;
        let storage = if storage.is_undefined() {
            None
        } else {
            Some(Rc::new(JsStorage::new(storage)?) as Rc<dyn TokenStorage>)
        };
        Ok(Self {
            files: list("files")?,
            validation: list("validation")?,
            passed_over,
            storage,
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
        files: &[JsSource],
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
