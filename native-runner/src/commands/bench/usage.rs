//! Bytes on the device, now and at most.

use tabtune::device::Device;
use tabtune::kernels::trace::{Bytes, watch_memory, watched_memory};

use super::settle;
use crate::error::{Result, RunError};

/// Bytes as they are when the device has done all that was asked of it.
pub fn usage(device: &Device) -> Result<Bytes> {
    settle(device)?;
    let absent = || RunError::Usage(format!("{}: this device does not count its bytes", device.info().adapter));
    let usage = device.inner().memory_pool_usage().ok_or_else(absent)?;
    Ok(Bytes { in_use: usage.bytes_in_use, reserved: usage.bytes_reserved })
}

/// [`usage`] when the allocator has given back the pages that nobody needs.
pub fn cleaned(device: &Device) -> Result<Bytes> {
    settle(device)?;
    device.inner().memory_cleanup();
    usage(device)
}

/// The most bytes while `work` runs, asked for at each launch of a kernel of ours.
pub fn most(work: impl FnOnce() -> Result<()>) -> Result<Bytes> {
    watch_memory();
    let outcome = work();
    let most = watched_memory();
    outcome.map(|()| most)
}
