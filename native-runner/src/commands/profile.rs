//! `tabtune train --profile`: a table with the time of each kernel, and the memory in use.

use std::fmt::Write;

use futures_lite::future;
use serde_json::json;
use tabtune::gpu::profile::{KernelTimes, Profile, ProfileReport, Timing};
use tabtune::train::{StepReport, Trainer};

use crate::error::Result;
use crate::output::Output;
use crate::waits::block_on;

/// Submits one step. If `times` is given, waits for the step and adds the times of its kernels. Returns the reports that have arrived.
///
/// # Errors
/// Errors of the trainer.
pub fn advance(trainer: &mut Trainer, times: Option<&mut KernelTimes>) -> Result<Vec<StepReport>> {
    let Some(times) = times else {
        return Ok(block_on(trainer.advance())?);
    };
    let mut reports = block_on(trainer.settle())?;
    let profile = Profile::start();
    reports.push(block_on(trainer.step())?);
    future::block_on(profile.add_to(times));
    Ok(reports)
}

/// Prints the profile as one JSON object or as a table.
///
/// # Errors
/// `cli.stdout`.
pub fn print(report: &ProfileReport, output: &Output) -> Result<()> {
    output.line(&json!({ "profile": report }), || table(report))
}

fn table(report: &ProfileReport) -> String {
    let by = match report.timing {
        Timing::Device => "the device's timestamps",
        Timing::System => {
            "the host's clock, waiting for each kernel: the adapter has no timestamps"
        }
    };
    let mut text = format!("kernels of a step, mean of {}, by {by}\n", report.steps);
    let width = report
        .kernels
        .iter()
        .map(|row| row.kernel.chars().count())
        .max()
        .unwrap_or(0)
        .max("kernel".len());
    let mut line = |kernel: &str, launches: &str, ms: &str, share: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{kernel:width$}  {launches:>8}  {ms:>10}  {share:>6}");
    };
    line("kernel", "launches", "ms", "share");
    for row in &report.kernels {
        line(
            &row.kernel,
            &count(row.launches),
            &format!("{:.3}", row.ms),
            &format!("{:.1} %", 100.0 * row.share),
        );
    }
    let launches = report.kernels.iter().map(|row| row.launches).sum();
    line("all", &count(launches), &format!("{:.3}", report.ms), "");
    if report.unmeasured > 0 {
        let _ = writeln!(
            text,
            "{} launches were shorter than a tick of the clock",
            report.unmeasured
        );
    }
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let _ = writeln!(
        text,
        "at most {:.1} MB in use, {:.1} MB reserved",
        mb(report.in_use_bytes),
        mb(report.reserved_bytes)
    );
    text.trim_end().to_owned()
}

/// Formats the launches per step: an integer, unless steps differ.
fn count(launches: f64) -> String {
    if launches.fract() == 0.0 {
        format!("{launches}")
    } else {
        format!("{launches:.1}")
    }
}
