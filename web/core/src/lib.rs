//! The API for the browser's worker. Natively the library is empty.
#![cfg(target_family = "wasm")]
#![deny(missing_docs)]
#![deny(unsafe_code)]

mod choices;
mod data;
mod delta;
mod device;
mod error;
mod estimate;
mod exports;
mod extract;
mod inspect;
mod interrupt;
mod measure;
mod model;
#[cfg(feature = "replay")]
mod oracle;
mod panic;
mod plan;
mod reader;
#[cfg(feature = "replay")]
mod replay;
mod rows;
mod run;
mod session;
mod settings;
mod source;
mod stream;
mod tokenizer;
mod tokens;
mod values;
mod version;
