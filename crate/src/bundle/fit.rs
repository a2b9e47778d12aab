//! Checks that the tensors of a bundle are those of its model: names, shapes, dtypes, all findings at once.

use std::collections::BTreeSet;

use super::names;
use super::refusal::Warning;
use super::tensors::{Bundle, unreadable};
use crate::error::{Error, Refusal, Result, Word, word};

impl Bundle {
    /// Compares the tensors with those that the model has, given as name and shape. An absent tensor, one without a place inside a block of the
    /// model, another shape and a dtype without a decoder are refused, all of them together. Tensors elsewhere that the model has no place for
    /// are left out with a warning each.
    pub fn fit(&mut self, planned: &[(String, Vec<usize>)]) -> Result<()> {
        let mut names: Vec<&(String, Vec<usize>)> = planned.iter().collect();
        names.sort();
        let wanted: BTreeSet<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
        let mut refusals: Vec<Refusal> = Vec::new();
        let first = self.files.first().map_or("", |file| file.name()).to_string();
        for (name, shape) in names.iter().filter(|(name, _)| !self.entries.contains_key(name)) {
            refusals
                .push(Refusal::new(word!("model.tensor.missing")).of(&first).subject(name).expected(format!("{shape:?}")).found("none"));
        }
        let left: Vec<String> = self.entries.keys().filter(|name| !wanted.contains(name.as_str())).cloned().collect();
        let inside = |name: &str| names::block_of(name).is_some_and(|block| block < self.config.num_hidden_layers);
        for name in left.iter().filter(|name| inside(name)) {
            let artifact = self.files[self.entries[name].source].name();
            let refusal = Refusal::new(word!("model.tensor.unexpected")).of(artifact).subject(name);
            refusals
                .push(refusal.expected("only tensors of the model in its blocks").hint("it took part in what the file's maker computed"));
        }
        let given: Vec<_> = names.iter().filter_map(|(name, shape)| Some((shape, self.entries.get(name)?))).collect();
        for (shape, entry) in given.iter().filter(|(shape, entry)| **shape != entry.shape) {
            let refusal = Refusal::new(word!("model.tensor.shape")).of(self.files[entry.source].name()).subject(&entry.name);
            refusals.push(refusal.expected(format!("{shape:?}")).found(format!("{:?}", entry.shape)));
        }
        for (_, entry) in given.iter().filter(|(_, entry)| entry.encoding.is_none() || entry.end.is_none()) {
            refusals.push(unreadable(&entry.dtype, &entry.name, self.files[entry.source].name()));
        }
        if !refusals.is_empty() {
            return Err(Error::Refused(refusals));
        }
        for name in left {
            self.entries.remove(&name);
            self.warnings.push(Warning::new(word!("model.tensor.extra"), &name));
        }
        Ok(())
    }
}

/// Refuses weights with NaN or infinite values, all tensors at once: `counts` are those of each tensor that was read.
pub fn refuse_non_finite(counts: &[(String, u64)]) -> Result<()> {
    refuse_non_finite_as(word!("model.non-finite"), counts)
}

/// The same by another word.
pub(super) fn refuse_non_finite_as(word: Word, counts: &[(String, u64)]) -> Result<()> {
    let refuse = |(name, count): &(String, u64)| {
        let refusal = Refusal::new(word).stage("read").subject(name).expected("finite values");
        refusal.found(format!("{count} NaN or infinite")).hint("allow it (allowNonFinite, --allow-non-finite) if these weights never count")
    };
    let refusals: Vec<Refusal> = counts.iter().filter(|(_, count)| *count > 0).map(refuse).collect();
    if refusals.is_empty() { Ok(()) } else { Err(Error::Refused(refusals)) }
}
