//! `tabtune-dev bench`: measures time and memory on this device. Every figure is measured, none is estimated.

mod adapter;
mod files;
mod kernels;
mod memory;
mod model_memory;
mod optimizers;
mod registers;
mod step;
mod usage;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use tabtune::device::Device;

use tabtune_bench::work::{MEDIUM, SMALL, Shape, TINY};
use tabtune_native::args::DeviceName;
use tabtune_native::commands::bench::wait_for_queue;
use tabtune_native::commands::{Outcome, open_device};
use tabtune_native::error::Result;
use tabtune_native::output::Output;

const WARM_UPS: usize = 2;
const REPETITIONS: usize = 9;

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Subject of the measurement.
    #[arg(value_enum)]
    pub subject: BenchSubject,
    /// For `optimizers`: number of elements of the matrix, in whole rows of 2048.
    #[arg(long, value_name = "N", default_value_t = 4_194_304, value_parser = clap::value_parser!(u64).range(2048..=268_435_456))]
    pub elements: u64,
    /// For `memory`: number of blocks of the model; each has 0.85 million parameters.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub layers: u64,
    /// For `memory`: GGUF file or safetensors folder of a model, a step of which is measured instead.
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// For `memory` with --model: precision of the weights, f32 or bf16.
    #[arg(long, value_name = "WORD", default_value = "bf16", requires = "model")]
    pub precision: String,
    /// For `memory` with --model: update rule, such as adafactor.
    #[arg(long, value_name = "WORD", default_value = "adamw", requires = "model")]
    pub optimizer: String,
    /// For `memory` with --model: update each block as soon as its gradients are complete.
    #[arg(long, requires = "model")]
    pub gradient_release: bool,
    /// For `memory` with --model: recompute each block in the backward pass.
    #[arg(long, requires = "model")]
    pub gradient_checkpointing: bool,
    /// For `memory` with --model: train this many blocks at a time, and recompute each in the backward pass.
    #[arg(long, value_name = "K", requires = "model")]
    pub block_coordinate: Option<u64>,
    /// Blocks that train in the measured step: ascending for the first ones, whose step takes most, or descending for the last ones.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "ascending",
        requires = "block_coordinate"
    )]
    pub block_order: String,
    /// For `memory` with --model: number of micro-batches in the step.
    #[arg(long, value_name = "K", default_value_t = 1, requires = "model", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub gradient_accumulation_steps: u64,
    /// For `memory` with --model: train an adapter of this rank on the base as its files store it.
    #[arg(long, value_name = "R", requires = "model")]
    pub rank: Option<u64>,
    /// For `memory` with --model: the most MiB that a kernel may bind of one buffer, as on a smaller device. Larger tables lie in parts.
    #[arg(long, value_name = "MIB", requires = "model")]
    pub binding: Option<u64>,
    /// For `step` and `kernels`: model whose steps or kernel shapes are measured.
    #[arg(long, value_enum, default_value = "tiny")]
    pub size: Size,
    /// For `step`, `adapter` and `kernels`, and with --model: sequence length in tokens; `step`, `adapter` and `kernels` then use one sequence
    /// [default: the sequences of --size; 512 with --model].
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub seq_len: Option<u64>,
    /// For `step` and `adapter`: number of measured steps, after warm-up steps.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub steps: u64,
    /// For `step`: also train the same model with Burn's own operations, in alternation, and print the ratio of the times.
    #[arg(long)]
    pub stock: bool,
    /// For `registers`: compile only kernels that GPUs run, for one of the two GPUs.
    #[arg(long)]
    pub quick: bool,
    /// Device to compute on.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
}

impl BenchArgs {
    /// Returns the number of measured steps of the benchmark's model.
    fn measured_steps(&self) -> usize {
        self.steps as usize
    }

    fn shape(&self) -> Shape {
        let shape = match self.size {
            Size::Tiny => TINY,
            Size::Small => SMALL,
            Size::Medium => MEDIUM,
        };
        self.seq_len.map_or(shape, |seq_len| Shape {
            seq_len: seq_len as usize,
            batch_size: 1,
            ..shape
        })
    }
}

/// Size of the benchmark's model (`tests/bench`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// 0.92 M parameters, 4 sequences of 128 tokens.
    Tiny,
    /// 5.8 M parameters, 4 sequences of 256 tokens.
    Small,
    /// 33.6 M parameters, 2 sequences of 512 tokens.
    Medium,
}

/// Subjects of `bench`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchSubject {
    /// One step of each optimizer, compared with a copy of the same number of bytes.
    Optimizers,
    /// Training steps of the benchmark's model (`tests/bench`).
    Step,
    /// Training steps of a rank-16 adapter on the small model, with each type of packed base and with the same weights in f32.
    Adapter,
    /// Each kernel at the shapes of the benchmark's model, compared with a copy.
    Kernels,
    /// Bytes on the device per trained parameter. The exit status is 1 if a bound is exceeded.
    Memory,
    /// Registers, spills and machine code of every kernel for two AMD GPUs, compiled by Mesa's RADV on a machine without them.
    Registers,
    /// Opening, decoding, encoding, hashing and exporting a model of 200 MB in memory.
    Files,
}

/// Runs the measurement and prints one line per result.
///
/// # Errors
/// Errors of the device and of the measurement.
pub fn run(args: &BenchArgs, output: &Output) -> Result<Outcome> {
    let device = || open_device(args.device);
    match args.subject {
        BenchSubject::Optimizers => optimizers::run(args.elements as usize, &device()?, output)?,
        BenchSubject::Adapter => adapter::run(args, &device()?, output)?,
        BenchSubject::Step => step::run(args, &device()?, output)?,
        BenchSubject::Kernels => kernels::run(args, &device()?, output)?,
        BenchSubject::Registers => registers::run(args.quick, output)?,
        BenchSubject::Files => files::run(&device()?, output)?,
        BenchSubject::Memory => match &args.model {
            Some(path) => model_memory::run(path, args, &device()?, output)?,
            None => return memory::run(args.layers as usize, &device()?, output),
        },
    }
    Ok(Outcome::Good)
}

/// Returns the median seconds of `work`, after warm-up repetitions.
fn median(device: &Device, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut secs = Vec::with_capacity(REPETITIONS);
    for repetition in 0..WARM_UPS + REPETITIONS {
        wait_for_queue(device)?;
        let clock = Instant::now();
        work()?;
        wait_for_queue(device)?;
        if repetition >= WARM_UPS {
            secs.push(clock.elapsed().as_secs_f64());
        }
    }
    Ok(middle(&mut secs))
}

/// Returns the median of `values`, which must not be empty.
fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
