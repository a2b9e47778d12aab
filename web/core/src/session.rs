//! A run in the browser. Its state is taken out for each call, so that a concurrent call is a typed refusal, not a failed borrow.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

use js_sys::Promise;
use tabtune::bundle::ModelAssets;
use tabtune::checkpoint::{Checkpoint, CheckpointBase, Environment, Origin};
use tabtune::error::{Error, Fault, Result};
use tabtune::gpu::profile::{KernelTimes, Profile};
use tabtune::state::VerifyPolicy;
use tabtune::train::{StepReport, check_limits};
use tabtune::{checkpoint, schedule};
use tabtune_border::{AdapterInfo, Advanced, BaseInfo, Details, ModelInfo, SessionInfo};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::data::{Data, JsData};
use crate::device::device;
use crate::error::{JsResult, thrown};
use crate::exports::written;
use crate::interrupt::interrupt;
use crate::model::ModelHandle;
use crate::run::Run;
use crate::settings::{keys_of, stepped, strided, train_config, with_ends};
use crate::source::{JsSource, sources};
use crate::stream::FileStream;
use crate::values::{Report, Values, plain, value};

pub(crate) type Slot = Rc<RefCell<Option<Run>>>;

pub(crate) const BUSY: Error = Error::Busy {
    doing: "another call of this session",
};

/// A trainer with its tokenizer.
#[wasm_bindgen]
pub struct Session(pub(crate) Slot);

/// Runs `work` on the state of `slot`, which is empty meanwhile.
pub(crate) fn with_run<T, F>(slot: Slot, work: impl FnOnce(Run) -> F + 'static) -> Promise
where
    T: Into<JsValue>,
    F: Future<Output = (Run, JsResult<T>)>,
{
    future_to_promise(async move {
        let taken = slot.borrow_mut().take();
        let run = taken.ok_or_else(|| thrown(BUSY))?;
        let (run, result) = work(run).await;
        *slot.borrow_mut() = Some(run);
        result.map(Into::into)
    })
}

/// Returns the progress of a run, and the reports of a call.
fn advanced(run: &Run, reports: Result<Vec<StepReport>>) -> JsResult<Report> {
    plain(&Advanced {
        completed_steps: run.trainer.progress().completed_steps,
        reports: reports.map_err(thrown)?,
    })
}

#[wasm_bindgen]
impl Session {
    /// Starts a run. The caller keeps `model`, to try again after a refusal. Weights that are NaN or infinite are refused
    /// unless they are allowed. Files of a `state` are continued (`RunState`); `overrides` names the settings that may contradict it.
    #[wasm_bindgen(unchecked_return_type = "Promise<Session>")]
    pub fn create(
        model: &ModelHandle,
        data: JsData,
        config: Values,
        allow_non_finite: bool,
        state: Vec<JsSource>,
        overrides: Vec<String>,
    ) -> Promise {
        let model = model.clone();
        future_to_promise(async move {
            let given = value(config).map_err(thrown)?;
            let mut config = train_config(given.clone(), model.files()).map_err(thrown)?;
            let state = model.state(state).await?;
            if let Some(state) = &state {
                let (own, keys) = (model.opened(), keys_of(&given));
                let settings = state.settings(&own, &config, &keys, &overrides);
                config = settings.map_err(thrown)?;
            }
            let base = model.base(&config).map_err(thrown)?;
            let data = Data::new(&data)?;
            let read = model.dataset(&data, config, &given, false, state.is_none());
            let (dataset, config, chosen) = read.await.map_err(thrown)?;
            let assets = with_ends(model.assets(), &dataset);
            let device = device()?;
            let trainer = match &state {
                Some(state) => {
                    let resumed = model.resume(state, config, &overrides, dataset, &device);
                    resumed.await
                }
                None => model.start(config, dataset, &device).await,
            };
            let trainer = trainer.map_err(thrown)?;
            if !allow_non_finite {
                trainer.model().check_finite().map_err(thrown)?;
            }
            Ok(Session(Rc::new(RefCell::new(Some(Run::new(
                trainer,
                assets,
                base,
                model.bundle().cloned(),
                &data.name(),
                chosen,
            )))))
            .into())
        })
    }

    /// Continues a run from the files of a checkpoint, whose bytes the caller has verified, with the same data. `changes` has the
    /// keys of TrainConfig that differ from the checkpoint; `overrides` names the keys that may differ, and `data` if other data are given.
    /// The checkpoint of an adapter needs the files of its `base`; for others `base` is empty. With `header`, only the headers of the base
    /// are compared.
    #[wasm_bindgen(unchecked_return_type = "Promise<Session>")]
    pub fn resume(
        files: Vec<JsSource>,
        data: JsData,
        changes: Option<Values>,
        overrides: Vec<String>,
        base: Vec<JsSource>,
        header: bool,
    ) -> Promise {
        future_to_promise(async move {
            let (files, base) = (sources(files)?, sources(base)?);
            let given = !base.is_empty();
            let policy = if header {
                VerifyPolicy::Header
            } else {
                VerifyPolicy::Full
            };
            let base = if given {
                CheckpointBase::Files(base, policy)
            } else {
                CheckpointBase::Absent
            };
            let checkpoint = Checkpoint::open_with(files, base, true).map_err(thrown)?;
            if given && checkpoint.manifest().train.adapter.is_none() {
                let rule = "none: the checkpoint has all weights of its model";
                return Err(thrown(Error::InvalidConfig(vec![Fault::new(
                    "base", rule, "files",
                )])));
            }
            let assets = Rc::new(ModelAssets::of_bundle(checkpoint.bundle()));
            let absent = || Error::CheckpointCorrupt {
                what: "tokenizer.json".into(),
                reason: "the file is absent".into(),
            };
            let tokenizer = assets.tokenizer.as_ref().ok_or_else(absent);
            let data = Data::new(&data)?;
            let saved = &checkpoint.manifest().train;
            let changes = changes.map(value).transpose().map_err(thrown)?;
            let given = changes.as_ref().map(keys_of).unwrap_or_default();
            let config = changes
                .map(|changes| saved.overlaid(changes))
                .transpose()
                .map_err(thrown)?;
            let settings = config
                .as_ref()
                .unwrap_or(saved)
                .data_settings_of_resume(&given);
            let dataset = data.read(tokenizer, &settings).await.map_err(thrown)?;
            let config = config
                .map(|config| stepped(config, &given, &dataset))
                .transpose()
                .map_err(thrown)?;
            let assets = with_ends(Rc::clone(&assets), &dataset);
            let device = device()?;
            let manifest = checkpoint.manifest();
            check_limits(
                &manifest.model,
                &manifest.train,
                Some(checkpoint.bundle()),
                device.info().limits,
            )
            .map_err(thrown)?;
            let resumed = checkpoint
                .resume(dataset, config, &overrides, &device.inner(), &interrupt())
                .await;
            let mut trainer = resumed.map_err(thrown)?;
            // The page knows the GPU adapter by another name.
            trainer.add_notices(Vec::from_iter(
                checkpoint.other_environment(&Environment::on(&device.inner(), "")),
            ));
            let base = checkpoint.manifest().base.clone();
            Ok(Session(Rc::new(RefCell::new(Some(Run::new(
                trainer,
                assets,
                base,
                Some(checkpoint.shared_bundle()),
                &data.name(),
                Vec::new(),
            )))))
            .into())
        })
    }

    /// Resolves when all work submitted before is done.
    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn confirm(&self) -> Promise {
        with_run(self.0.clone(), |run| async move {
            let done = run.trainer.confirm().await;
            (run, done.map(|()| JsValue::UNDEFINED).map_err(thrown))
        })
    }

    /// Submits one optimizer step → `Advanced`. While a profile is taken, it waits for the step.
    #[wasm_bindgen(unchecked_return_type = "Promise<unknown>")]
    pub fn step(&self) -> Promise {
        with_run(self.0.clone(), |mut run| async move {
            run.answers.clear();
            let profile = run.times.is_some().then(Profile::start);
            let reports = match profile {
                Some(_) => run.trainer.step().await.map(|report| vec![report]),
                None => run.trainer.advance().await,
            };
            if let (Some(profile), Some(times)) = (profile, run.times.as_mut()) {
                profile.add_to(times).await;
            }
            let advanced = advanced(&run, reports);
            (run, advanced)
        })
    }

    /// Waits for the steps that were submitted → `Advanced`. The refusal of a step is thrown by the next `step`.
    #[wasm_bindgen(unchecked_return_type = "Promise<unknown>")]
    pub fn settle(&self) -> Promise {
        with_run(self.0.clone(), |mut run| async move {
            let reports = run.trainer.settle().await;
            let advanced = advanced(&run, reports);
            (run, advanced)
        })
    }

    /// Skips the batches of the next step.
    #[wasm_bindgen(js_name = skipBatch)]
    pub fn skip_batch(&self) -> JsResult<()> {
        self.change(|run| run.trainer.skip_batch())
    }

    /// Starts to time the kernels of the steps that follow.
    #[wasm_bindgen(js_name = startProfile)]
    pub fn start_profile(&self) -> JsResult<()> {
        self.change(|run| {
            run.times = Some(KernelTimes::default());
            Ok(())
        })
    }

    /// Ends the profile that `startProfile` began → `ProfileReport`.
    #[wasm_bindgen(js_name = finishProfile)]
    pub fn finish_profile(&self) -> JsResult<Report> {
        let mut times = KernelTimes::default();
        self.change(|run| {
            times = run.times.take().unwrap_or_default();
            Ok(())
        })?;
        plain(&times.report())
    }

    /// Checks that the run has data to evaluate on.
    #[wasm_bindgen(js_name = checkEvaluation)]
    pub fn check_evaluation(&self) -> JsResult<()> {
        self.read(|run| run.trainer.check_evaluation())
    }

    /// Returns the mean loss over the validation part → `EvalReport`.
    #[wasm_bindgen(unchecked_return_type = "Promise<unknown>")]
    pub fn evaluate(&self, max_batches: Option<u32>) -> Promise {
        with_run(self.0.clone(), move |run| async move {
            run.answers.clear();
            let report = run.trainer.evaluate(max_batches.map(|n| n as usize)).await;
            (
                run,
                report.map_err(thrown).and_then(|report| plain(&report)),
            )
        })
    }

    /// Sets the learning rate by hand; undefined returns control to the schedule.
    #[wasm_bindgen(js_name = setLearningRate)]
    pub fn set_learning_rate(&self, rate: Option<f64>) -> JsResult<()> {
        self.change(|run| run.trainer.set_learning_rate(rate))
    }

    /// Starts the schedule's decay.
    #[wasm_bindgen(js_name = startDecay)]
    pub fn start_decay(&self) -> JsResult<()> {
        self.change(|run| run.trainer.start_decay())
    }

    /// Returns the planned learning rates of every `stride`-th step from the first, `points` of them.
    #[wasm_bindgen(js_name = previewSchedule)]
    pub fn preview_schedule(&self, points: u32, stride: f64) -> JsResult<Vec<f64>> {
        self.read(|run| {
            let (config, start) = (run.trainer.config(), run.trainer.progress().schedule_start);
            Ok(schedule::preview(
                strided(points, stride),
                config.learning_rate,
                &config.schedule,
                start,
            )
            .collect())
        })
    }

    /// Returns the `SessionInfo`.
    pub fn info(&self) -> JsResult<Report> {
        let info = self.read(|run| {
            let trainer = &run.trainer;
            let dtypes: std::collections::BTreeMap<String, String> = trainer
                .model()
                .parameters()
                .into_iter()
                .map(|p| (p.name, format!("{:?}", p.dtype)))
                .collect();
            Ok(SessionInfo {
                completed_steps: trainer.progress().completed_steps,
                total_steps: trainer.config().steps,
                config: trainer.config().clone(),
                chosen: run.chosen.clone(),
                model: ModelInfo::new(
                    trainer.model().config(),
                    run.assets.tokenizer.as_ref(),
                    "session",
                    |name| {
                        dtypes
                            .get(name)
                            .cloned()
                            .or_else(|| run.files.as_ref()?.dtype(name))
                    },
                ),
                adapter: AdapterInfo::of_run(trainer.config(), trainer.model().config())?,
                base: run
                    .base
                    .as_ref()
                    .map(|base| BaseInfo::new(base, trainer.model().frozen_weights())),
                data_tokens: trainer.dataset().train_tokens(),
                data: trainer.data_report(),
                gpu_bytes: trainer
                    .model()
                    .device()
                    .memory_pool_usage()
                    .map(|usage| usage.bytes_reserved),
                fallbacks: trainer
                    .optim()
                    .fallbacks()
                    .into_iter()
                    .map(String::from)
                    .collect(),
                schedule_start: trainer.progress().schedule_start,
                manual_learning_rate: trainer.progress().manual_learning_rate,
                warnings: trainer.notices().to_vec(),
            })
        })?;
        plain(&info)
    }

    /// Writes the files of a checkpoint of the current state; `adapter` is the name of the GPU adapter.
    pub fn checkpoint(&self, adapter: &str) -> JsResult<FileStream> {
        let environment = Environment::on(&device()?.inner(), adapter);
        let origin = |run: &Run| Origin {
            environment: environment.clone(),
            base: run.base.clone(),
        };
        self.read(|run| checkpoint::write(&run.trainer, &run.assets, &origin(run)))
            .map(FileStream::of)
    }

    /// Writes the model to files for other programs, with the options of `ExportOptions`; `base` are the GGUF files in which a patch
    /// replaces tensors.
    #[wasm_bindgen(js_name = exportModel, unchecked_return_type = "Promise<FileStream>")]
    pub fn export_model(&self, options: Values, base: Vec<JsSource>) -> JsResult<Promise> {
        written(self.read(Run::source)?, options, base)
    }

    /// Returns the `ModelDetails` of the current weights.
    pub fn details(&self) -> JsResult<Report> {
        let details = self.read(|run| Details::of(&run.source()?))?;
        plain(&details)
    }
}

impl Session {
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Run) -> Result<T>) -> JsResult<T> {
        let slot = self.0.borrow();
        work(slot.as_ref().ok_or_else(|| thrown(BUSY))?).map_err(thrown)
    }

    fn change(&self, work: impl FnOnce(&mut Run) -> Result<()>) -> JsResult<()> {
        let mut slot = self.0.borrow_mut();
        work(slot.as_mut().ok_or_else(|| thrown(BUSY))?).map_err(thrown)
    }
}
