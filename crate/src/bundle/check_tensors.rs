//! Checks that the tensors of a bundle are those of its model: names, shapes, dtypes, all findings at once.

use std::collections::BTreeSet;

use super::files::find;
use super::folder_weights::INDEX;
use super::refusals::refused;
use super::tensors::{Bundle, MAX_NAMES, artifact};
use crate::error::{Refusal, Result, Word, refuse_all, shown, word};
use crate::families::names;
use crate::formats::{ByteSource, base_name, unreadable};
use crate::state::Tensor;

#[doc(hidden)]
impl Bundle {
    /// Compares the tensors with those of the model, given as name and shape. Tensors elsewhere that the model has no place for are left out
    /// with a warning each.
    ///
    /// # Errors
    /// All findings together: `model.tensor.missing` (eight of them, then the number of the others), `.unexpected` for a tensor without a place
    /// that takes part in what a model computes, `.shape`, and a dtype without a decoder.
    pub fn check_tensors(&mut self, planned: &[(String, Vec<usize>)]) -> Result<()> {
        let mut planned: Vec<&Planned> = planned.iter().collect();
        planned.sort();
        let wanted: BTreeSet<&String> = planned.iter().map(|(name, _)| name).collect();
        let names = self.tensors.keys();
        let left: Vec<String> = names
            .filter(|name| !wanted.contains(name))
            .cloned()
            .collect();
        let (given, absent): (Vec<&Planned>, Vec<&Planned>) = planned
            .into_iter()
            .partition(|(name, _)| self.tensors.contains_key(name));
        let mut refusals = self.missing(&absent, &left);
        let refuse =
            |code: Word, tensor: &Tensor, name: &str| refused(code, artifact(tensor), name);
        for name in &left {
            let (tensor, block) = (&self.tensors[name], names::block_of(name));
            if block.is_some_and(|block| block < self.config.num_hidden_layers)
                || names::is_computed_with(tensor.own_name())
            {
                let refusal = refuse(word!("model.tensor.unexpected"), tensor, name);
                let refusal = refusal.expected("only tensors of the model");
                refusals.push(refusal.hint("it took part in what the file's maker computed"));
            }
        }
        let given: Vec<(&Vec<usize>, &Tensor)> = given
            .into_iter()
            .map(|(name, shape)| (shape, &self.tensors[name]))
            .collect();
        for (shape, tensor) in &given {
            if **shape != tensor.dims() {
                let refusal = refuse(word!("model.tensor.shape"), tensor, &tensor.name);
                let refusal = refusal.expected(format!("{shape:?}"));
                refusals.push(refusal.found(format!("{:?}", tensor.shape)));
            }
        }
        for (_, tensor) in given {
            if tensor.encoding().is_none() {
                refusals.push(unreadable(&tensor.dtype, &tensor.name, artifact(tensor)));
            }
        }
        refuse_all(refusals)?;
        for name in left {
            self.tensors.remove(&name);
            self.warn(word!("model.tensor.extra"), &name);
        }
        Ok(())
    }
}

/// Name and shape of a tensor that the model has.
type Planned = (String, Vec<usize>);

impl Bundle {
    /// Lists the refusals of `absent` tensors: at most eight, each with the nearest of the names `left`, and one
    /// with the number of the others.
    fn missing(&self, absent: &[&Planned], left: &[String]) -> Vec<Refusal> {
        let artifact = self.weights_artifact();
        let refusal = || {
            Refusal::new(word!("model.tensor.missing"))
                .of(artifact)
                .found("none")
        };
        let (first, rest) = absent.split_at(absent.len().min(MAX_NAMES));
        let one = |(name, shape): &&Planned| {
            let refusal = refusal().subject(name).expected(format!("{shape:?}"));
            match nearest(name, left) {
                Some(near) => refusal.hint(format!("the nearest name there is {}", shown(near))),
                None => refusal,
            }
        };
        let more = (!rest.is_empty())
            .then(|| refusal().expected(format!("{} more tensors of the model", rest.len())));
        first.iter().map(one).chain(more).collect()
    }

    /// Names the file that lists the tensors: the one with weights, or if there are several, their index or the first of them.
    fn weights_artifact(&self) -> &str {
        match self.weight_files().as_slice() {
            [only] => only,
            _ if find(&self.files, INDEX).is_some() => INDEX,
            [first, ..] => first,
            [] => self.files.first().map_or("", |file| base_name(file.name())),
        }
    }
}

/// Finds the name with the longest common end with `name`, part by part, and among those the one with the longest common beginning; none if
/// even the last parts differ.
fn nearest<'a>(name: &str, names: &'a [String]) -> Option<&'a str> {
    let alike = |other: &str| {
        let parts = name.rsplit('.').zip(other.rsplit('.'));
        parts.take_while(|(a, b)| a == b).count()
    };
    let begins = |other: &str| {
        let bytes = name.bytes().zip(other.bytes());
        bytes.take_while(|(a, b)| a == b).count()
    };
    let near = names.iter().filter(|other| alike(other) > 0);
    near.max_by_key(|other| (alike(other), begins(other)))
        .map(String::as_str)
}
