//! `tabtune-witness`: compares tabtune's kernels with Burn's own operations.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use tabtune_witness::cli::{Args, run};

fn main() -> ExitCode {
    match run(&Args::parse(), Vec::new()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
