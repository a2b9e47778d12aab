//! What a kernel is: its WGSL, its bindings, its parameters, and the twin that defines it.

use std::marker::PhantomData;

use crate::gpu::{Chunk, KernelParams};

/// What a kernel does with a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only read; may be shared.
    Read,
    /// Every element is written and none is read before; the old contents do not matter.
    Write,
    /// Read and written in place.
    Update,
}

/// One storage buffer of a kernel, by its WGSL name.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// The variable's name in the shader.
    pub name: &'static str,
    /// What the kernel does with it.
    pub access: Access,
}

/// A buffer's raw 32-bit words as its twin sees them.
pub trait Words {
    /// The words as f32.
    fn floats(&self) -> &[f32];
    /// The words as i32.
    fn ints(&self) -> &[i32];
    /// The words as writable f32.
    fn floats_mut(&mut self) -> &mut [f32];
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

/// The CPU function that defines a kernel: the buffers that it reads, those that it writes, and its parameters.
pub type Twin<P, const R: usize, const W: usize> = fn([&[u32]; R], [&mut [u32]; W], &P);

/// A [`Twin`] of a kernel without types: the parameters as words.
pub type AnyTwin = fn(Vec<&[u32]>, Vec<&mut [u32]>, &[u32]);

/// Calls a twin of which only the number of buffers is not known to the compiler.
///
/// # Panics
///
/// On another number of buffers, or fewer words of parameters; and always without the feature `cpu`, where nothing calls twins and a browser need
/// not download them.
pub fn apply<P: KernelParams, const R: usize, const W: usize>(
    twin: Twin<P, R, W>,
    read: Vec<&[u32]>,
    written: Vec<&mut [u32]>,
    params: &[u32],
) {
    if !cfg!(feature = "cpu") {
        unreachable!("twins need the feature `cpu`");
    }
    let read = read.try_into().expect("a buffer for each binding that is read");
    let written = written.try_into().expect("a buffer for each binding that is written");
    twin(read, written, &P::from_words(params));
}

/// One kernel: a WGSL file and the twin of the same stem. `P` are its parameters, `R` buffers are only read, `W` are written. Made by
/// [`kernel!`](crate::kernel).
///
/// A launch gives each buffer and the parameters, and has back what was written:
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
/// Another number of buffers does not compile:
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
/// Nor does a twin that writes to what the kernel only reads. This one is right:
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

/// A [`Kernel`] without its types: what a list of all of them, a trace and a recorded launch hold.
#[derive(Debug, Clone, Copy)]
pub struct AnyKernel {
    /// Stem of the shader, with the storage type of the weights unless that is f32.
    pub name: &'static str,
    /// Text of the stem, without `common.wgsl`.
    pub source: &'static str,
    /// Text of the entry point, where stems share one.
    pub entry: Option<&'static str>,
    /// What reads the weights, if the kernel has any: its first buffers.
    pub chunk: Option<&'static Chunk>,
    /// Storage buffers in binding order: those that are read, then those that are written; the parameters follow as the last one.
    pub bindings: &'static [Binding],
    /// Fields of the parameters in order: name and WGSL type.
    pub params: &'static [(&'static str, &'static str)],
    /// True if they change from step to step, declared as `varying`: caching them would gain nothing.
    pub varies: bool,
    /// Invocations of a workgroup.
    pub workgroup: u32,
    /// The definition on weights in f32; [`Self::define`] decodes them first.
    pub twin: AnyTwin,
}

/// The kernels that a file declares, each with those that it has for other storage types of the weights.
pub type Kernels = &'static [&'static [&'static AnyKernel]];

/// Text put in front of every shader.
pub const COMMON: &str = crate::kernel!(@source "common");

impl<P, const R: usize, const W: usize> Clone for Kernel<P, R, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, const R: usize, const W: usize> Copy for Kernel<P, R, W> {}

impl<P: KernelParams, const R: usize, const W: usize> Kernel<P, R, W> {
    /// For [`kernel!`](crate::kernel), which counts the bindings.
    pub const fn new(name: &'static str, source: &'static str, bindings: &'static [Binding], workgroup: u32, twin: AnyTwin) -> Self {
        assert!(bindings.len() == R + W);
        Self {
            any: AnyKernel { name, source, entry: None, chunk: None, bindings, params: P::FIELDS, varies: P::VARIES, workgroup, twin },
            types: PhantomData,
        }
    }

    /// The same with another shader.
    pub const fn variant(&self, name: &'static str, source: &'static str) -> Self {
        Self { any: AnyKernel { name, source, ..self.any }, types: PhantomData }
    }

    /// The same with an entry point that stems share.
    pub const fn with_entry(&self, entry: &'static str) -> Self {
        Self { any: AnyKernel { entry: Some(entry), ..self.any }, types: PhantomData }
    }

    /// The same with a chunk that reads the weights.
    pub(crate) const fn with_chunk(&self, name: &'static str, chunk: &'static Chunk) -> Self {
        Self { any: AnyKernel { name, chunk: Some(chunk), ..self.any }, types: PhantomData }
    }

    /// The same with workgroups of another size.
    pub const fn in_groups_of(&self, workgroup: u32) -> Self {
        Self { any: AnyKernel { workgroup, ..self.any }, types: PhantomData }
    }

    /// The kernel without its types.
    pub const fn any(&self) -> &AnyKernel {
        &self.any
    }

    /// The same, for a list of [`Kernels`].
    pub const fn all(&self) -> [&AnyKernel; 1] {
        [&self.any]
    }

    /// Number of workgroups that cover `threads`.
    pub fn groups(&self, threads: usize) -> u32 {
        threads.div_ceil(self.any.workgroup as usize) as u32
    }
}

impl AnyKernel {
    /// How many bindings are only read; the others follow them.
    pub fn reads(&self) -> usize {
        self.bindings.iter().take_while(|binding| binding.access == Access::Read).count()
    }

    /// Computes what the kernel defines: the buffers that it reads, those that it writes, and its parameters as words.
    ///
    /// # Panics
    ///
    /// On another number of buffers, or fewer words of parameters.
    #[cfg(feature = "cpu")]
    pub fn define(&self, read: Vec<&[u32]>, written: Vec<&mut [u32]>, params: &[u32]) {
        let (matrices, storage) = self.chunk.map_or((0, crate::gpu::StorageType::F32), |chunk| (chunk.matrices, chunk.storage));
        let weights: Vec<_> = read[..matrices].iter().map(|words| storage.decode(words)).collect();
        let read = weights.iter().map(Vec::as_slice).chain(read.into_iter().skip(matrices)).collect();
        (self.twin)(read, written, params);
    }

    /// The WGSL as it is compiled: `common.wgsl`, the chunk and the shared entry point if there are any, the stem.
    pub fn assembled(&self) -> String {
        let chunk = self.chunk.map_or(&[][..], |chunk| chunk.texts).iter().copied();
        [COMMON].into_iter().chain(chunk).chain(self.entry).chain([self.source]).collect::<Vec<_>>().join("\n")
    }
}

/// Number of workgroups of 64 invocations that cover `threads`.
pub fn groups_of_64(threads: usize) -> u32 {
    threads.div_ceil(64) as u32
}
