//! Generates text, one token at a time, and scores texts.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::Promise;
use serde::Deserialize;
use serde_json::Value;
use tabtune::config::BaseStorage;
use tabtune::device::Device;
use tabtune::error::{Error, Fault, Result};
use tabtune::generate::score::{Score, ScoreConfig, score};
use tabtune::generate::{GenerateConfig, GeneratedToken, Generator, Loan, PrefixCache};
use tabtune::model::Model;
use tabtune::tokenizer::{Conversation, Findings, Tokenizer};
use tabtune::train::check_inference_limits;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::device::device;
use crate::error::{JsResult, thrown};
use crate::interrupt::interrupt;
use crate::model::ModelHandle;
use crate::reader::Reader;
use crate::run::Run;
use crate::session::{BUSY, Session, Slot, with_run};
use crate::settings::today;
use crate::values::{Report, Values, plain, read, value};

/// Reads a conversation and dates it today.
fn dated(given: &Value, tokenizer: &Tokenizer) -> Result<Conversation> {
    Ok(Conversation {
        date: today(tokenizer),
        ..Conversation::from_json(given)?
    })
}

/// Reads the options of an answer.
fn generation(options: Values) -> Result<GenerateConfig> {
    read("sample", "the keys of GenerateConfig", options)
}

/// Answers a conversation with the options of `GenerateConfig`, starting from the prefix that `cache` keeps.
fn answering(
    model: &Model,
    tokenizer: &Tokenizer,
    cache: &PrefixCache,
    conversation: Values,
    options: Values,
) -> Result<Answer> {
    let config = generation(options)?;
    let conversation = dated(&value(conversation)?, tokenizer)?;
    let (prefix, loan) = cache.take();
    let generator = Generator::answer(model, tokenizer, &conversation, config, prefix)?;
    Ok(Answer {
        generator,
        loan: Some(loan),
    })
}

/// A text in generation, and the place where its computations are kept for the next one.
struct Answer {
    generator: Generator,
    loan: Option<Loan>,
}

/// Request to score a text, token ids or a conversation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scoring {
    text: Option<String>,
    ids: Option<Vec<u32>>,
    conversation: Option<Value>,
    #[serde(default)]
    generation: bool,
    #[serde(default)]
    options: ScoreConfig,
}

/// Scores the text, the ids or the conversation of a request.
async fn scored(model: &Model, tokenizer: &Tokenizer, request: Values) -> Result<Score> {
    let expected = "a text, ids or a conversation, and options";
    let Scoring {
        text,
        ids,
        conversation,
        generation,
        options,
    } = read("score", expected, request)?;
    let (ids, found) = match (text, ids, conversation) {
        (Some(text), None, None) => tokenizer.encode_text(&text)?,
        (None, Some(ids), None) => (ids, Findings::default()),
        (None, None, Some(given)) => {
            tokenizer.encode_chat(&dated(&given, tokenizer)?, generation)?
        }
        _ => {
            return Err(Error::InvalidConfig(vec![Fault::new(
                "text",
                "a text, ids or a conversation",
                "none or several",
            )]));
        }
    };
    let scored = score(model, tokenizer, &ids, &options, &interrupt()).await?;
    Ok(Score {
        warnings: found.warnings(),
        ..scored
    })
}

#[wasm_bindgen]
impl ModelHandle {
    /// Puts the weights on the device, to generate and score text → `LoadedModel`. A new model has no weights and is refused; a model that
    /// does not fit is refused before anything is uploaded.
    #[wasm_bindgen(unchecked_return_type = "Promise<LoadedModel>")]
    pub fn load(&self) -> Promise {
        let model = self.clone();
        future_to_promise(async move {
            Ok(LoadedModel(Rc::new(model.reader(&device()?).await.map_err(thrown)?)).into())
        })
    }
}

impl ModelHandle {
    async fn reader(&self, device: &Device) -> Result<Reader> {
        let tokenizer = self.tokenizer()?.clone();
        let Some(bundle) = self.bundle().cloned() else {
            return Err(Error::InvalidConfig(vec![Fault::new(
                "model",
                "one that was opened, or is in training",
                "a new one",
            )]));
        };
        let storage = if bundle.attached().is_some() {
            BaseStorage::Stored
        } else {
            BaseStorage::F32
        };
        check_inference_limits(&bundle, storage, device.info().limits)?;
        let model = Model::for_inference(&bundle, storage, &device.inner(), &interrupt()).await?;
        model.check_finite()?;
        Ok(Reader::new(model, tokenizer, bundle))
    }
}

/// Weights of an open model on the device.
#[wasm_bindgen]
pub struct LoadedModel(Rc<Reader>);

#[wasm_bindgen]
impl LoadedModel {
    /// Answers a conversation: a list of messages, or an object with `messages`, `tools`, `documents` and `chat_template_kwargs` →
    /// `TokenStream`. With `base`, the base answers, without the attached adapter.
    #[wasm_bindgen(unchecked_return_type = "Promise<TokenStream>")]
    pub fn chat(&self, conversation: Values, options: Values, base: bool) -> Promise {
        let reader = Rc::clone(&self.0);
        future_to_promise(async move {
            Ok(answered(reader.or_base(base).await, conversation, options)?.into())
        })
    }

    /// Returns the `Score` of `{ text }`, `{ ids }` or `{ conversation, generation }`, with `options` of `ScoreConfig`; `base` is as in
    /// `chat`.
    #[wasm_bindgen(unchecked_return_type = "Promise<unknown>")]
    pub fn score(&self, request: Values, base: bool) -> Promise {
        let reader = Rc::clone(&self.0);
        future_to_promise(async move {
            let reader = reader.or_base(base).await.map_err(thrown)?;
            let score = scored(&reader.model, &reader.tokenizer, request).await;
            plain(&score.map_err(thrown)?).map(Into::into)
        })
    }
}

fn answered(
    reader: Result<Rc<Reader>>,
    conversation: Values,
    options: Values,
) -> JsResult<TokenStream> {
    let reader = reader.map_err(thrown)?;
    let answer = answering(
        &reader.model,
        &reader.tokenizer,
        &reader.cache,
        conversation,
        options,
    )
    .map_err(thrown)?;
    Ok(TokenStream::of(Owner::Model(reader), answer))
}

/// Owner of the weights that generate the tokens.
#[derive(Clone)]
enum Owner {
    Run(Slot),
    Model(Rc<Reader>),
}

/// Generated tokens, one at a time.
#[wasm_bindgen]
pub struct TokenStream {
    owner: Owner,
    generator: Rc<RefCell<Option<Generator>>>,
    loan: Option<Loan>,
    /// Number of prompt tokens that were computed before, and of those that the first token computes.
    prompt: [usize; 2],
}

impl TokenStream {
    fn of(owner: Owner, Answer { generator, loan }: Answer) -> Self {
        let prompt = generator.progress().into();
        Self {
            owner,
            generator: Rc::new(RefCell::new(Some(generator))),
            loan,
            prompt,
        }
    }
}

/// Keeps the computations for the next answer.
impl Drop for TokenStream {
    fn drop(&mut self) {
        if let (Some(generator), Some(loan)) =
            (self.generator.borrow_mut().take(), self.loan.take())
        {
            loan.give_back(generator.into_prefix());
        }
    }
}

#[wasm_bindgen]
impl TokenStream {
    /// Returns why the text ended: `stop`, `length` or `context`; undefined while it continues.
    pub fn end(&self) -> Option<String> {
        Some(
            self.generator
                .borrow()
                .as_ref()?
                .ended()?
                .word()
                .to_string(),
        )
    }

    /// Returns the number of prompt tokens that an earlier answer has computed, and of those that the first token computes.
    #[wasm_bindgen(js_name = promptTokens)]
    pub fn prompt_tokens(&self) -> Vec<u32> {
        self.prompt.map(|count| count as u32).to_vec()
    }

    /// Returns the warnings about the prompt or the conversation: a list of `{ code, message }`.
    pub fn warnings(&self) -> JsResult<Report> {
        plain(
            &self
                .generator
                .borrow()
                .as_ref()
                .map(Generator::warnings)
                .unwrap_or_default(),
        )
    }

    /// Returns the next `GeneratedToken`, or undefined at the end.
    #[wasm_bindgen(unchecked_return_type = "Promise<unknown>")]
    pub fn next(&self) -> Promise {
        let slot = self.generator.clone();
        match self.owner.clone() {
            Owner::Run(run) => with_run(run, move |run| async move {
                let token = of_run(&slot, &run).await;
                (run, token)
            }),
            Owner::Model(reader) => {
                future_to_promise(
                    async move { taken(&slot, &reader.model, &reader.tokenizer).await },
                )
            }
        }
    }
}

async fn of_run(slot: &RefCell<Option<Generator>>, run: &Run) -> JsResult<JsValue> {
    taken(slot, run.trainer.model(), run.tokenizer().map_err(thrown)?).await
}

/// Returns the next token of the generator, which is out of its slot meanwhile.
async fn taken(
    slot: &RefCell<Option<Generator>>,
    model: &Model,
    tokenizer: &Tokenizer,
) -> JsResult<JsValue> {
    let mut generator = slot.borrow_mut().take().ok_or_else(|| thrown(BUSY))?;
    let token = next(&mut generator, model, tokenizer).await;
    *slot.borrow_mut() = Some(generator);
    token
        .map_err(thrown)?
        .map_or(Ok(JsValue::UNDEFINED), |token| {
            plain(&token).map(Into::into)
        })
}

async fn next(
    generator: &mut Generator,
    model: &Model,
    tokenizer: &Tokenizer,
) -> Result<Option<GeneratedToken>> {
    interrupt().pause().await?;
    generator.next(model, tokenizer).await
}

#[wasm_bindgen]
impl Session {
    /// Generates text after `prompt`, with the weights at the time of each token.
    pub fn generate(&self, prompt: &str, options: Values) -> JsResult<TokenStream> {
        let generator = self.read(|run| {
            run.trainer.forget_recording();
            let (model, tokenizer) = (run.trainer.model(), run.tokenizer()?);
            Generator::new(model, tokenizer, prompt, generation(options)?)
        })?;
        Ok(TokenStream::of(
            Owner::Run(self.0.clone()),
            Answer {
                generator,
                loan: None,
            },
        ))
    }

    /// Answers a conversation, as `LoadedModel.chat` does, with the weights at the time of each token.
    #[wasm_bindgen(unchecked_return_type = "Promise<TokenStream>")]
    pub fn chat(&self, conversation: Values, options: Values, base: bool) -> Promise {
        let slot = self.0.clone();
        with_run(self.0.clone(), move |run| async move {
            run.trainer.forget_recording();
            let stream = if base {
                answered(run.base_reader().await, conversation, options)
            } else {
                let answer = run.tokenizer().and_then(|tokenizer| {
                    answering(
                        run.trainer.model(),
                        tokenizer,
                        &run.answers.cache,
                        conversation,
                        options,
                    )
                });
                answer
                    .map(|answer| TokenStream::of(Owner::Run(slot), answer))
                    .map_err(thrown)
            };
            (run, stream)
        })
    }

    /// Returns the `Score`, as `LoadedModel.score` does.
    #[wasm_bindgen(unchecked_return_type = "Promise<unknown>")]
    pub fn score(&self, request: Values, base: bool) -> Promise {
        with_run(self.0.clone(), move |run| async move {
            run.trainer.forget_recording();
            let score = score_of_run(&run, request, base).await;
            (run, score.map_err(thrown).and_then(|score| plain(&score)))
        })
    }

    /// Returns the text of token ids.
    pub fn detokenize(&self, ids: Vec<u32>) -> JsResult<String> {
        self.read(|run| run.tokenizer()?.detokenize(&ids))
    }
}

async fn score_of_run(run: &Run, request: Values, base: bool) -> Result<Score> {
    if base {
        let reader = run.base_reader().await?;
        return scored(&reader.model, &reader.tokenizer, request).await;
    }
    scored(run.trainer.model(), run.tokenizer()?, request).await
}
