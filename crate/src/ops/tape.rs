//! Records operations on Burn's autodiff tape with gradients of our own.

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend};
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::gpu::launch::Launch;
use crate::ops::residual::added;

/// The backward pass of an operation (vector-Jacobian product): the tensors that it keeps of the forward pass, and the computation that turns the
/// gradient of its output into the gradients of its `N` inputs.
pub trait Vjp<B: Backend, const N: usize>: Clone + Send + Debug + 'static {
    /// Computes the gradient of each input that `needs` one.
    ///
    /// `sum` may hold the gradient of the first input that other operations have begun. A vjp whose kernel can add to it
    /// takes it out; what is left is added by one more launch.
    fn backward(self, grad: FloatTensor<B>, needs: [bool; N], sum: Sum<'_, B>) -> Grads<B, N>;
}

/// The gradients of the inputs, as far as they are needed.
pub type Grads<B, const N: usize> = [Option<FloatTensor<B>>; N];

/// The sum that a gradient may be added to.
pub type Sum<'a, B> = &'a mut Option<FloatTensor<B>>;

/// Computes the gradient of each input that `needs` one, that of the first added to `sum`.
pub(crate) fn gradients<B: Launch, const N: usize>(
    vjp: impl Vjp<B, N>,
    grad: FloatTensor<B>,
    needs: [bool; N],
    mut sum: Option<FloatTensor<B>>,
) -> Grads<B, N> {
    let mut found = vjp.backward(grad, needs, &mut sum);
    if sum.is_some() {
        found[0] = match found[0].take() {
            Some(grad) => Some(added::<B>(grad, sum)),
            None => sum,
        };
    }
    found
}

/// The backward pass of an operation with `K` outputs: it turns their gradients, as far as they arrive, into those of its `N` inputs.
pub trait JointVjp<B: Backend, const N: usize, const K: usize>:
    Clone + Send + Debug + 'static
{
    /// Computes the gradient of each input that `needs` one: zeros where nothing has arrived, since Burn's tape waits for it.
    fn backward(self, grads: Grads<B, K>, needs: [bool; N]) -> Grads<B, N>;
}

/// The gradients of the outputs of one operation, collected until all that arrive have arrived.
type Arrived<T, const K: usize> = Arc<Mutex<[Option<T>; K]>>;

fn held<T, const K: usize>(arrived: &Arrived<T, K>) -> MutexGuard<'_, [Option<T>; K]> {
    arrived.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The node of the operation itself, whose backward pass runs after those of its outputs.
#[derive(Debug, Clone)]
struct Trunk<T, R, const K: usize> {
    vjp: R,
    arrived: Arrived<T, K>,
}

impl<B: Launch, R: JointVjp<B, N, K>, const N: usize, const K: usize> Vjp<B, N>
    for Trunk<FloatTensor<B>, R, K>
{
    fn backward(self, token: FloatTensor<B>, needs: [bool; N], _: Sum<'_, B>) -> Grads<B, N> {
        // The token is a second owner of a gradient, which can be changed in place once the token is dropped.
        drop(token);
        let arrived = std::mem::replace(&mut *held(&self.arrived), [const { None }; K]);
        self.vjp.backward(arrived, needs)
    }
}

/// The node of one output. Burn's tape has one gradient per node: in the operation's node, the first that arrives represents all of them.
#[derive(Debug, Clone)]
struct Branch<T, const K: usize> {
    index: usize,
    arrived: Arrived<T, K>,
}

impl<B: Launch, const K: usize> Vjp<B, 1> for Branch<FloatTensor<B>, K> {
    fn backward(self, grad: FloatTensor<B>, _needs: [bool; 1], token: Sum<'_, B>) -> Grads<B, 1> {
        let token = token.take().unwrap_or_else(|| grad.clone());
        held(&self.arrived)[self.index] = Some(grad);
        [Some(token)]
    }
}

thread_local! {
    /// Inner nodes with a gradient that one of our vjps has begun and that is not consumed yet; entries last as long as the nodes. A backward
    /// pass stays on its thread.
    static BEGUN: RefCell<BTreeMap<u64, Weak<dyn Any + Send + Sync>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Number of entries above which those of dropped nodes are removed: nodes of Burn's own operations do not report their end.
const MANY: usize = 1024;

/// Forgets that the gradient of a node was begun; returns true if it was.
fn take_begun(node: u64) -> bool {
    BEGUN.with_borrow_mut(|begun| begun.remove(&node).is_some())
}

fn set_begun(node: u64, alive: Weak<dyn Any + Send + Sync>) {
    BEGUN.with_borrow_mut(|begun| {
        begun.insert(node, alive);
        if begun.len() > MANY {
            begun.retain(|_, node| node.strong_count() > 0);
        }
    });
}

#[derive(Debug)]
struct Step<R>(PhantomData<R>);

impl<B: Launch, R: Vjp<B, N>, const N: usize> Backward<B, N> for Step<R> {
    type State = R;

    fn backward(self, ops: Ops<R, N>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        take_begun(ops.node.id.value);
        let needs = ops.parents.each_ref().map(Option::is_some);
        // A leaf keeps its gradient when it is consumed: only an inner node hands over its sum.
        let sum = ops.parents[0]
            .as_ref()
            .filter(|first| take_begun(first.id.value))
            .map(|first| grads.consume::<B>(first));
        let found = gradients(ops.state, grad, needs, sum);
        for (parent, grad) in ops.parents.into_iter().zip(found) {
            if let (Some(parent), Some(grad)) = (parent, grad) {
                grads.register::<B>(parent.id, grad);
                if !parent.parents.is_empty() {
                    let node: Arc<dyn Any + Send + Sync> = parent.clone();
                    set_begun(parent.id.value, Arc::downgrade(&node));
                }
            }
        }
    }
}

/// Puts `output`, computed from `inputs`, on the tape with its vjp. The vjp is dropped if no input needs a gradient.
pub fn record<B: Launch, C: CheckpointStrategy, R: Vjp<B, N>, const N: usize>(
    inputs: [NodeGuard; N],
    output: FloatTensor<B>,
    vjp: R,
) -> FloatTensor<Autodiff<B, C>> {
    match Step::<R>(PhantomData)
        .prepare::<C>(inputs)
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(prep) => prep.finish(vjp, output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}

/// Puts the `outputs` of one operation, computed from `inputs`, on the tape with their common vjp.
pub(crate) fn record_joint<
    B: Launch,
    C: CheckpointStrategy,
    R: JointVjp<B, N, K>,
    const N: usize,
    const K: usize,
>(
    inputs: [NodeGuard; N],
    outputs: [FloatTensor<B>; K],
    vjp: R,
) -> [FloatTensor<Autodiff<B, C>>; K] {
    let arrived: Arrived<FloatTensor<B>, K> = Arc::new(Mutex::new([const { None }; K]));
    let trunk = record::<B, C, _, N>(
        inputs,
        outputs[0].clone(),
        Trunk {
            vjp,
            arrived: arrived.clone(),
        },
    );
    let mut index = 0;
    outputs.map(|output| {
        index += 1;
        record::<B, C, _, 1>(
            [trunk.node()],
            output,
            Branch {
                index: index - 1,
                arrived: arrived.clone(),
            },
        )
    })
}
