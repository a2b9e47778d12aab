//! `tabtune-dev`: what the developers of tabtune run, in addition to `tabtune`.
#![forbid(unsafe_code)]

mod bench;
mod check;
mod generate;
mod oracle;
mod replay;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tabtune_native::args::{DeviceName, StorageName};
use tabtune_native::output::Output;

/// Checks and measures tabtune.
#[derive(Debug, Parser)]
#[command(name = "tabtune-dev", version, about, propagate_version = true)]
struct Cli {
    /// Subcommand to run.
    #[command(subcommand)]
    command: Command,
    /// Print one JSON object per line on stdout, and nothing else.
    #[arg(long, global = true)]
    json: bool,
}

/// Subcommands of `tabtune-dev`.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run reference cases and compare the results with their expected numbers.
    Check(CheckArgs),
    /// Replay recorded trajectories through the optimizers and schedules.
    Replay(ReplayArgs),
    /// Measure time and memory on this device.
    Bench(bench::BenchArgs),
    /// Write the parts of TypeScript and the documents that repeat the Rust code, for `npm run generate`.
    Generate(generate::GenerateArgs),
    /// Print the JSON schema of the settings of a run.
    Schema,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// JSON file of reference cases.
    #[arg(value_name = "ORACLE.json")]
    pub oracle: PathBuf,
    /// Folder that the paths in the cases are relative to.
    #[arg(long, value_name = "DIR")]
    pub assets: PathBuf,
    /// Device to compute on.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
    /// Storage of the base of an adapter that is not merged.
    #[arg(long, value_enum, default_value = "stored")]
    pub base_storage: StorageName,
    /// Run only the cases with these ids, or with ids that begin with one of them and a dot [default: all].
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub only: Vec<String>,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Folder of recorded trajectories (.json).
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Device to compute on.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
}

fn main() -> ExitCode {
    tabtune_native::run(|cli: Cli| {
        let output = Output::new(cli.json);
        Ok(match cli.command {
            Command::Check(args) => check::run(&args, &output),
            Command::Replay(args) => replay::run(&args, &output),
            Command::Bench(args) => bench::run(&args, &output),
            Command::Generate(args) => generate::run(&args, &output),
            Command::Schema => generate::schema(&output),
        }?)
    })
}
