//! What can go wrong in the runner: the crate's error, or a command that makes no sense.

/// `Result` with [`RunError`].
pub type Result<T> = std::result::Result<T, RunError>;

/// A failure with a stable code.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The crate refused.
    #[error(transparent)]
    Tabtune(#[from] tabtune::Error),
    /// The command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A JSON document of the user's is not what it should be.
    #[error("{name}: {reason}")]
    Json {
        /// The file.
        name: String,
        /// Why.
        reason: String,
    },
    /// stdout is closed or full.
    #[error("cannot write to stdout: {0}")]
    Stdout(std::io::Error),
}

impl RunError {
    /// The stable dotted word.
    pub fn code(&self) -> &'static str {
        match self {
            RunError::Tabtune(error) => error.code(),
            RunError::Usage(_) => "cli.usage",
            RunError::Json { .. } => "cli.json",
            RunError::Stdout(_) => "cli.stdout",
        }
    }
}

/// The crate's error of a source that could not be read.
pub fn unreadable(name: impl std::fmt::Display, reason: impl std::fmt::Display) -> tabtune::Error {
    tabtune::Error::SourceRead { name: name.to_string(), reason: reason.to_string() }
}

/// The crate's error of a sink that could not be written.
pub fn unwritable(name: impl std::fmt::Display, reason: impl std::fmt::Display) -> tabtune::Error {
    tabtune::Error::SinkWrite { name: name.to_string(), reason: reason.to_string() }
}
