//! Arguments of `tabtune bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DeviceName;

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Subject of the measurement.
    #[command(subcommand)]
    pub subject: BenchSubject,
}

/// Subjects of `bench`.
#[derive(Debug, Subcommand)]
pub enum BenchSubject {
    /// Measure the peak rates of this GPU, each kernel as a share of them, and steps of a model compared with PyTorch.
    Gpu(GpuArgs),
}

/// Arguments of `bench gpu`.
#[derive(Debug, Args)]
pub struct GpuArgs {
    /// GGUF file or safetensors folder of a model whose training steps are measured as well.
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// A Python with PyTorch and transformers, which trains the same steps for comparison.
    #[arg(long, value_name = "PYTHON", requires = "model")]
    pub torch: Option<PathBuf>,
    /// With --model: sequence length in tokens [default: 512].
    #[arg(long, value_name = "T", requires = "model", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub seq_len: Option<u64>,
    /// With --model: number of measured steps, after warm-up steps [default: 50, or 3 with --quick].
    #[arg(long, value_name = "N", requires = "model", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub steps: Option<u64>,
    /// Take smaller shapes on a slow device, and 3 steps after 2 warm-up steps.
    #[arg(long)]
    pub quick: bool,
    /// Device to compute on.
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: DeviceName,
}
