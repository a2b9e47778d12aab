//! Run of a session in the browser: its trainer, and the data that are written to files with it.

use std::rc::Rc;

use super::asked::AskedRun;
use super::interrupt::interrupt;
use crate::bundle::{Bundle, ModelAssets};
use crate::checkpoint::Base;
use crate::error::{Error, Result};
use crate::export::ExportSource;
use crate::gpu::profile::KernelTimes;
use crate::tokenizer::Tokenizer;
use crate::train::Trainer;

/// State that a session holds between its calls.
pub(super) struct Run {
    pub(super) trainer: Trainer,
    pub(super) assets: Rc<ModelAssets>,
    pub(super) base: Option<Base>,
    /// Files of the base that an adapter is trained on.
    pub(super) files: Option<Rc<Bundle>>,
    /// Name that the user gives the data.
    pub(super) data_name: String,
    /// `Some` while steps are timed.
    pub(super) times: Option<KernelTimes>,
    /// Computations that answers keep for the next ones.
    pub(super) asked: AskedRun,
}

impl Run {
    pub(super) fn new(
        mut trainer: Trainer,
        assets: Rc<ModelAssets>,
        base: Option<Base>,
        files: Option<Rc<Bundle>>,
        data_name: &str,
    ) -> Self {
        trainer.set_interrupt(interrupt());
        trainer.record_steps();
        let files = files.filter(|_| trainer.config().adapter.is_some());
        Self { trainer, assets, base, files, data_name: data_name.to_string(), times: None, asked: AskedRun::default() }
    }

    /// Returns the model in its current state, to be exported.
    pub(super) fn source(&self) -> Result<ExportSource> {
        ExportSource::of_trainer(&self.trainer, ModelAssets::clone(&self.assets), self.base.clone(), &self.data_name)
    }

    pub(super) fn tokenizer(&self) -> Result<&Tokenizer> {
        let absent = || Error::Tokenizer { what: "model files".into(), reason: "there is no tokenizer.json among them".into() };
        self.assets.tokenizer.as_ref().ok_or_else(absent)
    }
}
