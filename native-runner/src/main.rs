//! `tabtune`: runs the browser's crate from a terminal.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod container;
mod data;
mod error;
mod files;
mod log_sink;
mod oracle;
mod output;
mod place;
mod progress;
mod scratch;
mod selection;
mod settings;
mod signals;
mod waits;

use std::process::ExitCode;

use args::{Cli, Command};
use commands::Outcome;
use error::RunError;
use output::Output;

fn main() -> ExitCode {
    log_sink::install();
    waits::install();
    let json = std::env::args_os().any(|argument| argument == "--json");
    // A graphics driver may panic inside the libraries; the caller must still get one line that reports it.
    let outcome = std::panic::catch_unwind(run).unwrap_or_else(|_| Err(anyhow::anyhow!("a library panicked; its message is on stderr")));
    match outcome {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Bad) => ExitCode::FAILURE,
        Ok(Outcome::Signal(status)) => ExitCode::from(status),
        Err(failure) => {
            let known = failure.downcast_ref::<RunError>();
            let code = known.map_or(tabtune::word!("cli.internal").text(), RunError::code);
            Output::new(json).failure(code, &format!("{failure:#}"), &known.map(RunError::list).unwrap_or_default());
            match known {
                Some(RunError::Ended(signal)) => ExitCode::from(signal.status()),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn run() -> anyhow::Result<Outcome> {
    let Some(cli) = Cli::read()? else { return Ok(Outcome::Good) };
    let output = Output::new(cli.json);
    let outcome = match cli.command {
        Command::Train(args) => commands::train::run(&args, &output),
        Command::Data(args) => commands::data::run(&args, &output),
        Command::Evaluate(args) => commands::evaluate::run(&args, &output),
        Command::Estimate(args) => commands::estimate::run(&args, &output),
        Command::Generate(args) => commands::generate::run(&args, &output),
        Command::Chat(args) => commands::chat::run(&args, &output),
        Command::Score(args) => commands::score::run(&args, &output),
        Command::Detokenize(args) => commands::tokenize::back(&args, &output),
        Command::Tokenize(args) => commands::tokenize::run(&args, &output),
        Command::Schedule(args) => commands::schedule::run(&args, &output),
        Command::Inspect(args) => commands::inspect::run(&args, &output),
        Command::Check(args) => commands::check::run(&args, &output),
        Command::Replay(args) => commands::replay::run(&args, &output),
        Command::Bench(args) => commands::bench::run(&args, &output),
        Command::Export(args) => commands::export::run(&args, &output),
        Command::Convert(args) => commands::convert::run(&args, &output),
        Command::Delta(args) => commands::delta::run(&args, &output),
        Command::Adapter(args) => commands::adapter::run(&args, &output),
        Command::Verify(args) => commands::verify::run(&args, &output),
        Command::Schema => commands::schema::run(&output),
    }?;
    Ok(outcome)
}
