//! The definition of a kernel: its WGSL, its bindings, its parameters, and the twin that defines its results.

use std::marker::PhantomData;

use crate::gpu::{Chunk, KernelParams};

/// The way a kernel uses a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is only read, and may be shared.
    Read,
    /// Every element is written and none is read before that, so the old contents do not matter.
    Write,
    /// It is read and written in place.
    Update,
}

/// One storage buffer of a kernel, by its WGSL name.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// The variable's name in the shader.
    pub name: &'static str,
    /// The way the kernel uses it.
    pub access: Access,
}

/// The raw 32-bit words of a buffer, as a twin sees them ([example](crate::kernel)).
pub trait Words {
    /// The words as f32.
    fn floats(&self) -> &[f32];
    /// The words as i32.
    fn ints(&self) -> &[i32];
    /// The words as writable f32.
    fn floats_mut(&mut self) -> &mut [f32];

    /// The f32 at `i`, for sums in f64.
    fn wide(&self, i: usize) -> f64 {
        f64::from(self.floats()[i])
    }

    /// Stores a value at `i`, rounded to f32.
    fn set(&mut self, i: usize, value: f64) {
        self.floats_mut()[i] = value as f32;
    }
}

impl Words for [u32] {
    fn floats(&self) -> &[f32] {
        bytemuck::cast_slice(self)
    }

    fn ints(&self) -> &[i32] {
        bytemuck::cast_slice(self)
    }

    fn floats_mut(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(self)
    }
}

/// The CPU function that defines a kernel. Its arguments are the buffers that the kernel reads, those that it writes, and its parameters.
pub type Twin<P, const R: usize, const W: usize> = fn([&[u32]; R], [&mut [u32]; W], &P);

/// A [`Twin`] of a kernel without types, which takes the parameters as words.
pub type AnyTwin = fn(Vec<&[u32]>, Vec<&mut [u32]>, &[u32]);

/// Calls a twin with buffers whose number is not known to the compiler.
///
/// # Panics
///
/// If the number of buffers is not that of the twin, or there are too few words of parameters. Always without the feature `cpu`: nothing calls
/// twins there, and a browser need not download them.
pub fn apply<P: KernelParams, const R: usize, const W: usize>(
    twin: Twin<P, R, W>,
    read: Vec<&[u32]>,
    written: Vec<&mut [u32]>,
    params: &[u32],
) {
    if !cfg!(feature = "cpu") {
        unreachable!("twins need the feature `cpu`");
    }
    let read = read
        .try_into()
        .expect("a buffer for each binding that is read");
    let written = written
        .try_into()
        .expect("a buffer for each binding that is written");
    twin(read, written, &P::from_words(params));
}

/// One kernel: a WGSL file, its stem, and the twin that defines it. `P` is the type of its parameters; it only reads `R` buffers and writes `W`.
/// Declared by [`kernel!`](crate::kernel).
///
/// A launch takes each buffer and the parameters, and returns the written buffers:
///
/// ```
/// use burn::backend::tensor::FloatTensor;
/// use tabtune::{gpu::Launch, ops::scale};
///
/// fn scaled<B: Launch>(x: FloatTensor<B>, f: FloatTensor<B>) -> FloatTensor<B> {
///     let [x] = B::launch(&scale::KERNEL, [f], [x], &scale::Params { n: 4 }, 1);
///     x
/// }
/// ```
///
/// A wrong number of buffers does not compile:
///
/// ```compile_fail
/// # use burn::backend::tensor::FloatTensor;
/// # use tabtune::{gpu::Launch, ops::scale};
/// fn scaled<B: Launch>(x: FloatTensor<B>, f: FloatTensor<B>) -> FloatTensor<B> {
///     let [x] = B::launch(&scale::KERNEL, [f.clone(), f], [x], &scale::Params { n: 4 }, 1);
///     x
/// }
/// ```
///
/// Nor do the parameters of another kernel:
///
/// ```compile_fail
/// # use burn::backend::tensor::FloatTensor;
/// # use tabtune::{gpu::Launch, ops::{elementwise, scale}};
/// fn scaled<B: Launch>(x: FloatTensor<B>, f: FloatTensor<B>) -> FloatTensor<B> {
///     let [x] = B::launch(&scale::KERNEL, [f], [x], &elementwise::Params { n: 4 }, 1);
///     x
/// }
/// ```
///
/// Nor does a twin that writes to a buffer which the kernel only reads. This one is right:
///
/// ```
/// # use tabtune::{gpu::{Twin, Words}, ops::scale};
/// const TWIN: Twin<scale::Params, 1, 1> = |[f], [x], p| x.floats_mut()[..p.n as usize].iter_mut().for_each(|x| *x *= f.floats()[0]);
/// ```
///
/// ```compile_fail
/// # use tabtune::{gpu::{Twin, Words}, ops::scale};
/// const TWIN: Twin<scale::Params, 1, 1> = |[f], [x], p| f.floats_mut()[..p.n as usize].iter_mut().for_each(|f| *f *= x.floats()[0]);
/// ```
#[derive(Debug)]
pub struct Kernel<P, const R: usize, const W: usize> {
    any: AnyKernel,
    types: PhantomData<fn(&P)>,
}

/// A [`Kernel`] without its types, as a list of all kernels, a trace and a recorded launch hold it.
#[derive(Debug, Clone, Copy)]
pub struct AnyKernel {
    /// Stem of the shader, followed by the storage type of the weights unless that is f32.
    pub name: &'static str,
    /// Text of the stem, without `common.wgsl`.
    pub source: &'static str,
    /// Text of the entry point, if the stem shares one with others.
    pub entry: Option<&'static str>,
    /// The chunk that reads the weights, if the kernel has weights: they are its first buffers.
    pub chunk: Option<&'static Chunk>,
    /// Storage buffers in binding order: first those that are only read, then those that are written. The parameters follow as the last binding.
    pub bindings: &'static [Binding],
    /// Fields of the parameters in order: name and WGSL type.
    pub params: &'static [(&'static str, &'static str)],
    /// True if the parameters change from step to step (declared as `varying`), so that caching them would gain nothing.
    pub varies: bool,
    /// Number of invocations per workgroup.
    pub workgroup: u32,
    /// The twin, for weights in f32; `define` decodes them first.
    pub twin: AnyTwin,
}

/// The kernels that a file declares. Each entry is one stem with its kernels for all storage types of the weights.
pub type Kernels = &'static [&'static [&'static AnyKernel]];

/// Text that is put in front of every shader ([example](crate::kernel)).
pub const COMMON: &str = tabtune_shaders::source("common");

impl<P, const R: usize, const W: usize> Clone for Kernel<P, R, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, const R: usize, const W: usize> Copy for Kernel<P, R, W> {}

impl<P: KernelParams, const R: usize, const W: usize> Kernel<P, R, W> {
    /// Makes a kernel. For [`kernel!`](crate::kernel), which counts the bindings.
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        source: &'static str,
        bindings: &'static [Binding],
        workgroup: u32,
        twin: AnyTwin,
    ) -> Self {
        assert!(bindings.len() == R + W);
        Self::of(AnyKernel {
            name,
            source,
            entry: None,
            chunk: None,
            bindings,
            params: P::FIELDS,
            varies: P::VARIES,
            workgroup,
            twin,
        })
    }

    const fn of(any: AnyKernel) -> Self {
        Self {
            any,
            types: PhantomData,
        }
    }

    /// The same kernel with another shader.
    #[doc(hidden)]
    pub const fn variant(&self, name: &'static str, source: &'static str) -> Self {
        Self::of(AnyKernel {
            name,
            source,
            ..self.any
        })
    }

    /// The same kernel with an entry point that stems share.
    #[doc(hidden)]
    pub const fn with_entry(&self, entry: &'static str) -> Self {
        Self::of(AnyKernel {
            entry: Some(entry),
            ..self.any
        })
    }

    /// The same kernel with a chunk that reads the weights.
    pub(crate) const fn with_chunk(&self, name: &'static str, chunk: &'static Chunk) -> Self {
        Self::of(AnyKernel {
            name,
            chunk: Some(chunk),
            ..self.any
        })
    }

    /// The same kernel with workgroups of another size.
    #[doc(hidden)]
    pub const fn in_groups_of(&self, workgroup: u32) -> Self {
        Self::of(AnyKernel {
            workgroup,
            ..self.any
        })
    }

    /// The kernel without its types.
    #[doc(hidden)]
    pub const fn any(&self) -> &AnyKernel {
        &self.any
    }

    /// The kernel without its types as an array, for a list of [`Kernels`].
    #[doc(hidden)]
    pub const fn all(&self) -> [&AnyKernel; 1] {
        [&self.any]
    }

    /// The number of workgroups that cover `threads`.
    pub fn groups(&self, threads: usize) -> u32 {
        threads.div_ceil(self.any.workgroup as usize) as u32
    }
}

impl AnyKernel {
    /// The number of bindings that are only read; they come first.
    pub fn reads(&self) -> usize {
        self.bindings
            .iter()
            .take_while(|binding| binding.access == Access::Read)
            .count()
    }

    /// Runs the twin on the buffers that the kernel reads, after decoding the weights, on those that it writes, and on its parameters as words.
    ///
    /// # Panics
    ///
    /// If the number of buffers is not that of the kernel, or there are too few words of parameters.
    #[cfg(feature = "cpu")]
    pub fn define(&self, read: Vec<&[u32]>, written: Vec<&mut [u32]>, params: &[u32]) {
        let (matrices, storage) = self
            .chunk
            .map_or((0, crate::gpu::StorageType::F32), |chunk| {
                (chunk.matrices, chunk.storage)
            });
        let weights: Vec<_> = read[..matrices]
            .iter()
            .map(|words| storage.decode(words))
            .collect();
        let read = weights
            .iter()
            .map(Vec::as_slice)
            .chain(read.into_iter().skip(matrices))
            .collect();
        (self.twin)(read, written, params);
    }

    /// The WGSL as it is compiled: `common.wgsl`, the chunk and the shared entry point if there are any, the stem.
    pub fn assembled(&self) -> String {
        let chunk = self
            .chunk
            .map_or(&[][..], |chunk| chunk.texts)
            .iter()
            .copied();
        [COMMON]
            .into_iter()
            .chain(chunk)
            .chain(self.entry)
            .chain([self.source])
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// The number of workgroups of 64 invocations that cover `threads`.
pub(crate) fn groups_of_64(threads: usize) -> u32 {
    threads.div_ceil(64) as u32
}
