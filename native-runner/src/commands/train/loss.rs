//! Continuation of a run whose device was lost: on another device, from the last save, with the bits of an unbroken run.

use tabtune::word;

use super::driver::Driver;
use super::start::prepare;
use super::{Kept, Run};
use crate::args::{SettingsArgs, TrainArgs};
use crate::error::{Result, RunError};

impl Driver<'_> {
    /// Returns true if the error is the loss of the device, and the run should continue on another one. A signal ends it instead.
    pub fn continues_after(&mut self, error: &RunError) -> bool {
        let lost = matches!(error, RunError::Tabtune(tabtune::Error::DeviceLost { .. }));
        lost && self.signals.taken().is_none() && self.losses.allows((self.told, self.saved))
    }

    /// Prepares the run again on another device: from the newest save of this process, else as it began.
    ///
    /// # Errors
    /// The loss of another device, if it was one too many, and the errors of preparing a run.
    pub fn continued(&mut self, run: Run, mut loss: RunError) -> Result<Run> {
        self.forget_removed();
        let again = self.args_of_save(run.trainer.config().adapter.is_some());
        let kept = Kept {
            device: run.device.clone(),
            data: run.trainer.dataset().clone(),
        };
        // Reads that are still waiting keep the lost device busy.
        drop(run);
        loop {
            self.tell_loss(&loss)?;
            match prepare(
                again.as_ref().unwrap_or(self.args),
                Some(&kept),
                self.output,
            ) {
                Err(error) if self.continues_after(&error) => loss = error,
                Err(error) => {
                    self.progress.end();
                    if self.place.is_some() {
                        self.warn_of_unsaved(&error);
                    }
                    return Err(error);
                }
                run => return run,
            }
        }
    }

    /// Returns the arguments that resume the newest save of this process, if there is one. All settings are in the checkpoint.
    fn args_of_save(&self, adapter: bool) -> Option<TrainArgs> {
        let folder = self
            .place
            .as_ref()
            .filter(|_| self.saved.is_some())?
            .path()
            .to_path_buf();
        Some(TrainArgs {
            resume: Some(folder),
            // The checkpoint of an adapter needs its base.
            model: self.args.model.clone().filter(|_| adapter),
            config: None,
            state: None,
            adapter: None,
            merge_adapter: None,
            resize_vocabulary: false,
            chat_template: None,
            overrides: Vec::new(),
            settings: SettingsArgs::default(),
            ..self.args.clone()
        })
    }

    fn tell_loss(&self, loss: &RunError) -> Result<()> {
        let from = match (self.saved.zip(self.folder()), &self.args.resume) {
            (Some((step, folder)), _) => format!("step {step}, saved in {folder}"),
            (None, Some(resumed)) => format!("step {} in {}", self.first, resumed.display()),
            (None, None) => "the beginning, since no step is saved".to_owned(),
        };
        let again = "steps that were reported are made again and not reported twice";
        let message = format!(
            "after step {}: {loss}. The run continues on another device from {from}; {again}",
            self.told
        );
        self.tell_warning(word!("device.lost"), &message)
    }
}
