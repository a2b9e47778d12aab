//! Current and peak memory of the device, in bytes.

use tabtune::device::Device;
use tabtune::gpu::trace::{Bytes, watch_memory, watched_memory};

use tabtune_native::commands::bench::wait_for_queue;
use tabtune_native::error::{Result, RunError};

/// Returns the bytes in use and reserved after the device has finished all submitted work.
///
/// # Errors
/// `cli.usage` on a device that does not count its bytes; `device.lost`.
pub fn usage(device: &Device) -> Result<Bytes> {
    wait_for_queue(device)?;
    let absent = || {
        RunError::Usage(format!(
            "{}: this device does not count its bytes",
            device.info().adapter
        ))
    };
    let usage = device.inner().memory_pool_usage().ok_or_else(absent)?;
    Ok(Bytes {
        in_use: usage.bytes_in_use,
        reserved: usage.bytes_reserved,
    })
}

/// Returns [`usage`] after the allocator has released its unused pages.
///
/// # Errors
/// Errors of [`usage`].
pub fn cleaned(device: &Device) -> Result<Bytes> {
    wait_for_queue(device)?;
    device.inner().memory_cleanup();
    usage(device)
}

/// Returns the peak while `work` runs, sampled at each launch of a tabtune kernel.
///
/// # Errors
/// Errors of `work`.
pub fn most(work: impl FnOnce() -> Result<()>) -> Result<Bytes> {
    watch_memory();
    let outcome = work();
    let most = watched_memory();
    outcome.map(|()| most)
}
