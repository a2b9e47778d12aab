//! A model that is asked: generated text, one token at a time, and the scores of a text.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::Promise;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use super::error::{JsResult, thrown};
use super::interrupt::interrupt;
use super::plain;
use super::run::Run;
use super::session::{BUSY, Session, Slot, with_run};
use crate::error::{Error, Fault, Result};
use crate::generate::score::{Score, ScoreConfig, score};
use crate::generate::{GenerateConfig, GeneratedToken, Generator, Prefix};
use crate::model::Model;
use crate::tokenizer::{Conversation, Tokenizer};

/// Options of `key` from their JSON.
pub(super) fn read<T: DeserializeOwned>(key: &str, rule: &str, json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| Error::InvalidConfig(vec![Fault::new(key, rule, error)]))
}

/// Continues `prompt` by the options of `GenerateConfig`.
pub(super) fn continued(model: &Model, tokenizer: &Tokenizer, prompt: &str, options_json: &str) -> Result<Generator> {
    let config: GenerateConfig = read("sample", "the keys of GenerateConfig", options_json)?;
    Generator::new(model, tokenizer, prompt, config)
}

/// Answers a conversation by the options of `GenerateConfig`.
pub(super) fn answering(model: &Model, tokenizer: &Tokenizer, conversation_json: &str, options_json: &str) -> Result<Generator> {
    let config: GenerateConfig = read("sample", "the keys of GenerateConfig", options_json)?;
    let conversation = Conversation::from_json(&read("messages", "JSON", conversation_json)?)?;
    Generator::answer(model, tokenizer, &conversation, config, Prefix::default())
}

/// A text or a conversation, and how it is scored.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scoring {
    text: Option<String>,
    conversation: Option<Value>,
    #[serde(default)]
    generation: bool,
    #[serde(default)]
    options: ScoreConfig,
}

/// Scores the text or the conversation of a request.
pub(super) async fn scored(model: &Model, tokenizer: &Tokenizer, request_json: &str) -> Result<Score> {
    let Scoring { text, conversation, generation, options } = read("score", "a text or a conversation, and options", request_json)?;
    let ids = match (text, conversation) {
        (Some(text), None) => tokenizer.encode(&text)?,
        (None, Some(given)) => tokenizer.encode(&tokenizer.render_chat(&Conversation::from_json(&given)?, generation)?.text)?,
        _ => return Err(Error::InvalidConfig(vec![Fault::new("text", "a text or a conversation", "neither or both")])),
    };
    score(model, tokenizer, &ids, &options, &interrupt()).await
}

/// A model on the device that is asked and not trained.
pub(super) struct Reader {
    pub(super) model: Model,
    pub(super) tokenizer: Tokenizer,
}

/// The weights of an open model on the device.
#[wasm_bindgen]
pub struct LoadedModel(pub(super) Rc<Reader>);

#[wasm_bindgen]
impl LoadedModel {
    /// Answers a conversation: a list of messages, or an object with `messages`, `tools`, `documents` and `chat_template_kwargs`.
    pub fn chat(&self, conversation_json: &str, options_json: &str) -> JsResult<TokenStream> {
        let generator = answering(&self.0.model, &self.0.tokenizer, conversation_json, options_json).map_err(thrown)?;
        Ok(TokenStream::of(Asked::Model(Rc::clone(&self.0)), generator))
    }

    /// `Score` of `{ text }` or `{ conversation, generation }`, with `options` of `ScoreConfig`.
    pub fn score(&self, request_json: String) -> Promise {
        let reader = Rc::clone(&self.0);
        future_to_promise(async move { plain(&scored(&reader.model, &reader.tokenizer, &request_json).await.map_err(thrown)?) })
    }
}

/// Whose weights make the tokens.
#[derive(Clone)]
pub(super) enum Asked {
    Run(Slot),
    Model(Rc<Reader>),
}

/// Generated tokens, one at a time.
#[wasm_bindgen]
pub struct TokenStream {
    asked: Asked,
    generator: Rc<RefCell<Option<Generator>>>,
}

impl TokenStream {
    pub(super) fn of(asked: Asked, generator: Generator) -> Self {
        Self { asked, generator: Rc::new(RefCell::new(Some(generator))) }
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
        match self.asked.clone() {
            Asked::Run(run) => with_run(run, move |run| async move {
                let token = of_run(&slot, &run).await;
                (run, token)
            }),
            Asked::Model(reader) => future_to_promise(async move { taken(&slot, &reader.model, &reader.tokenizer).await }),
        }
    }
}

async fn of_run(slot: &RefCell<Option<Generator>>, run: &Run) -> JsResult<JsValue> {
    taken(slot, run.trainer.model(), run.tokenizer().map_err(thrown)?).await
}

/// The next token of the generator, which is out of its slot meanwhile.
async fn taken(slot: &RefCell<Option<Generator>>, model: &Model, tokenizer: &Tokenizer) -> JsResult<JsValue> {
    let mut generator = slot.borrow_mut().take().ok_or_else(|| thrown(BUSY))?;
    let token = next(&mut generator, model, tokenizer).await;
    *slot.borrow_mut() = Some(generator);
    token.map_err(thrown)?.map_or(Ok(JsValue::UNDEFINED), |token| plain(&token))
}

async fn next(generator: &mut Generator, model: &Model, tokenizer: &Tokenizer) -> Result<Option<GeneratedToken>> {
    interrupt().pause().await?;
    generator.next(model, tokenizer).await
}

#[wasm_bindgen]
impl Session {
    /// Text of token ids.
    pub fn detokenize(&self, ids: Vec<u32>) -> JsResult<String> {
        self.read(|run| run.tokenizer()?.detokenize(&ids))
    }
}
