//! The update of a model's parameters by their gradients.

use burn::tensor::Tensor;

use super::backward::NamedGradients;
use super::trainer::Trainer;
use crate::model::ParamMap;
use crate::optim::{Gate, Optim};

impl Trainer {
    /// Updates the parameters that have a gradient.
    pub(super) fn update(&mut self, gradients: NamedGradients, learning_rate: f64, gate: &Gate) {
        struct Update<'a> {
            optim: &'a mut Optim,
            gradients: NamedGradients,
            learning_rate: f64,
            gate: &'a Gate,
        }
        impl ParamMap for Update<'_> {
            fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
                let gradient = self.gradients.remove(name).map(|g| g.reshape(tensor.dims()));
                let stepped = self.optim.step_param(name, tensor, gradient, self.learning_rate, self.gate);
                stepped.expect("the optimizer was made for this model's parameters, and a gradient has its parameter's shape")
            }
        }
        let model = self.model.take().expect("the model is away only inside update");
        self.model = Some(model.map(&mut Update { optim: &mut self.optim, gradients, learning_rate, gate }));
    }
}
