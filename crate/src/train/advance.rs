//! Submits steps, and collects their reports.

use burn::tensor::Tensor;

use super::backward::{NamedGradients, accumulate};
use super::outstanding::{Before, Collected, Submitted};
use super::repeat::Submit;
use super::report::StepReport;
use super::trainer::Trainer;
use crate::data::{Batch, LoaderState};
use crate::error::{Error, Result};
use crate::gpu::StartedRead;
use crate::ops::DropoutStep;
use crate::platform::Stopwatch;

impl Trainer {
    /// Runs a step on `batches`, before which the loader was at `loader`, and returns the reports that have arrived.
    pub(super) async fn advance_from(
        &mut self,
        batches: &[Batch],
        loader: LoaderState,
    ) -> Result<Vec<StepReport>> {
        let mut reports = if self.outstanding.takes(batches.len()) {
            Vec::new()
        } else {
            self.settle().await?
        };
        // After a refusal the loader has already gone back, further than to `loader`.
        self.refused()?;
        match self.submit(batches, loader.clone()).await {
            Ok(Some(report)) => {
                self.rest();
                return Ok(vec![report]);
            }
            Ok(None) => (),
            Err(error) => {
                self.loader.restore(&self.dataset, loader)?;
                return Err(error);
            }
        }
        reports.extend(self.collect(self.turn_ends()).await?);
        self.rest();
        if reports.is_empty() {
            self.refused()?;
        }
        Ok(reports)
    }

    /// Returns the error of a refused step that has not been reported yet.
    pub(super) fn refused(&mut self) -> Result<()> {
        self.outstanding.failed.take().map_or(Ok(()), Err)
    }

    /// Returns the report of the step that was submitted last.
    pub(super) async fn last_of(&mut self, mut reports: Vec<StepReport>) -> Result<StepReport> {
        reports.extend(self.settle().await?);
        self.refused()?;
        Ok(reports.pop().expect("a step that was taken has a report"))
    }

    /// Submits a step. With gradient release the step is then done, and its report is returned.
    async fn submit(
        &mut self,
        batches: &[Batch],
        loader: LoaderState,
    ) -> Result<Option<StepReport>> {
        let clock = Stopwatch::start();
        let (step, epoch) = (self.progress.completed_steps + 1, self.loader.epochs());
        let learning_rate = self.learning_rate(step);
        let tokens = batches.iter().map(|batch| batch.counted() as u64).sum();
        let counted = self.progress.tokens.saturating_add(tokens);
        if let [batch] = batches
            && self.config.gradient_release
        {
            let (loss, grad_norm) = self.released_step(batch, step, learning_rate).await?;
            if !grad_norm.is_finite() {
                return Err(Error::NonFiniteReleased {
                    step,
                    value: grad_norm,
                });
            }
            (
                self.progress.completed_steps,
                self.progress.tokens,
                self.progress.last_loss,
            ) = (step, counted, Some(loss));
            return Ok(Some(StepReport {
                step,
                epoch,
                loss,
                grad_norm,
                learning_rate,
                tokens,
                secs: clock.secs(),
            }));
        }
        let before = Before {
            loader,
            tokens: self.progress.tokens,
            state_steps: self.optim.state_steps(),
        };
        let scale = 1.0 / tokens.max(1) as f64;
        let partials = self
            .submit_step(&Submit {
                batches,
                step,
                learning_rate,
                scale,
            })
            .await?;
        self.outstanding.submitted(
            Submitted {
                step,
                epoch,
                scale,
                tokens,
                learning_rate,
                before,
                clock,
            },
            batches.len(),
            partials,
        );
        (self.progress.completed_steps, self.progress.tokens) = (step, counted);
        Ok(None)
    }

    /// Returns the reports that have arrived; with `all`, those of every step. If a step was refused, goes back to before it and keeps its
    /// error.
    pub(super) async fn collect(&mut self, all: bool) -> Result<Vec<StepReport>> {
        let Collected { reports, refused } = self
            .outstanding
            .collect(self.config.report_every, all)
            .await?;
        if let Some(report) = reports.last() {
            self.progress.last_loss = Some(report.loss);
        }
        if let Some((before, step, error)) = refused {
            self.loader.restore(&self.dataset, before.loader)?;
            self.optim.go_back(&before.state_steps);
            // The next step gets a new gate.
            self.forget_recording();
            (self.progress.completed_steps, self.progress.tokens) = (step - 1, before.tokens);
            self.rest();
            self.outstanding.failed = Some(error);
        }
        Ok(reports)
    }

    /// Returns the gradients of `batches`, and the sum of losses of each.
    pub(super) async fn gradients(
        &self,
        batches: &[Batch],
    ) -> Result<(NamedGradients, Vec<Tensor<1>>)> {
        let tokens: usize = batches.iter().map(Batch::counted).sum();
        let scale = 1.0 / tokens.max(1) as f64;
        let optim = &self.optim;
        let frozen = |name: &str| optim.frozen(name);
        let mut sums = NamedGradients::new();
        // A micro-batch is submitted once the last but one is done: the device always has work, and a step that is abandoned leaves at most
        // one running.
        let mut losses = Vec::with_capacity(batches.len());
        let mut reading: Option<StartedRead> = None;
        for (index, batch) in batches.iter().enumerate() {
            let dropout_step = DropoutStep {
                step: self.progress.completed_steps + 1,
                micro_batch: index as u32,
            };
            let submitted = accumulate(
                self.model(),
                batch,
                Some(dropout_step),
                scale,
                self.config.gradient_checkpointing,
                &frozen,
                &mut sums,
            );
            let before = reading.take();
            if let Ok(loss) = &submitted
                && index + 1 < batches.len()
            {
                reading = Some(StartedRead::of(loss.clone()).await);
            }
            let paused = match before {
                Some(before) => {
                    before.values().await?;
                    self.interrupt.pause().await
                }
                None => Ok(()),
            };
            if let Some(read) = reading.take_if(|_| paused.is_err()) {
                // The buffer must be kept until its read has completed.
                read.values().await?;
            }
            paused?;
            losses.push(submitted?);
        }
        Ok((sums, losses))
    }
}
