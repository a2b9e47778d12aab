//! Loop around `Trainer::step`: saves, evaluations, signals, and the end of a run.

use serde_json::json;
use tabtune::error::Word;
use tabtune::gpu::profile::KernelTimes;
use tabtune::interrupt::Interrupt;
use tabtune::train::{EvalReport, Notice, StepReport};
use tabtune::word;

use super::super::{Outcome, profile};
use super::Run;
use super::best::Best;
use super::device_losses::Losses;
use crate::args::TrainArgs;
use crate::error::{Result, RunError};
use crate::output::{Output, warn, warning_line};
use crate::place::Folder;
use crate::progress::Progress;
use crate::signals::{Signal, Signals};
use crate::waits::block_on;

/// State of the loop around the steps.
pub(super) struct Driver<'a> {
    pub args: &'a TrainArgs,
    pub output: &'a Output,
    pub place: Option<Folder>,
    pub signals: Signals,
    pub progress: Progress,
    pub times: Option<KernelTimes>,
    pub first: u64,
    pub last: u64,
    /// Last step that was reported.
    pub told: u64,
    /// Step of the last evaluation that was reported.
    pub evaluated: Option<u64>,
    /// Step of the newest checkpoint that this process has saved.
    pub saved: Option<u64>,
    pub losses: Losses,
    pub best: Option<Best>,
    /// Number of steps between evaluations, given or chosen.
    pub eval_every: Option<u64>,
    /// Lowest evaluation loss so far.
    pub lowest: f64,
    /// True after the warning that the loss rises.
    pub rises: bool,
}

impl Driver<'_> {
    /// Trains to the end, on another device after a loss. However the steps end, the last complete one is saved.
    ///
    /// # Errors
    /// The first error that ends the training, or that of the last save.
    pub fn run(mut self, mut run: Run) -> Result<Outcome> {
        let ended = loop {
            match self.train(&mut run) {
                Err(error) if self.continues_after(&error) => run = self.continued(run, error)?,
                ended => break ended,
            }
        };
        self.progress.end();
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return Err(self.rescue(&mut run, error)),
        };
        if let Some(times) = &self.times {
            profile::print(&times.report(), self.output)?;
        }
        self.finish(run.step(), ended)
    }

    /// Trains to the last step, or until a signal comes, which is returned.
    fn train(&mut self, run: &mut Run) -> Result<Option<Signal>> {
        match self.train_and_evaluate(run) {
            Err(RunError::Tabtune(tabtune::Error::Aborted)) => {
                self.settle(run)?;
                self.save(run)?;
                Ok(self.signals.taken())
            }
            ended => ended.map(|()| None),
        }
    }

    /// Trains to the last step.
    ///
    /// # Errors
    /// `call.aborted` after a signal.
    fn train_and_evaluate(&mut self, run: &mut Run) -> Result<()> {
        if self.first >= self.last {
            // A resume has already warned about a run that has all its steps.
            if self.first < run.trainer.config().steps {
                let message = format!(
                    "the run has made {} steps, and {} are asked for: nothing is left to do",
                    self.first, self.last
                );
                self.tell_warning(word!("run.nothing-left"), &message)?;
            }
            self.save(run)?;
            if self.eval_every.is_some() {
                self.evaluate(run)?;
            }
            return Ok(());
        }
        // After a loss: the evaluation of the saved step may not be complete.
        if run.step() > self.first && self.evaluates_at(run.step()) {
            self.evaluate(run)?;
        }
        while run.step() < self.last {
            self.signals.interrupt().check()?;
            // The first step compiles kernels; it is timed only if it is the only one.
            let timed = run.step() > self.first || self.first + 1 == self.last;
            let reports =
                profile::advance(&mut run.trainer, self.times.as_mut().filter(|_| timed))?;
            self.tell(&reports)?;
            let step = run.step();
            let evaluates = self.evaluates_at(step);
            let saves = step == self.last || due(self.args.save_every, step);
            if saves || evaluates {
                self.settle(run)?;
                if run.step() < step {
                    // One of the last steps was refused; the next call reports which.
                    continue;
                }
            }
            // Saved first, so that a failing evaluation does not lose a step.
            if saves {
                self.save(run)?;
            }
            if evaluates {
                self.evaluate(run)?;
            }
        }
        Ok(())
    }

    fn evaluates_at(&self, step: u64) -> bool {
        due(self.eval_every, step) || (step == self.last && self.eval_every.is_some())
    }

    /// Waits for the submitted steps and reports them.
    fn settle(&mut self, run: &mut Run) -> Result<()> {
        let reports = block_on(run.trainer.settle())?;
        self.tell(&reports)
    }

    /// Reports each step in one line. Steps that are made again after a loss are reported already.
    fn tell(&mut self, reports: &[StepReport]) -> Result<()> {
        let speed = tokens_a_second(reports);
        for report in reports.iter().filter(|report| report.step > self.told) {
            self.output.json_line(report)?;
            self.progress.step(report.step, shown(report, speed));
        }
        self.told = reports
            .last()
            .map_or(self.told, |report| report.step.max(self.told));
        Ok(())
    }

    pub(super) fn tell_warning(&self, code: Word, message: &str) -> Result<()> {
        let line = json!({ "warning": { "code": code.text(), "message": message } });
        self.progress.suspend(|| {
            self.output
                .line(&line, || warning_line(message, code.text()))
        })
    }

    /// Forgets a save that was removed from its folder since.
    pub(super) fn forget_removed(&mut self) {
        if self
            .place
            .as_ref()
            .is_some_and(|place| !place.has_checkpoint())
        {
            self.saved = None;
        }
    }

    /// Saves the last complete step, unless it is saved already.
    fn save(&mut self, run: &Run) -> Result<()> {
        self.forget_removed();
        let Some(place) = self
            .place
            .as_mut()
            .filter(|_| self.saved != Some(run.step()))
        else {
            return Ok(());
        };
        let mut stream = tabtune::checkpoint::write(&run.trainer, &run.assets, &run.origin)?;
        place.write(&mut stream)?;
        self.saved = Some(run.step());
        Ok(())
    }

    /// Evaluates the model. A failed evaluation is only reported, and the run continues, unless the device was lost or a signal came. The
    /// result is added to the checkpoint of this step, and the best step is kept. An evaluation that is made again after a loss is reported
    /// already.
    fn evaluate(&mut self, run: &mut Run) -> Result<()> {
        let step = run.step();
        let again = self.evaluated.is_some_and(|evaluated| step <= evaluated);
        // A signal waits for a step, but an evaluation may take longer than the time after which systems kill a process.
        run.trainer.set_interrupt(self.signals.interrupt());
        let evaluated = block_on(run.trainer.evaluate(None));
        run.trainer.set_interrupt(Interrupt::none());
        let report = match evaluated {
            Err(error)
                if !matches!(
                    error,
                    tabtune::Error::DeviceLost { .. } | tabtune::Error::Aborted
                ) =>
            {
                if !again {
                    let Notice { message, .. } =
                        Notice::filled(word!("run.evaluation"), ["", "", &error.to_string()]);
                    self.tell_warning(word!("run.evaluation"), &format!("step {step}: {message}"))?;
                    self.evaluated = Some(step);
                }
                return Ok(());
            }
            report => report?,
        };
        let EvalReport { loss, accuracy, .. } = report;
        if !again {
            let line = json!({ "step": step, "eval_loss": loss, "eval_accuracy": accuracy });
            let text = || {
                format!(
                    "step {step}: evaluation loss {loss:.4}, accuracy {:.2} %",
                    100.0 * accuracy
                )
            };
            self.progress.suspend(|| self.output.line(&line, text))?;
            self.evaluated = Some(step);
            self.warn_if_risen(loss)?;
        }
        let Some(evaluation) = run.trainer.progress().evaluation else {
            return Ok(());
        };
        if self.saved == Some(step) {
            // Saved again, with the evaluation, if it was removed.
            self.save(run)?;
            if let Some(place) = &self.place {
                place.change_manifest(|saved| {
                    tabtune::checkpoint::with_evaluation(saved, evaluation)
                })?;
            }
        }
        let Some(best) = self
            .best
            .as_mut()
            .filter(|best| best.is_beaten_by(evaluation))
        else {
            return Ok(());
        };
        let mut stream = tabtune::checkpoint::write(&run.trainer, &run.assets, &run.origin)?;
        let folder = best.save(&mut stream, evaluation)?;
        let line = json!({ "step": step, "best": loss, "checkpoint": folder });
        self.progress.suspend(|| {
            self.output.line(&line, || {
                format!("step {step}: the best so far, kept in {folder}")
            })
        })
    }

    /// Warns once if the evaluation loss is above its lowest value.
    fn warn_if_risen(&mut self, loss: f64) -> Result<()> {
        let (lowest, rises) = (self.lowest, loss > self.lowest);
        self.lowest = lowest.min(loss);
        if !rises || std::mem::replace(&mut self.rises, true) {
            return Ok(());
        }
        let word = word!("run.overfitting");
        let [lowest, loss] = [lowest, loss].map(|loss| format!("{loss:.4}"));
        self.tell_warning(word, &Notice::filled(word, ["", &lowest, &loss]).message)
    }

    /// Saves the last complete step after an error, and returns the error to report. The outcome of the save goes to stderr.
    fn rescue(&mut self, run: &mut Run, error: RunError) -> RunError {
        self.forget_removed();
        // With gradient release the parameters changed before the norm of their gradients was known: there is no complete step to save.
        let error = match error {
            RunError::Tabtune(error @ tabtune::Error::NonFiniteReleased { .. }) => {
                return RunError::Released {
                    error,
                    kept: self.kept(),
                };
            }
            other => other,
        };
        if self.place.is_none() {
            return error;
        }
        // Collects reports of the steps before the failed one. Their lines are not printed: stdout may be the cause of the error.
        let settled = block_on(run.trainer.settle())
            .map(drop)
            .map_err(RunError::from);
        if settled.is_ok() && run.step() == self.saved.unwrap_or(self.first) {
            return error;
        }
        match settled.and_then(|()| self.save(run)) {
            Ok(()) => self.progress.note(&self.kept()),
            Err(error) => self.warn_of_unsaved(&error),
        }
        error
    }

    /// Describes the newest save of this run.
    fn kept(&self) -> String {
        let saved = self.saved.zip(self.folder());
        saved.map_or(
            "no step of this run is saved".to_string(),
            |(step, folder)| format!("step {step} is saved in {folder}"),
        )
    }

    /// Prints the step since which nothing could be saved.
    pub(super) fn warn_of_unsaved(&self, error: &RunError) {
        let since = self.saved.unwrap_or(self.first);
        warn(
            &format!(
                "the steps since {since} could not be saved, {}: {error}",
                self.kept()
            ),
            error.code(),
        );
    }

    pub(super) fn folder(&self) -> Option<String> {
        self.place
            .as_ref()
            .filter(|_| self.saved.is_some())
            .map(|place| place.path().display().to_string())
    }

    fn finish(&self, step: u64, ended: Option<Signal>) -> Result<Outcome> {
        let checkpoint = self.folder();
        let mut line = json!({ "done": ended.is_none(), "step": step, "checkpoint": checkpoint });
        if let Some(signal) = ended {
            line["signal"] = json!(signal.name);
        }
        self.output.line(&line, || {
            let how = ended.map_or_else(
                || format!("done at step {step}"),
                |signal| format!("{} at step {step}", signal.name),
            );
            match &checkpoint {
                Some(folder) => format!("{how}; checkpoint in {folder}"),
                None => format!("{how}; nothing saved (no --to)"),
            }
        })?;
        Ok(ended.map_or(Outcome::Good, |signal| Outcome::Status(signal.status())))
    }
}

fn due(every: Option<u64>, step: u64) -> bool {
    every.is_some_and(|n| step.is_multiple_of(n))
}

/// Returns the speed of steps that were read together: they have different numbers of tokens, and each the mean of their time.
fn tokens_a_second(reports: &[StepReport]) -> f64 {
    let tokens: u64 = reports.iter().map(|report| report.tokens).sum();
    let secs: f64 = reports.iter().map(|report| report.secs).sum();
    tokens as f64 / secs.max(1e-9)
}

fn shown(report: &StepReport, speed: f64) -> String {
    let StepReport {
        epoch,
        loss,
        grad_norm,
        learning_rate,
        ..
    } = report;
    format!(
        "epoch {epoch:.2} · loss {loss:.4} · norm {grad_norm:.3} · rate {learning_rate:.3e} · {speed:.0} tokens/s"
    )
}
