//! Updates a model's parameters by their gradients.

use std::collections::BTreeMap;

use burn::tensor::Tensor;

use super::backward::NamedGradients;
use super::trainer::Trainer;
use crate::gpu::Buffer;
use crate::model::ParamMap;
use crate::optim::{Gate, Moved, Optim};

/// Takes the parameters that have a gradient, and leaves a placeholder of one element in the place of each.
struct Take<'a> {
    optim: &'a mut Optim,
    gradients: NamedGradients,
    taken: Vec<Moved>,
}

impl ParamMap for Take<'_> {
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
        let Some(gradient) = self
            .gradients
            .remove(name)
            .filter(|_| !self.optim.frozen(name))
        else {
            return tensor;
        };
        let gradient = gradient.reshape(tensor.dims());
        let moved = self
            .optim
            .moved(name, tensor, gradient)
            .expect("a gradient has its parameter's shape");
        let word = self.optim.word(&moved.p);
        self.taken.push(moved);
        word.reshaped([1; D]).float()
    }
}

/// Puts updated parameters in their places.
struct Put {
    stepped: BTreeMap<String, Buffer>,
}

impl ParamMap for Put {
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
        self.stepped.remove(name).map_or(tensor, Buffer::float)
    }
}

impl Trainer {
    /// Updates the parameters that have a gradient.
    pub(super) fn update(&mut self, gradients: NamedGradients, learning_rate: f64, gate: &Gate) {
        let model = self
            .model
            .take()
            .expect("the model is away only inside update");
        let mut take = Take {
            optim: &mut self.optim,
            gradients,
            taken: Vec::new(),
        };
        let model = model.map(&mut take);
        let taken = take.taken;
        let stepped = self
            .optim
            .step_all(taken, learning_rate, gate)
            .expect("the optimizer was made for this model's parameters");
        self.model = Some(model.map(&mut Put {
            stepped: stepped.into_iter().collect(),
        }));
    }
}
