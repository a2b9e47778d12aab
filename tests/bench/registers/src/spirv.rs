//! Translation of a kernel to the SPIR-V that wgpu gives to a Vulkan driver.

use naga::back::spv;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use tabtune::gpu::AnyKernel;

use crate::{Error, Loops};

/// Translates `kernel` with the options that wgpu and CubeCL set: no access is checked, and loops are bounded if `loops` says so.
///
/// # Errors
/// `Error::Kernel` if naga refuses the kernel.
pub fn words(kernel: &AnyKernel, loops: Loops) -> Result<Vec<u32>, Error> {
    let refused = |reason: String| Error::Kernel {
        name: kernel.name,
        reason,
    };
    let source = kernel.assembled();
    let module = naga::front::wgsl::parse_str(&source)
        .map_err(|error| refused(error.emit_to_string(&source)))?;
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::empty());
    let info = validator
        .validate(&module)
        .map_err(|error| refused(error.emit_to_string(&source)))?;
    let unchecked = BoundsCheckPolicy::Unchecked;
    let options = spv::Options {
        lang_version: (1, 6),
        flags: spv::WriterFlags::empty(),
        bounds_check_policies: BoundsCheckPolicies {
            index: unchecked,
            buffer: unchecked,
            image_load: unchecked,
            binding_array: unchecked,
        },
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: loops == Loops::Bounded,
        emit_int_div_checks: false,
        ..spv::Options::default()
    };
    let entry = spv::PipelineOptions {
        shader_stage: naga::ShaderStage::Compute,
        entry_point: "main".into(),
    };
    spv::write_vec(&module, &info, &options, Some(&entry))
        .map_err(|error| refused(error.to_string()))
}
