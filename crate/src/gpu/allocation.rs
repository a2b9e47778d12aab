//! Allocations on a GPU: their identity, and parts of them as buffers.

pub(super) use cubecl::server::Handle;

/// Returns an identifier of the underlying allocation, valid while a handle exists.
pub(super) fn place_of(handle: &Handle) -> usize {
    std::ptr::from_ref(handle.memory.descriptor()).addr()
}

/// Returns a part of a buffer, given by its first byte and its length in words.
pub(super) fn part(whole: &Handle, first: usize, words: usize) -> Handle {
    let (first, bytes) = (first as u64, words as u64 * 4);
    whole
        .clone()
        .offset_start(first)
        .offset_end(whole.size() - first - bytes)
}
