//! Calls of a run's drivers in the packages of this workspace: the terminal program, the browser's core, tests.

use super::report::{Notice, StepReport};
use super::trainer::Trainer;
use crate::data::{Batch, DataReport, Dataset, LoaderState, Preview};
use crate::error::{Error, Refusal, Result, word};
use crate::gpu::transfer::settled;
use crate::optim::Optim;
use crate::tokenizer::Tokenizer;

#[doc(hidden)]
impl Trainer {
    /// Adds to [`Self::notices`].
    pub fn add_notices(&mut self, notices: Vec<Notice>) {
        self.notices.extend(notices);
    }

    /// Warns if a model that was trained before passes over its data so often that it memorises them.
    pub fn warn_of_repeats(&mut self) {
        const MANY: f64 = 5.0;
        let passes = self.loader.passes();
        if passes > MANY {
            let passes = format!("{passes:.0}");
            let notice = Notice::filled(word!("run.epochs"), ["", "", &passes]);
            self.notices.push(notice);
        }
    }

    /// Returns the data.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Returns the report on the data: what was read, left out or changed on the way to the examples, as the run learns them.
    pub fn data_report(&self) -> DataReport {
        self.dataset.report(&self.config, &self.loader)
    }

    /// Returns the first `show` training examples, token by token, as the run learns them. Errors are the tokenizer's.
    pub fn data_preview(&self, tokenizer: &Tokenizer, show: usize) -> Result<Vec<Preview>> {
        self.dataset.preview(&self.config, tokenizer, show)
    }

    /// Returns the optimizer with its state.
    pub fn optim(&self) -> &Optim {
        &self.optim
    }

    /// Returns the optimizer, for loading a saved state into it.
    pub fn optim_mut(&mut self) -> &mut Optim {
        self.forget_recording();
        &mut self.optim
    }

    /// Returns the position in the data order.
    pub fn loader_state(&self) -> LoaderState {
        self.loader.state()
    }

    /// Waits until all submitted work is done, by reading one element of a parameter.
    pub async fn confirm(&self) -> Result<()> {
        let last = self.model().stream_tensors().pop();
        match last.as_ref().and_then(|tensor| tensor.on_device()) {
            Some(flat) => settled(flat.first().clone()).await,
            None => Ok(()),
        }
    }

    /// Runs [`Trainer::advance`] on `batches` instead of the loader's next.
    pub async fn advance_on(&mut self, batches: &[Batch]) -> Result<Vec<StepReport>> {
        self.refused()?;
        self.advance_from(batches, self.loader.state()).await
    }

    /// Limits the steps that wait on the device to two or three, whatever `report_every` says: each is followed by a read of one value. For
    /// drivers that have no other way to wait.
    pub fn pace(&mut self) {
        self.outstanding.paced = true;
    }

    /// Refuses a state that a report may take back: progress and data order count steps whose reports are still on the device
    /// ([`Error::Busy`]).
    pub fn check_settled(&self) -> Result<()> {
        if self.outstanding.len() == 0 {
            Ok(())
        } else {
            Err(Error::Busy {
                doing: "steps whose reports are still on the device",
            })
        }
    }

    /// Runs one optimizer step on `batches` instead of the loader's next; with gradient release on one batch.
    pub async fn step_on(&mut self, batches: &[Batch]) -> Result<StepReport> {
        self.settle().await?;
        let reports = self.advance_on(batches).await?;
        self.last_of(reports).await
    }

    /// Checks that [`Trainer::evaluate`] has something to evaluate on, and at least one sequence if it is a text.
    ///
    /// # Errors
    /// `data.no-validation`.
    pub fn check_evaluation(&self) -> Result<()> {
        let (need, have) = (
            self.config.seq_len.saturating_add(1),
            self.dataset.validation_tokens(),
        );
        let some = self
            .dataset
            .validation_batches(self.config.batch_size, self.config.seq_len)
            .next()
            .is_some();
        if some && (have >= need || self.dataset.has_examples()) {
            return Ok(());
        }
        let refusal = Refusal::new(word!("data.no-validation"));
        Err(match self.dataset.evaluated_apart() {
            Some(files) if self.dataset.evaluates_examples() => refusal
                .of(&files)
                .expected(format!(
                    "a row that teaches one of its first {} targets",
                    self.config.seq_len
                ))
                .found("none")
                .hint("give longer sequences, or other data for evaluation"),
            Some(files) => refusal
                .of(&files)
                .expected(format!("at least {need} tokens to evaluate"))
                .found(have)
                .hint("give more data for evaluation, or shorter sequences"),
            None => refusal
                .expected(format!("at least {need} tokens kept for evaluation"))
                .found(have)
                .hint("raise validation_fraction, or do not evaluate"),
        }
        .into())
    }
}
