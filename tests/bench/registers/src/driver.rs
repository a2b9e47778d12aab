//! Access to Mesa's RADV, which compiles for a Radeon that is not present. The only module with `unsafe`, because Vulkan is a C interface.

use std::collections::BTreeMap;
use std::ffi::CStr;

use ash::{Device, Entry, Instance, khr, vk};

use crate::Error;

/// Report of the driver on a compiled kernel.
pub struct Told {
    /// Statistics of the kernel by name.
    pub statistics: BTreeMap<String, u64>,
    /// Machine code as text.
    pub assembly: String,
}

/// An open driver. [`Drop`] destroys its objects in the reverse order of their creation.
pub struct Driver {
    executables: khr::pipeline_executable_properties::Device,
    device: Device,
    instance: Instance,
    _entry: Entry,
}

/// Returns the text in a fixed array of C characters.
fn text(chars: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = chars
        .iter()
        .map_while(|&c| (c != 0).then(|| c.to_ne_bytes()[0]))
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Driver {
    /// Opens the device of the driver that the environment of this process names.
    ///
    /// # Errors
    /// `Error::Loader` without Vulkan, `Error::NoDevice`, and errors of the driver.
    pub fn open() -> Result<Self, Error> {
        // SAFETY: the loader is a Vulkan library. Every structure lives until the call that reads it returns, names are C strings, and no
        // handle is used after it was destroyed.
        unsafe {
            let entry = Entry::load().map_err(|error| Error::Loader(error.to_string()))?;
            let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
            let instance = entry.create_instance(
                &vk::InstanceCreateInfo::default().application_info(&application),
                None,
            )?;
            match Self::device(&instance) {
                Ok(device) => {
                    let executables =
                        khr::pipeline_executable_properties::Device::new(&instance, &device);
                    Ok(Self {
                        executables,
                        device,
                        instance,
                        _entry: entry,
                    })
                }
                Err(error) => {
                    instance.destroy_instance(None);
                    Err(error)
                }
            }
        }
    }

    /// Opens the first device of the driver, with all its features.
    ///
    /// # Safety
    /// `instance` must be alive.
    unsafe fn device(instance: &Instance) -> Result<Device, Error> {
        // SAFETY: as in `open`.
        unsafe {
            let physical = *instance
                .enumerate_physical_devices()?
                .first()
                .ok_or(Error::NoDevice)?;
            let (mut of_12, mut of_13) = (
                vk::PhysicalDeviceVulkan12Features::default(),
                vk::PhysicalDeviceVulkan13Features::default(),
            );
            let mut executables =
                vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default();
            let mut features = vk::PhysicalDeviceFeatures2::default()
                .push_next(&mut of_12)
                .push_next(&mut of_13)
                .push_next(&mut executables);
            // All features that the device has, as wgpu requests them.
            instance.get_physical_device_features2(physical, &mut features);
            let queues = [vk::DeviceQueueCreateInfo::default()
                .queue_family_index(0)
                .queue_priorities(&[1.0])];
            let extensions = [khr::pipeline_executable_properties::NAME.as_ptr()];
            let info = vk::DeviceCreateInfo::default()
                .queue_create_infos(&queues)
                .enabled_extension_names(&extensions)
                .push_next(&mut features);
            Ok(instance.create_device(physical, &info, None)?)
        }
    }

    /// Compiles SPIR-V whose entry point is `main` and whose bindings 0 … `bindings` − 1 are storage buffers.
    ///
    /// # Errors
    /// Errors of the driver, and `Error::NoAssembly`.
    pub fn compile(&self, words: &[u32], bindings: u32) -> Result<Told, Error> {
        let storage = vk::DescriptorType::STORAGE_BUFFER;
        let place = |binding| {
            let place = vk::DescriptorSetLayoutBinding::default()
                .binding(binding)
                .descriptor_type(storage);
            place
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        let places: Vec<_> = (0..bindings).map(place).collect();
        let device = &self.device;
        // SAFETY: as in `open`; the words were validated and written by naga. All objects are destroyed, except where a call fails: then the
        // process ends.
        unsafe {
            let set = device.create_descriptor_set_layout(
                &vk::DescriptorSetLayoutCreateInfo::default().bindings(&places),
                None,
            )?;
            let layout = device.create_pipeline_layout(
                &vk::PipelineLayoutCreateInfo::default().set_layouts(&[set]),
                None,
            )?;
            let module = device
                .create_shader_module(&vk::ShaderModuleCreateInfo::default().code(words), None)?;
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(c"main");
            let capture = vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR
                | vk::PipelineCreateFlags::CAPTURE_INTERNAL_REPRESENTATIONS_KHR;
            let info = vk::ComputePipelineCreateInfo::default()
                .flags(capture)
                .stage(stage)
                .layout(layout);
            let pipelines = device
                .create_compute_pipelines(vk::PipelineCache::null(), &[info], None)
                .map_err(|(_, error)| error)?;
            let told = self.reported(pipelines[0]);
            device.destroy_pipeline(pipelines[0], None);
            device.destroy_shader_module(module, None);
            device.destroy_pipeline_layout(layout, None);
            device.destroy_descriptor_set_layout(set, None);
            told
        }
    }

    /// Reads the report on a compiled pipeline.
    ///
    /// # Safety
    /// `pipeline` must be alive, and created with both captures.
    unsafe fn reported(&self, pipeline: vk::Pipeline) -> Result<Told, Error> {
        let info = vk::PipelineExecutableInfoKHR::default().pipeline(pipeline);
        // SAFETY: as in `open`; the format says which field of the union was written.
        unsafe {
            let statistics = self.executables.get_pipeline_executable_statistics(&info)?;
            let number = |statistic: &vk::PipelineExecutableStatisticKHR<'_>| match statistic.format
            {
                vk::PipelineExecutableStatisticFormatKHR::UINT64 => {
                    Some((text(&statistic.name), statistic.value.u64))
                }
                _ => None,
            };
            Ok(Told {
                statistics: statistics.iter().filter_map(number).collect(),
                assembly: self.assembly(&info)?,
            })
        }
    }

    /// Reads the machine code of a pipeline.
    ///
    /// # Safety
    /// As for [`Driver::reported`].
    unsafe fn assembly(&self, info: &vk::PipelineExecutableInfoKHR<'_>) -> Result<String, Error> {
        let name = |found: &vk::PipelineExecutableInternalRepresentationKHR<'_>| text(&found.name);
        // SAFETY: as in `open`; each buffer has the size that the driver reported for it, and lives until it was read.
        unsafe {
            let mut found = self
                .executables
                .get_pipeline_executable_internal_representations(info)?;
            let mut buffers: Vec<Vec<u8>> =
                found.iter().map(|found| vec![0; found.data_size]).collect();
            for (found, buffer) in found.iter_mut().zip(&mut buffers) {
                found.p_data = buffer.as_mut_ptr().cast();
            }
            let mut count = u32::try_from(found.len()).map_err(|_| Error::NoAssembly)?;
            let get = self
                .executables
                .fp()
                .get_pipeline_executable_internal_representations_khr;
            get(self.device.handle(), info, &mut count, found.as_mut_ptr()).result()?;
            let place = found
                .iter()
                .position(|found| name(found) == "Assembly")
                .ok_or(Error::NoAssembly)?;
            let text =
                CStr::from_bytes_until_nul(&buffers[place]).map_err(|_| Error::NoAssembly)?;
            Ok(text.to_string_lossy().into_owned())
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // SAFETY: all objects that were made from them have been destroyed.
        unsafe {
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}
