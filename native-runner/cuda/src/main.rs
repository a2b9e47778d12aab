//! `tabtune-cuda`: compares tabtune's kernels with Burn's own operations on CUDA. Without a CUDA device it reports that and succeeds, unless
//! REQUIRE_CUDA=1.
#![deny(unsafe_code)]

mod driver;

use std::panic::{catch_unwind, set_hook};
use std::process::ExitCode;
use std::sync::OnceLock;

use burn::tensor::Device;
use clap::Parser;
use tabtune_witness::cli::{Args, Seat, run};

/// Message of the first panic. Later ones, on the calling thread, only repeat that a thread of the runtime is gone.
static PANIC: OnceLock<String> = OnceLock::new();

fn main() -> ExitCode {
    let args = Args::parse();
    let found = match driver::device() {
        Ok(found) => found,
        Err(absent) if std::env::var_os("REQUIRE_CUDA").is_some_and(|value| value == "1") => {
            eprintln!("error: {absent}, and REQUIRE_CUDA=1");
            return ExitCode::FAILURE;
        }
        Err(absent) => {
            println!("skipped: {absent}");
            return ExitCode::SUCCESS;
        }
    };
    set_hook(Box::new(|panic| {
        let said = panic.payload_as_str().unwrap_or("no message");
        _ = PANIC.set(said.split_whitespace().collect::<Vec<_>>().join(" "));
    }));
    let ran = catch_unwind(|| {
        let cuda = Seat {
            name: "CUDA".into(),
            adapter: found.name.clone(),
            device: Device::cuda(0),
        };
        run(&args, vec![cuda]).map_err(|failure| failure.to_string())
    });
    match ran.unwrap_or_else(|_| {
        Err(format!(
            "a library panicked: {}",
            PANIC.get().map_or("no message", String::as_str)
        ))
    }) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("error: {}: {reason}", found.name);
            ExitCode::FAILURE
        }
    }
}
