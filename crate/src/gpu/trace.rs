//! Records the launches of a thread, for counting and for timing each kernel by itself, and the bytes in use meanwhile.

use std::cell::RefCell;

use crate::gpu::AnyKernel;

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

thread_local! {
    static TRACE: RefCell<Option<Vec<Launched>>> = const { RefCell::new(None) };
    static PEAK: RefCell<Option<Bytes>> = const { RefCell::new(None) };
}

/// Starts recording the launches of this thread, on all devices.
pub fn start() {
    TRACE.set(Some(Vec::new()));
}

/// Ends recording. Returns the launches since [`start`], in order.
pub fn finish() -> Vec<Launched> {
    TRACE.take().unwrap_or_default()
}

/// Whether launches or the bytes in use are being observed: each has to be launched by itself then.
pub fn observing() -> bool {
    TRACE.with_borrow(Option::is_some) || PEAK.with_borrow(Option::is_some)
}

/// Called at each launch.
pub(crate) fn record(launched: impl FnOnce() -> Launched) {
    TRACE.with_borrow_mut(|list| {
        if let Some(list) = list {
            list.push(launched());
        }
    });
}

/// Bytes on a device: those used by tensors, and those reserved by the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bytes {
    /// Bytes of buffers that are in use.
    pub in_use: u64,
    /// Bytes of all pages of the allocator.
    pub reserved: u64,
}

impl Bytes {
    /// The larger of each.
    pub fn larger(self, other: Self) -> Self {
        Self { in_use: self.in_use.max(other.in_use), reserved: self.reserved.max(other.reserved) }
    }
}

/// Starts to query the allocator at each launch of this thread. What a launch reads and writes is in use then, so the
/// observed peak is the true peak, except for what Burn's own operations allocate and free between two launches.
pub fn watch_memory() {
    PEAK.set(Some(Bytes::default()));
}

/// Ends the queries. Returns the peak since [`watch_memory`].
pub fn watched_memory() -> Bytes {
    PEAK.take().unwrap_or_default()
}

/// Called at each launch.
pub(crate) fn measure(now: impl FnOnce() -> Option<Bytes>) {
    PEAK.with_borrow_mut(|most| {
        if let Some(most) = most
            && let Some(now) = now()
        {
            *most = most.larger(now);
        }
    });
}
