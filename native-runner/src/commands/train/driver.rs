//! Loop around `Trainer::step`: saves, evaluations, signals, and the end of a run.

use std::path::Path;

use futures_lite::future::block_on;
use serde_json::json;
use tabtune::error::Word;
use tabtune::gpu::profile::KernelTimes;
use tabtune::state::Evaluation;
use tabtune::train::{EvalReport, StepReport};
use tabtune::word;

use super::super::{Outcome, profile};
use super::Run;
use crate::args::TrainArgs;
use crate::error::{Result, RunError};
use crate::output::Output;
use crate::place::Folder;
use crate::progress::Progress;
use crate::signals::{Signal, Signals};

/// State of the loop around the steps.
pub(super) struct Driver<'a> {
    pub run: Run,
    pub args: &'a TrainArgs,
    pub output: &'a Output,
    pub place: Option<Folder>,
    pub signals: Signals,
    pub progress: Progress,
    pub times: Option<KernelTimes>,
    pub first: u64,
    pub last: u64,
    /// Step of the newest checkpoint that this process has saved.
    pub saved: Option<u64>,
    pub best: Option<Best>,
}

/// Folder of the checkpoint with the lowest evaluation loss.
pub(super) struct Best {
    place: Folder,
    /// Evaluation of the checkpoint in the folder.
    evaluation: Option<Evaluation>,
}

impl Best {
    /// Claims the folder and reads the evaluation of a checkpoint in it.
    ///
    /// # Errors
    /// Errors of [`Folder::for_checkpoints`] and [`Folder::evaluation`].
    pub fn claim(path: &Path) -> Result<Self> {
        let place = Folder::for_checkpoints(path)?;
        Ok(Self { evaluation: place.evaluation()?, place })
    }

    /// Returns the folder.
    pub fn place(&self) -> &Folder {
        &self.place
    }
}

impl Driver<'_> {
    fn step(&self) -> u64 {
        self.run.trainer.progress().completed_steps
    }

    /// Trains to the end. However the steps end, the last complete one is saved.
    ///
    /// # Errors
    /// The first error that ends the training, or that of the last save.
    pub fn run(mut self) -> Result<Outcome> {
        let ended = self.train();
        self.progress.end();
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                self.rescue(&error);
                return Err(error);
            }
        };
        if let Some(times) = &self.times {
            profile::print(&times.report(), self.output)?;
        }
        self.finish(ended)
    }

    /// Trains to the last step, or until a signal comes, which is returned.
    fn train(&mut self) -> Result<Option<Signal>> {
        if self.first >= self.last {
            // A resume has already warned about a run that has all its steps.
            if self.first < self.run.trainer.config().steps {
                let message = format!("the run has made {} steps, and {} are asked for: nothing is left to do", self.first, self.last);
                self.tell_warning(word!("run.nothing-left"), &message)?;
            }
            self.save()?;
            if self.args.eval_every.is_some() {
                self.evaluate()?;
            }
            return Ok(None);
        }
        while self.step() < self.last {
            let signal = self.signals.taken();
            if signal.is_some() {
                self.settle()?;
                self.save()?;
                return Ok(signal);
            }
            // The first step compiles kernels; it is timed only if it is the only one.
            let timed = self.step() > self.first || self.first + 1 == self.last;
            let reports = profile::advance(&mut self.run.trainer, self.times.as_mut().filter(|_| timed))?;
            self.tell(&reports)?;
            let step = self.step();
            let ends = step == self.last;
            let due = |every: Option<u64>| every.is_some_and(|n| step.is_multiple_of(n));
            let evaluates = due(self.args.eval_every) || (ends && self.args.eval_every.is_some());
            let saves = ends || due(self.args.save_every);
            if saves || evaluates {
                self.settle()?;
                if self.step() < step {
                    // One of the last steps was refused; the next call reports which.
                    continue;
                }
            }
            // Saved first, so that a failing evaluation does not lose a step.
            if saves {
                self.save()?;
            }
            if evaluates {
                self.evaluate()?;
            }
        }
        Ok(None)
    }

    /// Waits for the submitted steps and reports them.
    fn settle(&mut self) -> Result<()> {
        let reports = block_on(self.run.trainer.settle())?;
        self.tell(&reports)
    }

    /// Reports each step in one line.
    fn tell(&self, reports: &[StepReport]) -> Result<()> {
        for report in reports {
            self.output.json_line(report)?;
            self.progress.step(report.step, shown(report));
        }
        Ok(())
    }

    fn tell_warning(&self, code: Word, message: &str) -> Result<()> {
        let line = json!({ "warning": { "code": code.text(), "message": message } });
        self.progress.suspend(|| self.output.line(&line, || format!("warning: {message} [{}]", code.text())))
    }

    /// Saves the last complete step, unless it is saved already.
    fn save(&mut self) -> Result<()> {
        let Some(place) = self.place.as_ref().filter(|_| self.saved != Some(self.run.trainer.progress().completed_steps)) else {
            return Ok(());
        };
        let mut stream = tabtune::checkpoint::write(&self.run.trainer, &self.run.assets, &self.run.origin)?;
        place.write(&mut stream)?;
        self.saved = Some(self.step());
        Ok(())
    }

    /// Evaluates the model. A failed evaluation is only reported, and the run continues. The result is added to the checkpoint of this step, and the
    /// best step is kept.
    fn evaluate(&mut self) -> Result<()> {
        let step = self.step();
        let report = match block_on(self.run.trainer.evaluate(None)) {
            Ok(report) => report,
            Err(error) => {
                return self
                    .tell_warning(word!("run.evaluation"), &format!("step {step}: the evaluation failed: {error} [{}]", error.code()));
            }
        };
        let line = json!({ "step": step, "eval_loss": report.loss, "eval_accuracy": report.accuracy });
        let EvalReport { loss, accuracy, .. } = report;
        let text = || format!("step {step}: evaluation loss {loss:.4}, accuracy {:.2} %", 100.0 * accuracy);
        self.progress.suspend(|| self.output.line(&line, text))?;
        let Some(evaluation) = self.run.trainer.progress().evaluation else { return Ok(()) };
        if let Some(place) = self.place.as_ref().filter(|_| self.saved == Some(step)) {
            place.change_manifest(|saved| tabtune::checkpoint::with_evaluation(saved, evaluation))?;
        }
        let Some(best) = &mut self.best else { return Ok(()) };
        if best.evaluation.is_some_and(|best| best.data_digest == evaluation.data_digest && best.loss <= evaluation.loss) {
            return Ok(());
        }
        let mut stream = tabtune::checkpoint::write(&self.run.trainer, &self.run.assets, &self.run.origin)?;
        best.place.write(&mut stream)?;
        best.evaluation = Some(evaluation);
        let folder = best.place.path().display().to_string();
        let line = json!({ "step": step, "best": report.loss, "checkpoint": folder });
        self.progress.suspend(|| self.output.line(&line, || format!("step {step}: the best so far, kept in {folder}")))
    }

    /// Saves the last complete step after an error. The error is the one to report; the outcome of the save goes to stderr.
    fn rescue(&mut self, error: &RunError) {
        // With gradient release the parameters changed before the norm of their gradients was known.
        let changed = matches!(error, RunError::Tabtune(tabtune::Error::NonFiniteReleased { .. }));
        if changed || self.place.is_none() {
            return;
        }
        // Collects reports of the steps before the failed one. Their lines are not printed: stdout may be the cause of the error.
        let settled = block_on(self.run.trainer.settle()).map(drop).map_err(RunError::from);
        if settled.is_ok() && self.step() == self.saved.unwrap_or(self.first) {
            return;
        }
        match settled.and_then(|()| self.save()) {
            Ok(()) => self.progress.note(&format!("step {} is saved in {}", self.step(), self.folder().unwrap_or_default())),
            Err(error) => {
                let kept = self
                    .saved
                    .zip(self.folder())
                    .map_or("no step of this run is saved".to_string(), |(step, folder)| format!("step {step} is saved in {folder}"));
                log::warn!("the steps since {} could not be saved, {kept}: {error} [{}]", self.saved.unwrap_or(self.first), error.code());
            }
        }
    }

    fn folder(&self) -> Option<String> {
        self.place.as_ref().filter(|_| self.saved.is_some()).map(|place| place.path().display().to_string())
    }

    fn finish(&self, ended: Option<Signal>) -> Result<Outcome> {
        let (step, checkpoint) = (self.step(), self.folder());
        let mut line = json!({ "done": ended.is_none(), "step": step, "checkpoint": checkpoint });
        if let Some(signal) = ended {
            line["signal"] = json!(signal.name);
        }
        self.output.line(&line, || {
            let how = ended.map_or_else(|| format!("done at step {step}"), |signal| format!("{} at step {step}", signal.name));
            match &checkpoint {
                Some(folder) => format!("{how}; checkpoint in {folder}"),
                None => format!("{how}; nothing saved (no --out)"),
            }
        })?;
        Ok(ended.map_or(Outcome::Good, |signal| Outcome::Status(signal.status())))
    }
}

fn shown(report: &StepReport) -> String {
    let rate = report.tokens as f64 / report.secs.max(1e-9);
    let StepReport { epoch, loss, grad_norm, learning_rate, .. } = report;
    format!("epoch {epoch:.2} · loss {loss:.4} · norm {grad_norm:.3} · rate {learning_rate:.3e} · {rate:.0} tokens/s")
}
