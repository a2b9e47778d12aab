//! Determines the two names of every error, the dotted code and the class that TypeScript shows, and makes errors of refusals.

use std::fmt::Display;

use super::{Class, Error, Refusal, class, word};

impl Error {
    /// Creates the error of a lost device, for a reason that other crates give in several lines, with their backtrace.
    #[doc(hidden)]
    pub fn device_lost(reason: impl Display) -> Self {
        let text = reason.to_string();
        let lines = text.lines().map(str::trim).take_while(|line| *line != "Backtrace:");
        let reason = lines.filter(|line| !line.is_empty() && *line != "Caused by:").collect::<Vec<_>>().join(": ");
        Error::DeviceLost { reason }
    }

    /// Returns the stable dotted code of this error.
    pub fn code(&self) -> &'static str {
        let word = match self {
            Error::InvalidConfig(_) => word!("config.invalid"),
            Error::UnsupportedModel { what, .. } if matches!(what.as_str(), "model_type" | "general.architecture") => {
                word!("model.arch.unsupported")
            }
            Error::UnsupportedModel { .. } => word!("model.config.unsupported"),
            Error::NoAdapter { .. } => word!("device.no-adapter"),
            Error::LimitExceeded { .. } => word!("device.limit"),
            Error::DeviceLost { .. } => word!("device.lost"),
            Error::Refused(list) => return list.first().map_or("format.unsupported", |refusal| refusal.code),
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
        if let Error::Refused(list) = self
            && list.first().is_some_and(|first| first.code == word!("adapter.target.unmatched").text() && first.artifact.is_empty())
        {
            // The target comes from a setting, not from a file.
            return Class::BadOption.text();
        }
        // A refusal that was not made in this crate may have a code of its own.
        class(self.code()).unwrap_or(Class::BadModelFile).text()
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
        self.map_refusals(|refusal| if refusal.artifact.is_empty() { refusal.of(name) } else { refusal })
    }

    pub(crate) fn map_refusals(self, change: impl Fn(Refusal) -> Refusal) -> Self {
        match self {
            Error::Refused(list) => Error::Refused(list.into_iter().map(change).collect()),
            other => other,
        }
    }
}
