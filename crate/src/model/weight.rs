//! Tensors of a layer: a parameter, or a constant that no visitor of the module sees.

use burn::module::{
    Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
    Param,
};
use burn::tensor::kind::Autodiff;
use burn::tensor::{Device, Int, Tensor};

use crate::gpu::{StorageType, StoredMatrix};
use crate::ops::{self, PackedMatrix};

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

/// Matrix of a layer: a tensor, or a constant in the blocks of its file.
#[derive(Debug, Clone)]
pub enum Matrix {
    /// Elements in f32 or bf16.
    Dense {
        /// The elements.
        weight: Weight<2>,
        /// True for a constant that is stored as `[out, in]`, as in its file, where the layer has `[in, out]`.
        transposed: bool,
    },
    /// Constant that the kernels read as it is stored.
    Packed {
        /// The blocks.
        matrix: PackedMatrix,
        /// True if it is stored as `[out, in]` where the layer has `[in, out]`.
        transposed: bool,
    },
}

impl From<Param<Tensor<2>>> for Matrix {
    fn from(param: Param<Tensor<2>>) -> Self {
        Self::Dense {
            weight: param.into(),
            transposed: false,
        }
    }
}

impl Matrix {
    /// Computes x·Wᵀ with a matrix `[out, in]`. `x [N, in]` → `[N, out]`.
    pub fn linear(&self, x: Tensor<2>) -> Tensor<2> {
        self.with(x, ops::linear, ops::packed_linear)
    }

    /// Computes with `x` and the matrix, a tensor next to x or a packed one.
    fn with<const E: usize, K: Autodiff>(
        &self,
        x: Tensor<E, K>,
        dense: impl FnOnce(Tensor<E, K>, Tensor<2>) -> Tensor<2>,
        packed: impl FnOnce(Tensor<E, K>, &PackedMatrix) -> Tensor<2>,
    ) -> Tensor<2> {
        match self {
            Self::Dense { weight, .. } => {
                let weight = weight.beside(&x);
                dense(x, weight)
            }
            Self::Packed { matrix, .. } => packed(x, matrix),
        }
    }

    /// Computes x·W with a matrix `[in, out]`. `x [N, in]` → `[N, out]`.
    pub fn conv1d(&self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Dense {
                transposed: true, ..
            }
            | Self::Packed {
                transposed: true, ..
            } => self.linear(x),
            _ => self.with(x, ops::conv1d, ops::packed_conv1d),
        }
    }

    /// Looks up rows of a table. `ids [N]` → `[N, C]`; an id outside the table gives zeros.
    pub fn rows(&self, ids: Tensor<1, Int>) -> Tensor<2> {
        self.with(
            ids,
            |ids, weight| ops::embedding(weight, ids),
            |ids, matrix| ops::packed_embedding(matrix, ids),
        )
    }

    /// The sum of the token losses of the rows of `x [N, C]` under a head `[V, C]`, with at most `rows` rows of logits at once, and
    /// `cap` as their soft cap. → `[1]`
    pub fn head_loss(
        &self,
        x: Tensor<2>,
        targets: Tensor<1, Int>,
        rows: usize,
        cap: Option<f64>,
    ) -> Tensor<1> {
        match self {
            Self::Dense { weight, .. } => {
                let weight = weight.beside(&x);
                ops::head_loss(x, weight, targets, rows, cap)
            }
            Self::Packed { matrix, .. } => ops::packed_head_loss(x, matrix, targets, rows, cap),
        }
    }

    /// The sum of [`Self::head_loss`] and the number of targets that are the arg max of their logits (the lowest id among equals).
    /// → `[2]`
    pub(crate) fn head_evaluation(
        &self,
        x: Tensor<2>,
        targets: Tensor<1, Int>,
        rows: usize,
        cap: Option<f64>,
    ) -> Tensor<1> {
        match self {
            Self::Dense { weight, .. } => {
                let weight = weight.beside(&x);
                ops::head_evaluation(x, weight, rows, cap, targets)
            }
            Self::Packed { matrix, .. } => {
                ops::packed_head_evaluation(x, matrix, targets, rows, cap)
            }
        }
    }

    /// The words of a constant matrix without autodiff, how they lie, and whether it is stored as `[out, in]` where the layer has
    /// `[in, out]`.
    pub fn stored(&self) -> (Tensor<1>, StoredMatrix, bool) {
        match self {
            Self::Dense { weight, transposed } => {
                let tensor = weight.val();
                let [rows, columns] = tensor.dims();
                let form = StoredMatrix {
                    storage: StorageType::of(tensor.dtype()),
                    rows,
                    columns,
                };
                (tensor.reshape([rows * columns]), form, *transposed)
            }
            Self::Packed { matrix, transposed } => (matrix.words(), matrix.form(), *transposed),
        }
    }

    /// The tensor, unless the matrix is packed.
    pub fn dense(&self) -> Option<&Weight<2>> {
        match self {
            Self::Dense { weight, .. } => Some(weight),
            Self::Packed { .. } => None,
        }
    }
}

impl Module for Matrix {
    fn collect_devices(&self, devices: Devices) -> Devices {
        match self {
            Self::Dense { weight, .. } => weight.collect_devices(devices),
            Self::Packed { matrix, .. } => matrix.words().collect_devices(devices),
        }
    }

    fn fork(self, device: &Device) -> Self {
        self.on(
            |weight| weight.fork(device),
            |matrix| matrix.to_device(device),
        )
    }

    fn to_device(self, device: &Device) -> Self {
        self.on(
            |weight| Module::to_device(weight, device),
            |matrix| matrix.to_device(device),
        )
    }

    fn train(self) -> Self {
        self.on(Weight::train, |matrix| matrix)
    }

    fn valid(&self) -> Self {
        self.clone().on(|weight| weight.valid(), |matrix| matrix)
    }

    fn materialize(self) -> Self {
        self.on(Weight::materialize, |matrix| matrix)
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        if let Self::Dense { weight, .. } = self {
            weight.visit(visitor);
        }
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        self.on(|weight| weight.map(mapper), |matrix| matrix)
    }
}

impl Matrix {
    fn on(
        self,
        dense: impl FnOnce(Weight<2>) -> Weight<2>,
        packed: impl FnOnce(PackedMatrix) -> PackedMatrix,
    ) -> Self {
        match self {
            Self::Dense { weight, transposed } => Self::Dense {
                weight: dense(weight),
                transposed,
            },
            Self::Packed { matrix, transposed } => Self::Packed {
                matrix: packed(matrix),
                transposed,
            },
        }
    }
}

impl ModuleDisplayDefault for Matrix {
    fn content(&self, content: Content) -> Option<Content> {
        match self {
            Self::Dense { weight, .. } => weight.content(content),
            Self::Packed { matrix, .. } => content
                .add_formatted(&format!("{:?}", matrix.form()))
                .optional(),
        }
    }
}

impl ModuleDisplay for Matrix {}
