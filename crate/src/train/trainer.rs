//! The trainer: batch → loss → gradients → norm → finite? → clip → rate → update.

use std::cell::{Cell, RefCell};

use super::block_coordinate::{BlockCoordinate, BlockParameter};
use super::evaluate::evaluate;
use super::outstanding::Outstanding;
use super::progress::Progress;
use super::rate::check_rate;
use super::recorded_step::Repeats;
use super::report::{EvalReport, Notice, StepReport};
use crate::config::TrainConfig;
use crate::data::{Batch, Dataset, Loader, LoaderState};
use crate::error::{Error, Result};
use crate::formats::Digest;
use crate::interrupt::Interrupt;
use crate::model::Model;
use crate::optim::Optim;
use crate::parameters::whole_name;
use crate::schedule;
use crate::state::Evaluation;

/// Model in training, with everything that its next step depends on ([example](crate)).
pub struct Trainer {
    /// `None` only while an update replaces its parameters.
    pub(super) model: Option<Model>,
    pub(super) dataset: Dataset,
    pub(super) loader: Loader,
    pub(super) optim: Optim,
    pub(super) config: TrainConfig,
    pub(super) progress: Progress,
    pub(super) outstanding: Outstanding,
    /// In a cell, because evaluations take its memory and change nothing else.
    pub(super) repeats: RefCell<Repeats>,
    /// Selection of the blocks that train, if only some do in a step.
    pub(super) block_coordinate: Option<BlockCoordinate>,
    pub(super) notices: Vec<Notice>,
    pub(super) interrupt: Interrupt,
    /// In a cell, because evaluations write it and change nothing else.
    evaluation: Cell<Option<Evaluation>>,
}

impl Trainer {
    /// Starts a run at its first step. Refuses invalid settings, data too short for one batch, a sequence beyond the model's context,
    /// groups that do not cover the model, more blocks at a time than it has, a document mask if the ends of documents are not known, and
    /// rates that are 0 in all steps.
    pub fn new(model: Model, dataset: Dataset, config: TrainConfig) -> Result<Self> {
        config.validate()?;
        let progress = Progress {
            schedule_start: schedule::resolve_start(&config.schedule, None, 0),
            ..Progress::default()
        };
        let loader = Loader::for_run(&dataset, &config)?;
        Self::assemble(model, dataset, loader, config, progress)
    }

    /// Continues a run with the `loader` and `progress` of a checkpoint. The caller loads the optimizer's state through
    /// [`Trainer::optim_mut`]. Refuses what [`Trainer::new`] refuses, and a rate set by hand that these settings do not allow.
    #[doc(hidden)]
    pub fn resume(
        model: Model,
        dataset: Dataset,
        loader: LoaderState,
        config: TrainConfig,
        progress: Progress,
    ) -> Result<Self> {
        config.validate()?;
        if let Some(rate) = progress.manual_learning_rate {
            check_rate(&config, "manual_learning_rate", rate)?;
        }
        let mut fresh = Loader::for_run(&dataset, &config)?;
        fresh.restore(&dataset, loader)?;
        Self::assemble(model, dataset, fresh, config, progress)
    }

    fn assemble(
        model: Model,
        mut dataset: Dataset,
        loader: Loader,
        config: TrainConfig,
        progress: Progress,
    ) -> Result<Self> {
        dataset.mask_documents(config.document_mask)?;
        dataset.check_vocabulary(model.config().vocab_size)?;
        let max = model.config().max_position_embeddings;
        if config.seq_len > max {
            return Err(Error::ContextExceeded {
                found: config.seq_len,
                max,
            });
        }
        let parameters = model.parameters();
        let optim = Optim::new(&config, &parameters)?;
        let candidates = parameters.iter().filter_map(|info| {
            Some(BlockParameter {
                name: whole_name(&info.name),
                part: model.part(&info.name)?,
                is_vector: info.shape.len() != 2,
            })
        });
        let block_coordinate =
            BlockCoordinate::of_run(&config, candidates, &|name| optim.frozen(name))?;
        let mut notices = Notice::of_adapter(&model);
        notices.extend(Notice::of_schedule(&config, progress)?);
        notices.extend(Notice::of_settings(&config));
        notices.extend(
            dataset
                .warnings(&loader)
                .iter()
                .map(|warning| Notice::of_data(warning, dataset.files())),
        );
        let mut trainer = Self {
            model: Some(model),
            dataset,
            loader,
            optim,
            config,
            progress,
            outstanding: Outstanding::default(),
            repeats: RefCell::default(),
            block_coordinate,
            notices,
            interrupt: Interrupt::none(),
            evaluation: Cell::new(progress.evaluation),
        };
        trainer.rest();
        Ok(trainer)
    }

    /// Sets the interrupt that steps and evaluations check between micro-batches and batches: a call that is asked to end returns
    /// [`Error::Aborted`] and changes nothing.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// The notices since the run was created.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The model in its current state.
    pub fn model(&self) -> &Model {
        self.model
            .as_ref()
            .expect("the model is away only inside update")
    }

    /// The settings.
    pub fn config(&self) -> &TrainConfig {
        &self.config
    }

    /// The progress of the run.
    pub fn progress(&self) -> Progress {
        Progress {
            evaluation: self.evaluation.get(),
            ..self.progress
        }
    }

    /// The learning rate of `step`, counted from 1.
    pub fn learning_rate(&self, step: u64) -> f64 {
        let planned = schedule::learning_rate(
            step,
            self.config.learning_rate,
            &self.config.schedule,
            self.progress.schedule_start,
        );
        self.progress.manual_learning_rate.unwrap_or(planned)
    }

    /// Sets the rate by hand from the next step on; `None` returns control to the schedule. Refuses a rate that some group cannot use.
    pub fn set_learning_rate(&mut self, rate: Option<f64>) -> Result<()> {
        if let Some(rate) = rate {
            check_rate(&self.config, "learning_rate", rate)?;
        }
        self.progress.manual_learning_rate = rate;
        Ok(())
    }

    /// Starts the schedule's decay or annealing; one that has begun continues. Refuses a schedule that cannot decay.
    pub fn start_decay(&mut self) -> Result<()> {
        self.progress.schedule_start = schedule::trigger(
            &mut self.config.schedule,
            self.progress.schedule_start,
            self.progress.completed_steps,
        )?;
        Ok(())
    }

    /// Runs one optimizer step and returns its report. Reports of steps that [`Trainer::advance`] has submitted before are dropped.
    ///
    /// # Errors
    /// A loss or norm that is not finite changes nothing, the data order included: the next call gets the same batches again, unless
    /// [`Trainer::skip_batch`] skips them. With gradient release a norm that is not finite is found only after the parameters have changed,
    /// and the run should continue from its checkpoint. A step that is asked to end between its micro-batches is abandoned without a trace;
    /// with gradient release it is finished.
    pub async fn step(&mut self) -> Result<StepReport> {
        self.settle().await?;
        let reports = self.advance().await?;
        self.last_of(reports).await
    }

    /// Submits one optimizer step and returns the reports that have arrived since the last call: with `report_every` 1 that of this step,
    /// otherwise those of so many steps at once, two steps late. The computation on the device does not depend on it.
    ///
    /// # Errors
    /// The errors of [`Trainer::step`]. A loss or norm that is not finite is known late; parameters, state, data order and progress are
    /// then what they were before that step, whatever was submitted after it.
    pub async fn advance(&mut self) -> Result<Vec<StepReport>> {
        self.interrupt.check()?;
        self.refused()?;
        let before = self.loader.state();
        let batches = self.next_batches()?;
        self.advance_from(&batches, before).await
    }

    /// Waits for the steps that were submitted and returns the reports of those that were taken. A refusal is the error of the next call
    /// that would submit a step; progress and data order are then already those before the refused step.
    pub async fn settle(&mut self) -> Result<Vec<StepReport>> {
        self.collect(true).await
    }

    /// Skips the batches of the next step, without training on them or counting a step. Refused with gradient release: the changes of a
    /// step without a finite norm cannot be undone.
    pub fn skip_batch(&mut self) -> Result<()> {
        if self.config.gradient_release {
            return Err(Error::invalid(
                "gradient_release",
                "false where steps are skipped",
                true,
            ));
        }
        self.next_batches().map(drop)
    }

    /// Skips the batches of steps that were made before this run.
    pub(crate) fn skip_made(&mut self, steps: u64) -> Result<()> {
        for _ in 0..steps {
            self.next_batches()?;
        }
        Ok(())
    }

    /// Takes the batches of one step; the data order advances.
    fn next_batches(&mut self) -> Result<Vec<Batch>> {
        let before = self.loader.state();
        let batches: Result<_> = (0..self.config.gradient_accumulation_steps)
            .map(|_| self.loader.next(&self.dataset))
            .collect();
        if batches.is_err() {
            self.loader.restore(&self.dataset, before)?;
        }
        batches
    }

    /// The mean loss over at most `max_batches` of the validation part. Refused if nothing was kept for validation.
    pub async fn evaluate(&self, max_batches: Option<usize>) -> Result<EvalReport> {
        self.forget_recording();
        let batches = self
            .dataset
            .validation_batches(self.config.batch_size, self.config.seq_len);
        let report = evaluate(
            self.model(),
            batches.take(max_batches.unwrap_or(usize::MAX)),
            &self.interrupt,
        )
        .await?;
        if max_batches.is_none() {
            let step = self.progress.completed_steps;
            let of = |data_digest| Evaluation {
                loss: report.loss,
                step,
                data_digest,
            };
            self.evaluation
                .set(Digest::from_hex(&self.dataset.evaluated_digest()).map(of));
        }
        Ok(report)
    }
}
