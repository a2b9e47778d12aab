//! `tabtune bench`: time and memory on this device. Every figure is measured.

mod memory;
mod optimizers;

use clap::{Args, ValueEnum};

use super::{Outcome, open_device};
use crate::args::DeviceName;
use crate::error::Result;
use crate::output::Output;

/// `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// What to measure.
    #[arg(value_enum)]
    pub subject: BenchSubject,
    /// Elements of the matrix that the optimizers update, in whole rows of 2048.
    #[arg(long, value_name = "N", default_value_t = 4_194_304, value_parser = clap::value_parser!(u64).range(2048..=268_435_456))]
    pub elements: u64,
    /// Blocks of the model whose memory is measured; each has 0.85 million parameters.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub layers: u64,
    /// Where to compute.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
}

/// What `bench` measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchSubject {
    /// One step of each optimizer against a copy of the same bytes.
    Optimizers,
    /// Bytes on the device per trained parameter; exit status 1 if a bound is broken.
    Memory,
}

/// Prints one line per measurement.
pub fn run(args: &BenchArgs, output: &Output) -> Result<Outcome> {
    let device = open_device(args.device)?;
    match args.subject {
        BenchSubject::Optimizers => optimizers::run(args.elements as usize, &device, output),
        BenchSubject::Memory => memory::run(args.layers as usize, &device, output),
    }
}
