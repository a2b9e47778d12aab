//! The macro that declares operations, and the backends that they are computed on.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::ops::NodeGuard;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, AutodiffBackend, Backend};

use crate::gpu::launch::Launch;
use crate::ops::tape::{JointVjp, Vjp, record, record_joint};

/// A backend on which operations are computed: one that launches kernels and keeps no tape, or autodiff over such a backend, which records our
/// gradients on its tape.
pub trait Tape: Backend {
    /// The backend that launches the kernels.
    type Inner: Launch;
    /// The place of a tensor on the tape.
    type Node;

    /// Splits tensors that may need gradients into their values and their places on the tape.
    fn parts<const N: usize>(
        tensors: [FloatTensor<Self>; N],
    ) -> ([FloatTensor<Self::Inner>; N], [Self::Node; N]);

    /// Returns the place of a tensor that was just recorded.
    fn node(tensor: &FloatTensor<Self>) -> Self::Node;

    /// Returns the values of a tensor that gets no gradient.
    fn constant(tensor: FloatTensor<Self>) -> FloatTensor<Self::Inner>;

    /// Returns the values of a tensor of integers.
    fn integers(tensor: IntTensor<Self>) -> IntTensor<Self::Inner>;

    /// Puts an output on the tape, computed from the tensors at `nodes`, with its backward pass.
    fn record<R: Vjp<Self::Inner, N>, const N: usize>(
        nodes: [Self::Node; N],
        output: FloatTensor<Self::Inner>,
        vjp: R,
    ) -> FloatTensor<Self>;

    /// Puts the outputs of one operation on the tape, with their common backward pass.
    fn record_joint<R: JointVjp<Self::Inner, N, K>, const N: usize, const K: usize>(
        nodes: [Self::Node; N],
        outputs: [FloatTensor<Self::Inner>; K],
        vjp: R,
    ) -> [FloatTensor<Self>; K];

    /// Returns an output that is not differentiable.
    fn untracked(output: FloatTensor<Self::Inner>) -> FloatTensor<Self>;
}

impl<B: Launch> Tape for B {
    type Inner = B;
    type Node = ();

    fn parts<const N: usize>(tensors: [FloatTensor<B>; N]) -> ([FloatTensor<B>; N], [(); N]) {
        (tensors, [(); N])
    }

    fn node(_tensor: &FloatTensor<B>) {}

    fn constant(tensor: FloatTensor<B>) -> FloatTensor<B> {
        tensor
    }

    fn integers(tensor: IntTensor<B>) -> IntTensor<B> {
        tensor
    }

    fn record<R: Vjp<B, N>, const N: usize>(
        _nodes: [(); N],
        output: FloatTensor<B>,
        _vjp: R,
    ) -> FloatTensor<B> {
        output
    }

    fn record_joint<R: JointVjp<B, N, K>, const N: usize, const K: usize>(
        _nodes: [(); N],
        outputs: [FloatTensor<B>; K],
        _vjp: R,
    ) -> [FloatTensor<B>; K] {
        outputs
    }

    fn untracked(output: FloatTensor<B>) -> FloatTensor<B> {
        output
    }
}

impl<B: Launch, C: CheckpointStrategy> Tape for Autodiff<B, C> {
    type Inner = B;
    type Node = NodeGuard;

    fn parts<const N: usize>(
        tensors: [FloatTensor<Self>; N],
    ) -> ([FloatTensor<B>; N], [NodeGuard; N]) {
        let mut values = Vec::with_capacity(N);
        let nodes = tensors.map(|tensor| {
            let (value, node) = tensor.into_parts();
            values.push(value);
            node
        });
        let mut values = values.into_iter();
        (
            [(); N].map(|()| values.next().expect("a value for each tensor")),
            nodes,
        )
    }

    fn node(tensor: &FloatTensor<Self>) -> NodeGuard {
        tensor.node()
    }

    fn constant(tensor: FloatTensor<Self>) -> FloatTensor<B> {
        tensor.into_primitive()
    }

    fn integers(tensor: IntTensor<Self>) -> IntTensor<B> {
        tensor
    }

    fn record<R: Vjp<B, N>, const N: usize>(
        nodes: [NodeGuard; N],
        output: FloatTensor<B>,
        vjp: R,
    ) -> FloatTensor<Self> {
        record::<B, C, R, N>(nodes, output, vjp)
    }

    fn record_joint<R: JointVjp<B, N, K>, const N: usize, const K: usize>(
        nodes: [NodeGuard; N],
        outputs: [FloatTensor<B>; K],
        vjp: R,
    ) -> [FloatTensor<Self>; K] {
        record_joint::<B, C, R, N, K>(nodes, outputs, vjp)
    }

    fn untracked(output: FloatTensor<B>) -> FloatTensor<Self> {
        Self::from_inner(output)
    }
}

/// Declares an operation: a function on tensors of any device, differentiable on an autodiff device.
///
/// Its arguments are tensors of floats, then settings, then tensors of integers, with `;` between the three. Its block computes it on a backend `B`,
/// with and without a tape: it takes the values of the tensors (`B::parts` where gradients may be needed, `B::constant` elsewhere, `B::integers`),
/// launches kernels on `B::Inner`, and hands over the output with its backward pass (`B::record`), a [`Vjp`]. Without a tape that
/// backward pass is dropped. For example:
///
/// ```text
/// operation! {
///     /// Computes `f(gate) · up`, both `[n, F]`.
///     pub fn gated_unit(gate: Tensor<2>, up: Tensor<2>; function: GateFunction) -> Tensor<2> {
///         let ([gate, up], nodes) = B::parts([gate, up]);
///         let y = gated_values::<B::Inner>(gate.clone(), up.clone(), function);
///         B::record(nodes, y, GatedUnit { gate, up, function })
///     }
/// }
/// ```
///
/// The function contains a trait with one method, the block as its implementation for each [`Tape`], and the call by which Burn's `Dispatch` finds the
/// backend of the tensors.
macro_rules! operation {
    // An operation with one output.
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arguments:tt)*) -> Tensor<$rank:literal> $block:block) => {
        $crate::ops::operation::operation!(
            @function [$(#[$meta])* $vis fn $name] ($($arguments)*) [::burn::tensor::Tensor<$rank>]
            [::burn::backend::tensor::FloatTensor<Self>] [::burn::tensor::Tensor::from_dispatch] $block
        );
    };

    // An operation with two outputs.
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arguments:tt)*) -> (Tensor<$rank:literal>, Tensor<$other:literal>) $block:block) => {
        $crate::ops::operation::operation!(
            @function [$(#[$meta])* $vis fn $name] ($($arguments)*) [(::burn::tensor::Tensor<$rank>, ::burn::tensor::Tensor<$other>)]
            [(::burn::backend::tensor::FloatTensor<Self>, ::burn::backend::tensor::FloatTensor<Self>)]
            [|(one, other)| (::burn::tensor::Tensor::from_dispatch(one), ::burn::tensor::Tensor::from_dispatch(other))] $block
        );
    };

    // The function: the type of its result on tensors and on a backend, and the conversion of the latter to the former.
    (
        @function [$($head:tt)+]
        ($($float:ident: Tensor<$rank:literal>),+ $(; $($setting:ident: $type:ty),* $(; $($integer:ident: Tensor<$integer_rank:literal, Int>),+)?)?)
        [$($result:tt)+] [$($output:tt)+] [$($converted:tt)+] $block:block
    ) => {
        #[allow(clippy::too_many_arguments, reason = "a tensor in an array would not reach the backend")]
        $($head)+(
            $($float: ::burn::tensor::Tensor<$rank>,)+
            $($($setting: $type,)* $($($integer: ::burn::tensor::Tensor<$integer_rank, ::burn::tensor::Int>,)+)?)?
        ) -> $($result)+ {
            #[::burn::backend::backend_extension(Cube, Flex: cfg(feature = "cpu"), Autodiff)]
            trait Operation: ::burn::backend::Backend {
                fn computed(
                    $($float: ::burn::backend::tensor::FloatTensor<Self>,)+
                    $($($setting: $type,)* $($($integer: ::burn::backend::tensor::IntTensor<Self>,)+)?)?
                ) -> $($output)+;
            }

            impl<B: $crate::ops::operation::Tape> Operation for B {
                fn computed(
                    $($float: ::burn::backend::tensor::FloatTensor<Self>,)+
                    $($($setting: $type,)* $($($integer: ::burn::backend::tensor::IntTensor<Self>,)+)?)?
                ) -> $($output)+ $block
            }

            let result = <::burn::backend::Dispatch as Operation>::computed(
                $($float.into_dispatch(),)+
                $($($setting,)* $($($integer.into_dispatch(),)+)?)?
            );
            ($($converted)+)(result)
        }
    };
}

pub(crate) use operation;
