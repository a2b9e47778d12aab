//! What a measurement found.

use serde::Serialize;

use crate::gpu::profile::Timing;

/// What a kernel's speed is a fraction of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Arithmetic: the most that chains of multiply-adds do.
    Peak,
    /// Bytes: a copy that moves as many.
    Copy,
}

/// One kernel in a [`GpuReport`], or the few of one pass.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelRate {
    /// What is computed.
    pub name: String,
    /// At which shape.
    pub shape: String,
    /// Whether that is the reference shape. Slow devices get a part of it.
    pub whole: bool,
    /// Stems of the kernels that this device runs for it.
    pub kernels: Vec<String>,
    /// Milliseconds of a pass.
    pub ms: f64,
    /// 10⁹ floating point operations of the formula in a second; for arithmetic alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gflop_per_sec: Option<f64>,
    /// 10⁹ bytes in a second: what has to be read and written, each value once.
    pub gb_per_sec: f64,
    /// Its speed as a part of the peak or of a copy, as `of` says.
    pub fraction: f64,
    /// What it is a fraction of.
    pub of: Measure,
    /// How often one step of SmolLM2-135M computes it, if it is one of that step's products; 0 otherwise.
    pub in_step: u64,
}

/// What a GPU does at most, and how near the kernels come to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuReport {
    /// The adapter's name.
    pub adapter: String,
    /// Name and version of its driver; empty in browsers, which do not tell.
    pub driver: String,
    /// `webgpu`, `vulkan`, `metal` or `dx12`.
    pub backend: String,
    /// Whether it is a CPU that runs shaders, which gets kernels of its own.
    pub software: bool,
    /// The clock that was used; kernels that are shorter than its ticks are measured by the host's.
    pub timing: Timing,
    /// 10⁹ floating point operations in a second of chains of multiply-adds, f32.
    pub peak_gflop_per_sec: f64,
    /// 10⁹ bytes in a second that a copy reads and writes.
    pub copy_gb_per_sec: f64,
    /// The kernels, those two first.
    pub kernels: Vec<KernelRate>,
}

/// Fraction of the peak at which all products of a step run, each as often as the step has it; `None` if they were not measured.
pub fn linear_of_step(report: &GpuReport) -> Option<f64> {
    let products = || report.kernels.iter().filter(|row| row.in_step > 0);
    // Time is operations over rate: of the whole shapes, whatever part was measured.
    let flops = |row: &KernelRate| row.in_step as f64 * super::reference::whole_flops(&row.name);
    let all: f64 = products().map(flops).sum();
    let secs: f64 = products().map(|row| flops(row) / row.gflop_per_sec.unwrap_or(f64::NAN)).sum();
    (all > 0.0).then(|| all / secs / report.peak_gflop_per_sec)
}
