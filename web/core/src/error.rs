//! Converts errors to the plain objects that the worker turns into `TabtuneError`.

use serde::Serialize;
use tabtune::error::{Error, Fault, Refusal};
use wasm_bindgen::JsValue;

/// Result of an exported function.
pub type JsResult<T> = Result<T, JsValue>;

#[derive(Default, Serialize)]
struct Thrown<'a> {
    kind: &'static str,
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a Refusal>,
    #[serde(skip_serializing_if = "<[Refusal]>::is_empty")]
    refusals: &'a [Refusal],
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tensor: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    need: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    have: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    want: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    got: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk: Option<u64>,
}

/// Returns the fields that an error of its kind has.
fn fields(error: &Error) -> Thrown<'_> {
    let mut thrown = Thrown {
        kind: error.kind(),
        code: error.code(),
        message: error.to_string(),
        ..Thrown::default()
    };
    match error {
        Error::Refused(list) => {
            (thrown.refusal, thrown.refusals) = (list.first(), list);
            thrown.offset = list.first().and_then(|refusal| refusal.byte_offset);
            if let Some(base) = list
                .first()
                .filter(|refusal| refusal.code.starts_with("checkpoint.base."))
            {
                (thrown.want, thrown.got) = (base.expected.as_deref(), base.found.as_deref());
            }
        }
        Error::NonFinite { step, tensor, .. } => {
            (thrown.step, thrown.tensor) = (Some(*step), Some(tensor.as_str()))
        }
        Error::NonFiniteReleased { step, .. } => {
            (thrown.step, thrown.tensor) = (Some(*step), Some("grad_norm"))
        }
        Error::LimitExceeded { limit, need, have } => {
            (thrown.limit, thrown.need, thrown.have) = (Some(*limit), Some(*need), Some(*have))
        }
        Error::DataTooShort { need, have } => {
            (thrown.need, thrown.have) = (Some(*need as u64), Some(*have as u64))
        }
        Error::InvalidConfig(faults)
        | Error::Groups(faults)
        | Error::StateMismatch(faults)
        | Error::ResumeMismatch(faults) => {
            thrown.path = faults.first().map(|fault| fault.key.as_str());
        }
        Error::UnsupportedModel { what, .. } | Error::CheckpointCorrupt { what, .. } => {
            thrown.path = Some(what)
        }
        Error::CheckpointLength {
            file,
            expected,
            found,
        } => {
            (thrown.path, thrown.need, thrown.have) =
                (Some(file.as_str()), Some(*expected), Some(*found));
        }
        Error::CheckpointHash { file, piece, .. } => {
            (thrown.path, thrown.chunk) = (Some(file.as_str()), Some(*piece))
        }
        Error::TensorShape { name, .. } => thrown.tensor = Some(name),
        Error::MissingTensors(names) | Error::UnexpectedTensors(names) => {
            thrown.tensor = names.first().map(String::as_str)
        }
        Error::DataEncoding { byte_offset, .. } => thrown.offset = Some(*byte_offset as u64),
        Error::SourceRead { name, .. } | Error::SinkWrite { name, .. } => thrown.path = Some(name),
        Error::MixedDevices { kernel, .. } => thrown.kernel = Some(kernel),
        _ => {}
    }
    thrown
}

/// Returns the name of a settings key in TypeScript: `optimizer.weight_decay` is `optimizer.weightDecay`, and `schedule` is `lrScheduler`.
fn option(key: &str) -> String {
    let mut name = String::new();
    let mut after_underscore = false;
    for c in key.chars() {
        match (c, after_underscore) {
            ('_', _) => after_underscore = true,
            (c, true) => {
                name.push(c.to_ascii_uppercase());
                after_underscore = false;
            }
            (c, false) => name.push(c),
        }
    }
    match name.strip_prefix("schedule") {
        Some(rest) if rest.is_empty() || rest.starts_with('.') => format!("lrScheduler{rest}"),
        _ => name,
    }
}

/// Returns the error with the keys of settings under their names in TypeScript.
fn renamed(mut error: Error) -> Error {
    if let Error::InvalidConfig(faults) | Error::ResumeMismatch(faults) = &mut error {
        for Fault { key, .. } in faults {
            *key = option(key);
        }
    }
    error
}

/// Returns the object that is thrown for `error`.
pub fn thrown(error: Error) -> JsValue {
    let error = renamed(error);
    let fields = fields(&error);
    fields
        .serialize(&serde_wasm_bindgen::Serializer::json_compatible())
        .unwrap_or_else(|_| JsValue::from_str(&error.to_string()))
}
