//! Run of a session in the browser: its trainer, and the data that are written to files with it.

use std::rc::Rc;

use tabtune::bundle::{Bundle, ModelAssets};
use tabtune::checkpoint::Base;
use tabtune::config::ChosenSetting;
use tabtune::error::{Error, Result};
use tabtune::export::ExportSource;
use tabtune::gpu::profile::KernelTimes;
use tabtune::tokenizer::Tokenizer;
use tabtune::train::Trainer;

use crate::interrupt::interrupt;
use crate::reader::{AnswerCache, Reader};

/// State that a session holds between its calls.
pub(crate) struct Run {
    pub(crate) trainer: Trainer,
    pub(crate) assets: Rc<ModelAssets>,
    pub(crate) base: Option<Base>,
    /// Files of the base that an adapter is trained on.
    pub(crate) files: Option<Rc<Bundle>>,
    /// Name that the user gives the data.
    pub(crate) data_name: String,
    /// Settings that were chosen for the run.
    pub(crate) chosen: Vec<ChosenSetting>,
    /// `Some` while steps are timed.
    pub(crate) times: Option<KernelTimes>,
    /// Computations that answers keep for the next ones.
    pub(crate) answers: AnswerCache,
}

impl Run {
    pub(crate) fn new(
        mut trainer: Trainer,
        assets: Rc<ModelAssets>,
        base: Option<Base>,
        files: Option<Rc<Bundle>>,
        data_name: &str,
        chosen: Vec<ChosenSetting>,
    ) -> Self {
        trainer.set_interrupt(interrupt());
        trainer.record_steps();
        let files = files.filter(|_| trainer.config().adapter.is_some());
        Self {
            trainer,
            assets,
            base,
            files,
            data_name: data_name.to_string(),
            chosen,
            times: None,
            answers: AnswerCache::default(),
        }
    }

    /// Returns the model in its current state, to be exported.
    pub(crate) fn source(&self) -> Result<ExportSource> {
        ExportSource::of_trainer(
            &self.trainer,
            ModelAssets::clone(&self.assets),
            self.base.clone(),
            &self.data_name,
        )
    }

    pub(crate) fn tokenizer(&self) -> Result<&Tokenizer> {
        let absent = || Error::Tokenizer {
            what: "model files".into(),
            reason: "there is no tokenizer.json among them".into(),
        };
        self.assets.tokenizer.as_ref().ok_or_else(absent)
    }

    /// Returns the base that an adapter is trained on.
    pub(crate) async fn base_reader(&self) -> Result<Rc<Reader>> {
        self.answers
            .base_of(self.trainer.model(), self.tokenizer()?, self.files.as_ref())
            .await
    }
}
