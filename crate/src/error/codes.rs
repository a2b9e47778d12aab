//! The two words of every error: the dotted one, and the class that TypeScript shows.

use super::Error;

impl Error {
    /// The stable dotted word of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Error::InvalidConfig(_) => "config.invalid",
            Error::UnsupportedModel { what, .. } if matches!(what.as_str(), "model_type" | "general.architecture") => {
                "model.arch.unsupported"
            }
            Error::UnsupportedModel { .. } => "model.config.unsupported",
            Error::NoAdapter { .. } => "device.no-adapter",
            Error::LimitExceeded { .. } => "device.limit",
            Error::DeviceLost { .. } => "device.lost",
            Error::Refused(list) => list.first().map_or("file.refused", |r| r.code),
            Error::SourceRead { .. } => "source.read",
            Error::SinkWrite { .. } => "sink.write",
            Error::MissingTensors(_) => "model.tensor.missing",
            Error::TensorShape { .. } => "model.tensor.shape",
            Error::UnexpectedTensors(_) => "model.tensor.unexpected",
            Error::TokenRange { .. } => "model.token-range",
            Error::ContextExceeded { .. } => "model.context",
            Error::Tokenizer { .. } => "tokenizer.invalid",
            Error::TextNotEncodable { .. } => "tokenizer.text",
            Error::Template { .. } => "tokenizer.template",
            Error::DataTooShort { .. } => "data.too-short",
            Error::DataNoTargets { .. } => "data.no-targets",
            Error::DataLine { .. } => "data.line",
            Error::DataNotUtf8 { .. } => "data.utf8",
            Error::DataTokens { .. } => "data.tokens",
            Error::StateMismatch(_) => "optim.state-mismatch",
            Error::ResumeMismatch(_) => "optim.resume-mismatch",
            Error::Groups(_) => "optim.groups",
            Error::NonFinite { .. } | Error::NonFiniteReleased { .. } => "train.non-finite",
            Error::CheckpointCorrupt { .. } => "checkpoint.corrupt",
            Error::CheckpointLength { .. } => "checkpoint.file.length",
            Error::CheckpointHash { .. } => "checkpoint.chunk.hash",
            Error::CheckpointContainer { code, .. } => code,
            Error::CheckpointVersion { .. } => "checkpoint.version",
            Error::MixedDevices { .. } => "kernel.mixed-devices",
            Error::Aborted => "call.aborted",
            Error::Busy { .. } => "session.busy",
        }
    }

    /// The upper-case class that TypeScript shows (`spec/browser.md` §1).
    pub fn kind(&self) -> &'static str {
        match self {
            Error::InvalidConfig(_) | Error::Groups(_) => "BAD_OPTION",
            Error::UnsupportedModel { .. } => "UNSUPPORTED_ARCH",
            Error::NoAdapter { .. } => "NO_ADAPTER",
            Error::LimitExceeded { .. } => "LIMIT_EXCEEDED",
            Error::DeviceLost { .. } => "DEVICE_LOST",
            Error::Refused(list) => match list.first().map_or("", |r| r.code) {
                "gguf.tensor.type-unknown" | "gguf.tensor.type-unsupported" => "UNSUPPORTED_QUANT",
                "integrity.sha256" => "INTEGRITY",
                "source.too-large" => "LIMIT_EXCEEDED",
                code if code.starts_with("model.config.") && code != "model.config.type" => "UNSUPPORTED_ARCH",
                code if code.starts_with("export.") => "BAD_OPTION",
                _ => "BAD_MODEL_FILE",
            },
            Error::SourceRead { .. }
            | Error::MissingTensors(_)
            | Error::TensorShape { .. }
            | Error::UnexpectedTensors(_)
            | Error::Tokenizer { .. }
            | Error::Template { .. } => "BAD_MODEL_FILE",
            Error::SinkWrite { .. } => "STORAGE_FAILED",
            Error::TokenRange { .. }
            | Error::TextNotEncodable { .. }
            | Error::ContextExceeded { .. }
            | Error::DataTooShort { .. }
            | Error::DataNoTargets { .. }
            | Error::DataLine { .. }
            | Error::DataNotUtf8 { .. }
            | Error::DataTokens { .. } => "BAD_OPTION",
            Error::StateMismatch(_) | Error::ResumeMismatch(_) => "CHECKPOINT_MISMATCH",
            Error::NonFinite { .. } | Error::NonFiniteReleased { .. } => "NON_FINITE",
            Error::CheckpointCorrupt { .. }
            | Error::CheckpointLength { .. }
            | Error::CheckpointHash { .. }
            | Error::CheckpointContainer { .. } => "CHECKPOINT_CORRUPT",
            Error::MixedDevices { .. } => "SHADER_FAILED",
            Error::Aborted => "ABORTED",
            Error::CheckpointVersion { .. } => "CHECKPOINT_VERSION",
            Error::Busy { .. } => "BUSY",
        }
    }
}
