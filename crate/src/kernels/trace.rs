//! What a stretch of work launches, for counting and for timing each kernel by itself, and the bytes that are alive meanwhile.

use std::sync::Mutex;

use super::AnyKernel;

/// One launch of a kernel on wgpu.
#[derive(Debug, Clone)]
pub struct Launched {
    /// What ran.
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

/// Starts to record the launches of this process, of all devices.
pub fn start() {
    *slot() = Some(Vec::new());
}

/// The launches since [`start`], in order; recording ends.
pub fn finish() -> Vec<Launched> {
    slot().take().unwrap_or_default()
}

/// Called at each launch.
pub(super) fn record(launched: impl FnOnce() -> Launched) {
    if let Some(list) = slot().as_mut() {
        list.push(launched());
    }
}

/// Bytes on a device: what tensors hold, and what the allocator keeps for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bytes {
    /// Of buffers that somebody holds.
    pub in_use: u64,
    /// Of all the allocator's pages.
    pub reserved: u64,
}

static PEAK: Mutex<Option<Bytes>> = Mutex::new(None);

fn peak() -> std::sync::MutexGuard<'static, Option<Bytes>> {
    PEAK.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Starts to ask the allocator for its bytes at each launch of this process. What a launch reads and writes is alive then, so that the
/// most found is the most there was, but for what Burn's own operations make and drop between two launches.
pub fn watch_memory() {
    *peak() = Some(Bytes::default());
}

/// The most bytes since [`watch_memory`]; asking ends.
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
