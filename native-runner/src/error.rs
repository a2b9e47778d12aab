//! What can go wrong in the runner: the crate's error, or a command that makes no sense.

use tabtune::checkpoint::can_override;
use tabtune::error::Word;
use tabtune::word;

use crate::signals::Signal;

/// `Result` with [`RunError`].
pub type Result<T> = std::result::Result<T, RunError>;

/// A failure with a stable code.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An error of the crate. Its whole text is shown here, so it is not repeated as a source.
    #[error("{0}{hint}", hint = way_out(.0))]
    Tabtune(tabtune::Error),
    /// The command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A JSON document of the user is not valid.
    #[error("{name}: {reason}")]
    Json {
        /// The file.
        name: String,
        /// Why.
        reason: String,
    },
    /// A Python that cannot make the steps of `bench gpu --torch`.
    #[error("{python}: expected a Python with PyTorch and transformers, found: {reason}")]
    Torch {
        /// The program.
        python: String,
        /// What it lacks, or how it failed.
        reason: String,
    },
    /// A place with something that is not ours.
    #[error(
        "{place}: expected a new or empty folder, that of a checkpoint, or a new file; found {found}. Nothing was changed: name another place"
    )]
    Occupied {
        /// The folder or file.
        place: String,
        /// What is there.
        found: String,
    },
    /// A folder that another process writes into.
    #[error(
        "{place}: expected a folder that no other process writes into, found one that a run of tabtune saves in: wait for its end, or name another folder"
    )]
    Locked {
        /// The folder.
        place: String,
    },
    /// The system does not let signals be heard.
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    /// A signal came before the output was written.
    #[error("ended by {}: nothing was written", .0.name)]
    Ended(Signal),
    /// stdout is closed or full.
    #[error("cannot write to stdout: {0}")]
    Stdout(std::io::Error),
}

impl From<tabtune::Error> for RunError {
    fn from(error: tabtune::Error) -> Self {
        Self::Tabtune(error)
    }
}

/// The option that would allow what a resume refused, if there is one.
fn way_out(error: &tabtune::Error) -> String {
    let tabtune::Error::ResumeMismatch(faults) = error else { return String::new() };
    let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).filter(|key| can_override(key)).collect();
    if keys.is_empty() { String::new() } else { format!(". Accept the given values with --override {}", keys.join(" ")) }
}

impl RunError {
    /// What the message lists, where that is more than one thing.
    pub fn list(&self) -> Vec<String> {
        match self {
            RunError::Tabtune(tabtune::Error::Refused(list)) if list.len() > 1 => list.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }

    /// The stable dotted word.
    pub fn code(&self) -> &'static str {
        match self {
            RunError::Tabtune(error) => error.code(),
            RunError::Usage(_) => word!("cli.usage").text(),
            RunError::Json { .. } => word!("cli.json").text(),
            RunError::Torch { .. } => word!("bench.torch").text(),
            RunError::Occupied { .. } => word!("output.occupied").text(),
            RunError::Locked { .. } => word!("run.locked").text(),
            RunError::Signals(_) => word!("cli.internal").text(),
            RunError::Ended(_) => word!("cli.ended").text(),
            RunError::Stdout(_) => word!("cli.stdout").text(),
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

/// The error of a checkpoint in one file that is not whole.
pub fn damaged(word: Word, reason: impl std::fmt::Display) -> RunError {
    tabtune::Error::CheckpointContainer { word, reason: reason.to_string() }.into()
}
