//! Records the launches of a thread, for counting and for timing each kernel by itself, and the number of bytes in use meanwhile.

use std::cell::{Cell, RefCell};

use crate::gpu::AnyKernel;

/// One launch of a kernel on wgpu.
#[derive(Debug, Clone)]
pub struct Launched {
    /// The kernel that ran.
    pub kernel: &'static AnyKernel,
    /// Number of words of each buffer, in binding order.
    pub words: Vec<usize>,
    /// Its parameters, as words.
    pub params: Vec<u32>,
    /// Number of workgroups.
    pub groups: u32,
}

thread_local! {
    static TRACE: RefCell<Option<Vec<Launched>>> = const { RefCell::new(None) };
    /// The kernel of the catalogue that this thread is launching.
    static LAUNCHING: Cell<Option<&'static str>> = const { Cell::new(None) };
    static PEAK: RefCell<Option<Bytes>> = const { RefCell::new(None) };
}

/// Starts recording the launches of this thread, on all devices.
pub fn start() {
    TRACE.set(Some(Vec::new()));
}

/// Stops recording and returns the launches since [`start`], in order.
pub fn finish() -> Vec<Launched> {
    TRACE.take().unwrap_or_default()
}

/// Returns true while launches or the bytes in use are observed: each kernel then has to be launched by itself.
pub(crate) fn observing() -> bool {
    TRACE.with_borrow(Option::is_some) || PEAK.with_borrow(Option::is_some)
}

/// Adds a launch to the trace, if there is one. Called at each launch.
pub(crate) fn record(launched: impl FnOnce() -> Launched) {
    TRACE.with_borrow_mut(|list| {
        if let Some(list) = list {
            list.push(launched());
        }
    });
}

/// Runs `launch`, which launches the kernel `name` of the catalogue, under that name.
pub(crate) fn launching(name: &'static str, launch: impl FnOnce()) {
    LAUNCHING.set(Some(name));
    launch();
    LAUNCHING.set(None);
}

/// Returns the name of the kernel of the catalogue that this thread is launching, if it is launching one.
pub(crate) fn kernel_under_way() -> Option<&'static str> {
    LAUNCHING.get()
}

/// Number of bytes on a device: those used by tensors, and those reserved by the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bytes {
    /// Number of bytes of the buffers in use.
    pub in_use: u64,
    /// Number of bytes of all pages of the allocator.
    pub reserved: u64,
}

impl Bytes {
    /// Returns the larger value of each field.
    pub fn larger(self, other: Self) -> Self {
        Self {
            in_use: self.in_use.max(other.in_use),
            reserved: self.reserved.max(other.reserved),
        }
    }
}

/// Starts to query the allocator at each launch of this thread. The buffers of a launch are in use at that time, so the observed peak is the true
/// peak, except for memory that Burn's own operations allocate and free between two launches.
pub fn watch_memory() {
    PEAK.set(Some(Bytes::default()));
}

/// Stops the queries and returns the peak since [`watch_memory`].
pub fn watched_memory() -> Bytes {
    PEAK.take().unwrap_or_default()
}

/// Raises the observed peak to `now`, if memory is watched. Called at each launch.
pub(crate) fn measure(now: impl FnOnce() -> Option<Bytes>) {
    PEAK.with_borrow_mut(|most| {
        if let Some(most) = most
            && let Some(now) = now()
        {
            *most = most.larger(now);
        }
    });
}
