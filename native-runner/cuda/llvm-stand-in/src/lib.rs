//! Replacement for cubecl-llvm, whose build downloads LLVM. cubecl-cuda always compiles against that crate, even where its feature `cpp` makes
//! CUDA C++ for NVRTC instead. This crate has the names that cubecl-cuda 0.11.3 uses and compiles nothing: requesting a kernel is an error.

use core::ffi::c_char;

use cubecl_core::environment::backtrace::BackTrace;
use cubecl_core::ir::nvidia::SmArch;
use cubecl_core::prelude::KernelDefinition;
use cubecl_server::compiler::{CompilationError, Compiler};
use cubecl_server::kernel::BufferIOAttr;

/// Items that depend on the version of PTX.
pub mod nvptx {
    /// Versions of PTX.
    pub mod ptx_version {
        use core::fmt;

        /// A version of PTX. There are no values of this type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum PtxVersion {}

        impl PtxVersion {
            /// Returns the PTX version for a driver: none.
            pub fn for_driver(_driver: i32) -> Option<Self> {
                None
            }
        }

        impl fmt::Display for PtxVersion {
            fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {}
            }
        }
    }
}

/// Items that all targets share.
pub mod shared {
    /// Device features that LLVM cannot lower.
    pub mod lowered_features {
        use cubecl_core::ir::DeviceProperties;

        /// A GPU whose properties are restricted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum GpuTarget {
            /// NVIDIA GPUs.
            Nvptx,
        }

        /// Leaves the properties unchanged, because no kernel is compiled anyway.
        pub fn restrict_features(_properties: &mut DeviceProperties, _target: GpuTarget) {}
    }
}

/// Target of LLVM's compilation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LlvmTarget {
    /// NVIDIA GPUs.
    #[default]
    Nvptx,
}

/// Options of LLVM's compilation. Nothing reads them.
#[derive(Clone, Debug, Default)]
pub struct PlironOptions {
    /// AMD architecture.
    pub arch: Option<core::convert::Infallible>,
    /// NVIDIA architecture.
    pub sm_arch: Option<SmArch>,
    /// PTX version.
    pub ptx_version: Option<nvptx::ptx_version::PtxVersion>,
    /// True if scalars are parameters of the kernel.
    pub grid_constants: bool,
}

/// A compiled kernel. None is ever made.
#[derive(Clone, Debug)]
pub struct NvptxModule {
    /// PTX text, with a zero at its end.
    pub ptx: Vec<c_char>,
    /// LLVM IR text.
    pub ir: String,
    /// Shared memory in bytes.
    pub shared_memory_size: usize,
    /// Use of each buffer: read, written or both.
    pub io: Vec<BufferIOAttr>,
}

/// Result of a compilation.
#[derive(Clone, Debug)]
pub enum PlironArtifact {
    /// A kernel for NVIDIA GPUs.
    NvptxCode(NvptxModule),
}

impl core::fmt::Display for PlironArtifact {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self::NvptxCode(module) = self;
        f.write_str(&module.ir)
    }
}

/// A compiler that refuses every kernel.
#[derive(Clone, Debug, Default)]
pub struct PlironCompiler {
    /// Target of the compilation.
    pub target: LlvmTarget,
}

impl Compiler for PlironCompiler {
    type Representation = PlironArtifact;
    type CompilationOptions = PlironOptions;

    fn compile(
        &mut self,
        _: KernelDefinition,
        _: &PlironOptions,
    ) -> Result<PlironArtifact, CompilationError> {
        let reason = "this build has no LLVM: enable the feature `cpp` of cubecl-cuda, which compiles CUDA C++ with NVRTC".into();
        Err(CompilationError::Generic {
            reason,
            backtrace: BackTrace::capture(),
        })
    }

    fn extension(&self) -> &'static str {
        "ll"
    }

    fn lang_tag(&self) -> &'static str {
        "llvm"
    }
}
