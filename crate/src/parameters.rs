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
        Self {
            name: name.to_string(),
            shape: tensor.dims().to_vec(),
            dtype: tensor.dtype(),
            outside_blocks: false,
        }
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
    fn map_param<const D: usize>(
        &mut self,
        name: &str,
        param: Param<Tensor<D>>,
    ) -> Param<Tensor<D>> {
        let (id, tensor, mapper) = param.consume();
        Param::from_mapped_value(id, self.map(name, tensor), mapper)
    }
}

/// Shows every parameter of `module` to `visitor`. Tensors that a module only counts, such as the running statistics of a BatchNorm, are
/// among them; they require no gradient.
pub fn visit<M: Module>(module: &M, visitor: &mut impl ParamVisitor) {
    module.visit(&mut Visiting {
        path: Path::default(),
        visitor,
    });
}

/// Replaces every parameter of `module` by the result of `map`.
pub fn map<M: Module>(module: M, map: &mut impl ParamMap) -> M {
    module.map(&mut Mapping {
        path: Path::default(),
        map,
    })
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

/// Kind of container by which a module says that it is entered with its whole name.
pub(crate) const NAMED: &str = "Named";

/// The modules that were entered, and which of them have their whole names.
#[derive(Default)]
struct Path(Vec<(String, bool)>);

impl Path {
    fn enter(&mut self, name: &str, container: &str) {
        self.0.push((name.to_string(), container == NAMED));
    }

    fn leave(&mut self) {
        self.0.pop();
    }

    /// Returns the path from the innermost whole name on.
    fn name(&self) -> String {
        let first = self.0.iter().rposition(|(_, whole)| *whole).unwrap_or(0);
        self.0[first..]
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>()
            .join(".")
    }
}

struct Visiting<'a, V: ParamVisitor> {
    path: Path,
    visitor: &'a mut V,
}

impl<V: ParamVisitor> ModuleVisitor for Visiting<'_, V> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.leave();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.visitor.visit_param(&self.path.name(), param);
    }
}

struct Mapping<'a, M: ParamMap> {
    path: Path,
    map: &'a mut M,
}

impl<M: ParamMap> ModuleMapper for Mapping<'_, M> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.leave();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.map.map_param(&self.path.name(), param)
    }
}
