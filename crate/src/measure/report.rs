//! Report of a measurement.

use serde::Serialize;

use crate::gpu::profile::Timing;

/// Quantity that a kernel's speed is a fraction of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Arithmetic: the peak rate of chains of multiply-adds.
    Peak,
    /// Bytes: the rate of a copy that moves as many.
    Copy,
}

/// One kernel in a [`GpuReport`], or the few kernels of one pass.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelRate {
    /// Name of the computation.
    pub name: String,
    /// Shape at which it was measured.
    pub shape: String,
    /// True if that is the reference shape. Slow devices get a part of it.
    pub whole: bool,
    /// File stems of the kernels that this device runs for it.
    pub kernels: Vec<String>,
    /// Duration of a pass in milliseconds.
    pub ms: f64,
    /// Rate in 10⁹ floating point operations of the formula per second; for arithmetic only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gflop_per_sec: Option<f64>,
    /// Rate in 10⁹ bytes per second, counting the bytes that have to be read and written, each value once.
    pub gb_per_sec: f64,
    /// Speed as a fraction of the peak or of a copy, as `of` says.
    pub fraction: f64,
    /// Quantity that `fraction` refers to.
    pub of: Measure,
    /// Number of times that one step of SmolLM2-135M computes it, if it is one of that step's products; 0 otherwise.
    pub in_step: u64,
}

/// Peak rates of a GPU, and how near the kernels come to them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuReport {
    /// Name of the adapter.
    pub adapter: String,
    /// Name and version of its driver; empty in browsers, which do not report it.
    pub driver: String,
    /// `webgpu`, `vulkan`, `metal` or `dx12`.
    pub backend: String,
    /// True for a CPU that runs shaders, which gets kernels of its own.
    pub software: bool,
    /// Clock that was used; kernels that are shorter than its ticks are measured by the host's clock.
    pub timing: Timing,
    /// Peak rate of chains of multiply-adds in f32, in 10⁹ floating point operations per second.
    pub peak_gflop_per_sec: f64,
    /// Rate of a copy in 10⁹ bytes per second, counting reads and writes.
    pub copy_gb_per_sec: f64,
    /// All kernels, those of the peak and the copy first.
    pub kernels: Vec<KernelRate>,
}

/// Returns the fraction of the peak at which all products of a step run, each as often as the step has it; `None` if they were not
/// measured.
pub fn linear_of_step(report: &GpuReport) -> Option<f64> {
    let products = || report.kernels.iter().filter(|row| row.in_step > 0);
    // Time is operations over rate, for the whole shapes even if only a part was measured.
    let flops = |row: &KernelRate| row.in_step as f64 * super::reference::whole_flops(&row.name);
    let all: f64 = products().map(flops).sum();
    let secs: f64 = products()
        .map(|row| flops(row) / row.gflop_per_sec.unwrap_or(f64::NAN))
        .sum();
    (all > 0.0).then(|| all / secs / report.peak_gflop_per_sec)
}
