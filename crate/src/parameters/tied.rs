//! Parameters that a module has at several paths.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId, ParameterValue};
use burn::tensor::{Bool, Int, Tensor};

/// The parameters that a module has at several paths, and what those have become that were already mapped.
#[derive(Default)]
pub(super) struct Tied {
    ids: BTreeSet<ParamId>,
    mapped: BTreeMap<ParamId, Box<dyn Any>>,
}

impl Tied {
    /// Finds the tied parameters of `module`. Those that train lose their values at all paths but the first, so that the first one has the only
    /// handle.
    pub fn of<M: Module>(module: M) -> (M, Self) {
        let mut twice = Twice::default();
        module.visit(&mut twice);
        let tied = Self {
            ids: twice.tied,
            ..Self::default()
        };
        if tied.ids.is_empty() {
            return (module, tied);
        }
        let mut first = First {
            tied: &tied.ids,
            seen: BTreeSet::new(),
        };
        (module.map(&mut first), tied)
    }

    /// Replaces `param` by the result of `map`, or by the value of the same parameter at an earlier path.
    pub fn map<T: ParameterValue + 'static>(
        &mut self,
        param: Param<T>,
        map: impl FnOnce(Param<T>) -> Param<T>,
    ) -> Param<T> {
        let id = param.id;
        if let Some(value) = self.mapped.get(&id).and_then(|value| value.downcast_ref()) {
            return param.map(|_| T::clone(value));
        }
        let mapped = map(param);
        if self.ids.contains(&id) {
            self.mapped.insert(id, Box::new(mapped.base()));
        }
        mapped
    }
}

/// Collects the parameters that are met twice.
#[derive(Default)]
struct Twice {
    seen: BTreeSet<ParamId>,
    tied: BTreeSet<ParamId>,
}

impl Twice {
    fn meet(&mut self, id: ParamId) {
        if !self.seen.insert(id) {
            self.tied.insert(id);
        }
    }
}

impl ModuleVisitor for Twice {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.meet(param.id);
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.meet(param.id);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.meet(param.id);
    }
}

/// Leaves tied parameters their values at the first path only. What requires no gradient keeps them: the clones of a running statistic share one
/// value.
struct First<'a> {
    tied: &'a BTreeSet<ParamId>,
    seen: BTreeSet<ParamId>,
}

impl ModuleMapper for First<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let first = !self.tied.contains(&param.id) || self.seen.insert(param.id);
        if first || !param.is_require_grad() {
            return param;
        }
        param.map(|tensor| Tensor::empty([0; D], &tensor.device()))
    }
}
