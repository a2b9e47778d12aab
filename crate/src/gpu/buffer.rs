//! Buffers: tensors of any device, dtype and rank as arguments and results of kernels.

use std::fmt::Debug;

use burn::backend::BackendTypes;
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Backend, BackendTensor, Cube, DispatchDevice, DispatchTensorKind, TensorMetadata,
};
use burn::tensor::{DType, Device, Int, Shape, Tensor};

use crate::error::{Error, Result};
use crate::gpu::launch::{CubeBackend, CubeDevice, CubeTensor, Launch, words_for};
use crate::gpu::{AnyKernel, Kernel, KernelParams, allocation};

/// A backend whose tensors the kernels can write directly, because no operation on them is deferred.
#[diagnostic::on_unimplemented(
    message = "tabtune cannot be built with Burn's feature `fusion`: its kernels write to tensors in place, which fusion would defer",
    label = "turn the feature `fusion` of burn off (`default-features = false`)"
)]
trait Unfused {}
impl Unfused for CubeBackend {}
const fn is_unfused<B: Unfused>() {}
const _: () = is_unfused::<Cube>();

/// A tensor without autodiff, of any dtype and rank, as an argument or a result of [`run`] ([example](crate::kernel)).
#[derive(Debug, Clone)]
pub struct Buffer(Held);

#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "a handle for each tensor of a model: few, and short-lived"
)]
enum Held {
    Cube(CubeTensor),
    #[cfg(feature = "cpu")]
    Flex(burn_flex::FlexTensor),
}

/// Evaluates an expression with the tensor of a buffer and its backend, whichever it is.
macro_rules! with_tensor {
    ($held:expr, |$backend:ident, $tensor:ident| $value:expr) => {
        match $held {
            Held::Cube($tensor) => {
                type $backend = CubeBackend;
                $value
            }
            #[cfg(feature = "cpu")]
            Held::Flex($tensor) => {
                type $backend = burn_flex::Flex;
                $value
            }
        }
    };
}

impl From<CubeTensor> for Held {
    fn from(tensor: CubeTensor) -> Self {
        Self::Cube(tensor)
    }
}

#[cfg(feature = "cpu")]
impl From<burn_flex::FlexTensor> for Held {
    fn from(tensor: burn_flex::FlexTensor) -> Self {
        Self::Flex(tensor)
    }
}

fn primitive<
    B: Backend<IntTensorPrimitive = <B as burn::backend::BackendTypes>::FloatTensorPrimitive>,
>(
    tensor: BackendTensor<B>,
) -> FloatTensor<B> {
    match tensor {
        BackendTensor::Autodiff(tensor) => tensor.into_primitive(),
        BackendTensor::Int(tensor) => tensor,
        other => other.float(),
    }
}

impl<const D: usize> From<Tensor<D>> for Buffer {
    /// # Panics
    ///
    /// On a tensor that [`Buffer::of`] refuses.
    fn from(tensor: Tensor<D>) -> Self {
        Self::of(tensor).expect("a tensor of a device that this crate opened")
    }
}

impl<const D: usize> From<Tensor<D, Int>> for Buffer {
    /// # Panics
    ///
    /// On a tensor of a backend without kernels of this crate.
    fn from(tensor: Tensor<D, Int>) -> Self {
        let held = Self::of_kind(tensor.into_dispatch().kind)
            .expect("a tensor of a device that this crate opened");
        Self(with_tensor!(held.0, |B, tensor| B::ids(tensor).into()))
    }
}

impl Buffer {
    /// The buffer of `tensor`.
    ///
    /// # Errors
    ///
    /// `kernel.foreign-backend` for a tensor of a backend without kernels of this crate; a dependent crate may build Burn with such backends.
    pub fn of<const D: usize>(tensor: Tensor<D>) -> Result<Self> {
        Self::of_kind(tensor.into_dispatch().kind)
    }

    fn of_kind(kind: DispatchTensorKind) -> Result<Self> {
        match kind {
            DispatchTensorKind::Cube(tensor) => {
                let tensor = primitive(tensor);
                if runs_wgsl(&tensor.device) {
                    Ok(Self(tensor.into()))
                } else {
                    Err(foreign(&tensor.device))
                }
            }
            #[cfg(feature = "cpu")]
            DispatchTensorKind::Flex(tensor) => Ok(Self(primitive(tensor).into())),
            DispatchTensorKind::Autodiff(kind) => Self::of_kind(*kind),
            #[allow(
                unreachable_patterns,
                reason = "a dependent crate may build burn with further backends"
            )]
            other => Err(foreign(&other.device())),
        }
    }

    /// The buffer as a float tensor (f32 or packed bf16) of rank `D`.
    pub fn float<const D: usize>(self) -> Tensor<D> {
        with_tensor!(self.0, |B, tensor| Tensor::from_primitive::<B>(tensor))
    }

    /// The same elements in another shape.
    pub(crate) fn reshaped(self, shape: impl Into<Shape>) -> Self {
        use burn::backend::ops::FloatTensorOps;
        Self(with_tensor!(self.0, |B, tensor| {
            B::float_reshape(tensor, shape.into()).into()
        }))
    }

    /// The number of 32-bit words of the elements.
    pub(crate) fn words(&self) -> usize {
        let (elements, dtype) = match &self.0 {
            Held::Cube(tensor) => (tensor.shape().num_elements(), tensor.dtype()),
            #[cfg(feature = "cpu")]
            Held::Flex(tensor) => (tensor.shape().num_elements(), tensor.dtype()),
        };
        words_for(elements, dtype)
    }

    /// An identifier of the underlying allocation, valid while a handle exists: writing in place does not change it.
    #[doc(hidden)]
    pub fn place(&self) -> usize {
        match &self.0 {
            Held::Cube(tensor) => allocation::place_of(&tensor.handle),
            #[cfg(feature = "cpu")]
            Held::Flex(tensor) => tensor.bytes().as_ptr().addr(),
        }
    }

    /// The tensor on a GPU; `None` on the CPU.
    pub(super) fn cube(&self) -> Option<&CubeTensor> {
        match &self.0 {
            Held::Cube(tensor) => Some(tensor),
            #[cfg(feature = "cpu")]
            Held::Flex(_) => None,
        }
    }

    /// The buffer of a tensor on a GPU.
    pub(super) fn of_cube(tensor: CubeTensor) -> Self {
        Self(tensor.into())
    }

    /// The GPU that has the buffer; `None` on the CPU.
    fn device(&self) -> Option<&<CubeBackend as BackendTypes>::Device> {
        self.cube().map(|tensor| &tensor.device)
    }

    /// Returns true on a device with the [kernels for software adapters](crate::gpu::launch::is_software).
    pub(crate) fn on_software(&self) -> bool {
        with_tensor!(&self.0, |B, tensor| B::software(tensor))
    }

    /// Allocates an uninitialised f32 tensor on the device of this one.
    pub(crate) fn floats_like(&self, shape: impl Into<Shape>) -> Self {
        self.empty_like(shape, DType::F32)
    }

    /// Allocates an uninitialised tensor on the device of this one.
    pub fn empty_like(&self, shape: impl Into<Shape>, dtype: DType) -> Self {
        Self(with_tensor!(&self.0, |B, tensor| {
            B::empty(tensor, shape.into(), dtype).into()
        }))
    }
}

fn foreign(device: &impl Debug) -> Error {
    Error::ForeignBackend {
        found: format!("{device:?}"),
    }
}

/// Returns true if a device runs WGSL. In Burn the devices of all of CubeCL's runtimes, including CUDA's, have one type.
fn runs_wgsl(device: &CubeDevice) -> bool {
    matches!(device, CubeDevice::Wgpu(_))
}

/// Checks that a device can run the kernels of this crate.
///
/// # Errors
///
/// `kernel.foreign-backend` if it cannot.
pub fn check_device(device: &Device) -> Result<()> {
    match device.clone().inner().as_dispatch() {
        DispatchDevice::Cube(device) if runs_wgsl(device) => Ok(()),
        #[cfg(feature = "cpu")]
        DispatchDevice::Flex(_) => Ok(()),
        #[allow(
            unreachable_patterns,
            reason = "a dependent crate may build burn with further backends"
        )]
        other => Err(foreign(other)),
    }
}

/// Checks that the buffers for the kernel of this name, each with its own name, are all on one device.
///
/// # Errors
///
/// `kernel.mixed-devices`, with the device of each buffer.
pub(crate) fn check_devices<'a>(
    kernel: &'static str,
    buffers: impl Iterator<Item = (&'a str, &'a Buffer)> + Clone,
) -> Result<()> {
    let mut devices = buffers.clone().map(|(_, buffer)| buffer.device());
    let first = devices.next();
    if devices.all(|device| Some(device) == first) {
        return Ok(());
    }
    let found = buffers.map(|(name, buffer)| match buffer.device() {
        Some(device) => format!("{name} on the GPU {device:?}"),
        None => format!("{name} on the CPU"),
    });
    Err(Error::MixedDevices {
        kernel,
        found: found.collect(),
    })
}

/// Runs `kernel` over `groups` workgroups on tensors without autodiff and returns the written buffers. A written tensor is changed in place if it
/// is uniquely owned ([`gpu`](crate::gpu)) ([example](crate::kernel)).
///
/// # Errors
///
/// `kernel.mixed-devices` for buffers of different devices.
pub fn run<P: KernelParams, const R: usize, const W: usize>(
    kernel: &'static Kernel<P, R, W>,
    read: [Buffer; R],
    written: [Buffer; W],
    params: &P,
    groups: u32,
) -> Result<[Buffer; W]> {
    let buffers = read.into_iter().chain(written).collect();
    let written = run_any(kernel.any(), buffers, &params.words(), groups)?;
    let written = written.try_into().ok();
    Ok(written.expect("a kernel gives back what it writes"))
}

/// Runs a kernel without types, for launches that were recorded: as [`run`], with the buffers in binding order and the parameters as words.
///
/// # Errors
///
/// As [`run`].
///
/// # Panics
///
/// If the number of buffers is not that of the kernel.
pub fn run_any(
    kernel: &'static AnyKernel,
    buffers: Vec<Buffer>,
    params: &[u32],
    groups: u32,
) -> Result<Vec<Buffer>> {
    assert_eq!(
        buffers.len(),
        kernel.bindings.len(),
        "buffers of {}",
        kernel.name
    );
    check_devices(
        kernel.name,
        kernel
            .bindings
            .iter()
            .map(|binding| binding.name)
            .zip(&buffers),
    )?;
    let mut cube = Vec::with_capacity(buffers.len());
    #[cfg(feature = "cpu")]
    let mut flex = Vec::new();
    for Buffer(held) in buffers {
        match held {
            Held::Cube(tensor) => cube.push(tensor),
            #[cfg(feature = "cpu")]
            Held::Flex(tensor) => flex.push(tensor),
        }
    }
    #[cfg(feature = "cpu")]
    if cube.is_empty() {
        return Ok(burn_flex::Flex::launch_any(kernel, flex, params, groups)
            .into_iter()
            .map(|tensor| Buffer(tensor.into()))
            .collect());
    }
    Ok(CubeBackend::launch_any(kernel, cube, params, groups)
        .into_iter()
        .map(|tensor| Buffer(tensor.into()))
        .collect())
}
