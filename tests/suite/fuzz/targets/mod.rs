//! Targets of the fuzzing: their seeds, their words, and how files are answered.

mod adapter;
mod blocks;
mod gguf;
mod index;
mod manifest;
mod safetensors;
mod state_json;
mod tokenizer;

use std::any::Any;
use std::collections::BTreeSet;

use tabtune::bundle::{FileFormat, InspectReport, inspect};
use tabtune::formats::MemorySource;

pub use adapter::ADAPTER;
pub use blocks::BLOCKS;
pub use gguf::GGUF;
pub use index::INDEX;
pub use manifest::MANIFEST;
pub use safetensors::SAFETENSORS;
pub use state_json::STATE_JSON;
pub use tokenizer::TOKENIZER;

use super::mutation::Random;
use crate::hostile::{bytes_of, cases};

/// Makes a file from others and from words.
type Change = fn(&mut Random, &[Vec<u8>], &[&str]) -> Vec<u8>;

/// One reader of files.
pub struct Target {
    pub name: &'static str,
    /// Files to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that are inserted into files now and then.
    pub words: &'static [&'static str],
    /// Function that makes the next file.
    pub change: Change,
    /// Function that reads a file and summarises the result.
    pub answer: fn(&[u8]) -> String,
    /// Minimum number of different answers to 20,000 files, which shows that the files reach all parts of the reader; half as many to fewer.
    pub answers: usize,
}

/// Returns the message of a panic.
pub fn as_text(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| cause.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

pub fn golden(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/golden/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Returns the hostile files of a format.
pub fn hostile(format: &str) -> Vec<Vec<u8>> {
    let files: Vec<_> = cases()
        .iter()
        .filter(|case| case["format"] == format)
        .map(bytes_of)
        .collect();
    files
        .into_iter()
        .filter(|file| file.len() < 16 << 10)
        .collect()
}

/// Summarises a report: code, stage and warnings.
pub fn in_short(report: &InspectReport) -> String {
    assert_eq!(report.ok, report.code.is_none());
    let warnings: BTreeSet<&str> = report.warnings.iter().map(|warning| warning.code).collect();
    format!(
        "{} {} {warnings:?}",
        report.code.unwrap_or("ok"),
        report.stage
    )
}

pub fn inspected(format: FileFormat, file: &[u8]) -> InspectReport {
    inspect(
        &MemorySource::new("f", file),
        Some(format),
        || Ok(vec![]),
        true,
    )
}
