//! Counts the launches of each thread, for the dispatch budget of a step.

use std::cell::Cell;

thread_local! {
    static DISPATCHES: Cell<u64> = const { Cell::new(0) };
    static VARYING: Cell<usize> = const { Cell::new(0) };
}

/// Returns how many kernels of the catalogue this thread has launched on wgpu, for the dispatch budget of a step.
pub fn dispatches() -> u64 {
    DISPATCHES.get()
}

/// Returns how many of these launches have parameters that [vary](crate::gpu::AnyKernel::varies).
pub(crate) fn varying_dispatches() -> usize {
    VARYING.get()
}

/// Adds to the number of launches, for recorded ones that run again.
pub(super) fn count_dispatches(count: u64) {
    DISPATCHES.set(DISPATCHES.get().wrapping_add(count));
}

/// Counts a launch; `varies` is true if its parameters vary.
pub(super) fn count_launch(varies: bool) {
    count_dispatches(1);
    VARYING.set(VARYING.get() + usize::from(varies));
}
