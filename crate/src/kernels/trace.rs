//! What a stretch of work launches: for counting and for timing each kernel by itself.

use std::sync::Mutex;

use super::Kernel;

/// One launch of a kernel on wgpu.
#[derive(Debug, Clone)]
pub struct Launched {
    /// What ran.
    pub kernel: &'static Kernel,
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
