//! Visits a model's parameters by their state-dict names.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Tensor;

use super::{Body, Model};
use crate::bundle::{StreamTensor, StreamValues};
use crate::config::ModelConfig;
use crate::optim::ParamInfo;

/// Visits each parameter, in the order of the module tree.
pub trait ParamVisitor {
    /// `name` is the state-dict name.
    fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>);
}

/// Replaces each parameter, in the order of the module tree.
pub trait ParamMap {
    /// `name` is the state-dict name. The tensor is the only handle unless the model was cloned.
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D>;
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
        self.visitor.visit(&self.path.join("."), param.val());
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
        let (id, tensor, mapper) = param.consume();
        Param::from_mapped_value(id, self.map.map(&self.path.join("."), tensor), mapper)
    }
}

/// Makes each parameter a leaf of a new autodiff graph, except the frozen ones.
struct Track<'a>(&'a dyn Fn(&str) -> bool);

impl ParamMap for Track<'_> {
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
        let leaf = Tensor::from_inner(tensor);
        if (self.0)(name) { leaf } else { leaf.require_grad() }
    }
}

impl Model {
    /// Shows every parameter to `visitor`.
    pub fn visit(&self, visitor: &mut impl ParamVisitor) {
        let visiting = &mut Visiting { path: Vec::new(), visitor };
        match &self.body {
            Body::Llama(llama) => llama.visit(visiting),
            Body::Gpt2(gpt2) => gpt2.visit(visiting),
        }
    }

    /// Replaces every parameter by what `map` gives.
    pub fn map(self, map: &mut impl ParamMap) -> Self {
        let mapping = &mut Mapping { path: Vec::new(), map };
        let body = match self.body {
            Body::Llama(llama) => Body::Llama(Box::new(llama.map(mapping))),
            Body::Gpt2(gpt2) => Body::Gpt2(Box::new(gpt2.map(mapping))),
        };
        Self { body, ..self }
    }

    /// The view that a training step differentiates: the same buffers as leaves of a new graph. Drop it before the parameters are updated,
    /// so that the update finds the parameters uniquely owned.
    pub fn tracked(&self, frozen: &dyn Fn(&str) -> bool) -> Self {
        let rope = self.rope.as_ref().map(super::rope::Rope::tracked);
        Self { rope, tracked: true, ..self.clone().map(&mut Track(frozen)) }
    }

    /// The block that a parameter belongs to by its name; `None` for embeddings, the last norm and the head.
    pub fn block_of(name: &str) -> Option<usize> {
        let rest = name.strip_prefix("model.layers.").or_else(|| name.strip_prefix("transformer.h."))?;
        rest.split('.').next()?.parse().ok()
    }

    /// Whether a parameter is read by [`Model::embed`].
    pub fn is_embedding(name: &str) -> bool {
        matches!(name, "model.embed_tokens.weight" | "transformer.wte.weight" | "transformer.wpe.weight")
    }

    /// Whether the head's backward pass gives this parameter a gradient: the last norm and the head's weight, which may be the embedding's.
    pub fn in_head(config: &ModelConfig, name: &str) -> bool {
        match name {
            "model.embed_tokens.weight" | "transformer.wte.weight" => config.tie_word_embeddings,
            _ => Self::block_of(name).is_none() && !Self::is_embedding(name),
        }
    }

    /// The name, shape and dtype of every parameter.
    pub fn parameters(&self) -> Vec<ParamInfo> {
        struct Collect(Vec<ParamInfo>);
        impl ParamVisitor for Collect {
            fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
                self.0.push(ParamInfo { name: name.to_string(), shape: tensor.dims().to_vec(), dtype: tensor.dtype() });
            }
        }
        let mut collect = Collect(Vec::new());
        self.visit(&mut collect);
        collect.0
    }

    /// Handles of every parameter, to be written to a file.
    pub fn stream_tensors(&self) -> Vec<StreamTensor> {
        struct Collect(Vec<StreamTensor>);
        impl ParamVisitor for Collect {
            fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
                let shape = tensor.dims().to_vec();
                let elements = shape.iter().product::<usize>();
                let values = StreamValues::Device(tensor.reshape([elements]));
                self.0.push(StreamTensor { name: name.to_string(), shape, values });
            }
        }
        let mut collect = Collect(Vec::new());
        self.visit(&mut collect);
        collect.0
    }

    /// Number of trained values.
    pub fn num_parameters(&self) -> usize {
        self.parameters().iter().map(|p| p.shape.iter().product::<usize>()).sum()
    }
}
