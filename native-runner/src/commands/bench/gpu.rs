//! Measures the GPU's peak rates, the kernels as a share of them, and steps of a model compared with PyTorch.

use std::process::Command;

use futures_lite::future::block_on;
use serde_json::json;
use tabtune::device::Device;
use tabtune::gpu::profile::Timing;
use tabtune::interrupt::Interrupt;
use tabtune::measure::{Effort, GpuReport, KernelRate, Measure, linear_of_step, measure_gpu};

use super::gpu_steps;
use super::torch::Torch;
use crate::args::GpuArgs;
use crate::commands::Outcome;
use crate::error::{Result, RunError};
use crate::output::{Output, warning_line};

/// Prints the device, a line for each kernel, and with a model a line for each run of steps. Returns `Bad` if PyTorch was requested but is absent.
///
/// # Errors
/// Errors of the measurement, the model and PyTorch's steps.
pub fn run(args: &GpuArgs, device: &Device, output: &Output) -> Result<Outcome> {
    // Checked first, so that a refusal does not come after a long measurement.
    let torch = args.torch.as_deref().map(Torch::of).transpose();
    let torch = match torch {
        Err(refused @ RunError::Torch { .. }) => {
            let line =
                json!({ "refused": { "code": refused.code(), "message": refused.to_string() } });
            output.line(&line, || warning_line(&refused.to_string(), refused.code()))?;
            None
        }
        other => other?,
    };
    let effort = if args.quick {
        Effort::quick()
    } else {
        Effort::whole()
    };
    let effort = Effort {
        products_of_step: args.model.is_some(),
        ..effort
    };
    let report = block_on(measure_gpu(
        device,
        &effort,
        &Interrupt::none(),
        &mut |_, _| {},
    ))?;
    kernels(&report, output)?;
    if let Some(path) = &args.model {
        gpu_steps::run(path, args, torch.as_ref(), device, output)?;
    }
    Ok(if args.torch.is_some() && torch.is_none() {
        Outcome::Bad
    } else {
        Outcome::Good
    })
}

/// Returns the line that `nvidia-smi` prints about driver, clocks and power while the GPU is still warm; `None` without that tool.
fn clocks() -> Option<String> {
    let query = "--query-gpu=name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.draw";
    let output = Command::new("nvidia-smi")
        .args([query, "--format=csv,noheader"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

fn kernels(report: &GpuReport, output: &Output) -> Result<()> {
    let clocks = clocks();
    let GpuReport {
        adapter,
        driver,
        backend,
        software,
        timing,
        peak_gflop_per_sec: peak,
        copy_gb_per_sec: copy,
        kernels,
    } = report;
    let line = json!({ "gpu": {
        "adapter": adapter, "driver": driver, "backend": backend, "software": software, "timing": timing, "clocks": clocks,
        "peak_gflop_per_sec": peak, "copy_gb_per_sec": copy
    }});
    output.line(&line, || {
        let by = if *timing == Timing::Device { "the device's timestamps" } else { "the host's clock" };
        let clocks = clocks.map_or_else(String::new, |clocks| format!("\n{clocks}"));
        let head = format!("{:32} {:>28} {:>10} {:>9} {:>8}", "what", "shape", "ms", "GFLOP/s", "GB/s");
        format!("{adapter} · {backend} · {driver}{clocks}\npeak {peak:.0} GFLOP/s in f32, copy {copy:.1} GB/s, by {by}\n{head}")
    })?;
    for rate in kernels {
        output.line(&json!({ "kernel": rate }), || row(rate))?;
    }
    if let Some(fraction) = linear_of_step(report) {
        let text = || {
            format!(
                "all products of a step of SmolLM2-135M, 512 tokens: {:.0} % of the peak",
                100.0 * fraction
            )
        };
        output.line(&json!({ "linear_of_step": { "fraction": fraction } }), text)?;
    }
    Ok(())
}

fn row(rate: &KernelRate) -> String {
    let KernelRate {
        name,
        shape,
        whole,
        kernels,
        ms,
        gflop_per_sec,
        gb_per_sec,
        fraction,
        of,
        ..
    } = rate;
    let flops = gflop_per_sec.map_or_else(|| "–".into(), |rate| format!("{rate:.1}"));
    let shape = if *whole {
        shape.clone()
    } else {
        format!("({shape})")
    };
    let of = if *of == Measure::Peak {
        "the peak"
    } else {
        "a copy"
    };
    let kernels = kernels.join(", ");
    format!(
        "{name:32} {shape:>28} {ms:>10.4} {flops:>9} {gb_per_sec:>8.1}  {:.0} % of {of}: {kernels}",
        100.0 * fraction
    )
}
