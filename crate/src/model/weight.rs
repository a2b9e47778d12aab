//! Tensors of a layer: a parameter, or a constant that no visitor of the module sees.

use burn::module::{
    Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
    Param,
};
use burn::tensor::kind::Autodiff;
use burn::tensor::{Device, Tensor};

/// Tensor of a layer. A frozen tensor has no name in the module: nothing can train, track or save it.
#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "a handle for each tensor of a model: few, and read in every step"
)]
pub enum Weight<const D: usize> {
    /// A parameter.
    Trained(Param<Tensor<D>>),
    /// A constant, without autodiff.
    Frozen(Tensor<D>),
}

impl<const D: usize> From<Param<Tensor<D>>> for Weight<D> {
    fn from(param: Param<Tensor<D>>) -> Self {
        Self::Trained(param)
    }
}

impl<const D: usize> Weight<D> {
    /// The tensor as it is stored.
    pub fn val(&self) -> Tensor<D> {
        match self {
            Self::Trained(param) => param.val(),
            Self::Frozen(tensor) => tensor.clone(),
        }
    }

    /// The tensor for an operation with `x`: a frozen tensor becomes a constant of the graph that `x` is in.
    pub fn beside<const E: usize, K: Autodiff>(&self, x: &Tensor<E, K>) -> Tensor<D> {
        match self {
            Self::Frozen(tensor) if x.is_autodiff() => Tensor::from_inner(tensor.clone()),
            _ => self.val(),
        }
    }

    /// Returns whether a backward pass produces its gradient.
    fn on(
        self,
        trained: impl FnOnce(Param<Tensor<D>>) -> Param<Tensor<D>>,
        frozen: impl FnOnce(Tensor<D>) -> Tensor<D>,
    ) -> Self {
        match self {
            Self::Trained(param) => Self::Trained(trained(param)),
            Self::Frozen(tensor) => Self::Frozen(frozen(tensor)),
        }
    }

    pub(crate) fn is_tracked(&self) -> bool {
        matches!(self, Self::Trained(param) if param.val().is_tracked())
    }
}

impl<const D: usize> Module for Weight<D> {
    fn collect_devices(&self, devices: Devices) -> Devices {
        match self {
            Self::Trained(param) => param.collect_devices(devices),
            Self::Frozen(tensor) => tensor.collect_devices(devices),
        }
    }

    fn fork(self, device: &Device) -> Self {
        self.on(
            |param| param.fork(device),
            |tensor| Module::fork(tensor, device),
        )
    }

    fn to_device(self, device: &Device) -> Self {
        self.on(
            |param| Module::to_device(param, device),
            |tensor| Module::to_device(tensor, device),
        )
    }

    fn train(self) -> Self {
        self.on(Module::train, |tensor| tensor)
    }

    fn valid(&self) -> Self {
        match self {
            Self::Trained(param) => Self::Trained(param.valid()),
            Self::Frozen(tensor) => Self::Frozen(tensor.clone()),
        }
    }

    fn materialize(self) -> Self {
        self.on(Module::materialize, |tensor| tensor)
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        if let Self::Trained(param) = self {
            param.visit(visitor);
        }
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        self.on(|param| Module::map(param, mapper), |tensor| tensor)
    }
}

impl<const D: usize> ModuleDisplayDefault for Weight<D> {
    fn content(&self, content: Content) -> Option<Content> {
        match self {
            Self::Trained(param) => param.content(content),
            Self::Frozen(tensor) => ModuleDisplayDefault::content(tensor, content),
        }
    }
}

impl<const D: usize> ModuleDisplay for Weight<D> {}
