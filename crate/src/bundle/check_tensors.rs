//! Checks that the tensors of a bundle are those of its model: names, shapes, dtypes, all findings at once.

use std::collections::BTreeSet;

use super::hf_folder::INDEX;
use super::tensors::{Bundle, MAX_NAMES, home};
use crate::error::{Error, Refusal, Result, Warning, shown, word};
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
        let mut names: Vec<&(String, Vec<usize>)> = planned.iter().collect();
        names.sort();
        let wanted: BTreeSet<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
        let mut refusals: Vec<Refusal> = Vec::new();
        let left: Vec<String> = self
            .tensors
            .keys()
            .filter(|name| !wanted.contains(name.as_str()))
            .cloned()
            .collect();
        let absent: Vec<&(String, Vec<usize>)> = names
            .iter()
            .filter(|(name, _)| !self.tensors.contains_key(name))
            .copied()
            .collect();
        refusals.extend(self.missing(&absent, &left));
        let in_block = |name: &str| {
            names::block_of(name).is_some_and(|block| block < self.config.num_hidden_layers)
        };
        let takes_part =
            |name: &str| in_block(name) || names::is_computed_with(self.tensors[name].own_name());
        for name in left.iter().filter(|name| takes_part(name)) {
            let refusal = Refusal::new(word!("model.tensor.unexpected"))
                .of(artifact(&self.tensors[name]))
                .subject(name);
            refusals.push(
                refusal
                    .expected("only tensors of the model")
                    .hint("it took part in what the file's maker computed"),
            );
        }
        let given: Vec<_> = names
            .iter()
            .filter_map(|(name, shape)| Some((shape, self.tensors.get(name)?)))
            .collect();
        for (shape, tensor) in given
            .iter()
            .filter(|(shape, tensor)| **shape != tensor.dims())
        {
            let refusal = Refusal::new(word!("model.tensor.shape"))
                .of(artifact(tensor))
                .subject(&tensor.name);
            refusals.push(
                refusal
                    .expected(format!("{shape:?}"))
                    .found(format!("{:?}", tensor.shape)),
            );
        }
        for (_, tensor) in given
            .iter()
            .filter(|(_, tensor)| tensor.encoding().is_none())
        {
            refusals.push(unreadable(&tensor.dtype, &tensor.name, artifact(tensor)));
        }
        if !refusals.is_empty() {
            return Err(Error::Refused(refusals));
        }
        for name in left {
            self.tensors.remove(&name);
            self.warnings
                .push(Warning::new(word!("model.tensor.extra"), &name));
        }
        Ok(())
    }
}

impl Bundle {
    /// Returns the refusals of `absent` tensors, given as name and shape: at most eight, each with the nearest of the names `left`, and one
    /// with the number of the others.
    fn missing(&self, absent: &[&(String, Vec<usize>)], left: &[String]) -> Vec<Refusal> {
        let artifact = self.weights_artifact();
        let refusal = || {
            Refusal::new(word!("model.tensor.missing"))
                .of(artifact)
                .found("none")
        };
        let (first, rest) = absent.split_at(absent.len().min(MAX_NAMES));
        let one = |(name, shape): &&(String, Vec<usize>)| {
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

    /// Returns the name of the file that lists the tensors: the one with weights, or if there are several, their index or the first of them.
    fn weights_artifact(&self) -> &str {
        let index = self
            .files
            .iter()
            .map(|file| base_name(file.name()))
            .find(|name| *name == INDEX);
        match (self.weight_files().as_slice(), index) {
            ([only], _) => only,
            (_, Some(index)) => index,
            ([first, ..], None) => first,
            ([], None) => self.files.first().map_or("", |file| base_name(file.name())),
        }
    }
}

/// Returns the name of the file that a tensor is in.
fn artifact(tensor: &Tensor) -> &str {
    home(tensor).map_or("", |file| file.name())
}

/// Returns the name with the longest common end with `name`, part by part, and among those the one with the longest common beginning; none if
/// even the last parts differ.
fn nearest<'a>(name: &str, names: &'a [String]) -> Option<&'a str> {
    let alike = |other: &str| {
        name.rsplit('.')
            .zip(other.rsplit('.'))
            .take_while(|(a, b)| a == b)
            .count()
    };
    let begins = |other: &str| {
        name.bytes()
            .zip(other.bytes())
            .take_while(|(a, b)| a == b)
            .count()
    };
    let near = names.iter().filter(|other| alike(other) > 0);
    near.max_by_key(|other| (alike(other), begins(other)))
        .map(String::as_str)
}
