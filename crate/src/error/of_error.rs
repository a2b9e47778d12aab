//! Determines the two names of every error, the dotted code and the class that TypeScript shows, and makes errors of refusals.

use std::borrow::Cow;
use std::fmt::{self, Display};

use super::sentence::{joined, plain};
use super::shown::{escaped, shown};
use super::{Class, Error, Fault, Refusal, class, word};

impl std::error::Error for Error {}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.refusals()))
    }
}

impl Error {
    /// Creates the error of a lost device, for a reason that other crates give in several lines, with their backtrace.
    #[doc(hidden)]
    pub fn device_lost(reason: impl Display) -> Self {
        let text = reason.to_string();
        let lines = text
            .lines()
            .map(str::trim)
            .take_while(|line| *line != "Backtrace:");
        let reason = lines
            .filter(|line| !line.is_empty() && *line != "Caused by:")
            .collect::<Vec<_>>()
            .join(": ");
        Error::DeviceLost { reason }
    }

    /// Returns the stable dotted code of this error.
    pub fn code(&self) -> &'static str {
        if cfg!(debug_assertions) {
            self.refusals().iter().for_each(Refusal::keep);
        }
        self.own_code()
    }

    fn own_code(&self) -> &'static str {
        let word = match self {
            Error::InvalidConfig(_) => word!("config.invalid"),
            Error::UnsupportedModel { what, .. }
                if matches!(what.as_str(), "model_type" | "general.architecture") =>
            {
                word!("model.arch.unsupported")
            }
            Error::UnsupportedModel { .. } => word!("model.config.unsupported"),
            Error::NoAdapter { .. } => word!("device.no-adapter"),
            Error::LimitExceeded { .. } => word!("device.limit"),
            Error::DeviceLost { .. } => word!("device.lost"),
            Error::Refused(list) => {
                return list
                    .first()
                    .map_or("format.unsupported", |refusal| refusal.code);
            }
            Error::SourceRead { .. } => word!("source.read"),
            Error::SinkWrite { .. } => word!("sink.write"),
            Error::MissingTensors(_) => word!("model.tensor.missing"),
            Error::TensorShape { .. } => word!("model.tensor.shape"),
            Error::UnexpectedTensors(_) => word!("model.tensor.unexpected"),
            Error::TokenRange { .. } => word!("model.token-range"),
            Error::ContextExceeded { .. } => word!("model.context"),
            Error::Tokenizer { .. } => word!("tokenizer.invalid"),
            Error::TextNotEncodable { .. } => word!("tokenizer.text"),
            Error::Template { .. } => word!("tokenizer.template"),
            Error::DataTooShort { .. } => word!("data.too-short"),
            Error::DataNoTargets { .. } => word!("data.no-targets"),
            Error::DataEncoding { .. } => word!("data.encoding"),
            Error::DataTokens { .. } => word!("data.tokens"),
            Error::StateMismatch(_) => word!("optim.state-mismatch"),
            Error::ResumeMismatch(_) => word!("optim.resume-mismatch"),
            Error::Groups(_) => word!("optim.groups"),
            Error::NonFinite { .. } | Error::NonFiniteReleased { .. } => word!("train.non-finite"),
            Error::CheckpointCorrupt { .. } => word!("checkpoint.corrupt"),
            Error::CheckpointLength { .. } => word!("checkpoint.file.length"),
            Error::CheckpointHash { .. } => word!("checkpoint.chunk.hash"),
            Error::CheckpointContainer { word, .. } => *word,
            Error::CheckpointVersion { .. } => word!("checkpoint.version"),
            Error::ForeignBackend { .. } => word!("kernel.foreign-backend"),
            Error::MixedDevices { .. } => word!("kernel.mixed-devices"),
            Error::Aborted => word!("call.aborted"),
            Error::Busy { .. } => word!("session.busy"),
        };
        word.text()
    }

    /// Returns the upper-case name of the class that TypeScript shows.
    pub fn kind(&self) -> &'static str {
        // A refusal that was not made in this crate may have a code of its own.
        class(self.code()).unwrap_or(Class::BadModelFile).text()
    }
}

#[doc(hidden)]
impl Error {
    /// Returns the values that its sentences are made of: those of refused files, or of what else is wrong.
    pub fn refusals(&self) -> Cow<'_, [Refusal]> {
        if let Error::Refused(list) = self {
            return Cow::Borrowed(list);
        }
        let each = |names: &[String]| {
            names
                .iter()
                .map(|name| self.values([&shown(name), "", ""]))
                .collect()
        };
        let faults = |list: &[Fault]| {
            list.iter()
                .map(|fault| self.values([&fault.key, &fault.rule, &fault.value]))
                .collect()
        };
        Cow::Owned(match self {
            Error::InvalidConfig(list)
            | Error::StateMismatch(list)
            | Error::ResumeMismatch(list)
            | Error::Groups(list) => faults(list),
            Error::MissingTensors(names) | Error::UnexpectedTensors(names) => each(names),
            Error::UnsupportedModel {
                what,
                found,
                supported,
            } => vec![self.values([what, supported, found])],
            Error::LimitExceeded { limit, need, have } => {
                vec![self.values([limit, &need.to_string(), &have.to_string()])]
            }
            Error::SourceRead { name, reason } | Error::SinkWrite { name, reason } => {
                vec![self.values([name, "", reason])]
            }
            Error::Tokenizer { what, reason } | Error::CheckpointCorrupt { what, reason } => {
                vec![self.values([what, "", reason])]
            }
            Error::NoAdapter { reason }
            | Error::DeviceLost { reason }
            | Error::TextNotEncodable { reason }
            | Error::Template { reason }
            | Error::DataTokens { reason }
            | Error::CheckpointContainer { reason, .. } => vec![self.values(["", "", reason])],
            Error::TensorShape {
                name,
                expected,
                found,
            } => {
                vec![self.values([
                    &shown(name),
                    &format!("{expected:?}"),
                    &format!("{found:?}"),
                ])]
            }
            Error::TokenRange {
                id,
                position,
                vocab_size,
            } => {
                vec![self.values([
                    &position.to_string(),
                    &vocab_size.to_string(),
                    &id.to_string(),
                ])]
            }
            Error::ContextExceeded { found, max } => {
                vec![self.values(["", &max.to_string(), &found.to_string()])]
            }
            Error::DataTooShort { need, have } => {
                vec![self.values(["", &need.to_string(), &have.to_string()])]
            }
            Error::DataNoTargets { examples, seq_len } => {
                vec![self.values(["", &seq_len.to_string(), &examples.to_string()])]
            }
            Error::DataEncoding {
                file,
                byte_offset,
                byte,
                looks_like,
            } => {
                let values = self.values([
                    &byte_offset.to_string(),
                    looks_like.unwrap_or_default(),
                    &format!("{byte:#04x}"),
                ]);
                vec![Refusal {
                    artifact: escaped(file),
                    ..values
                }]
            }
            Error::NonFinite {
                step,
                tensor,
                value,
            } if tensor == "logits" => {
                let hint = "the weights may be damaged: inspect --read, in a browser inspectFiles with read, finds values that are not finite";
                vec![
                    self.values([
                        &format!("logit of token {step}"),
                        "a finite number",
                        &value.to_string(),
                    ])
                    .hint(hint),
                ]
            }
            Error::NonFinite {
                step,
                tensor,
                value,
            } => {
                vec![self.values([
                    &format!("{tensor} of step {step}"),
                    "a finite number",
                    &value.to_string(),
                ])]
            }
            Error::NonFiniteReleased { step, value } => {
                let hint =
                    "parameters were changed before this was known: go on from the last checkpoint";
                vec![
                    self.values([
                        &format!("grad_norm of step {step}"),
                        "a finite number",
                        &value.to_string(),
                    ])
                    .hint(hint),
                ]
            }
            Error::CheckpointVersion { found, supported } => {
                vec![self.values(["", &supported.to_string(), &found.to_string()])]
            }
            Error::CheckpointLength {
                file,
                expected,
                found,
            } => {
                vec![self.values([file, &format!("{expected} bytes"), &found.to_string()])]
            }
            Error::CheckpointHash {
                file,
                piece,
                expected,
                found,
            } => {
                vec![self.values([&format!("piece {piece} of {file}"), &shown(expected), found])]
            }
            Error::ForeignBackend { found } => vec![self.values(["", "", &shown(found)])],
            Error::MixedDevices { kernel, found } => {
                vec![self.values([kernel, "", &found.join(", ")])]
            }
            Error::Busy { doing } => vec![self.values(["", "", doing])],
            Error::Refused(_) | Error::Aborted => vec![self.values(["", "", ""])],
        })
    }

    /// Returns codes and values without sentences, which are the same in every build: for documents that are compared byte by byte.
    pub(crate) fn plain(&self) -> String {
        plain(&self.refusals())
    }

    /// Returns the values of this error: subject, expected and found; an empty one is absent.
    fn values(&self, values: [&str; 3]) -> Refusal {
        let [subject, expected, found] = values.map(escaped);
        Refusal {
            code: self.own_code(),
            ..Refusal::filled(word!("format.unsupported"), [&subject, &expected, &found])
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Error::Refused(vec![refusal])
    }
}

impl Error {
    /// Names the file in refusals that do not name one yet.
    pub(crate) fn in_file(self, name: &str) -> Self {
        self.map_refusals(|refusal| {
            if refusal.artifact.is_empty() {
                refusal.of(name)
            } else {
                refusal
            }
        })
    }

    pub(crate) fn map_refusals(self, change: impl Fn(Refusal) -> Refusal) -> Self {
        match self {
            Error::Refused(list) => Error::Refused(list.into_iter().map(change).collect()),
            other => other,
        }
    }
}
