//! Opened models: their files are checked, but their weights are not on the GPU yet.

use std::rc::Rc;

use js_sys::{Float32Array, Promise};
use serde::Serialize;
use serde_json::Value;
use tabtune::bundle::{Bundle, ModelAssets, OpenOptions};
use tabtune::checkpoint::Base;
use tabtune::config::{ChosenSetting, DataSettings, ModelConfig, Precision, TrainConfig};
use tabtune::data::{Dataset, characters};
use tabtune::device::Device;
use tabtune::error::Warning;
use tabtune::error::{Error, Fault, Refusal, Result, word};
use tabtune::export::ExportSource;
use tabtune::families::config_from_hf;
use tabtune::model::{Model, attached_settings, no_base, open_model_with};
use tabtune::portable::RunState;
use tabtune::tokenizer::Tokenizer;
use tabtune::train::{Notice, Trainer, check_limits};
use tabtune_border::{AdapterInfo, Details, ModelInfo, Tokenized};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::data::{Data, JsData};
use crate::error::{JsResult, thrown};
use crate::exports::written;
use crate::inspect::import_request;
use crate::interrupt::interrupt;
use crate::settings::{today, train_config};
use crate::source::{JsSource, sources};
use crate::values::{Report, Values, plain, value};

#[derive(Clone)]
enum Weights {
    Files(Rc<Bundle>),
    Fresh,
}

/// Model to be trained. Clones share its files.
#[wasm_bindgen]
#[derive(Clone)]
pub struct ModelHandle {
    config: ModelConfig,
    weights: Weights,
    assets: Rc<ModelAssets>,
}

#[wasm_bindgen]
impl ModelHandle {
    /// Opens one GGUF file or the files of a Hugging Face folder, of which a request may take a part. A given adapter is merged into the
    /// model, where its larger tables may `resize` the vocabulary, or attached to it if it stays `apart`. `template` is a chat template to use
    /// instead of the model's.
    pub fn open(
        files: Vec<JsSource>,
        request: Option<Values>,
        adapter: Vec<JsSource>,
        apart: bool,
        resize: bool,
        template: Option<String>,
    ) -> JsResult<ModelHandle> {
        let adapter = sources(adapter)?;
        let adapter = (!adapter.is_empty()).then_some(adapter);
        let options = OpenOptions {
            adapter,
            apart,
            resize_vocabulary: resize,
            chat_template: template,
            request: import_request(request)?,
            ..OpenOptions::default()
        };
        let bundle = open_model_with(sources(files)?, options).map_err(thrown)?;
        let assets = Rc::new(ModelAssets::of_bundle(&bundle));
        Ok(Self {
            config: bundle.config.clone(),
            weights: Weights::Files(Rc::new(bundle)),
            assets,
        })
    }

    /// Creates a new model from a Hugging Face style configuration. Without a `tokenizer`, the text of a tokenizer.json,
    /// its tokens are the characters of the texts in `data`, which are read as `settings` say and may be the beginnings
    /// of `partial` files.
    #[wasm_bindgen(js_name = fromScratch, unchecked_return_type = "Promise<ModelHandle>")]
    pub fn from_scratch(
        config: Values,
        tokenizer: Option<Vec<u8>>,
        data: JsData,
        settings: Values,
        partial: bool,
    ) -> Promise {
        future_to_promise(async move {
            let tokenizer = if let Some(tokenizer) = tokenizer {
                Tokenizer::for_new_model(tokenizer)
            } else {
                let settings = value(settings).and_then(|given| train_config(given, None));
                let (settings, data) = (
                    DataSettings {
                        partial,
                        ..settings.map_err(thrown)?.data_settings()
                    },
                    Data::new(&data)?,
                );
                let characters = characters(&data.all_files(), &settings, &interrupt()).await;
                characters.and_then(|characters| Tokenizer::characters(&characters))
            };
            let model = value(config).and_then(|config| fresh(config, tokenizer?));
            Ok(model.map_err(thrown)?.into())
        })
    }

    /// Returns the `ModelInfo`.
    pub fn info(&self) -> JsResult<Report> {
        plain(&self.describe())
    }

    /// Returns the `ModelDetails`, which are empty for a new model without files. A model with an attached adapter cannot be exported.
    pub fn details(&self) -> JsResult<Report> {
        match &self.weights {
            Weights::Files(bundle) if bundle.attached().is_some() => {
                plain(&Details::of_base(Base::of_bundle(bundle)))
            }
            Weights::Files(bundle) => plain(
                &ExportSource::of_bundle(bundle)
                    .and_then(|source| Details::of(&source))
                    .map_err(thrown)?,
            ),
            Weights::Fresh => plain(&Details::default()),
        }
    }

    /// Returns `{ name, dtype, shape, values }` of one tensor, widened to f32.
    pub fn tensor(&self, name: &str) -> JsResult<Report> {
        let unknown = || {
            thrown(
                Refusal::new(word!("plan.tensor.unknown"))
                    .stage("read")
                    .subject(name)
                    .into(),
            )
        };
        let bundle = self.bundle().ok_or_else(unknown)?;
        let (shape, dtype) = bundle
            .shape(name)
            .zip(bundle.dtype(name))
            .ok_or_else(unknown)?;
        let values = bundle.read_f32(name).map_err(thrown)?;
        plain(&NamedTensor {
            name,
            dtype,
            shape,
            values: Float32Array::from(values.as_slice()),
        })
    }

    /// Writes the model to files in another format; `base` are the GGUF files in which a patch replaces tensors.
    #[wasm_bindgen(js_name = exportModel, unchecked_return_type = "Promise<FileStream>")]
    pub fn export_model(&self, options: Values, base: Vec<JsSource>) -> JsResult<Promise> {
        let fresh = || {
            thrown(Error::InvalidConfig(vec![Fault::new(
                "model",
                "one that was opened, or is in training",
                "a new one",
            )]))
        };
        let bundle = self.bundle().ok_or_else(fresh)?;
        if bundle.attached().is_some() {
            let rule = "one without an attached adapter: merge it while the model is opened";
            return Err(thrown(Error::InvalidConfig(vec![Fault::new(
                "model",
                rule,
                "one with an adapter",
            )])));
        }
        let source = ExportSource::of_bundle(bundle)
            .and_then(|source| source.summed(bundle))
            .map_err(thrown)?;
        written(source, options, base)
    }

    /// Returns the ids of `text` and the warnings about it, as `{ ids, warnings }`; no special tokens are added.
    pub fn tokenize(&self, text: &str) -> JsResult<Report> {
        let tokenized = self.tokenizer().and_then(|tokenizer| {
            let ids = tokenizer.encode(text)?;
            Ok(Tokenized {
                warnings: tokenizer.findings(text, &ids)?.warnings(),
                ids,
            })
        });
        plain(&tokenized.map_err(thrown)?)
    }

    /// Returns the text of token ids.
    pub fn detokenize(&self, ids: Vec<u32>) -> JsResult<String> {
        self.tokenizer()
            .and_then(|tokenizer| tokenizer.detokenize(&ids))
            .map_err(thrown)
    }
}

/// A tensor, widened to f32.
#[derive(Serialize)]
struct NamedTensor<'a> {
    name: &'a str,
    dtype: String,
    shape: Vec<usize>,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    values: Float32Array,
}

/// Creates a model of a configuration with the vocabulary of its tokenizer.
fn fresh(mut config: Value, tokenizer: Tokenizer) -> Result<ModelHandle> {
    if let Some(fields) = config.as_object_mut() {
        fields.insert("vocab_size".into(), tokenizer.vocab_size().into());
    }
    let config = config_from_hf(&config)?;
    config.validate()?;
    let assets = Rc::new(ModelAssets::of_config(&config, Some(tokenizer)));
    Ok(ModelHandle {
        config,
        weights: Weights::Fresh,
        assets,
    })
}

impl ModelHandle {
    fn describe(&self) -> ModelInfo {
        match &self.weights {
            Weights::Files(bundle) => {
                let format = bundle.source_format.to_string();
                let mut info = ModelInfo::new(
                    &self.config,
                    self.assets.tokenizer.as_ref(),
                    &format,
                    |name| bundle.dtype(name),
                );
                let notice = |warning: &Warning| Notice {
                    code: warning.code,
                    subject: Some(warning.subject.clone()),
                    message: warning.message(),
                };
                info.warnings = bundle.warnings.iter().map(notice).collect();
                let settings = attached_settings(bundle).ok().flatten();
                info.adapter = settings.and_then(|settings| {
                    AdapterInfo::new(&settings, &self.config, Precision::F32).ok()
                });
                info
            }
            Weights::Fresh => ModelInfo::new(
                &self.config,
                self.assets.tokenizer.as_ref(),
                "scratch",
                |_| None,
            ),
        }
    }

    /// Returns the files, to be shared.
    pub(crate) fn bundle(&self) -> Option<&Rc<Bundle>> {
        if let Weights::Files(bundle) = &self.weights {
            Some(bundle)
        } else {
            None
        }
    }

    pub(crate) fn tokenizer(&self) -> Result<&Tokenizer> {
        self.assets.need_tokenizer()
    }

    /// The configuration: sizes, family, and the longest context.
    pub(crate) fn shape(&self) -> &ModelConfig {
        &self.config
    }

    /// Returns the opened files of the model; `None` if it is new.
    pub(crate) fn files(&self) -> Option<&Bundle> {
        self.bundle().map(AsRef::as_ref)
    }

    /// Returns the opened files of the model; those of a new one have no tensors.
    pub(crate) fn opened(&self) -> Rc<Bundle> {
        let without_files = || Rc::new(Bundle::without_files(self.config.clone()));
        self.bundle().cloned().unwrap_or_else(without_files)
    }

    /// Returns the files that a run with these settings starts from. If it trains an adapter, every piece is named, because checkpoints
    /// lack them.
    pub(crate) fn base(&self, train: &TrainConfig) -> Result<Option<Base>> {
        let pieced = |bundle: &Bundle| {
            let base = Base::of_bundle(bundle);
            if train.adapter.is_some() {
                base.pieced(bundle)
            } else {
                Ok(base)
            }
        };
        self.files().map(pieced).transpose()
    }

    /// Reads the data as a run with these settings does, and returns the settings as they follow from the data, with those that were chosen,
    /// if a run `chooses`.
    pub(crate) async fn dataset(
        &self,
        data: &Data,
        config: TrainConfig,
        given: &Value,
        partial: bool,
        chooses: bool,
    ) -> Result<(Dataset, TrainConfig, Vec<ChosenSetting>)> {
        let (config, mut choices) = self.choices(config, given, chooses, data.evaluates_apart())?;
        let date = || {
            self.tokenizer()
                .ok()
                .and_then(today)
                .map(|date| date.to_string())
        };
        let config = TrainConfig {
            chat_date: config.chat_date.clone().or_else(date),
            ..config
        };
        let settings = DataSettings {
            partial,
            ..choices.data_settings(&config)
        };
        let dataset = data.read(self.tokenizer(), &settings).await?;
        let config = config.settled_for(&dataset, &mut choices)?;
        Ok((dataset, config, choices.list))
    }

    /// Documents that are saved with the weights.
    pub(crate) fn assets(&self) -> Rc<ModelAssets> {
        Rc::clone(&self.assets)
    }

    /// Loads the model onto the device and starts a run.
    pub(crate) async fn start(
        &self,
        train: TrainConfig,
        dataset: Dataset,
        device: &Device,
    ) -> Result<Trainer> {
        check_limits(&self.config, &train, self.files(), device.info().limits)?;
        let (device, interrupt) = (&device.inner(), &interrupt());
        let model = match &self.weights {
            Weights::Files(bundle) => Model::for_run(bundle, &train, device, interrupt).await?,
            Weights::Fresh if train.adapter.is_some() => return Err(no_base()),
            Weights::Fresh => {
                Model::init(&self.config, train.seed, train.precision, device, interrupt).await?
            }
        };
        let mut trainer = Trainer::new(model, dataset, train)?;
        if self.files().is_some() {
            trainer.warn_of_repeats();
        }
        Ok(trainer)
    }

    /// Opens the state in these files, from which a run is to continue; `None` without files.
    pub(crate) async fn state(&self, files: Vec<JsSource>) -> JsResult<Option<RunState>> {
        let files = sources(files)?;
        if files.is_empty() {
            return Ok(None);
        }
        let state = RunState::open(&files, self.files()).await;
        state.map(Some).map_err(thrown)
    }

    /// Starts a run that continues `state`.
    pub(crate) async fn resume(
        &self,
        state: &RunState,
        train: TrainConfig,
        overrides: &[String],
        dataset: Dataset,
        device: &Device,
    ) -> Result<Trainer> {
        check_limits(&self.config, &train, self.files(), device.info().limits)?;
        let (device, interrupt) = (&device.inner(), &interrupt());
        state
            .resume(&self.opened(), train, overrides, dataset, device, interrupt)
            .await
    }
}
