//! Visits a model's parameters by their state-dict names.

use burn::tensor::Tensor;

use super::{Model, Part};
use crate::parameters::{self, ParamInfo, ParamMap, ParamVisitor, part_of, whole_name};
use crate::state::Tensor as StateTensor;

/// Makes each parameter a leaf of a new autodiff graph, except the frozen ones.
struct Track<'a>(&'a dyn Fn(&str) -> bool);

impl ParamMap for Track<'_> {
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
        let leaf = Tensor::from_inner(tensor);
        if (self.0)(name) {
            leaf
        } else {
            leaf.require_grad()
        }
    }
}

impl Model {
    /// Shows every parameter to `visitor`.
    pub fn visit(&self, visitor: &mut impl ParamVisitor) {
        parameters::visit(&self.body, visitor);
    }

    /// Replaces every parameter by the result of `map`.
    #[doc(hidden)]
    pub fn map(self, map: &mut impl ParamMap) -> Self {
        Self {
            body: parameters::map(self.body, map),
            ..self
        }
    }

    /// Returns the view that a training step differentiates: the same buffers as leaves of a new graph. Drop it before the parameters are
    /// updated, so that the update finds the parameters uniquely owned.
    #[doc(hidden)]
    pub fn tracked(&self, frozen: &dyn Fn(&str) -> bool) -> Self {
        Self {
            ropes: self.ropes.tracked(),
            ..self.clone().map(&mut Track(frozen))
        }
    }

    /// Returns the position of the parameter `name`; `None` if the model has no such parameter.
    #[doc(hidden)]
    pub fn part(&self, name: &str) -> Option<Part> {
        self.parts.get(whole_name(name)).copied()
    }

    /// Returns the name and position of each parameter.
    #[doc(hidden)]
    pub fn parts(&self) -> impl Iterator<Item = (&str, Part)> {
        self.parts.iter().map(|(name, part)| (name.as_str(), *part))
    }

    /// Returns name, shape, dtype and position of every parameter.
    #[doc(hidden)]
    pub fn parameters(&self) -> Vec<ParamInfo> {
        let mut all = parameters::parameters(&self.body);
        for parameter in &mut all {
            parameter.outside_blocks = self
                .part(&parameter.name)
                .is_some_and(|part| part.block().is_none());
        }
        all
    }

    /// Returns handles of every parameter, for writing them to a file; one that lies in parts is a single tensor.
    #[doc(hidden)]
    pub fn stream_tensors(&self) -> Vec<StateTensor> {
        struct Collect(Vec<StateTensor>);
        impl ParamVisitor for Collect {
            fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
                let shape = tensor.dims();
                let flat = tensor.reshape([shape.iter().product::<usize>()]).into();
                let Some((whole, rows)) = part_of(name) else {
                    self.0.push(StateTensor::on(name, &shape, flat));
                    return;
                };
                match self.0.last_mut().filter(|last| last.name == whole) {
                    Some(last) if rows.start > 0 => last.append_rows(rows.len(), flat),
                    _ => self.0.push(StateTensor::on(whole, &shape, flat)),
                }
            }
        }
        let mut collect = Collect(Vec::new());
        self.visit(&mut collect);
        collect.0
    }

    /// Returns the number of trained values.
    pub fn num_parameters(&self) -> usize {
        self.parameters()
            .iter()
            .map(|p| p.shape.iter().product::<usize>())
            .sum()
    }
}
