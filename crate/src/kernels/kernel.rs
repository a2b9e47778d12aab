//! What a kernel is: its WGSL, its bindings, and the twin that defines it.

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

/// A buffer the kernel only reads.
pub const fn read(name: &'static str) -> Binding {
    Binding { name, access: Access::Read }
}

/// A buffer the kernel fills.
pub const fn write(name: &'static str) -> Binding {
    Binding { name, access: Access::Write }
}

/// A buffer the kernel changes in place.
pub const fn update(name: &'static str) -> Binding {
    Binding { name, access: Access::Update }
}

/// A buffer as its twin sees it: raw 32-bit words.
#[derive(Debug)]
pub enum Words<'a> {
    /// Of a [`Access::Read`] binding.
    Read(&'a [u32]),
    /// Of a written binding.
    Write(&'a mut [u32]),
}

impl Words<'_> {
    /// The raw words.
    pub fn words(&self) -> &[u32] {
        match self {
            Words::Read(words) => words,
            Words::Write(words) => words,
        }
    }

    /// The words as f32.
    pub fn floats(&self) -> &[f32] {
        bytemuck::cast_slice(self.words())
    }

    /// The words as i32.
    pub fn ints(&self) -> &[i32] {
        bytemuck::cast_slice(self.words())
    }

    /// The raw words, writable; empty if the kernel declared the buffer read-only.
    pub fn words_mut(&mut self) -> &mut [u32] {
        match self {
            Words::Read(_) => &mut [],
            Words::Write(words) => words,
        }
    }

    /// The words as writable f32; empty if the kernel declared the buffer read-only.
    pub fn floats_mut(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(self.words_mut())
    }
}

/// The CPU function that defines a kernel: buffers in binding order, then the words of its `Params`.
pub type Twin = fn(&mut [Words<'_>], &[u32]);

/// One kernel: a WGSL file and the twin of the same stem.
#[derive(Debug)]
pub struct Kernel {
    /// Stem of the shader; also the key of the pipeline cache.
    pub name: &'static str,
    /// Text of `shaders/<name>.wgsl`, without `common.wgsl`.
    pub source: &'static str,
    /// Storage buffers in binding order; the parameters follow as the last one.
    pub bindings: &'static [Binding],
    /// Fields of `Params` in order, each one word: name and WGSL type.
    pub params: &'static [(&'static str, &'static str)],
    /// Invocations of a workgroup.
    pub workgroup: u32,
    /// The definition.
    pub twin: Twin,
}

/// Parameters of the optimizers' kernels that change with every step.
const VARYING: [&str; 7] = ["alpha", "rate", "w", "eps1", "relative_step", "refresh_low", "step_low"];

/// Text put in front of every shader.
pub const COMMON: &str = include_str!("../../../shaders/common.wgsl");

impl Kernel {
    /// Whether its parameters change with every step, so that caching them would gain nothing.
    pub fn varies(&self) -> bool {
        self.params.iter().any(|(name, _)| VARYING.contains(name))
    }

    /// The WGSL as it is compiled.
    pub fn assembled(&self) -> String {
        let mut text = String::with_capacity(COMMON.len() + self.source.len() + 1);
        text.push_str(COMMON);
        text.push('\n');
        text.push_str(self.source);
        text
    }
}

/// A type of one 32-bit word that a `Params` field may have.
pub trait Word: Copy {
    /// Its WGSL name.
    const WGSL: &'static str;
    /// Its bits.
    fn to_word(self) -> u32;
    /// From bits.
    fn from_word(word: u32) -> Self;
}

impl Word for u32 {
    const WGSL: &'static str = "u32";
    fn to_word(self) -> u32 {
        self
    }
    fn from_word(word: u32) -> Self {
        word
    }
}

impl Word for i32 {
    const WGSL: &'static str = "i32";
    fn to_word(self) -> u32 {
        self as u32
    }
    fn from_word(word: u32) -> Self {
        word as i32
    }
}

impl Word for f32 {
    const WGSL: &'static str = "f32";
    fn to_word(self) -> u32 {
        self.to_bits()
    }
    fn from_word(word: u32) -> Self {
        f32::from_bits(word)
    }
}

/// Declares the `Params` struct of a kernel: one-word fields in the order of the shader's struct.
#[macro_export]
macro_rules! kernel_params {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$fmeta:meta])* $field:ident : $ty:ty),+ $(,)? }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $name { $($(#[$fmeta])* pub $field: $ty),+ }

        impl $name {
            /// Names and WGSL types of the fields.
            pub const FIELDS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), <$ty as $crate::kernels::Word>::WGSL)),+];

            /// The struct as words.
            pub fn words(&self) -> Vec<u32> {
                vec![$($crate::kernels::Word::to_word(self.$field)),+]
            }

            /// The struct from words; a missing word reads as zero.
            pub fn from_words(words: &[u32]) -> Self {
                let mut rest = words.iter().copied();
                Self { $($field: $crate::kernels::Word::from_word(rest.next().unwrap_or(0))),+ }
            }
        }
    };
}

/// Declares the record of a kernel by its stem, with 64 invocations by default; the path leads from the calling file to `shaders/`.
#[macro_export]
macro_rules! kernel_record {
    ($(#[$meta:meta])* $name:ident, $stem:literal in $folder:literal, [$($binding:expr),+], $params:ty, $twin:expr) => {
        $crate::kernel_record!($(#[$meta])* $name, $stem in $folder, [$($binding),+], $params, $twin, 64);
    };
    ($(#[$meta:meta])* $name:ident, $stem:literal in $folder:literal, [$($binding:expr),+], $params:ty, $twin:expr, $group:literal) => {
        $(#[$meta])*
        pub static $name: $crate::kernels::Kernel = $crate::kernels::Kernel {
            name: $stem,
            source: include_str!(concat!($folder, $stem, ".wgsl")),
            bindings: &[$($binding),+],
            params: <$params>::FIELDS,
            workgroup: $group,
            twin: $twin,
        };
    };
}

/// Number of workgroups of 64 invocations that cover `threads`.
pub fn groups_of_64(threads: usize) -> u32 {
    threads.div_ceil(64) as u32
}

/// Number of workgroups of `kernel` that cover `threads`.
pub fn groups(kernel: &Kernel, threads: usize) -> u32 {
    threads.div_ceil(kernel.workgroup as usize) as u32
}
