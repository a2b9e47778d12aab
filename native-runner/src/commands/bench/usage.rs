//! Bytes on the device: current and peak.

use tabtune::device::Device;
use tabtune::gpu::trace::{Bytes, watch_memory, watched_memory};

use super::settle;
use crate::error::{Result, RunError};

/// The bytes after the device has finished all submitted work.
pub fn usage(device: &Device) -> Result<Bytes> {
    settle(device)?;
    let absent = || RunError::Usage(format!("{}: this device does not count its bytes", device.info().adapter));
    let usage = device.inner().memory_pool_usage().ok_or_else(absent)?;
    Ok(Bytes { in_use: usage.bytes_in_use, reserved: usage.bytes_reserved })
}

/// [`usage`] after the allocator has returned its unused pages.
pub fn cleaned(device: &Device) -> Result<Bytes> {
    settle(device)?;
    device.inner().memory_cleanup();
    usage(device)
}

/// The peak while `work` runs, sampled at each launch of one of our kernels.
pub fn most(work: impl FnOnce() -> Result<()>) -> Result<Bytes> {
    watch_memory();
    let outcome = work();
    let most = watched_memory();
    outcome.map(|()| most)
}
