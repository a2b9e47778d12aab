//! tabtune: train and fine-tune language models in a browser tab, and natively.
#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
#![deny(unsafe_code)]

pub mod error;
pub mod platform;

pub mod bf16;
pub mod config;
pub mod interrupt;
pub mod random;

pub mod device;
pub mod formats;
pub mod gpu;
pub mod parameters;
pub mod tokenizer;

pub mod bundle;
pub mod data;
pub mod families;
pub mod ops;
pub mod schedule;
pub mod state;

pub mod model;
pub mod optim;

pub mod catalogue;
pub mod generate;
pub mod measure;
pub mod train;

pub mod checkpoint;
pub mod export;

pub mod portable;
#[cfg(feature = "replay")]
pub mod replay;

pub use error::{Error, Result};
