//! The second checkpoint of a run: the step with the lowest evaluation loss.

use std::path::Path;

use tabtune::bundle::FileStream;
use tabtune::checkpoint::Manifest;
use tabtune::state::Evaluation;

use super::Run;
use crate::error::Result;
use crate::place::Folder;

/// Folder of the checkpoint with the lowest evaluation loss.
pub(super) struct Best {
    place: Folder,
    /// Evaluation of the checkpoint in the folder.
    evaluation: Option<Evaluation>,
}

impl Best {
    /// Claims the folder. A run that is resumed continues from the evaluation of the checkpoint in it; a new run needs a folder without one,
    /// whose loss is not its own.
    ///
    /// # Errors
    /// `output.occupied` for the checkpoint of another run; errors of [`Folder::for_checkpoints`] and [`Folder::manifest`].
    pub fn claim(path: &Path, resumed: bool) -> Result<Self> {
        let best = Self {
            place: Folder::for_checkpoints(path)?,
            evaluation: None,
        };
        match best.place.manifest()? {
            Some(saved) if !resumed => {
                Err(best.is_of_another_run(&saved, "which only its resume (--resume) replaces"))
            }
            _ => Ok(best),
        }
    }

    /// Takes over the loss of the checkpoint in the folder, if it is one that the resumed run has kept: the loss of another model or of other
    /// data says nothing about this run.
    ///
    /// # Errors
    /// `output.occupied` for the checkpoint of another run.
    pub fn continue_with(&mut self, run: &Run) -> Result<()> {
        let Some(saved) = self.place.manifest()? else {
            return Ok(());
        };
        let evaluation = saved
            .progress
            .evaluation
            .filter(|evaluation| evaluation.step == saved.progress.completed_steps);
        let data = evaluation.map(|evaluation| evaluation.data_digest.to_string());
        let differences = [
            (
                "of another model",
                saved.model != *run.trainer.model().config(),
            ),
            (
                "with another seed",
                saved.train.seed != run.trainer.config().seed,
            ),
            ("which was not evaluated at its step", evaluation.is_none()),
            (
                "or of this one before its data changed, which was evaluated on other data",
                data.is_some_and(|data| data != run.trainer.dataset().evaluated_digest()),
            ),
        ];
        match differences.into_iter().find(|(_, differs)| *differs) {
            Some((why, _)) => Err(self.is_of_another_run(&saved, why)),
            None => {
                self.evaluation = evaluation;
                Ok(())
            }
        }
    }

    fn is_of_another_run(&self, saved: &Manifest, why: &str) -> crate::error::RunError {
        self.place.occupied(format!(
            "the checkpoint of another run, at step {}, {why}",
            saved.progress.completed_steps
        ))
    }

    /// Returns the folder.
    pub fn place(&self) -> &Folder {
        &self.place
    }

    /// Returns true if this evaluation is better than that of the checkpoint in the folder.
    pub fn is_beaten_by(&self, evaluation: Evaluation) -> bool {
        self.evaluation
            .is_none_or(|best| evaluation.loss < best.loss)
    }

    /// Saves the checkpoint of this evaluation. Returns the path of the folder.
    ///
    /// # Errors
    /// Errors of [`Folder::write`].
    pub fn save(&mut self, stream: &mut FileStream, evaluation: Evaluation) -> Result<String> {
        self.place.write(stream)?;
        self.evaluation = Some(evaluation);
        Ok(self.place.path().display().to_string())
    }
}
