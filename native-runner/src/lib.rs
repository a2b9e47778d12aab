//! Rooms of the programs `tabtune` and `tabtune-dev`, which run the browser's crate from a terminal. They are for these programs only.
#![forbid(unsafe_code)]

pub mod args;
pub mod commands;
pub mod container;
pub mod data;
pub mod error;
pub mod files;
pub mod log_sink;
pub mod output;
pub mod place;
pub mod progress;
pub mod scratch;
pub mod selection;
pub mod settings;
pub mod signals;
pub mod waits;

use std::panic::UnwindSafe;
use std::process::ExitCode;

use clap::Parser;
use tabtune::error::Refusal;
use tabtune::word;

use commands::Outcome;
use error::RunError;
use output::Output;

/// Runs a program: reads its arguments, prints the failure of `command`, and returns the exit status.
pub fn run<C: Parser>(command: impl FnOnce(C) -> anyhow::Result<Outcome> + UnwindSafe) -> ExitCode {
    log_sink::install();
    waits::install();
    let json = std::env::args_os().any(|argument| argument == "--json");
    let outcome = || match args::read()? {
        Some(cli) => command(cli),
        None => Ok(Outcome::Good),
    };
    // A graphics driver may panic inside the libraries; the caller must still get one line that reports it.
    let outcome = std::panic::catch_unwind(outcome).unwrap_or_else(|_| {
        Err(anyhow::anyhow!(
            "a library panicked; its message is on stderr"
        ))
    });
    match outcome {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Bad) => ExitCode::FAILURE,
        Ok(Outcome::Status(status)) => ExitCode::from(status),
        Err(failure) => {
            let known = failure.downcast_ref::<RunError>();
            let other = || {
                Refusal::filled(word!("cli.internal"), ["", "", &format!("{failure:#}")])
                    .to_string()
            };
            let code = known.map_or(word!("cli.internal").text(), RunError::code);
            Output::new(json).failure(
                code,
                &known.map_or_else(other, |error| error.as_given(args::given_option)),
                &known.map(RunError::list).unwrap_or_default(),
            );
            match known {
                Some(RunError::Ended(signal)) => ExitCode::from(signal.status()),
                _ => ExitCode::FAILURE,
            }
        }
    }
}
