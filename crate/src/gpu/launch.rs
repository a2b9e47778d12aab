//! Runs kernels: WGSL on wgpu, twins on the CPU backend.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{DType, Shape};
use burn_cubecl::template::{KernelSource, SourceKernel, SourceTemplate};
use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
use cubecl::ir::attributes::BufferIOAttr;
use cubecl::prelude::{CubeCount, CubeDim, ExecutionMode, KernelId};
use cubecl::server::{KernelArguments, MetadataBindingInfo};
use std::cell::{Cell, RefCell};

pub(crate) use burn_cubecl::{CubeBackend, CubeDevice, tensor::CubeTensor};
pub(crate) use cubecl::logging::{
    LaunchObservation, LaunchObserver, ProfileDuration, TimingMethod, TimingRequest,
};

use crate::gpu::adapters::PerDevice;
use crate::gpu::allocation::Handle;
use crate::gpu::counter::count_launch;
use crate::gpu::trace::{self, Bytes, Launched};
use crate::gpu::{Access, AnyKernel, Kernel, KernelParams, allocation, capture, copy as u32_copy};

/// Maximum number of workgroups in one dimension of a dispatch (WebGPU's default limit).
const MAX_GROUPS: u32 = 65_535;

/// Maximum number of words of parameters that CubeCL caches on the device, for later launches with the same values: 2048 bytes.
const LONGEST_KEPT: usize = 256;

thread_local! {
    /// Names of the kernels that this thread has launched.
    static LAUNCHED: RefCell<std::collections::HashSet<&'static str>> = RefCell::default();
}

/// The devices whose adapter is a software adapter: a CPU that runs shaders.
static SOFTWARE: PerDevice<CubeDevice, bool> = PerDevice::new();

/// The most bytes that a kernel can bind of one buffer.
static BINDING_LIMITS: PerDevice<CubeDevice, u64> = PerDevice::new();

fn cube(device: &burn::tensor::Device) -> Option<&CubeDevice> {
    match device.as_dispatch() {
        burn::backend::DispatchDevice::Cube(device) => Some(device),
        _ => None,
    }
}

/// Sets the most bytes that a kernel of this device may bind of one buffer. Larger tables are loaded in parts.
pub fn set_binding_limit(device: &burn::tensor::Device, bytes: u64) {
    if let Some(device) = cube(device) {
        BINDING_LIMITS.set(device, bytes);
    }
}

/// Returns that limit; none is known of the CPU.
pub fn binding_limit(device: &burn::tensor::Device) -> u64 {
    let limit = cube(device).and_then(|device| BINDING_LIMITS.get(device));
    limit.unwrap_or(u64::MAX)
}

/// Records the adapter kind of a device. Call it before the device's first launch.
pub(crate) fn set_adapter(device: &burn::tensor::Device, kind: cubecl::wgpu::wgpu::DeviceType) {
    set_software(device, kind == cubecl::wgpu::wgpu::DeviceType::Cpu);
}

/// Selects the kernels of a device: those for software adapters, or those for GPUs, which are the default. Call it before the device's first
/// launch.
pub fn set_software(device: &burn::tensor::Device, software: bool) {
    if let Some(device) = cube(device) {
        SOFTWARE.set(device, software);
    }
}

/// Returns true if a device has the kernels for software adapters (llvmpipe, SwiftShader). There a load costs about as much as twenty products,
/// so kernels with large register blocks pay off; a GPU would spill such blocks.
pub fn is_software(device: &burn::tensor::Device) -> bool {
    cube(device).is_some_and(in_software)
}

fn in_software(device: &CubeDevice) -> bool {
    SOFTWARE.get(device).unwrap_or(false)
}

/// A backend that can run a [`Kernel`].
pub trait Launch: Backend {
    /// True if kernels run as their twins on the CPU.
    const TWINS: bool;

    /// Returns [`is_software`] of the device of a tensor. The choice of a kernel depends on this and on shapes alone.
    fn software(of: &FloatTensor<Self>) -> bool;

    /// Allocates an uninitialised contiguous tensor on the device of `like`.
    fn empty(like: &FloatTensor<Self>, shape: Shape, dtype: DType) -> FloatTensor<Self>;

    /// Allocates an uninitialised f32 tensor on the device of `like`.
    fn floats(like: &FloatTensor<Self>, shape: impl Into<Shape>) -> FloatTensor<Self> {
        Self::empty(like, shape.into(), DType::F32)
    }

    /// The tensors of these shapes that lie one after another in `whole`, each of a multiple of 256 bytes. None of them is uniquely owned
    /// while another one exists.
    fn parts<const N: usize>(
        whole: FloatTensor<Self>,
        shapes: [Shape; N],
    ) -> [FloatTensor<Self>; N];

    /// Returns token ids as a buffer of i32 words.
    fn ids(ids: IntTensor<Self>) -> FloatTensor<Self>;

    /// Runs `kernel` over `groups` workgroups and returns the written buffers. Uniquely owned buffers are written in place. A shared `Update`
    /// buffer is copied first, a shared `Write` buffer is replaced by a new one.
    fn launch<P: KernelParams, const R: usize, const W: usize>(
        kernel: &'static Kernel<P, R, W>,
        read: [FloatTensor<Self>; R],
        written: [FloatTensor<Self>; W],
        params: &P,
        groups: u32,
    ) -> [FloatTensor<Self>; W] {
        let buffers = read.into_iter().chain(written).collect();
        let written = Self::launch_any(kernel.any(), buffers, &params.words(), groups);
        let written = written.try_into().ok();
        written.expect("a kernel gives back what it writes")
    }

    /// Runs a kernel over `threads` invocations; it writes one tensor, a new one in f32 of this shape.
    fn made<P: KernelParams, const R: usize>(
        kernel: &'static Kernel<P, R, 1>,
        read: [FloatTensor<Self>; R],
        shape: impl Into<Shape>,
        params: &P,
        threads: usize,
    ) -> FloatTensor<Self> {
        let y = Self::floats(&read[0], shape);
        let [y] = Self::launch(kernel, read, [y], params, kernel.groups(threads));
        y
    }

    /// Runs a kernel without types, for launches that were recorded: as [`Launch::launch`], with buffers in binding order and parameters as words.
    fn launch_any(
        kernel: &'static AnyKernel,
        buffers: Vec<FloatTensor<Self>>,
        params: &[u32],
        groups: u32,
    ) -> Vec<FloatTensor<Self>>;
}

/// Configures a single stream, so that work is ordered and a run repeats bit for bit. Call it before the first tensor is made.
pub(crate) fn configure_runtime() {
    let mut config = CubeClRuntimeConfig::default();
    config.streaming.max_streams = 1;
    if !CubeClRuntimeConfig::try_set(config) {
        log::debug!("the CubeCL configuration was already set");
    }
}

/// The name of the runtime and compiler of a device. Kernels need `wgpu<wgsl>`; on the CPU it is `none`.
pub(crate) fn compiler_of(device: &burn::tensor::Device) -> String {
    match device.as_dispatch() {
        burn::backend::DispatchDevice::Cube(device) => device.client().name().to_string(),
        _ => "none".into(),
    }
}

thread_local! {
    static LOOPS: Cell<ExecutionMode> = const { Cell::new(ExecutionMode::Unchecked) };
}

/// Runs `work` with loops that the shader compiler bounds, as browsers may do and the native program does not, since every loop of a kernel ends
/// (tests/suite/shader_lint). Applies to launches of this thread; for comparisons of both.
pub fn with_bounded_loops<T>(work: impl FnOnce() -> T) -> T {
    let before = LOOPS.replace(ExecutionMode::Checked);
    let result = work();
    LOOPS.set(before);
    result
}

/// A kernel as source for CubeCL, and the mode in which the compiler bounds its loops or does not.
struct Wgsl(&'static AnyKernel, ExecutionMode);

impl KernelSource for Wgsl {
    fn source(&self) -> SourceTemplate {
        SourceTemplate::new(self.0.assembled())
    }
    fn id(&self) -> KernelId {
        // The text's address is a part of the id, since kernels of two crates may have one name.
        KernelId::new::<Self>()
            .info((self.0.name, self.0.source.as_ptr().addr()))
            .mode(self.1)
    }
    fn lang(&self) -> &'static str {
        "wgsl"
    }
}

/// The number of 32-bit words that hold `n` elements of `dtype`.
pub(crate) fn words_for(n: usize, dtype: DType) -> usize {
    (n * dtype.size()).div_ceil(4)
}

/// A shape as a matrix: the product of all leading dimensions as rows, and the last dimension as columns.
pub(crate) fn rows_columns(shape: &Shape) -> (usize, usize) {
    let columns = shape.last().copied().unwrap_or(1);
    (
        shape.num_elements().checked_div(columns).unwrap_or(0),
        columns,
    )
}

fn dispatch(kernel: &'static AnyKernel, tensors: &[CubeTensor], params: &[u32], groups: u32) {
    let Some(first) = tensors.first() else { return };
    if groups == 0 {
        return;
    }
    let slot = match capture::place(kernel, params) {
        capture::Params::Nowhere => return,
        capture::Params::Slot(slot) => Some(slot),
        capture::Params::Own => None,
    };
    count_launch(kernel.varies);
    trace::record(|| {
        let words = tensors
            .iter()
            .map(|t| words_for(t.shape().num_elements(), t.dtype))
            .collect();
        Launched {
            kernel,
            words,
            params: params.to_vec(),
            groups,
        }
    });
    let x = groups.min(MAX_GROUPS);
    // Each binding says how the kernel uses it: if a launch fails, the buffers that it only reads are still intact.
    let uses = kernel.bindings.iter().map(|binding| match binding.access {
        Access::Read => BufferIOAttr::ReadOnly,
        Access::Write => BufferIOAttr::WriteOnly,
        Access::Update => BufferIOAttr::ReadWrite,
    });
    let bound = tensors.iter().map(|tensor| tensor.handle.clone()).zip(uses);
    let mut arguments = bound.fold(KernelArguments::new(), |arguments, (handle, io)| {
        arguments.with_buffer_io(handle.binding(), io)
    });
    match slot {
        Some(slot) => arguments = arguments.with_buffer_io(slot.binding(), BufferIOAttr::ReadOnly),
        None => {
            // The parameters travel as CubeCL's info buffer: bound last, cached by value, and without the submit that a buffer write would cost.
            let mut info: Vec<u64> = params
                .chunks(2)
                .map(|pair| {
                    u64::from(pair[0]) | (u64::from(pair.get(1).copied().unwrap_or(0)) << 32)
                })
                .collect();
            if kernel.varies {
                // In the cache they would evict parameters that are used again. Longer ones are not cached.
                info.resize(LONGEST_KEPT + 1, 0);
            }
            arguments.info = MetadataBindingInfo::custom(info);
        }
    }
    if !capture::records() && LAUNCHED.with_borrow_mut(|launched| launched.insert(kernel.name)) {
        // Earlier launches run while this kernel is compiled. A fault of the device is reported by the next read.
        let _ = first.client.flush();
    }
    let source = SourceKernel::new(Wgsl(kernel, LOOPS.get()), CubeDim::new_1d(kernel.workgroup));
    trace::launching(kernel.name, || {
        first.client.launch(
            Box::new(source),
            CubeCount::Static(x, groups.div_ceil(x), 1),
            arguments,
        )
    });
    trace::measure(|| {
        let usage = CubeBackend::memory_pool_usage(&first.device)?;
        Some(Bytes {
            in_use: usage.bytes_in_use,
            reserved: usage.bytes_reserved,
        })
    });
}

/// Reads the first words of an f32 tensor, as of the first poll. From then on the read holds no handle: the tensor may be written in place.
pub(super) fn read_first(
    tensor: &CubeTensor,
    words: usize,
) -> impl Future<Output = Result<Vec<f32>, String>> + use<> {
    let end = tensor.handle.size_in_used() - 4 * words as u64;
    let (client, part) = (tensor.client.clone(), tensor.handle.clone().offset_end(end));
    async move {
        let bytes = client
            .read_async(vec![part])
            .await
            .map_err(|error| error.to_string())?;
        let word = |word: &[u8]| f32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        Ok(bytes
            .iter()
            .flat_map(|bytes| bytes.chunks_exact(4))
            .map(word)
            .collect())
    }
}

fn new_like(like: &CubeTensor, shape: Shape, dtype: DType) -> CubeTensor {
    // An empty buffer cannot be bound.
    let bytes = (words_for(shape.num_elements(), dtype) * 4).max(4);
    let handle = like.client.empty(bytes);
    tensor_at(like, handle, shape, dtype)
}

/// Makes the tensor that lies at `handle`, a place on the device of `like`.
pub(super) fn tensor_at(
    like: &CubeTensor,
    handle: Handle,
    shape: impl Into<Shape>,
    dtype: DType,
) -> CubeTensor {
    let (client, device) = (like.client.clone(), like.device.clone());
    CubeTensor::new_contiguous(client, device, shape.into(), handle, dtype)
}

fn contiguous(tensor: CubeTensor) -> CubeTensor {
    if tensor.is_contiguous() {
        tensor
    } else {
        burn_cubecl::kernel::into_contiguous(tensor)
    }
}

impl Launch for CubeBackend {
    const TWINS: bool = false;

    fn software(of: &CubeTensor) -> bool {
        in_software(&of.device)
    }

    fn empty(like: &CubeTensor, shape: Shape, dtype: DType) -> CubeTensor {
        new_like(like, shape, dtype)
    }

    fn parts<const N: usize>(whole: CubeTensor, shapes: [Shape; N]) -> [CubeTensor; N] {
        let mut first = 0;
        shapes.map(|shape| {
            let words = words_for(shape.num_elements(), whole.dtype);
            let handle = allocation::part(&whole.handle, first, words);
            first += words * 4;
            tensor_at(&whole, handle, shape, whole.dtype)
        })
    }

    fn ids(ids: CubeTensor) -> CubeTensor {
        match ids.dtype {
            DType::I32 | DType::U32 => ids,
            _ => <Self as burn::backend::ops::IntTensorOps<Self>>::int_cast(
                ids,
                burn::tensor::IntDType::I32,
            ),
        }
    }

    fn launch_any(
        kernel: &'static AnyKernel,
        buffers: Vec<CubeTensor>,
        params: &[u32],
        groups: u32,
    ) -> Vec<CubeTensor> {
        let tensors: Vec<CubeTensor> = buffers
            .into_iter()
            .zip(kernel.bindings)
            .map(|(tensor, binding)| match binding.access {
                Access::Read => contiguous(tensor),
                Access::Update if capture::rehearses(&tensor.handle) => tensor,
                _ if tensor.is_contiguous() && tensor.handle.can_mut() => tensor,
                Access::Write => new_like(&tensor, tensor.shape(), tensor.dtype),
                Access::Update => {
                    let tensor = contiguous(tensor);
                    if tensor.handle.can_mut() {
                        return tensor;
                    }
                    let n = words_for(tensor.shape().num_elements(), tensor.dtype);
                    let copy = new_like(&tensor, tensor.shape(), tensor.dtype);
                    let words = u32_copy::Params::whole(n).words();
                    dispatch(
                        u32_copy::KERNEL.any(),
                        &[tensor, copy.clone()],
                        &words,
                        u32_copy::KERNEL.groups(n),
                    );
                    copy
                }
            })
            .collect();
        dispatch(kernel, &tensors, params, groups);
        tensors
            .into_iter()
            .zip(kernel.bindings)
            .filter(|(_, b)| b.access != Access::Read)
            .map(|(t, _)| t)
            .collect()
    }
}
