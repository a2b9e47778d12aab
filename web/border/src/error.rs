//! Errors as they are thrown, with the fields that belong to them.

use serde::Serialize;
use tabtune::error::{Error, Fault, Refusal};

use crate::names::camel;

/// An error: its class, its message, its code, and the fields that an error of its kind has.
#[derive(Default, Serialize)]
pub struct Thrown<'a> {
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

impl<'a> Thrown<'a> {
    /// Returns the fields of an error whose keys of settings have their names in TypeScript.
    pub fn of(error: &'a Error) -> Self {
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
            Error::SourceRead { name, .. } | Error::SinkWrite { name, .. } => {
                thrown.path = Some(name)
            }
            Error::MixedDevices { kernel, .. } => thrown.kernel = Some(kernel),
            _ => {}
        }
        thrown
    }
}

/// Returns the name of a key of settings in TypeScript, where `schedule` is `lrScheduler`.
fn option(key: &str) -> String {
    let name = camel(key);
    match name.strip_prefix("schedule") {
        Some(rest) if rest.is_empty() || rest.starts_with('.') => format!("lrScheduler{rest}"),
        _ => name,
    }
}

/// Returns the error with the keys of settings under their names in TypeScript.
pub fn renamed(mut error: Error) -> Error {
    if let Error::InvalidConfig(faults) | Error::ResumeMismatch(faults) = &mut error {
        for Fault { key, .. } in faults {
            *key = option(key);
        }
    }
    error
}
