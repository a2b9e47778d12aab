//! The one error type of the crate.

mod class;
mod codes;
mod of_error;
mod refusal;
mod shown;
mod variants;
mod words;

pub(crate) use refusal::base_name;
pub use refusal::{Fault, Refusal};
pub(crate) use shown::unusual;
pub use variants::Error;

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    class::{Class, Raiser},
    codes::{CODES, Code, MEANINGS},
    shown::{escaped, shown},
    words::{Word, class, word},
};

/// `Result` with [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
