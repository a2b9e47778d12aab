//! The macro that declares kernels.

/// Declares a [`Kernel`](crate::gpu::Kernel): its stem (the text is that of [`source`](crate::gpu::source)), the number of invocations per workgroup, the buffers
/// that it reads `->` those that it writes (`mut` where it reads them too), its parameters, and its twin. Variants may follow: they share
/// everything with the kernel except for the shader and, where these are given, the entry point and the size of a workgroup.
///
/// A stem that reads weights names the chunk that it calls, `of weight4` or `of weight1`, and has `w` as its first buffer: it becomes one kernel
/// for each storage type (`Stored`), and its twin sees the weights in f32. `of two4` and `of three4` are for stems with
/// several matrices in f32 or bf16, which are the first buffers.
///
/// A parameter struct with a field that differs from step to step, as a rate does, is declared as `varying`: `struct Params { … } varying`. All
/// other parameters keep the values with which a step was recorded; a step that would change one of them is refused (`kernel.parameter`).
///
/// Numbers of elements and indices may be `usize` and switches `bool`: both are a `u32` in the shader, a switch 0 or 1.
///
/// A struct of parameters that other code than its kernels also needs can be declared by itself, `pub struct Params { … }`; its kernels name it.
///
/// Stems that share an entry point name its text, as in `through "chunks/pairs"`.
///
/// A kernel of your own comes with its text, which is compiled after `common.wgsl` ([`COMMON`](crate::gpu::COMMON)):
///
/// ```
/// use burn::tensor::{DType, Tensor, TensorData};
/// use tabtune::gpu::{Buffer, Words, run};
///
/// tabtune::kernel! {
///     /// `y = f x`
///     pub SCALED = "scaled" text (r"
///         struct Params { n: u32, f: f32 }
///         @group(0) @binding(0) var<storage, read_write> x: array<f32>;
///         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
///         @group(0) @binding(2) var<storage, read_write> params: Params;
///
///         @compute @workgroup_size(64)
///         fn main(
///             @builtin(workgroup_id) group: vec3<u32>,
///             @builtin(num_workgroups) groups: vec3<u32>,
///             @builtin(local_invocation_index) lane: u32,
///         ) {
///             let i = grid_index(group, groups, lane, 64u);
///             if (i < params.n) { y[i] = params.f * x[i]; }
///         }
///     ") [64], (x) -> (y),
///     /// How many elements, and the factor.
///     struct ScaledParams {
///         /// Elements.
///         n: u32,
///         /// The factor.
///         f: f32,
///     },
///     twin |[x], [y], p| {
///         for i in 0..p.n as usize {
///             y.floats_mut()[i] = p.f * x.floats()[i];
///         }
///     }
/// }
///
/// # #[cfg(not(feature = "cpu"))]
/// # fn main() {}
/// # #[cfg(feature = "cpu")]
/// # fn main() -> tabtune::error::Result<()> {
/// let device = tabtune::device::Device::cpu().inner();
/// let x = Buffer::from(Tensor::<1>::from_data([1.0, 2.0, 3.0], &device));
/// let y = x.empty_like([3], DType::F32);
/// let [y] = run(&SCALED, [x], [y], &ScaledParams { n: 3, f: 0.5 }, SCALED.groups(3))?;
/// y.float::<1>().into_data().assert_eq(&TensorData::from([0.5f32, 1.0, 1.5]), true);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! kernel {
    // The text of a shader.
    (@source $stem:literal) => {
        $crate::gpu::source($stem)
    };
    (@source $stem:literal $text:expr) => {
        $text
    };

    // The name of a kernel, or its names by the storage type of the weights.
    (@name $stem:literal) => {
        $stem
    };
    (@name $stem:literal of two4) => {
        $crate::kernel!(@name $stem, "bf16")
    };
    (@name $stem:literal of three4) => {
        $crate::kernel!(@name $stem, "bf16")
    };
    (@name $stem:literal of $weights:ident) => {
        $crate::kernel!(@name $stem, "bf16" "f16" "q8_0" "q4_0" "q4_k" "q6_k" "q4_1" "q5_0" "q5_1" "q5_k")
    };
    (@name $stem:literal, $($storage:literal)+) => {
        [$stem, $(concat!($stem, "_", $storage)),+]
    };

    // True if parameters differ from step to step.
    (@varies varying) => {
        true
    };

    // The number of buffers; `mut` belongs to the name after it.
    (@count $($($name:ident)+),*) => {
        <[&str]>::len(&[$(stringify!($($name)+)),*])
    };

    // The type of a kernel, or of kernels for each storage type of the weights.
    (@type $params:ty, ($($read:ident),*) -> ($($($written:ident)+),+)) => {
        $crate::gpu::Kernel<$params, { $crate::kernel!(@count $($read),*) }, { $crate::kernel!(@count $($($written)+),+) }>
    };
    (@type of two4 $params:ty, $read:tt -> $written:tt) => {
        $crate::kernel!(@plain $params, $read -> $written)
    };
    (@type of three4 $params:ty, $read:tt -> $written:tt) => {
        $crate::kernel!(@plain $params, $read -> $written)
    };
    (@plain $params:ty, ($($read:ident),*) -> ($($($written:ident)+),+)) => {
        $crate::gpu::Stored<$params, { $crate::kernel!(@count $($read),*) }, { $crate::kernel!(@count $($($written)+),+) }, 2>
    };
    (@type of $weights:ident $params:ty, ($($read:ident),*) -> ($($($written:ident)+),+)) => {
        $crate::gpu::Stored<$params, { $crate::kernel!(@count $($read),*) }, { $crate::kernel!(@count $($($written)+),+) }>
    };

    // A kernel itself, or kernels for each storage type of the weights.
    (@made $stem:literal, $kernel:expr) => {
        $kernel
    };
    (@made $stem:literal of $weights:ident, $kernel:expr) => {
        $crate::gpu::Stored::new(&$kernel, $crate::kernel!(@name $stem of $weights), &$crate::kernel!(@chunks $weights))
    };
    (@chunks weight4) => {
        $crate::gpu::WEIGHT4
    };
    (@chunks weight1) => {
        $crate::gpu::WEIGHT1
    };
    (@chunks two4) => {
        $crate::gpu::TWO4
    };
    (@chunks three4) => {
        $crate::gpu::THREE4
    };
    (@written mut $name:ident) => {
        $crate::gpu::Binding { name: stringify!($name), access: $crate::gpu::Access::Update }
    };
    (@written $name:ident) => {
        $crate::gpu::Binding { name: stringify!($name), access: $crate::gpu::Access::Write }
    };

    // Variants, which have the type of the kernel that they are variants of.
    (@variants $kernel:ty {$(
        $(#[$meta:meta])* $vis:vis $name:ident = $stem:literal $(of $weights:ident)? $(through $entry:literal)? $(text ($text:expr))? $([$group:literal])?
        as $base:ident;
    )*}) => {$(
        $(#[$meta])*
        $vis static $name: $kernel =
            $base.variant($crate::kernel!(@name $stem $(of $weights)?), $crate::kernel!(@source $stem $($text)?))
                $(.with_entry($crate::kernel!(@source $entry)))?$(.in_groups_of($group))?;
    )*};

    // A struct of parameters.
    (
        $(#[$params_meta:meta])* $vis:vis struct $params:ident { $($(#[$field_meta:meta])* $field:ident : $field_type:ty),+ $(,)? } $($varying:ident)?
    ) => {
        $(#[$params_meta])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        $vis struct $params { $($(#[$field_meta])* pub $field: $field_type),+ }

        impl $crate::gpu::KernelParams for $params {
            const FIELDS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), <$field_type as $crate::gpu::Field>::WGSL)),+];

            const VARIES: bool = false $(|| $crate::kernel!(@varies $varying))?;

            fn words(&self) -> Vec<u32> {
                let mut words = Vec::new();
                $($crate::gpu::Field::put(self.$field, &mut words);)+
                words
            }

            fn from_words(words: &[u32]) -> Self {
                let mut at = 0;
                Self { $($field: $crate::gpu::Field::take(words, &mut at)),+ }
            }
        }
    };

    // A kernel and the struct of its parameters.
    (
        $(#[$meta:meta])* $vis:vis $name:ident = $stem:literal $(of $weights:ident)? $(through $entry:literal)? $(text ($text:expr))? [$group:literal],
        ($($read:ident),*) -> ($($($written:ident)+),+),
        $(#[$params_meta:meta])* struct $params:ident { $($(#[$field_meta:meta])* $field:ident : $field_type:ty),+ $(,)? } $($varying:ident)?,
        twin $twin:expr
        $(; $($variants:tt)*)?
    ) => {
        $crate::kernel! {
            $(#[$params_meta])* $vis struct $params { $($(#[$field_meta])* $field : $field_type),+ } $($varying)?
        }

        $crate::kernel! {
            $(#[$meta])* $vis $name = $stem $(of $weights)? $(through $entry)? $(text ($text))? [$group],
            ($($read),*) -> ($($($written)+),+), $params, twin $twin
            $(; $($variants)*)?
        }
    };

    // A kernel whose parameters are those of another one.
    (
        $(#[$meta:meta])* $vis:vis $name:ident = $stem:literal $(of $weights:ident)? $(through $entry:literal)? $(text ($text:expr))? [$group:literal],
        ($($read:ident),*) -> ($($($written:ident)+),+),
        $params:ty,
        twin $twin:expr
        $(; $($variants:tt)*)?
    ) => {
        $(#[$meta])*
        $vis static $name: $crate::kernel!(@type $(of $weights)? $params, ($($read),*) -> ($($($written)+),+)) = {
            const TWIN: $crate::gpu::Twin<
                $params,
                { $crate::kernel!(@count $($read),*) },
                { $crate::kernel!(@count $($($written)+),+) },
            > = $twin;
            const BINDINGS: &[$crate::gpu::Binding] = &[
                $($crate::gpu::Binding { name: stringify!($read), access: $crate::gpu::Access::Read },)*
                $($crate::kernel!(@written $($written)+)),+
            ];
            $crate::kernel!(@made $stem $(of $weights)?, $crate::gpu::Kernel::new(
                $stem,
                $crate::kernel!(@source $stem $($text)?),
                BINDINGS,
                $group,
                |read, written, params| $crate::gpu::apply(TWIN, read, written, params),
            )$(.with_entry($crate::kernel!(@source $entry)))?)
        };
        $crate::kernel!(@variants $crate::kernel!(@type $(of $weights)? $params, ($($read),*) -> ($($($written)+),+)) { $($($variants)*)? });
    };
}
