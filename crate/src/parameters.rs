//! Visits the parameters of any Burn module by name: the path of its fields, joined by dots. Files use the same names. A parameter that a module
//! has at several paths, which Burn tells by its `ParamId`, is one parameter with the name of its first path, and stays tied.

mod row_parts;
mod tied;
mod weights;

use std::collections::BTreeSet;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, DType, Int, Tensor};

pub(crate) use row_parts::{part_of, rows_name, whole_name};
use tied::Tied;
pub use weights::{load, save};

/// Parameter without its values, as a [`Rule`](crate::optim::Rule) is given it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamInfo {
    /// Path in the module; for a model of this crate, the state-dict name.
    pub name: String,
    /// Shape; optimizers see rank ≥ 2 as (product of the leading dimensions, last).
    pub shape: Vec<usize>,
    /// F32, or BF16, which lies packed.
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

/// Visits each parameter, in the order of the module tree; one at several paths only at the first.
///
/// ```
/// use burn::nn::LinearConfig;
/// use burn::tensor::Tensor;
/// use tabtune::parameters::{ParamVisitor, visit};
///
/// struct Names(Vec<String>);
///
/// impl ParamVisitor for Names {
///     fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
///         self.0.push(format!("{name} {:?}", tensor.dims()));
///     }
/// }
///
/// # #[cfg(feature = "cpu")] {
/// let linear = LinearConfig::new(4, 2).init(&tabtune::device::Device::cpu().inner());
/// let mut names = Names(Vec::new());
/// visit(&linear, &mut names);
/// assert_eq!(names.0, ["weight [4, 2]", "bias [2]"]);
/// # }
/// ```
pub trait ParamVisitor {
    /// Visits a parameter; `name` is its path.
    fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>);

    /// Visits a parameter of integers, which is not trained. By default nothing is done.
    fn visit_int<const D: usize>(&mut self, name: &str, tensor: Tensor<D, Int>) {
        let _ = (name, tensor);
    }

    /// Visits a parameter of truth values, which is not trained. By default nothing is done.
    fn visit_bool<const D: usize>(&mut self, name: &str, tensor: Tensor<D, Bool>) {
        let _ = (name, tensor);
    }

    /// Visits a parameter with the [`Param`] around its tensor.
    #[doc(hidden)]
    fn visit_param<const D: usize>(&mut self, name: &str, param: &Param<Tensor<D>>) {
        self.visit(name, param.val());
    }
}

/// Replaces each parameter, in the order of the module tree; one at several paths only at the first, and the others are tied to it.
///
/// ```
/// use burn::nn::LinearConfig;
/// use burn::tensor::Tensor;
/// use tabtune::parameters::{ParamMap, map};
///
/// struct Halved;
///
/// impl ParamMap for Halved {
///     fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
///         if name == "weight" { tensor * 0.5 } else { tensor }
///     }
/// }
///
/// # #[cfg(feature = "cpu")] {
/// let linear = LinearConfig::new(4, 2).init(&tabtune::device::Device::cpu().inner());
/// let expected = (linear.weight.val() * 0.5).into_data();
/// let halved = map(linear, &mut Halved);
/// halved.weight.val().into_data().assert_eq(&expected, true);
/// # }
/// ```
pub trait ParamMap {
    /// Replaces a parameter; `name` is its path. The tensor is the only handle unless the module was cloned.
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D>;

    /// Replaces a parameter of integers. By default it stays.
    fn map_int<const D: usize>(&mut self, name: &str, tensor: Tensor<D, Int>) -> Tensor<D, Int> {
        let _ = name;
        tensor
    }

    /// Replaces a parameter of truth values. By default it stays.
    fn map_bool<const D: usize>(&mut self, name: &str, tensor: Tensor<D, Bool>) -> Tensor<D, Bool> {
        let _ = name;
        tensor
    }

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

/// Shows every parameter of `module` to [`visitor`](ParamVisitor). Tensors that a module only counts, such as the running statistics of a
/// BatchNorm, are among them; they require no gradient.
pub fn visit<M: Module>(module: &M, visitor: &mut impl ParamVisitor) {
    module.visit(&mut Visiting {
        path: Path::default(),
        visitor,
        seen: BTreeSet::new(),
    });
}

/// Replaces every parameter of `module` by the result of [`map`](ParamMap).
pub fn map<M: Module>(module: M, map: &mut impl ParamMap) -> M {
    let (module, tied) = Tied::of(module);
    module.map(&mut Mapping {
        path: Path::default(),
        map,
        tied,
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
    seen: BTreeSet<ParamId>,
}

impl<V: ParamVisitor> Visiting<'_, V> {
    /// The name of a parameter that is met for the first time.
    fn first(&mut self, id: ParamId) -> Option<String> {
        self.seen.insert(id).then(|| self.path.name())
    }
}

impl<V: ParamVisitor> ModuleVisitor for Visiting<'_, V> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.leave();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(name) = self.first(param.id) {
            self.visitor.visit_param(&name, param);
        }
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        if let Some(name) = self.first(param.id) {
            self.visitor.visit_int(&name, param.val());
        }
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        if let Some(name) = self.first(param.id) {
            self.visitor.visit_bool(&name, param.val());
        }
    }
}

struct Mapping<'a, M: ParamMap> {
    path: Path,
    map: &'a mut M,
    tied: Tied,
}

impl<M: ParamMap> ModuleMapper for Mapping<'_, M> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.leave();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (map, name) = (&mut self.map, self.path.name());
        self.tied.map(param, |param| map.map_param(&name, param))
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        let (map, name) = (&mut self.map, self.path.name());
        self.tied.map(param, |param| {
            param.map(|tensor| map.map_int(&name, tensor))
        })
    }

    fn map_bool<const D: usize>(
        &mut self,
        param: Param<Tensor<D, Bool>>,
    ) -> Param<Tensor<D, Bool>> {
        let (map, name) = (&mut self.map, self.path.name());
        self.tied.map(param, |param| {
            param.map(|tensor| map.map_bool(&name, tensor))
        })
    }
}
