//! `tabtune`: trains, evaluates and runs language models from a terminal.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use tabtune_native::args::{Cli, Command};
use tabtune_native::commands;
use tabtune_native::output::Output;

fn main() -> ExitCode {
    tabtune_native::run(|cli: Cli| {
        let output = Output::new(cli.json);
        Ok(match cli.command {
            Command::Train(args) => commands::train::run(&args, &output),
            Command::Data(args) => commands::data::run(&args, &output),
            Command::Evaluate(args) => commands::evaluate::run(&args, &output),
            Command::Estimate(args) => commands::estimate::run(&args, &output),
            Command::Generate(args) => commands::generate::run(&args, &output),
            Command::Chat(args) => commands::chat::run(&args, &output),
            Command::Score(args) => commands::score::run(&args, &output),
            Command::Detokenize(args) => commands::tokenize::back(&args, &output),
            Command::Tokenize(args) => commands::tokenize::run(&args, &output),
            Command::Tokenizer(args) => commands::tokenizer::run(&args, &output),
            Command::Schedule(args) => commands::schedule::run(&args, &output),
            Command::Inspect(args) => commands::inspect::run(&args, &output),
            Command::Bench(args) => commands::bench::run(&args, &output),
            Command::Export(args) => commands::export::run(&args, &output),
            Command::Convert(args) => commands::convert::run(&args, &output),
            Command::Delta(args) => commands::delta::run(&args, &output),
            Command::Adapter(args) => commands::adapter::run(&args, &output),
            Command::Verify(args) => commands::verify::run(&args, &output),
            Command::Check { args } => commands::developer::run("check", &args, cli.json),
        }?)
    })
}
