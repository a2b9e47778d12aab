//! The trainer: batch → loss → gradients → norm → finite? → clip → rate → update.

use std::cell::Cell;

use burn::tensor::Tensor;

use super::backward::{NamedGradients, accumulate};
use super::evaluate::evaluate;
use super::progress::Progress;
use super::rate::check_rate;
use super::report::{EvalReport, Notice, StepReport};
use crate::bundle::StreamValues;
use crate::config::TrainConfig;
use crate::data::{Batch, Dataset, Loader, LoaderState};
use crate::error::{Error, Fault, Result};
use crate::gpu::transfer::settled;
use crate::gpu::{Buffer, StartedRead, read_f32};
use crate::interrupt::Interrupt;
use crate::model::{Model, ParamMap};
use crate::ops::Moment;
use crate::optim::{Optim, clip_factor, sum_of_squares};
use crate::platform::Stopwatch;
use crate::schedule;

/// A model in training with everything its next step depends on.
pub struct Trainer {
    /// `None` only while an update replaces its parameters.
    model: Option<Model>,
    dataset: Dataset,
    loader: Loader,
    optim: Optim,
    config: TrainConfig,
    progress: Progress,
    notices: Vec<Notice>,
    interrupt: Interrupt,
    /// Written by evaluations, which change nothing else.
    evaluation_loss: Cell<Option<f64>>,
}

impl Trainer {
    /// A run from its first step. Refuses invalid settings, data too short for one batch, a sequence beyond the model's context, groups that
    /// do not cover the model, and a document mask where the ends of documents are not known.
    pub fn new(model: Model, dataset: Dataset, config: TrainConfig) -> Result<Self> {
        config.validate()?;
        let progress = Progress { schedule_start: schedule::resolve_start(&config.schedule, None, 0), ..Progress::default() };
        let loader = Loader::ordered(&dataset, config.batch_size, config.seq_len, config.seed, config.data_order)?;
        Self::assemble(model, dataset, loader, config, progress)
    }

    /// A run that continues: `loader` and `progress` from a checkpoint. The optimizer's state is loaded by the caller through
    /// [`Trainer::optim_mut`]. Refuses what [`Trainer::new`] refuses, and a rate set by hand that these settings do not allow.
    pub fn resume(model: Model, dataset: Dataset, loader: LoaderState, config: TrainConfig, progress: Progress) -> Result<Self> {
        config.validate()?;
        if let Some(rate) = progress.manual_learning_rate {
            check_rate(&config, "manual_learning_rate", rate)?;
        }
        let mut fresh = Loader::ordered(&dataset, config.batch_size, config.seq_len, config.seed, config.data_order)?;
        fresh.restore(loader)?;
        Self::assemble(model, dataset, fresh, config, progress)
    }

    fn assemble(model: Model, mut dataset: Dataset, loader: Loader, config: TrainConfig, progress: Progress) -> Result<Self> {
        dataset.mask_documents(config.document_mask)?;
        let max = model.config().max_position_embeddings;
        if config.seq_len > max {
            return Err(Error::ContextExceeded { found: config.seq_len, max });
        }
        let optim = Optim::new(&config, &model.parameters())?;
        let notices = Notice::of_adapter(&model);
        Ok(Self {
            model: Some(model),
            dataset,
            loader,
            optim,
            config,
            progress,
            notices,
            interrupt: Interrupt::none(),
            evaluation_loss: Cell::new(progress.evaluation_loss),
        })
    }

    /// The interrupt that steps and evaluations check between micro-batches and batches: a call that is asked to end gives
    /// [`Error::Aborted`] and changes nothing.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// The notices since the run was created.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Adds to [`Self::notices`].
    pub fn add_notices(&mut self, notices: Vec<Notice>) {
        self.notices.extend(notices);
    }

    /// The model in its current state.
    pub fn model(&self) -> &Model {
        self.model.as_ref().expect("the model is away only inside update")
    }

    /// The data.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// The settings.
    pub fn config(&self) -> &TrainConfig {
        &self.config
    }

    /// The optimizer with its state.
    pub fn optim(&self) -> &Optim {
        &self.optim
    }

    /// The optimizer, to load a saved state into it.
    pub fn optim_mut(&mut self) -> &mut Optim {
        &mut self.optim
    }

    /// The position in the data order.
    pub fn loader_state(&self) -> LoaderState {
        self.loader.state()
    }

    /// The progress of the run.
    pub fn progress(&self) -> Progress {
        Progress { evaluation_loss: self.evaluation_loss.get(), ..self.progress }
    }

    /// Waits until everything submitted before is done, by reading one element of a parameter.
    pub async fn confirm(&self) -> Result<()> {
        match self.model().stream_tensors().pop().map(|tensor| tensor.values) {
            Some(StreamValues::Device(tensor)) => settled(tensor).await,
            _ => Ok(()),
        }
    }

    /// The learning rate of `step`, counted from 1.
    pub fn learning_rate(&self, step: u64) -> f64 {
        let planned = schedule::learning_rate(step, self.config.learning_rate, &self.config.schedule, self.progress.schedule_start);
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

    /// Starts the schedule's decay or annealing now; one that has begun continues. A schedule that cannot decay is an error.
    pub fn start_decay(&mut self) -> Result<()> {
        self.progress.schedule_start =
            schedule::trigger(&mut self.config.schedule, self.progress.schedule_start, self.progress.completed_steps)?;
        Ok(())
    }

    /// One optimizer step. A loss or norm that is not finite is an error and changes nothing, the data order included: the next call would
    /// get the same batches again, unless [`Trainer::skip_batch`] skips them. With gradient release a norm that is not finite is found when
    /// the parameters have changed, and the run should go on from its checkpoint. A step that is asked to end between its micro-batches is given
    /// up without a trace; with gradient release it is finished.
    pub async fn step(&mut self) -> Result<StepReport> {
        self.interrupt.check()?;
        let before = self.loader.state();
        let batches = self.next_batches();
        let outcome = self.step_on(&batches).await;
        if outcome.is_err() {
            self.loader.restore(before)?;
        }
        outcome
    }

    /// Skips the batches of the next step, without training on them or counting a step. Refused with gradient release: what a step
    /// without a finite norm has changed cannot be undone.
    pub fn skip_batch(&mut self) -> Result<()> {
        if self.config.gradient_release {
            return Err(Error::InvalidConfig(vec![Fault::new("gradient_release", "false where steps are skipped", true)]));
        }
        self.next_batches();
        Ok(())
    }

    /// Takes the batches of one step; the data order advances.
    fn next_batches(&mut self) -> Vec<Batch> {
        (0..self.config.gradient_accumulation_steps).map(|_| self.loader.next(&self.dataset)).collect()
    }

    /// One optimizer step on `batches` instead of the loader's next: one batch with gradient release.
    pub async fn step_on(&mut self, batches: &[Batch]) -> Result<StepReport> {
        let clock = Stopwatch::start();
        let step = self.progress.completed_steps + 1;
        let learning_rate = self.learning_rate(step);
        let finite = |tensor, value: f64| if value.is_finite() { Ok(()) } else { Err(Error::NonFinite { step, tensor, value }) };
        let tokens = batches.iter().map(|batch| batch.counted() as u64).sum();
        let (loss, grad_norm) = match batches {
            [batch] if self.config.gradient_release => {
                let (loss, grad_norm) = self.released_step(batch, step, learning_rate).await?;
                if !grad_norm.is_finite() {
                    return Err(Error::NonFiniteReleased { step, value: grad_norm });
                }
                (loss, grad_norm)
            }
            _ => {
                let (sums, loss, grad_norm) = self.gradients(batches).await?;
                finite("loss", loss)?;
                finite("grad_norm", grad_norm)?;
                self.update(sums, learning_rate, clip_factor(grad_norm, self.config.max_grad_norm));
                (loss, grad_norm)
            }
        };
        self.progress.completed_steps = step;
        self.progress.tokens = self.progress.tokens.saturating_add(tokens);
        self.progress.last_loss = Some(loss);
        Ok(StepReport { step, loss, grad_norm, learning_rate, tokens, secs: clock.secs() })
    }

    /// The gradients of `batches`, their mean loss and norm.
    async fn gradients(&self, batches: &[Batch]) -> Result<(NamedGradients, f64, f64)> {
        let tokens: usize = batches.iter().map(Batch::counted).sum();
        let scale = 1.0 / tokens.max(1) as f64;
        let optim = &self.optim;
        let frozen = |name: &str| optim.frozen(name);
        let mut sums = NamedGradients::new();
        // A micro-batch is submitted when the one before the last is done: the device always has work, and a step that is abandoned leaves
        // no more than one running.
        let mut losses = Vec::with_capacity(batches.len());
        let (mut reading, mut last): (Option<StartedRead>, _) = (None, None);
        for (index, batch) in batches.iter().enumerate() {
            let moment = Moment { step: self.progress.completed_steps + 1, micro_batch: index as u32 };
            let submitted = accumulate(self.model(), batch, Some(moment), scale, self.config.gradient_checkpointing, &frozen, &mut sums);
            let before = reading.take();
            if let Ok(loss) = &submitted
                && index + 1 < batches.len()
            {
                reading = Some(StartedRead::of(loss.clone()).await);
            }
            if let Some(before) = before {
                losses.extend(before.values().await?);
            }
            let paused = if losses.is_empty() { Ok(()) } else { self.interrupt.pause().await };
            if let Some(read) = reading.take_if(|_| paused.is_err()) {
                // The buffer must be kept until the read of it has completed.
                read.values().await?;
            }
            paused?;
            last = Some(submitted?);
        }
        let flat = sums.values().map(|g| (Buffer::from(g.clone()), g.dims()[0])).collect();
        let last = last.expect("a step has a micro-batch");
        let frozen_all = Tensor::zeros_like(&last);
        let square_sum = sum_of_squares(flat)?.unwrap_or(frozen_all);
        let values = read_f32(Tensor::cat(vec![last, square_sum], 0)).await?;
        let (square_sum, last) = values.split_last().expect("the norm was read");
        losses.extend(last);
        let loss = losses.iter().map(|&loss| f64::from(loss)).sum::<f64>() * scale;
        Ok((sums, loss, f64::from(*square_sum).sqrt()))
    }

    /// Updates the parameters that have a gradient.
    pub(super) fn update(&mut self, gradients: NamedGradients, learning_rate: f64, clip: f32) {
        struct Update<'a> {
            optim: &'a mut Optim,
            gradients: NamedGradients,
            learning_rate: f64,
            clip: f32,
        }
        impl ParamMap for Update<'_> {
            fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
                let gradient = self.gradients.remove(name).map(|g| g.reshape(tensor.dims()));
                let stepped = self.optim.step_param(name, tensor, gradient, self.learning_rate, self.clip);
                stepped.expect("the optimizer was made for this model's parameters, and a gradient has its parameter's shape")
            }
        }
        let model = self.model.take().expect("the model is away only inside update");
        self.model = Some(model.map(&mut Update { optim: &mut self.optim, gradients, learning_rate, clip }));
    }

    /// Mean loss over at most `max_batches` of the validation part. Refuses if nothing was kept for validation.
    pub async fn evaluate(&self, max_batches: Option<usize>) -> Result<EvalReport> {
        let batches = self.dataset.validation_batches(self.config.batch_size, self.config.seq_len);
        let report = evaluate(self.model(), batches.take(max_batches.unwrap_or(usize::MAX)), &self.interrupt).await?;
        if max_batches.is_none() {
            self.evaluation_loss.set(Some(report.loss).filter(|loss| loss.is_finite()));
        }
        Ok(report)
    }
}
