//! Compiles the kernels for a GPU that the machine lacks: naga writes SPIR-V as wgpu does, and Mesa's RADV compiles it for a Radeon that is
//! not present. RADV reports registers, spills and workgroup memory, and the machine code. Nothing runs, so there are no times.

#![deny(missing_docs)]
#![warn(clippy::undocumented_unsafe_blocks)]

mod assembly;
mod driver;
mod spirv;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tabtune::gpu::AnyKernel;

pub use assembly::Counts;

/// Radeons that kernels are compiled for. This Mesa gives a thread at most 128 registers on the first, 256 on the second.
pub const FAMILIES: [&str; 2] = ["gfx1100", "navi21"];

/// Environment variable that makes RADV act as if a Radeon of this family were present.
pub const FAMILY_VARIABLE: &str = "RADV_FORCE_FAMILY";

/// Folders in which the Vulkan loader looks for drivers.
const DRIVERS: [&str; 3] = [
    "/usr/share/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/etc/vulkan/icd.d",
];

/// Reason why a kernel cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no Vulkan loader on this machine.
    #[error("the Vulkan loader: {0}")]
    Loader(String),
    /// The driver failed.
    #[error("the Vulkan driver: {0:?}")]
    Driver(ash::vk::Result),
    /// The driver has no device.
    #[error("the Vulkan driver has no device")]
    NoDevice,
    /// The driver does not show the machine code.
    #[error("the Vulkan driver does not show the machine code")]
    NoAssembly,
    /// The driver does not report one of the figures.
    #[error("the Vulkan driver does not tell {0:?}")]
    NoStatistic(&'static str),
    /// The kernel was refused by naga.
    #[error("{name}: {reason}")]
    Kernel {
        /// Name of the kernel.
        name: &'static str,
        /// Message of naga.
        reason: String,
    },
}

impl From<ash::vk::Result> for Error {
    fn from(result: ash::vk::Result) -> Self {
        Self::Driver(result)
    }
}

/// Handling of loops by naga, which can count the rounds of each loop, so that none is endless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loops {
    /// Rounds are counted, as when kernels run natively.
    Bounded,
    /// Rounds are not counted.
    Free,
}

/// Figures of a kernel compiled for one family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiled {
    /// Name of the kernel.
    pub kernel: String,
    /// True if GPUs run it, false if only CPUs (software adapters) do.
    pub on_gpus: bool,
    /// Handling of its loops.
    pub loops: Loops,
    /// Number of registers allocated to a thread.
    pub registers: u64,
    /// Number of registers that a thread needs, before the scheduler takes the free ones as well.
    pub wanted: u64,
    /// Number of registers spilled to memory, of a thread and of a wave.
    pub spilled: u64,
    /// Bytes of memory that a wave has for values that are not in registers.
    pub scratch_bytes: u64,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u64,
    /// Maximum number of waves that a processor holds at once.
    pub waves: u64,
    /// Number of instructions in the whole kernel.
    pub instructions: u64,
    /// Counts of the blocks that compute its products, one entry per sum; empty unless it is a kernel of linear layers or of attention.
    pub products: Vec<Counts>,
}

/// Returns the file by which the Vulkan loader finds RADV, if it is installed.
pub fn radv() -> Option<PathBuf> {
    let entries = DRIVERS
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten();
    let is_radv = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("radeon_icd"))
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(is_radv)
}

/// Returns the environment for a process that calls [`compile`] for `family`.
pub fn environment(radv: &Path, family: &str) -> [(&'static str, OsString); 3] {
    [
        ("VK_ICD_FILENAMES", radv.into()),
        (FAMILY_VARIABLE, family.into()),
        ("RADV_DEBUG", "nocache".into()),
    ]
}

/// Returns the stem of a kernel: its name without the storage type of its weights.
pub fn stem(kernel: &AnyKernel) -> &'static str {
    let named = kernel.chunk.and_then(|chunk| {
        kernel
            .name
            .strip_suffix(chunk.storage.name())?
            .strip_suffix('_')
    });
    named.unwrap_or(kernel.name)
}

/// Returns true if a device that is not a CPU runs this kernel for some shape (`shaders/README.md`, "variants and use").
pub fn runs_on_gpus(kernel: &AnyKernel) -> bool {
    let stem = stem(kernel);
    // Kernels with one query per thread are for the few queries of a software adapter, and only block kernels take transposed factors.
    let named = ["attention_forward", "linear_transpose"].contains(&stem);
    !(named || stem.ends_with("_block") || stem.starts_with("rms_norm") && stem.ends_with("_wide"))
}

/// Compiles the kernels with the driver that the [`environment`] of this process names.
///
/// # Errors
/// Errors of the driver, and kernels that naga refuses.
pub fn compile<'a>(
    kernels: impl Iterator<Item = &'a AnyKernel>,
    loops: Loops,
) -> Result<Vec<Compiled>, Error> {
    let driver = driver::Driver::open()?;
    kernels
        .map(|kernel| compiled(&driver, kernel, loops))
        .collect()
}

fn compiled(driver: &driver::Driver, kernel: &AnyKernel, loops: Loops) -> Result<Compiled, Error> {
    let words = spirv::words(kernel, loops)?;
    // The parameters are the last binding.
    let told = driver.compile(&words, 1 + kernel.bindings.len() as u32)?;
    let multiplies = ["linear_", "low_rank_", "attention_"]
        .iter()
        .any(|family| kernel.name.starts_with(family));
    let of = |name: &'static str| {
        told.statistics
            .get(name)
            .copied()
            .ok_or(Error::NoStatistic(name))
    };
    Ok(Compiled {
        kernel: kernel.name.into(),
        on_gpus: runs_on_gpus(kernel),
        loops,
        registers: of("VGPRs")?,
        wanted: of("Pre-Sched VGPRs")?,
        spilled: of("Spilled VGPRs")? + of("Spilled SGPRs")?,
        scratch_bytes: of("Scratch size")?,
        workgroup_bytes: of("LDS size")?,
        waves: of("Subgroups per SIMD")?,
        instructions: of("Instructions")?,
        products: if multiplies {
            assembly::products(&told.assembly)
        } else {
            Vec::new()
        },
    })
}
