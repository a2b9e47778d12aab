//! A model as GGUF describes it: a family whose files have gate and up as the halves of one matrix has them apart there.

use std::borrow::Cow;

use super::source::{ExportSource, Weights};
use crate::families::{factor_names, gguf_form, names_in_gguf_form};
use crate::state::Tensor;

impl ExportSource {
    /// Describes the same model in the form that GGUF has for its family. Nothing is read.
    pub(super) fn in_gguf_form(&self) -> Cow<'_, Self> {
        let own = &self.weights.config;
        let Some(config) = gguf_form(own) else {
            return Cow::Borrowed(self);
        };
        let tensors = self.weights.tensors.iter();
        let tensors = tensors.flat_map(|tensor| {
            let names = names_in_gguf_form(&tensor.name, own, &config);
            in_form(tensor, &names)
        });
        let weights = Weights {
            tensors: tensors.collect(),
            config,
        };
        Cow::Owned(Self {
            weights,
            ..self.clone()
        })
    }
}

/// Describes a tensor under its name, or the halves of its rows under two names. Both halves of a product have the whole factor A.
fn in_form(tensor: &Tensor, names: &[String]) -> Vec<Tensor> {
    let [factor, _] = factor_names("");
    if names.len() == 1 || tensor.name.ends_with(&factor) {
        let renamed = names.iter().map(|name| tensor.clone().renamed(name));
        return renamed.collect();
    }
    let half = tensor.shape[0] / names.len() as u64;
    let halves = names.iter().zip(0..);
    halves
        .map(|(name, at)| tensor.rows(name, at * half..(at + 1) * half))
        .collect()
}
