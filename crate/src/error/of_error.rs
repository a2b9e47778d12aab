//! Determines the two names of every error, the dotted code and the class that TypeScript shows, and makes errors of refusals.

use std::borrow::Cow;
use std::fmt::{self, Display};

use super::sentence::{joined, plain};
use super::shown::{escaped, shown};
use super::{Class, Error, Fault, Refusal, class, word};

/// The expected value of a loss, a norm or a logit.
const FINITE: &str = "a finite number";

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

    /// Makes the error of one setting: `value` was given for `key`, which must satisfy `rule`.
    pub(crate) fn invalid(
        key: impl Into<String>,
        rule: impl Into<String>,
        value: impl std::fmt::Display,
    ) -> Self {
        Error::InvalidConfig(vec![Fault::new(key, rule, value)])
    }

    /// Lists all faults in one error, if there are any.
    ///
    /// # Errors
    /// `config.invalid`.
    pub(crate) fn of_faults(faults: Vec<Fault>) -> super::Result<()> {
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Error::InvalidConfig(faults))
        }
    }

    /// The stable dotted code of this error.
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

    /// The upper-case name of the class that TypeScript shows.
    pub fn kind(&self) -> &'static str {
        // A refusal that was not made in this crate may have a code of its own.
        class(self.code()).unwrap_or(Class::BadModelFile).text()
    }
}

#[doc(hidden)]
impl Error {
    /// The values that its sentences are made of: those of refused files, or of what else is wrong.
    pub fn refusals(&self) -> Cow<'_, [Refusal]> {
        let none = "";
        let refusal = match self {
            Error::Refused(list) => return Cow::Borrowed(list),
            Error::InvalidConfig(list)
            | Error::StateMismatch(list)
            | Error::ResumeMismatch(list)
            | Error::Groups(list) => {
                let of = |fault: &Fault| self.values([&fault.key, &fault.rule, &fault.value]);
                return list.iter().map(of).collect();
            }
            Error::MissingTensors(names) | Error::UnexpectedTensors(names) => {
                let of = |name: &String| self.values([&shown(name), &none, &none]);
                return names.iter().map(of).collect();
            }
            Error::UnsupportedModel {
                what,
                found,
                supported,
            } => self.values([what, supported, found]),
            Error::LimitExceeded { limit, need, have } => self.values([limit, need, have]),
            Error::SourceRead { name, reason } | Error::SinkWrite { name, reason } => {
                self.values([name, &none, reason])
            }
            Error::Tokenizer { what, reason } | Error::CheckpointCorrupt { what, reason } => {
                self.values([what, &none, reason])
            }
            Error::NoAdapter { reason }
            | Error::DeviceLost { reason }
            | Error::TextNotEncodable { reason }
            | Error::Template { reason }
            | Error::DataTokens { reason }
            | Error::CheckpointContainer { reason, .. } => self.values([&none, &none, reason]),
            Error::TensorShape {
                name,
                expected,
                found,
            } => {
                let [expected, found] = [expected, found].map(|shape| format!("{shape:?}"));
                self.values([&shown(name), &expected, &found])
            }
            Error::TokenRange {
                id,
                position,
                vocab_size,
            } => self.values([position, vocab_size, id]),
            Error::ContextExceeded { found, max } => self.values([&none, max, found]),
            Error::DataTooShort { need, have } => self.values([&none, need, have]),
            Error::DataNoTargets { examples, seq_len } => self.values([&none, seq_len, examples]),
            Error::DataEncoding {
                file,
                byte_offset,
                byte,
                looks_like,
            } => {
                let expected = looks_like.unwrap_or_default();
                Refusal {
                    artifact: escaped(file),
                    ..self.values([byte_offset, &expected, &format!("{byte:#04x}")])
                }
            }
            Error::NonFinite {
                step,
                tensor,
                value,
            } if tensor == "logits" => self
                .values([&format!("logit of token {step}"), &FINITE, value])
                .hint("the weights may be damaged: inspect --read, in a browser inspectFiles with read, finds values that are not finite"),
            Error::NonFinite {
                step,
                tensor,
                value,
            } => self.values([&format!("{tensor} of step {step}"), &FINITE, value]),
            Error::NonFiniteReleased { step, value } => self
                .values([&format!("grad_norm of step {step}"), &FINITE, value])
                .hint("parameters were changed before this was known: go on from the last checkpoint"),
            Error::CheckpointVersion { found, supported } => {
                self.values([&none, supported, found])
            }
            Error::CheckpointLength {
                file,
                expected,
                found,
            } => self.values([file, &format!("{expected} bytes"), found]),
            Error::CheckpointHash {
                file,
                piece,
                expected,
                found,
            } => self.values([&format!("piece {piece} of {file}"), &shown(expected), found]),
            Error::ForeignBackend { found } => self.values([&none, &none, &shown(found)]),
            Error::MixedDevices { kernel, found } => {
                self.values([kernel, &none, &found.join(", ")])
            }
            Error::Busy { doing } => self.values([&none, &none, doing]),
            Error::Aborted => self.values([&none; 3]),
        };
        Cow::Owned(vec![refusal])
    }

    /// Returns codes and values without sentences, which are the same in every build: for documents that are compared byte by byte.
    pub(crate) fn plain(&self) -> String {
        plain(&self.refusals())
    }

    /// Makes the values of this error: subject, expected and found; an empty one is absent.
    fn values(&self, values: [&dyn Display; 3]) -> Refusal {
        let values = values.map(|value| escaped(&value.to_string()));
        Refusal {
            code: self.own_code(),
            ..Refusal::filled(
                word!("format.unsupported"),
                values.each_ref().map(String::as_str),
            )
        }
    }
}

/// Fails with these refusals, if there are any.
pub(crate) fn refuse_all(refusals: Vec<Refusal>) -> super::Result<()> {
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(Error::Refused(refusals))
    }
}

/// Returns both values, or the refusals of both.
pub(crate) fn both<A, B>(
    first: super::Result<A>,
    second: super::Result<B>,
) -> super::Result<(A, B)> {
    match (first, second) {
        (Err(Error::Refused(mut refusals)), Err(Error::Refused(more))) => {
            refusals.extend(more);
            Err(Error::Refused(refusals))
        }
        (first, second) => Ok((first?, second?)),
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
