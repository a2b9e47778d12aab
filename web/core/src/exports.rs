//! Exports models, and lists the formats that they can be exported to.

use js_sys::Promise;
use serde::Serialize;
use tabtune::bundle::verify_files as verify;
use tabtune::error::{Error, Fault, Result};
use tabtune::export::{ExportChoice, ExportOptions, ExportSource};
use tabtune::portable;
use tabtune::portable::ModelIoCompatibilityContract;
use tabtune::state::{Base, ModelIoArtifactReceipt, Operation, Tensor};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::error::{JsResult, thrown};
use crate::objects::plain;
use crate::source::sources;
use crate::stream::FileStream;

/// Facts about a model other than its weights.
#[derive(Default, Serialize)]
pub(crate) struct Details {
    exports: Vec<ExportChoice>,
    contract: Option<ModelIoCompatibilityContract>,
    /// Receipt of the import, for a model that was opened.
    receipt: Option<ModelIoArtifactReceipt>,
    base: Option<Base>,
}

impl Details {
    /// Returns the details of a model that cannot be exported and that started from `base`.
    pub(crate) fn of_base(base: Base) -> Self {
        Self {
            base: Some(base),
            ..Self::default()
        }
    }

    pub(crate) fn of(source: &ExportSource) -> Result<Self> {
        let tensors: Vec<_> = source
            .weights
            .tensors
            .iter()
            .map(Tensor::manifest)
            .collect();
        let (exports, contract) =
            portable::export_options_of(source, &source.identity, tensors.iter())?;
        let receipt = match &source.training {
            Some(_) => None,
            None => {
                let contract_digest = Some(contract.contract_digest);
                Some(
                    ModelIoArtifactReceipt {
                        operation: Operation::Import,
                        contract_digest,
                        ..source.draft()
                    }
                    .seal()?,
                )
            }
        };
        Ok(Self {
            exports,
            contract: Some(contract),
            receipt,
            base: source.base.clone(),
        })
    }
}

/// Writes the files of `source` with these options, a JSON text of `ExportOptions`.
pub(crate) fn written(
    source: ExportSource,
    options_json: &str,
    base: Vec<JsValue>,
) -> JsResult<Promise> {
    let wrong = |error| {
        thrown(Error::InvalidConfig(vec![Fault::new(
            "options",
            "the keys of ExportOptions",
            error,
        )]))
    };
    let options: ExportOptions = serde_json::from_str(options_json).map_err(wrong)?;
    let base = sources(base)?;
    Ok(future_to_promise(async move {
        let stream = tabtune::export::export(&source, base, &options).await;
        Ok(FileStream::of(stream.map_err(thrown)?).into())
    }))
}

/// Recomputes the statements of a receipt about these files; without `receipt_json`, those of the receipt among the files.
#[wasm_bindgen(js_name = verifyFiles)]
pub fn verify_files(files: Vec<JsValue>, receipt_json: Option<String>) -> JsResult<JsValue> {
    plain(&verify(&sources(files)?, receipt_json.as_deref()).map_err(thrown)?)
}
