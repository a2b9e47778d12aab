//! Parameters of any Burn module by name: the path of its fields, joined by dots. That is how files name them too.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Tensor};

/// A parameter without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamInfo {
    /// Its path in the module; for a model of this crate, its state-dict name.
    pub name: String,
    /// Shape; optimizers see rank ≥ 2 as (product of the leading dimensions, last).
    pub shape: Vec<usize>,
    /// F32, or BF16 packed.
    pub dtype: DType,
    /// Whether it stands outside the blocks of a language model: an embedding, the head, the last norm. No parameter of another module does.
    pub outside_blocks: bool,
}

impl ParamInfo {
    /// What `tensor` is, under this name.
    pub fn of<const D: usize>(name: &str, tensor: &Tensor<D>) -> Self {
        Self { name: name.to_string(), shape: tensor.dims().to_vec(), dtype: tensor.dtype(), outside_blocks: false }
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// (A, B) of rank ≥ 2.
    pub fn matrix(&self) -> Option<(usize, usize)> {
        match self.shape.as_slice() {
            [] | [_] => None,
            [leading @ .., last] => Some((leading.iter().product(), *last)),
        }
    }
}

/// Visits each parameter, in the order of the module tree.
pub trait ParamVisitor {
    /// `name` is the parameter's path.
    fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>);

    /// The same with the parameter around the tensor.
    fn visit_param<const D: usize>(&mut self, name: &str, param: &Param<Tensor<D>>) {
        self.visit(name, param.val());
    }
}

/// Replaces each parameter, in the order of the module tree.
pub trait ParamMap {
    /// `name` is the parameter's path. The tensor is the only handle unless the module was cloned.
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D>;

    /// The same with the parameter around the tensor.
    fn map_param<const D: usize>(&mut self, name: &str, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, tensor, mapper) = param.consume();
        Param::from_mapped_value(id, self.map(name, tensor), mapper)
    }
}

/// Shows every parameter of `module` to `visitor`. What a module only counts, such as the running statistics of a BatchNorm, is among them;
/// it requires no gradient.
pub fn visit<M: Module>(module: &M, visitor: &mut impl ParamVisitor) {
    module.visit(&mut Visiting { path: Vec::new(), visitor });
}

/// Replaces every parameter of `module` by what `map` gives.
pub fn map<M: Module>(module: M, map: &mut impl ParamMap) -> M {
    module.map(&mut Mapping { path: Vec::new(), map })
}

/// Name, shape and dtype of every parameter of `module`.
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
