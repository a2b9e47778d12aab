//! Errors as they are thrown, with the fields that belong to them.

use std::borrow::Cow;

use serde::Serialize;
use tabtune::error::{Error, Fault, Refusal, word};

use crate::names::camel;

/// Details of an error beyond its message: the dotted code, and the fields that belong to it.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thrown<'a> {
    /// Class of the code.
    kind: &'static str,
    /// Sentence of the code with its values.
    message: String,
    /// Fixed dotted code, for example `safetensors.offset.overlap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    /// Path of the option or name of the file that is at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    /// Reason why a file was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a Refusal>,
    /// All reasons why a file was refused, or all settings that were; never empty.
    #[serde(skip_serializing_if = "<[Refusal]>::is_empty")]
    refusals: Cow<'a, [Refusal]>,
    /// Number of bytes, tokens or other things that are needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    need: Option<u64>,
    /// Number of them that there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    have: Option<u64>,
    /// With LIMIT_EXCEEDED: name of the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'a str>,
    /// With MISSING_FEATURE: name of the feature.
    #[serde(skip_serializing_if = "Option::is_none")]
    feature: Option<&'a str>,
    /// With SHADER_FAILED: name of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'a str>,
    /// Position in a file, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    /// With INTEGRITY: the digest that was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    want: Option<&'a str>,
    /// With INTEGRITY: the digest that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    got: Option<&'a str>,
    /// Reason that a browser or a server states.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// The run that another tab holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a str>,
    /// With CHECKPOINT_CORRUPT: number of the chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk: Option<u64>,
    /// With NON_FINITE: the refused step; with a GPU fault: the last confirmed step.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u64>,
    /// With NON_FINITE: `loss` or `"grad_norm"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tensor: Option<&'a str>,
    /// True if the call was abandoned and the trainer continues in another worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    recovered: Option<bool>,
}

impl<'a> Thrown<'a> {
    /// Returns the fields of an error whose keys of settings have their names in TypeScript.
    pub fn of(error: &'a Error) -> Self {
        let mut thrown = Thrown {
            kind: error.kind(),
            code: Some(error.code()),
            message: error.to_string(),
            ..Thrown::default()
        };
        match error {
            Error::Refused(list) => {
                (thrown.refusal, thrown.refusals) = (list.first(), Cow::Borrowed(list.as_slice()));
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
                let refusal = |Fault { key, rule, value }: &Fault| Refusal {
                    code: error.code(),
                    ..Refusal::filled(word!("config.invalid"), [key, rule, value])
                };
                thrown.refusals = faults.iter().map(refusal).collect();
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
