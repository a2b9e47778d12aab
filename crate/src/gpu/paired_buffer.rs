//! Pairs of tensors that lie side by side in one buffer, so that a kernel binds them as one.

use burn::backend::{DispatchDevice, TensorMetadata};
use burn::tensor::{DType, Device};

use crate::error::Result;
use crate::gpu::launch::{is_software, tensor_at, words_for};
use crate::gpu::{Buffer, allocation, transfer};

/// Alignment of the second tensor in words: 256 bytes, which every device accepts as an offset of a binding.
const ALIGNMENT: usize = 64;

/// Maximum number of bytes of both tensors. It is harder to find room for a buffer of twice the size, and long updates gain nothing by sharing a
/// dispatch.
const MOST: usize = 32 << 20;

/// The distance in words from the start of the first tensor to that of the second, for two tensors `[elements]`.
pub fn distance(elements: usize, dtype: DType) -> usize {
    words_for(elements, dtype).next_multiple_of(ALIGNMENT)
}

/// Allocates zeros for two tensors `[elements]`, F32 or BF16, side by side on a GPU. Returns `None` if they would be large, on the CPU, and on
/// software adapters, where a kernel for several tensors would execute the branches of all of them for each element.
///
/// # Errors
///
/// As [`transfer::zeros`].
pub(crate) fn paired_zeros(
    elements: usize,
    dtype: DType,
    device: &Device,
) -> Result<Option<Buffer>> {
    let words = 2 * distance(elements, dtype);
    let small = words > 0 && words * 4 <= MOST;
    let on_gpu =
        small && matches!(device.as_dispatch(), DispatchDevice::Cube(_)) && !is_software(device);
    on_gpu
        .then(|| Ok(transfer::zeros(words, DType::F32, device)?.into()))
        .transpose()
}

#[doc(hidden)]
impl Buffer {
    /// Splits a buffer for two tensors `[elements]` into them.
    pub fn halves(self, elements: usize, dtype: DType) -> [Self; 2] {
        let words = words_for(elements, dtype);
        let Some(whole) = self.cube() else {
            return [self.clone(), self];
        };
        [0, distance(elements, dtype)].map(|first| {
            let handle = allocation::part(&whole.handle, 4 * first, words);
            Self::of_cube(tensor_at(whole, handle, [elements], dtype))
        })
    }

    /// The buffer of which both are halves, or `None` if they are not halves of one. It is uniquely owned once they are dropped and no other
    /// handle to a part of it exists.
    pub fn whole(first: &Self, second: &Self) -> Option<Self> {
        let (a, b) = (first.cube()?, second.cube()?);
        let bytes = 4 * distance(a.shape().num_elements(), a.dtype) as u64;
        let starts = [&a.handle, &b.handle].map(|handle| handle.offset_start.unwrap_or(0));
        if first.place() != second.place() || starts != [0, bytes] || a.handle.size() != 2 * bytes {
            return None;
        }
        let mut handle = a.handle.clone();
        (handle.offset_start, handle.offset_end) = (None, None);
        let words = bytes as usize / 2;
        Some(Self::of_cube(tensor_at(a, handle, [words], DType::F32)))
    }
}
