//! `tabtune tokenizer`: makes tokenizers for new models.

use std::cell::Cell;
use std::path::Path;

use futures_lite::future::block_on;
use serde_json::json;
use tabtune::bundle::FileStream;
use tabtune::config::DataSettings;
use tabtune::data::train_tokenizer;
use tabtune::tokenizer::{BpeSettings, BpeTrainer, Tokenizer};

use super::Outcome;
use crate::args::{TokenizerAction, TokenizerArgs, TrainTokenizerArgs};
use crate::data::DataFiles;
use crate::error::{Result, RunError};
use crate::files::file_name;
use crate::output::{Output, warning_line};
use crate::place::OneFile;
use crate::progress::Progress;
use crate::signals::Signals;

/// Trains a tokenizer, and writes it as a tokenizer.json.
///
/// # Errors
/// `config.invalid` for the settings, `output.occupied`, `cli.ended` after a signal, and errors of reading the data and of writing.
pub fn run(args: &TokenizerArgs, output: &Output) -> Result<Outcome> {
    match &args.action {
        TokenizerAction::Train(args) => train(args, output),
    }
}

fn train(args: &TrainTokenizerArgs, output: &Output) -> Result<Outcome> {
    let mut settings = BpeSettings {
        vocab_size: args.vocab_size,
        min_frequency: args.min_frequency,
        ..BpeSettings::default()
    };
    settings.special_tokens.extend_from_slice(&args.special);
    // Before a file is opened.
    BpeTrainer::new(settings.clone())?;
    let place = OneFile::new(&args.out)?;
    let files = DataFiles::of(&args.data)?;
    if let Some(warning) = files.passed_over() {
        output.line(&json!({ "warning": warning }), || {
            warning_line(&warning.message, warning.code)
        })?;
    }
    let tokenizer = learned(&files, settings, output)?;
    let size = tokenizer.vocab_size();
    let path = write(&place, &args.out, &tokenizer)?;
    output.line(&json!({ "file": path, "vocab_size": size }), || {
        format!("{path}: {size} tokens")
    })?;
    Ok(Outcome::Good)
}

/// Learns the vocabulary, with its progress on stderr. A first signal ends the reading, a second one the process.
fn learned(files: &DataFiles, settings: BpeSettings, output: &Output) -> Result<Tokenizer> {
    let signals = Signals::listen().map_err(RunError::Signals)?;
    let bar = Progress::new(100, 0, !output.json());
    let (total, told) = (files.bytes().max(1), Cell::new(0));
    let mut progress = |read: u64| {
        let percent = (read.saturating_mul(100) / total).min(100);
        if told.replace(percent) != percent {
            bar.step(percent, "percent read".into());
        }
    };
    let made = block_on(train_tokenizer(
        &files.files(),
        &DataSettings::default(),
        settings,
        &signals.interrupt(),
        &mut progress,
    ));
    bar.end();
    match signals.taken() {
        Some(signal) => Err(RunError::Ended(signal)),
        None => Ok(made?),
    }
}

/// Writes the `tokenizer.json`, and returns its path.
fn write(place: &OneFile, path: &Path, tokenizer: &Tokenizer) -> Result<String> {
    let mut stream = FileStream::new();
    let document = tokenizer.assets().into_iter().next();
    let (_, document) = document.expect("a tokenizer has its tokenizer.json");
    stream.push_bytes(&file_name(path), document);
    let written = place.write(&mut stream)?;
    let paths = written.iter().map(|path| path.display().to_string());
    Ok(paths.collect::<Vec<_>>().join(" "))
}
