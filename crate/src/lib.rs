//! tabtune: train and fine-tune language models in a browser tab, and natively.
#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
#![deny(unsafe_code)]

pub mod config;
pub mod error;
pub mod interrupt;

pub mod device;
pub mod gpu;
pub mod parameters;
pub mod tokenizer;

pub mod bundle;
pub mod data;
pub mod schedule;

pub mod model;
pub mod optim;

pub mod generate;
pub mod train;

pub mod checkpoint;
pub mod export;

pub mod portable;

// Rooms that are public only for the packages of this workspace: the terminal program, the browser's core, tests and benchmarks. They are left
// out of the documentation, as are single items in the rooms above, and may change with every version.
#[doc(hidden)]
pub mod bf16;
#[doc(hidden)]
pub mod catalogue;
#[doc(hidden)]
pub mod families;
#[doc(hidden)]
pub mod formats;
#[doc(hidden)]
pub mod measure;
#[doc(hidden)]
pub mod ops;
mod platform;
#[doc(hidden)]
pub mod random;
#[cfg(feature = "replay")]
#[doc(hidden)]
pub mod replay;
#[doc(hidden)]
pub mod state;

pub use error::{Error, Result};
