//! Kernels: WGSL shaders with the twins that define them, their declaration, launch and observation, and the buffers they work on. Two kernels
//! belong to no operation and are therefore defined here: [`copy`], and [`fma`], which measures a device.
//!
//! *In place if uniquely owned*: a buffer that a kernel writes is changed where it lies if no other handle shares it. If one does, the buffer is
//! copied first, or replaced by a new one where the kernel does not read its old contents.

mod allocation;
mod buffer;
pub mod capture;
pub mod copy;
pub mod counter;
mod declare;
#[cfg(feature = "cpu")]
mod flex;
pub mod fma;
pub mod graph;
mod kernel;
pub mod launch;
pub mod noise;
mod packed;
pub mod paired_buffer;
mod params;
pub mod profile;
mod readback;
mod storage_type;
mod stored;
pub mod trace;
pub mod transfer;

pub use buffer::{Buffer, check_device, check_devices, run, run_any};
pub use kernel::{Access, AnyKernel, AnyTwin, Binding, COMMON, Kernel, Kernels, Twin, Words, apply, groups_of_64};
pub use launch::Launch;
pub use packed::PackedUpload;
pub use params::{Field, KernelParams, Word};
pub use readback::{StartedRead, read_data, read_f32};
pub use storage_type::{Chunk, Chunks, StorageType, StoredMatrix, THREE4, TWO4, WEIGHT1, WEIGHT4};
pub use stored::Stored;
pub use tabtune_shaders::source;
