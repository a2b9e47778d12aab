//! The operations as a Burn backend extension: [`Launch`] backends run kernels, autodiff records our gradients.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, backend_extension};

use super::autodiff::record;
use super::launch::Launch;
use super::linear;

/// Operations of the model, differentiable on an autodiff backend.
#[backend_extension(Cube, Flex: cfg(feature = "cpu"), Autodiff)]
pub trait ModelOps: Backend {
    /// `x [n, k] · w [m, k]ᵀ`
    fn linear(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self>;
    /// `x [n, k] · w [k, m]`
    fn conv1d(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl<B: Launch> ModelOps for B {
    fn linear(x: FloatTensor<B>, w: FloatTensor<B>) -> FloatTensor<B> {
        linear::forward::<B>(x, w)
    }
    fn conv1d(x: FloatTensor<B>, w: FloatTensor<B>) -> FloatTensor<B> {
        linear::backward_input::<B>(x, w)
    }
}

impl<B: Launch, C: CheckpointStrategy> ModelOps for Autodiff<B, C> {
    fn linear(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self> {
        let ((x, x_node), (w, w_node)) = (x.into_parts(), w.into_parts());
        let y = linear::forward::<B>(x.clone(), w.clone());
        record::<B, C, _, 2>([x_node, w_node], y, linear::Linear { x, w })
    }
    fn conv1d(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self> {
        let ((x, x_node), (w, w_node)) = (x.into_parts(), w.into_parts());
        let y = linear::backward_input::<B>(x.clone(), w.clone());
        record::<B, C, _, 2>([x_node, w_node], y, linear::Conv1d { x, w })
    }
}
