//! Errors of the runner: an error of the crate, or a command that cannot be carried out.

use std::fmt;

use tabtune::checkpoint::can_override;
use tabtune::error::{Fault, Refusal, Word};
use tabtune::word;

use crate::signals::Signal;

/// `Result` with [`RunError`].
pub type Result<T> = std::result::Result<T, RunError>;

/// A failure with a stable code.
#[derive(Debug)]
pub enum RunError {
    /// An error of the crate.
    Tabtune(tabtune::Error),
    /// A command line that cannot be used.
    Usage(String),
    /// A JSON document of the user that is not valid.
    Json {
        /// Name of the file or option.
        name: String,
        /// Reason why it is not valid.
        reason: String,
    },
    /// A Python that cannot run the steps of `bench gpu --torch`.
    Torch {
        /// Path of the Python program.
        python: String,
        /// Reason: a missing package, or how the program failed.
        reason: String,
    },
    /// An output location that already holds something that must not be replaced.
    Occupied {
        /// Path of the folder or file.
        place: String,
        /// Description of the contents that were found.
        found: String,
    },
    /// A folder that another process writes into.
    Locked {
        /// Path of the folder.
        place: String,
    },
    /// The operating system refuses to register signal handlers.
    Signals(std::io::Error),
    /// A signal that arrived before the output was written.
    Ended(Signal),
    /// A step that has changed parameters although its gradient is not finite, so that there is nothing to save.
    Released {
        /// The error of the step.
        error: tabtune::Error,
        /// Description of what is saved.
        kept: String,
    },
    /// A closed or full stdout.
    Stdout(std::io::Error),
}

impl std::error::Error for RunError {}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = |values| write!(f, "{}", Refusal::filled(self.word(), values));
        match self {
            Self::Tabtune(error) => write!(f, "{error}{}", way_out(error)),
            Self::Released { error, kept } => write!(f, "{error} {kept}."),
            Self::Usage(reason) => told(["", "", reason]),
            Self::Json { name, reason } => told([name, "", reason]),
            Self::Torch { python, reason } => told([python, "", reason]),
            Self::Occupied { place, found } => told([place, "", found]),
            Self::Locked { place } => told(["", "", place]),
            Self::Signals(error) => {
                told(["", "", &format!("it cannot listen for signals, {error}")])
            }
            Self::Ended(signal) => told([signal.name, "", ""]),
            Self::Stdout(error) => told(["", "", &error.to_string()]),
        }
    }
}

impl From<tabtune::Error> for RunError {
    fn from(error: tabtune::Error) -> Self {
        Self::Tabtune(error)
    }
}

/// Returns a hint at the option that allows what a resume refused, or an empty text if there is none.
fn way_out(error: &tabtune::Error) -> String {
    let tabtune::Error::ResumeMismatch(faults) = error else {
        return String::new();
    };
    let keys: Vec<&str> = faults
        .iter()
        .map(|fault| fault.key.as_str())
        .filter(|key| can_override(key))
        .collect();
    if keys.is_empty() {
        String::new()
    } else {
        format!(
            " Accept the given values with --override {}.",
            keys.join(" ")
        )
    }
}

impl RunError {
    /// Returns the sentences of a list of faults with their codes; an empty list if there is only one.
    pub fn list(&self) -> Vec<(String, &'static str)> {
        match self {
            RunError::Tabtune(tabtune::Error::Refused(list)) if list.len() > 1 => {
                list.iter().map(|one| (one.to_string(), one.code)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the message with settings under the names that `option` gives them: those of the options that the person wrote.
    pub fn as_given(&self, option: impl Fn(&str) -> Option<String>) -> String {
        match self {
            RunError::Tabtune(tabtune::Error::InvalidConfig(faults)) => {
                let named = |fault: &Fault| Fault {
                    key: option(&fault.key).unwrap_or_else(|| fault.key.clone()),
                    ..fault.clone()
                };
                tabtune::Error::InvalidConfig(faults.iter().map(named).collect()).to_string()
            }
            other => other.to_string(),
        }
    }

    /// Returns the stable dotted code of the failure.
    pub fn code(&self) -> &'static str {
        match self {
            RunError::Tabtune(error) | RunError::Released { error, .. } => error.code(),
            other => other.word().text(),
        }
    }

    /// Returns the code of a failure that is none of the crate's.
    fn word(&self) -> Word {
        match self {
            RunError::Usage(_) => word!("cli.usage"),
            RunError::Json { .. } => word!("cli.json"),
            RunError::Torch { .. } => word!("bench.torch"),
            RunError::Occupied { .. } => word!("output.occupied"),
            RunError::Locked { .. } => word!("run.locked"),
            RunError::Ended(_) => word!("cli.ended"),
            RunError::Stdout(_) => word!("cli.stdout"),
            RunError::Tabtune(_) | RunError::Released { .. } | RunError::Signals(_) => {
                word!("cli.internal")
            }
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
            _ if many => {
                ": raise the limit, for example by `ulimit -n 4096`, or close other programs"
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                ": free some room, or write elsewhere"
            }
            ErrorKind::ReadOnlyFilesystem => ": write elsewhere",
            ErrorKind::PermissionDenied => ": ask the owner for permission, or name another place",
            _ => "",
        };
        Self(format!("{error}{hint}"))
    }
}

/// Makes the crate's error for a source that could not be read.
pub fn unreadable(name: impl std::fmt::Display, reason: impl Into<Reason>) -> tabtune::Error {
    tabtune::Error::SourceRead {
        name: name.to_string(),
        reason: reason.into().0,
    }
}

/// Makes the crate's error for an output that could not be written.
pub fn unwritable(name: impl std::fmt::Display, reason: impl Into<Reason>) -> tabtune::Error {
    tabtune::Error::SinkWrite {
        name: name.to_string(),
        reason: reason.into().0,
    }
}

/// Makes the error for a damaged checkpoint in one file.
pub fn damaged(word: Word, reason: impl std::fmt::Display) -> RunError {
    tabtune::Error::CheckpointContainer {
        word,
        reason: reason.to_string(),
    }
    .into()
}
