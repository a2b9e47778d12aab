//! Kernels: WGSL shaders with the twins that define them, their declaration, launch and observation, and the buffers they work on. Two kernels
//! belong to no operation and are therefore defined here: [`copy`], and [`fma`], which measures a device.
//!
//! *In place if uniquely owned*: a buffer that a kernel writes is changed where it lies if no other handle shares it. If one does, the buffer is
//! copied first, or replaced by a new one where the kernel does not read its old contents.

pub mod beside;
mod buffer;
pub mod copy;
mod declare;
#[cfg(feature = "cpu")]
mod flex;
pub mod fma;
pub mod graph;
mod kernel;
pub mod launch;
pub mod noise;
mod packed;
mod params;
pub mod profile;
mod readback;
mod storage_type;
pub mod trace;
pub mod transfer;

pub use buffer::{Buffer, check_device, check_devices, run, run_any};
pub use kernel::{Access, AnyKernel, AnyTwin, Binding, COMMON, Kernel, Kernels, Twin, Words, apply, groups_of_64};
pub use launch::Launch;
pub use packed::PackedUpload;
pub use params::{Field, KernelParams, Word};
pub use readback::{StartedRead, read_data, read_f32};
pub use storage_type::{Chunk, Chunks, StorageType, Stored, StoredMatrix, THREE4, TWO4, WEIGHT1, WEIGHT4};
pub use tabtune_shaders::source;
