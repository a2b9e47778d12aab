//! Records the launches of a piece of work, for counting and for timing each kernel by itself, and the bytes in use meanwhile.

use std::sync::Mutex;

use super::AnyKernel;

/// One launch of a kernel on wgpu.
#[derive(Debug, Clone)]
pub struct Launched {
    /// The kernel that ran.
    pub kernel: &'static AnyKernel,
    /// Words of each buffer, in binding order.
    pub words: Vec<usize>,
    /// Words of its parameters.
    pub params: Vec<u32>,
    /// Workgroups.
    pub groups: u32,
}

static TRACE: Mutex<Option<Vec<Launched>>> = Mutex::new(None);

fn slot() -> std::sync::MutexGuard<'static, Option<Vec<Launched>>> {
    TRACE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Starts recording the launches of this process, on all devices.
pub fn start() {
    *slot() = Some(Vec::new());
}

/// Ends recording. Returns the launches since [`start`], in order.
pub fn finish() -> Vec<Launched> {
    slot().take().unwrap_or_default()
}

/// Called at each launch.
pub(super) fn record(launched: impl FnOnce() -> Launched) {
    if let Some(list) = slot().as_mut() {
        list.push(launched());
    }
}

/// Bytes on a device: those used by tensors, and those reserved by the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bytes {
    /// Bytes of buffers that are in use.
    pub in_use: u64,
    /// Bytes of all pages of the allocator.
    pub reserved: u64,
}

static PEAK: Mutex<Option<Bytes>> = Mutex::new(None);

fn peak() -> std::sync::MutexGuard<'static, Option<Bytes>> {
    PEAK.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Starts to query the allocator at each launch of this process. What a launch reads and writes is in use then, so the
/// observed peak is the true peak, except for what Burn's own operations allocate and free between two launches.
pub fn watch_memory() {
    *peak() = Some(Bytes::default());
}

/// Ends the queries. Returns the peak since [`watch_memory`].
pub fn watched_memory() -> Bytes {
    peak().take().unwrap_or_default()
}

/// Called at each launch.
pub(super) fn measure(now: impl FnOnce() -> Option<Bytes>) {
    if let Some(most) = peak().as_mut()
        && let Some(now) = now()
    {
        most.in_use = most.in_use.max(now.in_use);
        most.reserved = most.reserved.max(now.reserved);
    }
}
