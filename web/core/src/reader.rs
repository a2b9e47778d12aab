//! Holds models that generate and score text: one that is not trained, the base of an adapter, and the computations kept from their last
//! answers.

use std::cell::RefCell;
use std::rc::Rc;

use tabtune::bundle::Bundle;
use tabtune::error::{Error, Fault, Result};
use tabtune::generate::PrefixCache;
use tabtune::model::Model;
use tabtune::tokenizer::Tokenizer;

use crate::interrupt::interrupt;

/// Model on the device that generates and scores text and is not trained.
pub(crate) struct Reader {
    pub(crate) model: Model,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) cache: PrefixCache,
    /// Files that the model was opened from, if an adapter is attached to it.
    files: Option<Rc<Bundle>>,
    base: Base,
}

/// Base of a model with an attached adapter, created with the first question to it. It shares the constants of that model.
#[derive(Default)]
struct Base(RefCell<Option<Rc<Reader>>>);

impl Base {
    /// Returns the base of `model`, which was opened from `files`.
    async fn of(
        &self,
        model: &Model,
        tokenizer: &Tokenizer,
        files: Option<&Rc<Bundle>>,
    ) -> Result<Rc<Reader>> {
        if let Some(base) = &*self.0.borrow() {
            return Ok(Rc::clone(base));
        }
        let none = || {
            Error::InvalidConfig(vec![Fault::new(
                "base",
                "false, unless an adapter is attached to the model",
                true,
            )])
        };
        let model = model
            .without_adapter(files.ok_or_else(none)?, &interrupt())
            .await?;
        let (tokenizer, cache) = (tokenizer.clone(), PrefixCache::default());
        let base = Rc::new(Reader {
            model,
            tokenizer,
            cache,
            files: None,
            base: Self::default(),
        });
        self.0.replace(Some(Rc::clone(&base)));
        Ok(base)
    }
}

impl Reader {
    pub(crate) fn new(model: Model, tokenizer: Tokenizer, bundle: Rc<Bundle>) -> Self {
        let files = Some(bundle).filter(|bundle| bundle.attached().is_some());
        Self {
            model,
            tokenizer,
            cache: PrefixCache::default(),
            files,
            base: Base::default(),
        }
    }

    /// Returns this reader or, with `base`, its base without the attached adapter.
    pub(crate) async fn or_base(self: Rc<Self>, base: bool) -> Result<Rc<Self>> {
        if base {
            self.base
                .of(&self.model, &self.tokenizer, self.files.as_ref())
                .await
        } else {
            Ok(self)
        }
    }
}

/// Computations that the answers of a run keep for the next ones.
#[derive(Default)]
pub(crate) struct AnswerCache {
    pub(crate) cache: PrefixCache,
    base: Base,
}

impl AnswerCache {
    /// Returns the base that an adapter is trained on, of a run with this `model` that was opened from `files`.
    pub(crate) async fn base_of(
        &self,
        model: &Model,
        tokenizer: &Tokenizer,
        files: Option<&Rc<Bundle>>,
    ) -> Result<Rc<Reader>> {
        self.base.of(model, tokenizer, files).await
    }

    /// Frees everything. Called when the weights change or the memory is needed.
    pub(crate) fn clear(&self) {
        self.cache.clear();
        self.base.0.take();
    }
}
