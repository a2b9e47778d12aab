//! What a GPU's compiler makes of the kernels, without that GPU: naga writes SPIR-V as wgpu does, and Mesa's RADV compiles it for a Radeon
//! that is not there. It tells registers, spills and workgroup memory, and shows the machine code. Nothing runs, so there are no times.

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

/// The Radeons that kernels are compiled for. This Mesa gives the first 128 registers a thread at most, the second 256.
pub const FAMILIES: [&str; 2] = ["gfx1100", "navi21"];

/// The variable by which RADV takes a family for present.
pub const FAMILY_VARIABLE: &str = "RADV_FORCE_FAMILY";

/// Folders where the Vulkan loader looks for drivers.
const DRIVERS: [&str; 3] = ["/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d"];

/// What keeps a kernel from being compiled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No Vulkan on this machine.
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
    /// The driver does not tell one of the figures.
    #[error("the Vulkan driver does not tell {0:?}")]
    NoStatistic(&'static str),
    /// naga refused a kernel.
    #[error("{name}: {reason}")]
    Kernel {
        /// The kernel.
        name: &'static str,
        /// What naga said.
        reason: String,
    },
}

impl From<ash::vk::Result> for Error {
    fn from(result: ash::vk::Result) -> Self {
        Self::Driver(result)
    }
}

/// Whether naga counts the rounds of each loop, so that none is endless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loops {
    /// It does: how kernels run natively.
    Bounded,
    /// It does not.
    Free,
}

/// A kernel as it is compiled for one family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiled {
    /// Its name.
    pub kernel: String,
    /// Whether GPUs run it, and not only adapters that are CPUs.
    pub on_gpus: bool,
    /// Whether its loops were bounded.
    pub loops: Loops,
    /// Registers of a thread, as they are allocated.
    pub registers: u64,
    /// Registers that it needs before the scheduler takes those that are free.
    pub wanted: u64,
    /// Registers that were spilled to memory, of a thread and of a wave.
    pub spilled: u64,
    /// Bytes of memory that a wave has for what is not in registers.
    pub scratch_bytes: u64,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u64,
    /// Maximum number of waves that a processor holds at once.
    pub waves: u64,
    /// Instructions of the whole kernel.
    pub instructions: u64,
    /// The blocks that hold its products, if it is one of linear layers or of attention; those of one sum together.
    pub products: Vec<Counts>,
}

/// The file by which the Vulkan loader finds RADV, if it is installed.
pub fn radv() -> Option<PathBuf> {
    let entries = DRIVERS.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let is_radv = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("radeon_icd"));
    entries.filter_map(|entry| Some(entry.ok()?.path())).find(is_radv)
}

/// The environment of a process that calls [`compile`] for `family`.
pub fn environment(radv: &Path, family: &str) -> [(&'static str, OsString); 3] {
    [("VK_ICD_FILENAMES", radv.into()), (FAMILY_VARIABLE, family.into()), ("RADV_DEBUG", "nocache".into())]
}

/// The stem of a kernel: its name without the storage type of its weights.
pub fn stem(kernel: &AnyKernel) -> &'static str {
    let named = kernel.chunk.and_then(|chunk| kernel.name.strip_suffix(chunk.storage.name())?.strip_suffix('_'));
    named.unwrap_or(kernel.name)
}

/// Whether a device that is no CPU runs this kernel for some shape (`shaders/README.md`, "variants and use").
pub fn runs_on_gpus(kernel: &AnyKernel) -> bool {
    let stem = stem(kernel);
    // One query a thread is for the few queries of a software adapter, and blocks alone take transposed factors.
    let named = ["attention_forward", "linear_transpose"].contains(&stem);
    !(named || stem.ends_with("_block") || stem.starts_with("rms_norm") && stem.ends_with("_wide"))
}

/// These kernels, compiled by the driver that the [`environment`] of this process names.
///
/// # Errors
/// Those of the driver.
pub fn compile<'a>(kernels: impl Iterator<Item = &'a AnyKernel>, loops: Loops) -> Result<Vec<Compiled>, Error> {
    let driver = driver::Driver::open()?;
    kernels.map(|kernel| compiled(&driver, kernel, loops)).collect()
}

fn compiled(driver: &driver::Driver, kernel: &AnyKernel, loops: Loops) -> Result<Compiled, Error> {
    let words = spirv::words(kernel, loops)?;
    // The parameters are the last one.
    let told = driver.compile(&words, 1 + kernel.bindings.len() as u32)?;
    let multiplies = ["linear_", "low_rank_", "attention_"].iter().any(|family| kernel.name.starts_with(family));
    let of = |name: &'static str| told.statistics.get(name).copied().ok_or(Error::NoStatistic(name));
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
        products: if multiplies { assembly::products(&told.assembly) } else { Vec::new() },
    })
}
