//! Recording an operation with a gradient of our own.

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend};
use std::fmt::Debug;
use std::marker::PhantomData;

use super::launch::Launch;

/// What an operation keeps of its forward pass, and how it turns the gradient of its output into those of its `N` inputs.
pub trait Rule<B: Backend, const N: usize>: Clone + Send + Debug + 'static {
    /// The gradient of each input that `needs` one.
    fn backward(self, grad: FloatTensor<B>, needs: [bool; N]) -> [Option<FloatTensor<B>>; N];
}

#[derive(Debug)]
struct Step<R>(PhantomData<R>);

impl<B: Launch, R: Rule<B, N>, const N: usize> Backward<B, N> for Step<R> {
    type State = R;

    fn backward(self, ops: Ops<R, N>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let needs = ops.parents.each_ref().map(Option::is_some);
        for (parent, grad) in ops.parents.into_iter().zip(ops.state.backward(grad, needs)) {
            if let (Some(parent), Some(grad)) = (parent, grad) {
                grads.register::<B>(parent.id, grad);
            }
        }
    }
}

/// Puts `output`, computed from `inputs`, on the tape with its rule. The rule is dropped where nothing needs a gradient.
pub fn record<B: Launch, C: CheckpointStrategy, R: Rule<B, N>, const N: usize>(
    inputs: [NodeGuard; N],
    output: FloatTensor<B>,
    rule: R,
) -> FloatTensor<Autodiff<B, C>> {
    match Step::<R>(PhantomData).prepare::<C>(inputs).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish(rule, output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}
