//! The one error type of the crate.

mod class;
mod codes;
#[cfg(all(debug_assertions, not(target_family = "wasm")))]
mod examples;
mod of_error;
mod refusal;
mod sentence;
mod shown;
mod variants;
mod warning;
mod words;

pub(crate) use of_error::{both, refuse_all};
pub(crate) use refusal::base_name;
pub use refusal::{Fault, Refusal};
pub(crate) use shown::unusual;
pub use variants::Error;
pub use warning::Warning;
pub(crate) use warning::{MAX_LISTED, add_refusal, add_warning};

#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
pub use codes::SENTENCES;

#[cfg(all(debug_assertions, not(target_family = "wasm")))]
#[doc(hidden)]
pub use examples::examples;

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    class::{Class, Raiser},
    codes::{CODES, Code},
    shown::{escaped, shown},
    words::{Word, class, word},
};

/// `Result` with [`enum@Error`] ([example](crate)).
pub type Result<T, E = Error> = std::result::Result<T, E>;
