//! Trains the tokenizer of a new model, without a GPU.

use js_sys::{Function, Promise, Uint8Array};
use serde::Serialize;
use tabtune::config::DataSettings;
use tabtune::error::Result;
use tabtune::tokenizer::{BpeSettings, Tokenizer};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::data::{Data, JsData};
use crate::error::thrown;
use crate::interrupt::interrupt;
use crate::settings::train_config;
use crate::values::{Values, plain, read, value};

/// A tokenizer that was trained: its tokenizer.json, and its number of tokens.
#[derive(Serialize)]
struct Trained {
    #[serde(with = "serde_wasm_bindgen::preserve")]
    json: JsValue,
    vocab_size: usize,
}

/// Trains byte-level byte pair encoding with `BpeSettings` on the texts of `data`, which are read as `settings` say and may be the beginnings
/// of `partial` files → `{ json, vocabSize }`. `on_progress` receives the number of bytes of text that were read so far.
#[wasm_bindgen(
    js_name = trainTokenizer,
    unchecked_return_type = "Promise<{ json: Uint8Array; vocabSize: number }>"
)]
pub fn train_tokenizer(
    data: JsData,
    options: Values,
    settings: Values,
    partial: bool,
    #[wasm_bindgen(unchecked_param_type = "(read: number) => void")] on_progress: Function,
) -> Promise {
    future_to_promise(async move {
        let data = Data::new(&data)?;
        let trained = trained(&data, options, settings, partial, &on_progress).await;
        let tokenizer = trained.map_err(thrown)?;
        let document = tokenizer.assets().into_iter().next();
        let (_, document) = document.expect("a tokenizer has its tokenizer.json");
        let trained = Trained {
            json: Uint8Array::from(document.as_slice()).into(),
            vocab_size: tokenizer.vocab_size(),
        };
        plain(&trained).map(Into::into)
    })
}

async fn trained(
    data: &Data,
    options: Values,
    settings: Values,
    partial: bool,
    on_progress: &Function,
) -> Result<Tokenizer> {
    let options: BpeSettings = read("options", "the keys of BpeSettings", options)?;
    let settings = DataSettings {
        partial,
        ..train_config(value(settings)?, None)?.data_settings()
    };
    let mut progress = |read: u64| {
        // A failing listener changes nothing here.
        let _ = on_progress.call1(&JsValue::NULL, &JsValue::from_f64(read as f64));
    };
    let files = data.all_files();
    tabtune::data::train_tokenizer(&files, &settings, options, &interrupt(), &mut progress).await
}
