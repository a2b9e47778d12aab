//! Trains and fine-tunes language models on WebGPU, in a browser tab or natively: it opens the files of a model, trains all of its weights or an
//! adapter, evaluates, generates text, and writes the result for other programs. It reads no files itself and starts no threads; the caller
//! gives bytes through [`ByteSource`](bundle::ByteSource) and runs the loop.
//!
//! ```
//! use std::rc::Rc;
//! use tabtune::bundle::{ByteSource, FileStream, ModelAssets};
//! use tabtune::config::{AdapterConfig, Form, TrainConfig};
//! use tabtune::data::Dataset;
//! use tabtune::device::{Device, DeviceKind};
//! use tabtune::export::{ExportFormat, ExportOptions, ExportSource, export};
//! use tabtune::interrupt::Interrupt;
//! use tabtune::model::{Model, open_model};
//! use tabtune::train::Trainer;
//!
//! /// Trains an adapter for a model on a text. Returns the adapter's files, which PEFT opens.
//! async fn fine_tune(files: Vec<Rc<dyn ByteSource>>, text: &[u8]) -> tabtune::Result<FileStream> {
//!     let device = Device::open(DeviceKind::Wgpu).await?;
//!     let bundle = open_model(files)?;
//!     let config = TrainConfig { steps: 100, adapter: Some(AdapterConfig::default()), ..TrainConfig::default() };
//!     let data = Dataset::from_bytes(text, Form::Text, bundle.need_tokenizer()?, config.validation_fraction)?;
//!     let model = Model::for_run(&bundle, &config, &device.inner(), &Interrupt::none()).await?;
//!     let mut trainer = Trainer::new(model, data, config)?;
//!     for _ in 0..100 {
//!         let report = trainer.step().await?;
//!         println!("step {}: loss {:.3}", report.step, report.loss);
//!     }
//!     let source = ExportSource::of_trainer(&trainer, ModelAssets::of_bundle(&bundle), Some(bundle.base.clone()), "my text")?;
//!     export(&source, Vec::new(), &ExportOptions { format: ExportFormat::Peft, ..ExportOptions::default() }).await
//! }
//! ```
//!
//! Start with [`model::open_model`] or [`model::Model::init`], then [`train::Trainer`]; [`config::TrainConfig`] has every setting. To train a Burn
//! module of your own, see [below](#any-burn-module).
//!
//! | room | contents |
//! |---|---|
//! | [`config`] | settings of a run: optimizer, groups, schedule, adapter, data |
//! | [`device`] | the GPU, or the CPU as a reference |
//! | [`bundle`] | files of a model: bytes in, streams of bytes out |
//! | [`tokenizer`] | text to tokens and back, chat templates |
//! | [`data`] | a text or rows as training data |
//! | [`model`] | language models: open, create, run |
//! | [`train`] | the trainer, its reports, evaluation |
//! | [`generate`] | text from a model, token by token |
//! | [`checkpoint`] | save a run, and resume it with the same bits |
//! | [`export`] | weights and adapters for other programs |
//! | [`portable`], [`state`] | models as plain data, from every container to every container |
//! | [`optim`], [`schedule`], [`parameters`] | optimizers, rates and names for any Burn module, and rules of your own |
//! | [`gpu`], [`kernel!`] | kernels of your own |
//! | [`interrupt`] | ends long work early |
//! | [`error`] | the one error type |
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
pub mod state;

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

pub use error::{Error, Result};
