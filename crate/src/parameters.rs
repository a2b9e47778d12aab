//! Visits the parameters of any Burn module by name: the path of its fields, joined by dots. Files use the same names.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Tensor};

/// Parameter without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamInfo {
    /// Path in the module; for a model of this crate, the state-dict name.
    pub name: String,
    /// Shape; optimizers see rank ≥ 2 as (product of the leading dimensions, last).
    pub shape: Vec<usize>,
    /// F32, or BF16 packed.
    pub dtype: DType,
    /// True outside the blocks of a language model: an embedding, the head, the last norm. Always false for a parameter of another module.
    #[doc(hidden)]
    pub outside_blocks: bool,
}

impl ParamInfo {
    /// Describes `tensor` under this name.
    #[doc(hidden)]
    pub fn of<const D: usize>(name: &str, tensor: &Tensor<D>) -> Self {
        Self { name: name.to_string(), shape: tensor.dims().to_vec(), dtype: tensor.dtype(), outside_blocks: false }
    }

    /// Returns the number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns the shape as a matrix (A, B), if the rank is at least 2.
    #[doc(hidden)]
    pub fn matrix(&self) -> Option<(usize, usize)> {
        match self.shape.as_slice() {
            [] | [_] => None,
            [leading @ .., last] => Some((leading.iter().product(), *last)),
        }
    }
}

/// Visits each parameter, in the order of the module tree.
pub trait ParamVisitor {
    /// Visits a parameter; `name` is its path.
    fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>);

    /// Visits a parameter with the [`Param`] around its tensor.
    #[doc(hidden)]
    fn visit_param<const D: usize>(&mut self, name: &str, param: &Param<Tensor<D>>) {
        self.visit(name, param.val());
    }
}

/// Replaces each parameter, in the order of the module tree.
pub trait ParamMap {
    /// Replaces a parameter; `name` is its path. The tensor is the only handle unless the module was cloned.
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D>;

    /// Replaces a parameter with the [`Param`] around its tensor.
    #[doc(hidden)]
    fn map_param<const D: usize>(&mut self, name: &str, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, tensor, mapper) = param.consume();
        Param::from_mapped_value(id, self.map(name, tensor), mapper)
    }
}

/// Shows every parameter of `module` to `visitor`. Tensors that a module only counts, such as the running statistics of a BatchNorm, are
/// among them; they require no gradient.
pub fn visit<M: Module>(module: &M, visitor: &mut impl ParamVisitor) {
    module.visit(&mut Visiting { path: Vec::new(), visitor });
}

/// Replaces every parameter of `module` by the result of `map`.
pub fn map<M: Module>(module: M, map: &mut impl ParamMap) -> M {
    module.map(&mut Mapping { path: Vec::new(), map })
}

/// Returns name, shape and dtype of every parameter of `module`.
#[doc(hidden)]
pub fn parameters<M: Module>(module: &M) -> Vec<ParamInfo> {
    struct Collect(Vec<ParamInfo>);
    impl ParamVisitor for Collect {
        fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
            self.0.push(ParamInfo::of(name, &tensor));
        }
    }
    let mut collect = Collect(Vec::new());
    visit(module, &mut collect);
    collect.0
}

struct Visiting<'a, V: ParamVisitor> {
    path: Vec<String>,
    visitor: &'a mut V,
}

impl<V: ParamVisitor> ModuleVisitor for Visiting<'_, V> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.visitor.visit_param(&self.path.join("."), param);
    }
}

struct Mapping<'a, M: ParamMap> {
    path: Vec<String>,
    map: &'a mut M,
}

impl<M: ParamMap> ModuleMapper for Mapping<'_, M> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.map.map_param(&self.path.join("."), param)
    }
}
