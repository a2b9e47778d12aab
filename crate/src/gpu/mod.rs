//! Kernels: WGSL shaders with the twins that define them, their declaration, launch and observation, and the buffers they work on. Two kernels
//! belong to no operation and are therefore defined here: `copy`, and `fma`, which measures a device.
//!
//! *In place if uniquely owned*: a buffer that a kernel writes is changed where it lies if no other handle shares it. If one does, the buffer is
//! copied first, or replaced by a new one where the kernel does not read its old contents.

mod adapters;
mod allocation;
mod buffer;
#[doc(hidden)]
pub mod capture;
#[doc(hidden)]
pub mod copy;
#[doc(hidden)]
pub mod counter;
mod declare;
mod flat;
#[cfg(feature = "cpu")]
mod flex;
#[doc(hidden)]
pub mod fma;
pub(crate) mod graph;
mod kernel;
#[doc(hidden)]
pub mod launch;
#[doc(hidden)]
pub mod noise;
mod packed;
#[doc(hidden)]
pub mod paired_buffer;
mod params;
#[doc(hidden)]
pub mod profile;
mod readback;
mod storage_type;
mod stored;
#[doc(hidden)]
pub mod trace;
#[doc(hidden)]
pub mod transfer;

pub(crate) use buffer::check_devices;
pub use buffer::{Buffer, run};
pub(crate) use kernel::groups_of_64;
pub use kernel::{COMMON, Kernel, Words};
pub use noise::{Noise, Rounding};

// For `kernel!`, whose code is in other crates, and for the packages of this workspace.
#[doc(hidden)]
pub use self::{
    buffer::{check_device, run_any},
    kernel::{Access, AnyKernel, AnyTwin, Binding, Kernels, Twin, apply},
    launch::Launch,
    packed::PackedUpload,
    params::{Field, KernelParams, Word},
    readback::{StartedRead, read_data, read_f32},
    storage_type::{Chunk, Chunks, StorageType, StoredMatrix, THREE4, TWO4, WEIGHT1, WEIGHT4},
    stored::Stored,
};
#[doc(hidden)]
pub use tabtune_shaders::source;
