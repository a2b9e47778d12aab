//! Generated text, one token at a time.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use super::error::thrown;
use super::interrupt::interrupt;
use super::plain;
use super::run::Run;
use super::session::{BUSY, Slot, with_run};
use crate::error::Result;
use crate::generate::{GeneratedToken, Generator};

/// Generated tokens, one at a time.
#[wasm_bindgen]
pub struct TokenStream {
    run: Slot,
    generator: Rc<RefCell<Option<Generator>>>,
}

impl TokenStream {
    pub(super) fn of(run: Slot, generator: Generator) -> Self {
        Self { run, generator: Rc::new(RefCell::new(Some(generator))) }
    }
}

#[wasm_bindgen]
impl TokenStream {
    /// Why the text ended: `stop`, `length` or `context`; undefined while it goes on.
    pub fn end(&self) -> Option<String> {
        Some(self.generator.borrow().as_ref()?.ended()?.word().to_string())
    }

    /// The next `GeneratedToken`, or undefined at the end.
    pub fn next(&self) -> Promise {
        let slot = self.generator.clone();
        with_run(self.run.clone(), move |run| async move {
            let Some(mut generator) = slot.borrow_mut().take() else { return (run, Err(thrown(BUSY))) };
            let token = next(&mut generator, &run).await;
            *slot.borrow_mut() = Some(generator);
            let token = token.map_err(thrown).and_then(|token| token.map_or(Ok(JsValue::UNDEFINED), |token| plain(&token)));
            (run, token)
        })
    }
}

async fn next(generator: &mut Generator, run: &Run) -> Result<Option<GeneratedToken>> {
    interrupt().pause().await?;
    generator.next(run.trainer.model(), run.tokenizer()?).await
}
