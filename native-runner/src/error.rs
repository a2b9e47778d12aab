//! Errors of the runner: an error of the crate, or a command that cannot be carried out.

use tabtune::checkpoint::can_override;
use tabtune::error::Word;
use tabtune::word;

use crate::signals::Signal;

/// `Result` with [`RunError`].
pub type Result<T> = std::result::Result<T, RunError>;

/// A failure with a stable code.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An error of the crate. Its whole text is shown here, so it is not returned as a source as well.
    #[error("{0}{hint}", hint = way_out(.0))]
    Tabtune(tabtune::Error),
    /// A command line that cannot be used.
    #[error("{0}")]
    Usage(String),
    /// A JSON document of the user that is not valid.
    #[error("{name}: {reason}")]
    Json {
        /// Name of the file or option.
        name: String,
        /// Reason why it is not valid.
        reason: String,
    },
    /// A Python that cannot run the steps of `bench gpu --torch`.
    #[error("{python}: expected a Python with PyTorch and transformers, found: {reason}")]
    Torch {
        /// Path of the Python program.
        python: String,
        /// Reason: a missing package, or how the program failed.
        reason: String,
    },
    /// An output location that already holds something that must not be replaced.
    #[error(
        "{place}: expected a new or empty folder, that of a checkpoint, or a new file; found {found}. Nothing was changed: name another place"
    )]
    Occupied {
        /// Path of the folder or file.
        place: String,
        /// Description of the contents that were found.
        found: String,
    },
    /// A folder that another process writes into.
    #[error(
        "{place}: expected a folder that no other process writes into, found one that a run of tabtune saves in: wait for its end, or name another folder"
    )]
    Locked {
        /// Path of the folder.
        place: String,
    },
    /// The operating system refuses to register signal handlers.
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    /// A signal that arrived before the output was written.
    #[error("ended by {}: nothing was written", .0.name)]
    Ended(Signal),
    /// A step that has changed parameters although its gradient is not finite, so that there is nothing to save; with what is saved.
    #[error("{0}")]
    Released(String),
    /// A closed or full stdout.
    #[error("cannot write to stdout: {0}")]
    Stdout(std::io::Error),
}

impl From<tabtune::Error> for RunError {
    fn from(error: tabtune::Error) -> Self {
        Self::Tabtune(error)
    }
}

/// Returns a hint at the option that allows what a resume refused, or an empty text if there is none.
fn way_out(error: &tabtune::Error) -> String {
    let tabtune::Error::ResumeMismatch(faults) = error else { return String::new() };
    let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).filter(|key| can_override(key)).collect();
    if keys.is_empty() { String::new() } else { format!(". Accept the given values with --override {}", keys.join(" ")) }
}

impl RunError {
    /// Returns the items of a message that lists more than one fault; otherwise an empty list.
    pub fn list(&self) -> Vec<String> {
        match self {
            RunError::Tabtune(tabtune::Error::Refused(list)) if list.len() > 1 => list.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the stable dotted code of the failure.
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
            RunError::Released(_) => word!("train.non-finite").text(),
            RunError::Stdout(_) => word!("cli.stdout").text(),
        }
    }
}

/// Reason of a failure, with what to do where the operating system's words do not say it.
pub struct Reason(String);

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Reason {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

impl From<&str> for Reason {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

impl From<std::io::Error> for Reason {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind;
        // ENFILE and EMFILE have no kind.
        let many = cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24));
        let hint = match error.kind() {
            _ if many => ": raise the limit, for example by `ulimit -n 4096`, or close other programs",
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ": free some room, or write elsewhere",
            ErrorKind::ReadOnlyFilesystem => ": write elsewhere",
            ErrorKind::PermissionDenied => ": ask the owner for permission, or name another place",
            _ => "",
        };
        Self(format!("{error}{hint}"))
    }
}

/// Makes the crate's error for a source that could not be read.
pub fn unreadable(name: impl std::fmt::Display, reason: impl Into<Reason>) -> tabtune::Error {
    tabtune::Error::SourceRead { name: name.to_string(), reason: reason.into().0 }
}

/// Makes the crate's error for an output that could not be written.
pub fn unwritable(name: impl std::fmt::Display, reason: impl Into<Reason>) -> tabtune::Error {
    tabtune::Error::SinkWrite { name: name.to_string(), reason: reason.into().0 }
}

/// Makes the error for a damaged checkpoint in one file.
pub fn damaged(word: Word, reason: impl std::fmt::Display) -> RunError {
    tabtune::Error::CheckpointContainer { word, reason: reason.to_string() }.into()
}
