//! Opens a device: WebGPU (in the browser), Vulkan, Metal or DX12 through wgpu, or the CPU with the kernels' twins.

use burn::tensor::Device as TensorDevice;
use burn::tensor::DeviceKind as AdapterKind;
use burn::tensor::wgpu::wgpu::{DeviceDescriptor, Features, MemoryHints};
use burn::tensor::wgpu::{WgpuBackend, WgpuInitError, WgpuSetup};

use crate::error::{Error, Result};
use crate::gpu::launch;

/// Maximum number of launches that are submitted together. A launch with new parameters needs a write: at 64 writes CubeCL submits by
/// itself, and natively waits. Such launches are fewer than half of a step's.
const LAUNCHES_A_SUBMIT: usize = 96;

/// Kind of device to open ([example](crate)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// WGSL on the best adapter that wgpu finds.
    Wgpu,
    /// WGSL on a CPU that runs shaders, even if there is a GPU. Browsers choose their adapter themselves.
    Software,
    /// Burn's CPU backend with the kernels' twins.
    #[cfg(feature = "cpu")]
    Cpu,
}

/// Facts about an opened device ([example](crate)).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeviceInfo {
    /// Name of the adapter.
    pub adapter: String,
    /// Name and version of the driver; empty if the adapter does not report it, as in browsers.
    #[doc(hidden)]
    pub driver: String,
    /// `webgpu`, `vulkan`, `metal`, `dx12` or `cpu`.
    #[doc(hidden)]
    pub backend: String,
    /// Limits that bound the size of tensors.
    #[doc(hidden)]
    pub limits: DeviceLimits,
}

/// Limits of a device that bound the size of tensors, in bytes.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeviceLimits {
    /// Maximum size of a buffer.
    pub max_buffer_size: u64,
    /// Maximum size of the part of a buffer that can be bound to a kernel.
    pub max_storage_buffer_binding_size: u64,
}

impl DeviceLimits {
    /// The size of the largest tensor that can be bound to a kernel as a whole.
    pub fn largest(&self) -> u64 {
        self.max_buffer_size
            .min(self.max_storage_buffer_binding_size)
    }

    /// Checks that a tensor of `bytes` can be bound to a kernel as a whole.
    ///
    /// # Errors
    /// [`Error::LimitExceeded`].
    pub fn check(&self, bytes: u64) -> Result<()> {
        if bytes > self.max_buffer_size {
            return Err(Error::LimitExceeded {
                limit: "maxBufferSize",
                need: bytes,
                have: self.max_buffer_size,
            });
        }
        if bytes > self.max_storage_buffer_binding_size {
            let have = self.max_storage_buffer_binding_size;
            return Err(Error::LimitExceeded {
                limit: "maxStorageBufferBindingSize",
                need: bytes,
                have,
            });
        }
        Ok(())
    }
}

/// An opened device. Clones are handles of the same device ([example](crate)).
#[derive(Debug, Clone)]
pub struct Device {
    tensors: TensorDevice,
    info: DeviceInfo,
    /// Handles of a wgpu device; its adapter can open another one.
    setup: Option<WgpuSetup>,
}

impl Device {
    /// Opens a device. Open each kind once per process (per wasm instance) and clone the device afterwards.
    ///
    /// # Errors
    /// [`Error::NoAdapter`] if there is no usable adapter, or this build does not compile WGSL.
    pub async fn open(kind: DeviceKind) -> Result<Self> {
        launch::configure_runtime();
        // Reads are lazy by default and would see later in-place updates.
        burn_std::set_runtime_kind(burn_std::RuntimeKind::Async);
        match kind {
            DeviceKind::Wgpu => Self::open_wgpu(AdapterKind::DefaultDevice).await,
            DeviceKind::Software => Self::open_wgpu(AdapterKind::Cpu).await,
            #[cfg(feature = "cpu")]
            DeviceKind::Cpu => Ok(Self::cpu()),
        }
    }

    async fn open_wgpu(kind: AdapterKind) -> Result<Self> {
        // On Linux the automatic choice would also try OpenGL, which cannot run the kernels and complains on stderr if there is no display.
        let api = if cfg!(target_os = "linux") {
            WgpuBackend::Vulkan
        } else {
            WgpuBackend::Auto
        };
        let options = TensorDevice::wgpu_options()
            .device_kind(kind)
            .graphics_api(api)
            .tasks_max(LAUNCHES_A_SUBMIT);
        let (tensors, setup) = options.init_with_setup_async().await.map_err(refused)?;
        let compiler = launch::compiler_of(&tensors);
        if compiler != "wgpu<wgsl>" {
            return Err(Error::NoAdapter {
                reason: format!("kernels are WGSL, this build compiles for {compiler}"),
            });
        }
        let adapter = setup.adapter.get_info();
        launch::set_adapter(&tensors, adapter.device_type);
        let limits = setup.device.limits();
        let limits = DeviceLimits {
            max_buffer_size: limits.max_buffer_size,
            max_storage_buffer_binding_size: limits.max_storage_buffer_binding_size,
        };
        launch::set_binding_limit(&tensors, limits.largest());
        let info = DeviceInfo {
            driver: format!("{} {}", adapter.driver, adapter.driver_info)
                .trim()
                .into(),
            adapter: adapter.name,
            backend: adapter.backend.to_string(),
            limits,
        };
        Ok(Self {
            tensors,
            info,
            setup: Some(setup),
        })
    }

    /// Opens another device on the adapter of this one, which was lost with all its tensors. The CPU is never lost.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] if the adapter opens none.
    pub async fn reopen(&self) -> Result<Self> {
        let Some(lost) = &self.setup else {
            return Ok(self.clone());
        };
        let descriptor = DeviceDescriptor {
            // The kernels are plain WGSL.
            required_features: lost
                .device
                .features()
                .difference(Features::all_experimental_mask()),
            required_limits: lost.device.limits(),
            // As for the first device: CubeCL allocates in large pages itself.
            memory_hints: MemoryHints::MemoryUsage,
            ..DeviceDescriptor::default()
        };
        let opened = lost.adapter.request_device(&descriptor).await;
        let (device, queue) = opened.map_err(|error| {
            Error::device_lost(format!("no other device could be opened: {error}"))
        })?;
        let setup = WgpuSetup {
            device,
            queue,
            ..lost.clone()
        };
        let registered = TensorDevice::wgpu_options()
            .tasks_max(LAUNCHES_A_SUBMIT)
            .setup(setup.clone())
            .init();
        let tensors = registered.map_err(|error| {
            Error::device_lost(format!("no other device could be used: {error}"))
        })?;
        launch::set_software(&tensors, launch::is_software(&self.tensors));
        launch::set_binding_limit(&tensors, launch::binding_limit(&self.tensors));
        Ok(Self {
            tensors,
            info: self.info.clone(),
            setup: Some(setup),
        })
    }

    /// Opens the CPU with the kernels' twins.
    #[cfg(feature = "cpu")]
    pub fn cpu() -> Self {
        let limits = DeviceLimits {
            max_buffer_size: u64::MAX,
            max_storage_buffer_binding_size: u64::MAX,
        };
        let info = DeviceInfo {
            adapter: "CPU".into(),
            driver: String::new(),
            backend: "cpu".into(),
            limits,
        };
        Self {
            tensors: TensorDevice::flex(),
            info,
            setup: None,
        }
    }

    /// Returns the device for tensors outside autodiff: state, evaluation, generation.
    pub fn inner(&self) -> TensorDevice {
        self.tensors.clone()
    }

    /// Returns the device for the tensors of a training step.
    pub fn autodiff(&self) -> TensorDevice {
        self.tensors.clone().autodiff()
    }

    /// Returns facts about the device.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }
}

fn refused(error: WgpuInitError) -> Error {
    Error::NoAdapter {
        reason: error.to_string(),
    }
}
