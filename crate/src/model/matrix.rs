//! Matrices of layers: a tensor, a constant in the blocks of its file, or parts of either.

use std::ops::Range;

use burn::module::{
    Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
    Param,
};
use burn::tensor::kind::Autodiff;
use burn::tensor::{Device, Int, Tensor};

use super::weight::Weight;
use crate::gpu::{StorageType, StoredMatrix};
use crate::ops::{self, HeadRows, PackedMatrix};
use crate::parameters::rows_name;

/// Matrix of a layer: a tensor, a constant in the blocks of its file, or parts of either.
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
    /// A table or a head that lies in parts, one after another, since a kernel could not bind it as a whole.
    Parts(Vec<MatrixPart>),
}

/// Some rows of a matrix.
#[derive(Debug, Clone)]
pub struct MatrixPart {
    /// The rows.
    pub rows: Range<usize>,
    /// Their values, without parts of its own.
    pub matrix: Matrix,
}

impl MatrixPart {
    /// The name of the part in the module tree.
    fn name(&self) -> String {
        rows_name(&self.rows)
    }

    fn with(self, change: impl FnOnce(Matrix) -> Matrix) -> Self {
        Self {
            rows: self.rows,
            matrix: change(self.matrix),
        }
    }
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
    /// Makes a matrix of its parts, each with its number of rows; a single part is the matrix.
    pub(super) fn of_parts(parts: impl Iterator<Item = (usize, Self)>) -> Self {
        let mut first = 0;
        let placed = parts.map(|(rows, matrix)| {
            let rows = first..first + rows;
            first = rows.end;
            MatrixPart { rows, matrix }
        });
        let mut parts: Vec<MatrixPart> = placed.collect();
        match parts.len() {
            1 => parts.remove(0).matrix,
            _ => Self::Parts(parts),
        }
    }

    /// Computes x·Wᵀ with a matrix `[out, in]`. `x [N, in]` → `[N, out]`.
    pub fn linear(&self, x: Tensor<2>) -> Tensor<2> {
        self.with(x, ops::linear, ops::packed_linear, |x, parts| {
            let columns = parts.iter().map(|part| part.matrix.linear(x.clone()));
            Tensor::cat(columns.collect(), 1)
        })
    }

    /// Computes with `x` and the matrix, a tensor next to x or a packed one.
    fn with<const E: usize, K: Autodiff>(
        &self,
        x: Tensor<E, K>,
        dense: impl Fn(Tensor<E, K>, Tensor<2>) -> Tensor<2>,
        packed: impl Fn(Tensor<E, K>, &PackedMatrix) -> Tensor<2>,
        parts: impl FnOnce(Tensor<E, K>, &[MatrixPart]) -> Tensor<2>,
    ) -> Tensor<2> {
        match self {
            Self::Dense { weight, .. } => {
                let weight = weight.beside(&x);
                dense(x, weight)
            }
            Self::Packed { matrix, .. } => packed(x, matrix),
            Self::Parts(of) => parts(x, of),
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
            _ => self.with(x, ops::conv1d, ops::packed_conv1d, |_, _| {
                unreachable!("tables and heads alone lie in parts")
            }),
        }
    }

    /// Looks up rows of a table. `ids [N]` → `[N, C]`; an id outside the table gives zeros.
    pub fn rows(&self, ids: Tensor<1, Int>) -> Tensor<2> {
        self.with(
            ids,
            |ids, weight| ops::embedding(weight, ids),
            |ids, matrix| ops::packed_embedding(matrix, ids),
            |ids, parts| {
                let rows = |part: &MatrixPart| part.matrix.constant();
                ops::embedding_of_parts(&parts.iter().map(rows).collect::<Vec<_>>(), &ids)
            },
        )
    }

    /// The rows of a head, each part by itself.
    fn head_rows(&self, x: &Tensor<2>) -> Vec<HeadRows> {
        match self {
            Self::Dense { weight, .. } => vec![HeadRows::of(weight.beside(x))],
            Self::Packed { matrix, .. } => vec![HeadRows::constant(matrix)],
            Self::Parts(parts) => parts
                .iter()
                .flat_map(|part| part.matrix.head_rows(x))
                .collect(),
        }
    }

    /// A matrix without parts as a constant.
    fn constant(&self) -> PackedMatrix {
        let (words, form, _) = self.stored();
        PackedMatrix::of_words(words, form)
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
        let head = self.head_rows(&x);
        ops::head_loss_of(x, &head, targets, rows, cap)
    }

    /// The sum of [`Self::head_loss`] and the number of targets that are the arg max of their logits (the lowest id among equals).
    /// → `[2]`
    pub(crate) fn head_evaluation(
        &self,
        x: &Tensor<2>,
        targets: &Tensor<1, Int>,
        rows: usize,
        cap: Option<f64>,
    ) -> Tensor<1> {
        ops::head_evaluation(x, &self.head_rows(x), targets, rows, cap)
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
            Self::Parts(_) => unreachable!("no adapter adds to a matrix that lies in parts"),
        }
    }

    /// The tensor, unless the matrix is packed or lies in parts.
    pub fn dense(&self) -> Option<&Weight<2>> {
        match self {
            Self::Dense { weight, .. } => Some(weight),
            _ => None,
        }
    }

    /// The tensors that a table trains.
    pub(super) fn tracked_rows(&self) -> Vec<TrackedRows<'_>> {
        match self {
            Self::Parts(parts) => parts
                .iter()
                .flat_map(|part| {
                    let own = part.matrix.tracked_rows().into_iter();
                    own.map(|tracked| TrackedRows {
                        first: part.rows.start,
                        end: format!(".{}", part.name()),
                        ..tracked
                    })
                })
                .collect(),
            _ => {
                let weight = self.dense().filter(|weight| weight.is_tracked());
                let tracked = |weight| TrackedRows {
                    first: 0,
                    end: String::new(),
                    weight,
                };
                weight.into_iter().map(tracked).collect()
            }
        }
    }
}

/// A tensor that a table trains.
pub struct TrackedRows<'a> {
    /// Its first row in the table.
    pub first: usize,
    /// The end of its name, after that of the table.
    pub end: String,
    /// The tensor.
    pub weight: &'a Weight<2>,
}

impl Module for Matrix {
    fn collect_devices(&self, devices: Devices) -> Devices {
        match self {
            Self::Dense { weight, .. } => weight.collect_devices(devices),
            Self::Packed { matrix, .. } => matrix.words().collect_devices(devices),
            Self::Parts(parts) => parts.iter().fold(devices, |devices, part| {
                part.matrix.collect_devices(devices)
            }),
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
        match self {
            Self::Dense { weight, .. } => weight.visit(visitor),
            Self::Packed { .. } => {}
            Self::Parts(parts) => {
                for part in parts {
                    visitor.enter_module(&part.name(), "Rows");
                    part.matrix.visit(visitor);
                    visitor.exit_module(&part.name(), "Rows");
                }
            }
        }
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        let Self::Parts(parts) = self else {
            return self.on(|weight| weight.map(mapper), |matrix| matrix);
        };
        let mut mapped = |part: MatrixPart| {
            let name = part.name();
            mapper.enter_module(&name, "Rows");
            let part = part.with(|matrix| matrix.map(mapper));
            mapper.exit_module(&name, "Rows");
            part
        };
        Self::Parts(parts.into_iter().map(&mut mapped).collect())
    }
}

impl Matrix {
    fn on(
        self,
        mut dense: impl FnMut(Weight<2>) -> Weight<2>,
        mut packed: impl FnMut(PackedMatrix) -> PackedMatrix,
    ) -> Self {
        self.each(&mut dense, &mut packed)
    }

    fn each(
        self,
        dense: &mut dyn FnMut(Weight<2>) -> Weight<2>,
        packed: &mut dyn FnMut(PackedMatrix) -> PackedMatrix,
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
            Self::Parts(parts) => {
                let changed = |part: MatrixPart| part.with(|matrix| matrix.each(dense, packed));
                Self::Parts(parts.into_iter().map(changed).collect())
            }
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
            Self::Parts(parts) => parts
                .iter()
                .fold(content, |content, part| {
                    content.add(&part.name(), &part.matrix)
                })
                .optional(),
        }
    }
}

impl ModuleDisplay for Matrix {}
