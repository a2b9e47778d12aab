//! `tabtune bench`: measures this device. Every figure is measured, none is estimated.

mod gpu;
mod gpu_steps;
mod torch;

use tabtune::device::Device;

use super::{Outcome, open_device};
use crate::args::{BenchArgs, BenchSubject};
use crate::error::Result;
use crate::output::Output;

/// Runs the measurement and prints one line per result.
///
/// # Errors
/// Errors of the device and of the measurement.
pub fn run(args: &BenchArgs, output: &Output) -> Result<Outcome> {
    let BenchSubject::Gpu(args) = &args.subject;
    gpu::run(args, &open_device(args.device)?, output)
}

/// Waits until the device has finished all submitted work.
///
/// # Errors
/// `device.lost`.
pub fn wait_for_queue(device: &Device) -> Result<()> {
    device.inner().sync().map_err(tabtune::Error::device_lost)?;
    Ok(())
}
