//! Sorts the tensors of `adapter_model.safetensors`: pairs of factors by module, and tensors that replace the base's.

use std::collections::{BTreeMap, BTreeSet};

use super::config::LoraConfig;
use super::scaling::Scaling;
use crate::bundle::tensors::Bundle;
use crate::error::{Error, Refusal, Result, word};
use crate::families::names::{HEAD, block_of};
use crate::families::{half, is_original, names, plain};
use crate::formats::{Digest, Encoding, SourceSpan, sha256_of};
use crate::state::{Bytes, Pair, Reordering, Tensor};

/// Prefix that PEFT puts in front of every name.
pub(crate) const PREFIX: &str = "base_model.model.";

/// The two factors of one module, of which a file may lack one.
pub(super) struct Halves<'a> {
    /// Index into the list of names of a pair, `PAIRS`.
    pub(super) kind: usize,
    pub(super) tensors: [Option<&'a Tensor>; 2],
    /// `None` for a module that the base does not have.
    pub(super) scaling: Option<Scaling>,
}

/// The tensors of an adapter by their purpose.
pub(super) struct Parts<'a> {
    pub(super) config: &'a LoraConfig,
    pub(super) artifact: &'a str,
    /// Module, as the adapter names it → its pair.
    pub(super) pairs: BTreeMap<String, Halves<'a>>,
    /// Name of a tensor of the base, as the adapter names it → its replacement.
    pub(super) saved: BTreeMap<String, &'a Tensor>,
    /// True if embedding and head are both stored, and equal.
    pub(super) both: bool,
    /// Embedding or head of a tied base, and the stored table of the other one, which it becomes too.
    pub(super) shared: Option<(&'static str, &'a Tensor)>,
    /// Tensors that are neither pairs nor replacements.
    pub(super) strange: Vec<&'a str>,
    /// A name with the prefix of PEFT twice, or one of a file without it.
    pub(super) renamed: Option<&'a str>,
    /// Modules whose pairs are not used, because the configuration excludes them.
    pub(super) spared: Vec<String>,
    /// Patterns of the configuration that cannot be read, so that no pair is left out because of them.
    pub(super) unread: Vec<String>,
}

impl<'a> Parts<'a> {
    /// Sorts the tensors of an adapter.
    ///
    /// # Errors
    /// `model.tensor.name-twice` if two tensors have the same meaning.
    pub(super) fn of(
        bundle: &Bundle,
        config: &'a LoraConfig,
        tensors: &'a [Tensor],
        artifact: &'a str,
    ) -> Result<Self> {
        let (pairs, saved, strange, spared, unread) = (
            BTreeMap::new(),
            BTreeMap::new(),
            Vec::new(),
            Vec::new(),
            Vec::new(),
        );
        let mut parts = Self {
            config,
            artifact,
            pairs,
            saved,
            both: false,
            shared: None,
            strange,
            renamed: None,
            spared,
            unread,
        };
        // Some programs write the prefix of PEFT twice, or leave it out everywhere.
        let bare = tensors
            .iter()
            .all(|tensor| !tensor.name.starts_with(PREFIX) && half(&tensor.name).is_some());
        parts.renamed = tensors
            .iter()
            .map(|tensor| tensor.name.as_str())
            .find(|name| bare || name.starts_with(&PREFIX.repeat(2)));
        for tensor in tensors {
            let own = if bare {
                Some(tensor.name.as_str())
            } else {
                tensor.name.strip_prefix(PREFIX)
            };
            let own = own.map(|name| name.strip_prefix(PREFIX).unwrap_or(name));
            let twice = match own {
                None => {
                    parts.strange.push(&tensor.name);
                    false
                }
                Some(name) => match half(name) {
                    Some((module, kind, side)) => {
                        let halves =
                            parts
                                .pairs
                                .entry(module.to_string())
                                .or_insert_with(|| Halves {
                                    kind,
                                    tensors: [None; 2],
                                    scaling: None,
                                });
                        halves.kind != kind || halves.tensors[side].replace(tensor).is_some()
                    }
                    None if is_original(name) => false,
                    // PEFT stores the trained copy under two names where a vocabulary was resized.
                    None => match parts.saved.insert(plain(name), tensor) {
                        Some(other) => !equal(other, tensor)?,
                        None => false,
                    },
                },
            };
            if twice {
                return Err(Refusal::new(word!("model.tensor.name-twice"))
                    .of(artifact)
                    .subject(&tensor.name)
                    .into());
            }
        }
        parts.leave_spared();
        parts.settle_tables(bundle)?;
        parts.refuse_twice(bundle)?;
        let of_base = |module: &str| {
            names::from_hf(&weight(module), &bundle.config)
                .is_some_and(|name| bundle.shape(&name).is_some() || name == HEAD)
        };
        let known: Vec<&str> = parts
            .pairs
            .keys()
            .map(String::as_str)
            .filter(|module| of_base(module))
            .collect();
        let mut scalings = config.scalings(&known)?.into_iter();
        for (_, halves) in parts.pairs.iter_mut().filter(|(module, _)| of_base(module)) {
            halves.scaling = scalings.next();
        }
        Ok(parts)
    }

    /// Leaves out the pairs that PEFT ignores.
    fn leave_spared(&mut self) {
        let modules: Vec<&str> = self.pairs.keys().map(String::as_str).collect();
        let (spared, unread) = self.config.spared(&modules);
        self.spared = spared.into_iter().map(str::to_string).collect();
        self.unread = unread;
        for module in &self.spared {
            self.pairs.remove(module);
        }
    }

    /// Refuses two names of one tensor of the base.
    fn refuse_twice(&self, bundle: &Bundle) -> Result<()> {
        let pairs: Vec<String> = self.pairs.keys().map(|module| weight(module)).collect();
        for owns in [pairs, self.saved.keys().cloned().collect()] {
            let mut seen = BTreeSet::new();
            for own in owns {
                if names::from_hf(&own, &bundle.config).is_some_and(|name| !seen.insert(name)) {
                    return Err(Refusal::new(word!("model.tensor.name-twice"))
                        .of(self.artifact)
                        .subject(&own)
                        .into());
                }
            }
        }
        Ok(())
    }

    /// Returns whether the adapter changes the tensor `name` of the base.
    pub(super) fn changes(&self, bundle: &Bundle, name: &str) -> bool {
        let is = |own: &str| names::from_hf(own, &bundle.config).as_deref() == Some(name);
        let shares = self.shared.is_some_and(|(of_base, _)| of_base == name);
        shares
            || self.pairs.keys().any(|module| is(&weight(module)))
            || self.saved.keys().any(|own| is(own))
    }

    /// Returns name and replacement of each replaced tensor of the base.
    pub(super) fn replacements(&self, bundle: &Bundle) -> Vec<(String, &'a Tensor)> {
        let named = |(own, tensor): (&String, &&'a Tensor)| {
            Some((names::from_hf(own, &bundle.config)?, *tensor))
        };
        let shared = self.shared.map(|(name, tensor)| (name.to_string(), tensor));
        self.saved.iter().filter_map(named).chain(shared).collect()
    }

    /// Returns the pairs, with the names of the tensors that they change.
    pub(super) fn merges(&self, bundle: &Bundle) -> Result<Vec<Pair>> {
        let mut merges = Vec::new();
        for (module, halves) in &self.pairs {
            let (Some(name), [Some(a), Some(b)]) = (
                names::from_hf(&weight(module), &bundle.config),
                halves.tensors,
            ) else {
                continue;
            };
            let Some(scaling) = halves.scaling.filter(|_| is_factor(a) && is_factor(b)) else {
                continue;
            };
            let transposed = halves.kind == 1 || conv1d(bundle, &name);
            // The scale is far inside the range of f32, or becomes infinite, which shows in the values.
            let pair = Pair {
                name,
                a: a.clone(),
                b: b.clone(),
                scale: scaling.scale as f32,
                transposed,
                exact: false,
            };
            pair.check_size(self.artifact)?;
            merges.push(pair);
        }
        Ok(merges)
    }

    /// Returns the factors as separate tensors.
    ///
    /// # Errors
    /// `adapter.target.unsupported` for pairs outside the blocks; all are listed.
    pub(super) fn factors(&self, bundle: &Bundle) -> Result<Vec<Tensor>> {
        let (mut factors, mut outside) = (Vec::new(), Vec::new());
        for (module, halves) in &self.pairs {
            let Some(name) = names::from_hf(&weight(module), &bundle.config) else {
                continue;
            };
            if halves.kind == 1 || block_of(&name).is_none() {
                let refusal = Refusal::new(word!("adapter.target.unsupported"))
                    .of(self.artifact)
                    .subject(module);
                outside.push(
                    refusal
                        .expected("a matrix inside the blocks")
                        .hint("merge the adapter instead"),
                );
                continue;
            }
            let own = name.strip_suffix(".weight").unwrap_or(&name);
            for (name, tensor) in names::factor_names(own)
                .into_iter()
                .zip(halves.tensors.into_iter().flatten())
            {
                factors.push(tensor.clone().renamed(&name));
            }
        }
        if outside.is_empty() {
            Ok(factors)
        } else {
            Err(Error::Refused(outside))
        }
    }
}

/// Returns whether two tensors of an adapter are equal, byte for byte.
pub(super) fn equal(a: &Tensor, b: &Tensor) -> Result<bool> {
    if a.dtype != b.dtype || a.shape != b.shape {
        return Ok(false);
    }
    let sum = |tensor: &Tensor| match (tensor.bytes(), tensor.span()) {
        (Bytes::Host(bytes), _) => Ok(Some(Digest::of(bytes))),
        (
            _,
            Some(SourceSpan {
                source,
                begin,
                bytes,
            }),
        ) => sha256_of(source, *begin, begin + bytes).map(Some),
        _ => Ok(None),
    };
    Ok(sum(a)? == sum(b)?)
}

/// Returns whether the base has the matrix `name` as [in, out], like those of GPT-2's blocks.
pub(super) fn conv1d(bundle: &Bundle, name: &str) -> bool {
    names::to_gguf(name, "", &bundle.config)
        .is_some_and(|(_, order)| order == Reordering::Transposed)
}

/// Returns the name of the tensor that a pair of `module` changes.
pub(super) fn weight(module: &str) -> String {
    format!("{module}.weight")
}

fn is_factor(tensor: &Tensor) -> bool {
    tensor.shape.len() == 2 && Encoding::of_word(&tensor.dtype).is_some()
}
