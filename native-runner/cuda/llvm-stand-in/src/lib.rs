//! Stands in for cubecl-llvm, whose build downloads LLVM. cubecl-cuda always compiles against it, even where its feature `cpp` makes CUDA C++
//! for NVRTC instead; so this has the names that cubecl-cuda 0.11.3 uses, and makes nothing: whoever asks for a kernel gets an error.

use core::ffi::c_char;

use cubecl_core::environment::backtrace::BackTrace;
use cubecl_core::ir::nvidia::SmArch;
use cubecl_core::prelude::KernelDefinition;
use cubecl_server::compiler::{CompilationError, Compiler};
use cubecl_server::kernel::BufferIOAttr;

/// What depends on the version of PTX.
pub mod nvptx {
    /// Versions of PTX.
    pub mod ptx_version {
        use core::fmt;

        /// A version of PTX, of which there is none here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum PtxVersion {}

        impl PtxVersion {
            /// The version for a driver: none.
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

/// What all targets share.
pub mod shared {
    /// What LLVM cannot lower.
    pub mod lowered_features {
        use cubecl_core::ir::DeviceProperties;

        /// A GPU to narrow properties for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum GpuTarget {
            /// NVIDIA's.
            Nvptx,
        }

        /// Takes nothing away: no kernel comes of it either way.
        pub fn restrict_features(_properties: &mut DeviceProperties, _target: GpuTarget) {}
    }
}

/// What LLVM would compile for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LlvmTarget {
    /// NVIDIA's GPUs.
    #[default]
    Nvptx,
}

/// How LLVM would compile. Nothing reads it.
#[derive(Clone, Debug, Default)]
pub struct PlironOptions {
    /// An architecture of AMD's.
    pub arch: Option<core::convert::Infallible>,
    /// An architecture of NVIDIA's.
    pub sm_arch: Option<SmArch>,
    /// The version of PTX.
    pub ptx_version: Option<nvptx::ptx_version::PtxVersion>,
    /// Whether scalars are parameters of the kernel.
    pub grid_constants: bool,
}

/// A compiled kernel. None is ever made.
#[derive(Clone, Debug)]
pub struct NvptxModule {
    /// PTX, with a zero at its end.
    pub ptx: Vec<c_char>,
    /// LLVM's text.
    pub ir: String,
    /// Bytes of shared memory.
    pub shared_memory_size: usize,
    /// What the kernel does with each buffer.
    pub io: Vec<BufferIOAttr>,
}

/// What a compilation would give.
#[derive(Clone, Debug)]
pub enum PlironArtifact {
    /// A kernel for NVIDIA's GPUs.
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
    /// What for.
    pub target: LlvmTarget,
}

impl Compiler for PlironCompiler {
    type Representation = PlironArtifact;
    type CompilationOptions = PlironOptions;

    fn compile(&mut self, _: KernelDefinition, _: &PlironOptions) -> Result<PlironArtifact, CompilationError> {
        let reason = "this build has no LLVM: enable the feature `cpp` of cubecl-cuda, which compiles CUDA C++ with NVRTC".into();
        Err(CompilationError::Generic { reason, backtrace: BackTrace::capture() })
    }

    fn extension(&self) -> &'static str {
        "ll"
    }

    fn lang_tag(&self) -> &'static str {
        "llvm"
    }
}
