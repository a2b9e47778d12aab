//! Sorts the tensors of `adapter_model.safetensors`: pairs of factors by module, and tensors that replace the base's.

use std::collections::{BTreeMap, BTreeSet};

use super::config::LoraConfig;
use crate::bundle::refusals::refused;
use crate::bundle::tensors::Bundle;
use crate::config::{adapter_scale, first_matches};
use crate::error::{Result, refuse_all, word};
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
    /// Name of the matrix in a base of this family.
    pub(super) name: String,
    /// Rank of the pair, and the factor of its product: alpha / r, or alpha / √r. `None` for a module that the base does not have.
    pub(super) scaling: Option<(u64, f64)>,
}

/// A tensor that is stored in full.
pub(super) struct Saved<'a> {
    /// Its name in a base of this family; `None` for a buffer.
    pub(super) name: Option<String>,
    pub(super) tensor: &'a Tensor,
}

/// The tensors of an adapter by their purpose.
pub(super) struct Parts<'a> {
    pub(super) config: &'a LoraConfig,
    pub(super) artifact: &'a str,
    /// Module, as the adapter names it → its pair.
    pub(super) pairs: BTreeMap<String, Halves<'a>>,
    /// Name of a tensor of the base, as the adapter names it → its replacement.
    pub(super) saved: BTreeMap<String, Saved<'a>>,
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
        // Some programs write the prefix of PEFT twice, or leave it out everywhere.
        let bare = tensors
            .iter()
            .all(|tensor| !tensor.name.starts_with(PREFIX) && half(&tensor.name).is_some());
        let mut parts = Self {
            config,
            artifact,
            pairs: BTreeMap::new(),
            saved: BTreeMap::new(),
            both: false,
            shared: None,
            strange: Vec::new(),
            renamed: tensors
                .iter()
                .map(|tensor| tensor.name.as_str())
                .find(|name| bare || name.starts_with(&PREFIX.repeat(2))),
            spared: Vec::new(),
            unread: Vec::new(),
        };
        for tensor in tensors {
            let own = match tensor.name.strip_prefix(PREFIX) {
                Some(own) => own.strip_prefix(PREFIX).unwrap_or(own),
                None if bare => &tensor.name,
                None => {
                    parts.strange.push(&tensor.name);
                    continue;
                }
            };
            let twice = if let Some((module, kind, side)) = half(own) {
                let own = weight(module);
                let halves = parts.pairs.entry(module.to_string());
                let halves = halves.or_insert_with(|| Halves {
                    kind,
                    tensors: [None; 2],
                    name: names::from_hf(&own, &bundle.config).unwrap_or(own),
                    scaling: None,
                });
                halves.kind != kind || halves.tensors[side].replace(tensor).is_some()
            } else if is_original(own) {
                false
            } else {
                let own = plain(own);
                let name = names::from_hf(&own, &bundle.config);
                // PEFT stores the trained copy under two names where a vocabulary was resized.
                match parts.saved.insert(own, Saved { name, tensor }) {
                    Some(other) => !equal(other.tensor, tensor)?,
                    None => false,
                }
            };
            parts.refuse_twice(twice.then_some(&tensor.name))?;
        }
        parts.leave_spared();
        parts.settle_tables(bundle)?;
        parts.refuse_second_names()?;
        parts.scale(bundle)?;
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

    /// Refuses the second of two names with the same meaning, if there is one.
    fn refuse_twice(&self, name: Option<&String>) -> Result<()> {
        let refuse = |name: &String| refused(word!("model.tensor.name-twice"), self.artifact, name);
        refuse_all(name.map(refuse).into_iter().collect())
    }

    /// Refuses two names of one tensor of the base.
    fn refuse_second_names(&self) -> Result<()> {
        let (mut matrices, mut tensors) = (BTreeSet::new(), BTreeSet::new());
        let mut pairs = self.pairs.iter();
        let pair = pairs.find(|(_, halves)| !matrices.insert(&halves.name));
        self.refuse_twice(pair.map(|(module, _)| weight(module)).as_ref())?;
        let mut saved = self.saved.iter();
        let saved = saved.find(|(_, saved)| {
            saved
                .name
                .as_ref()
                .is_some_and(|name| !tensors.insert(name))
        });
        self.refuse_twice(saved.map(|(own, _)| own))
    }

    /// Computes the scale of each pair of a module that the base has.
    fn scale(&mut self, bundle: &Bundle) -> Result<()> {
        let config = self.config;
        let mut pairs: Vec<(&str, &mut Halves<'_>)> = Vec::new();
        for (module, halves) in &mut self.pairs {
            if bundle.tensor(&halves.name).is_some() || halves.name == HEAD {
                pairs.push((module.as_str(), halves));
            }
        }
        let modules: Vec<&str> = pairs.iter().map(|(module, _)| *module).collect();
        let ranks = first_matches(&config.rank_pattern, &modules)?;
        let alphas = first_matches(&config.alpha_pattern, &modules)?;
        for ((_, halves), (rank, alpha)) in pairs.into_iter().zip(ranks.into_iter().zip(alphas)) {
            let rank = rank.unwrap_or(config.r);
            let alpha = alpha.unwrap_or(config.lora_alpha);
            halves.scaling = Some((rank, adapter_scale(rank, alpha, config.use_rslora)));
        }
        Ok(())
    }

    /// Tells if a pair changes the tensor `name` of the base.
    pub(super) fn has_pair(&self, name: &str) -> bool {
        let mut pairs = self.pairs.values();
        pairs.any(|halves| halves.name == name)
    }

    /// Finds the replacement of the base's tensor `name`, with its name in the adapter.
    pub(super) fn stored(&self, name: &str) -> Option<(&String, &'a Tensor)> {
        let mut saved = self.saved.iter();
        let found = saved.find(|(_, saved)| saved.name.as_deref() == Some(name));
        found.map(|(own, saved)| (own, saved.tensor))
    }

    /// Tells if the adapter changes the tensor `name` of the base.
    pub(super) fn changes(&self, name: &str) -> bool {
        let shares = self.shared.is_some_and(|(of_base, _)| of_base == name);
        shares || self.has_pair(name) || self.stored(name).is_some()
    }

    /// Lists name and replacement of each replaced tensor of the base.
    pub(super) fn replacements(&self) -> impl Iterator<Item = (&str, &'a Tensor)> {
        let saved = self.saved.values();
        let named = saved.filter_map(|saved| Some((saved.name.as_deref()?, saved.tensor)));
        named.chain(self.shared)
    }

    /// Lists the pairs, with the names of the tensors that they change.
    pub(super) fn merges(&self, bundle: &Bundle) -> Result<Vec<Pair>> {
        let mut merges = Vec::new();
        for halves in self.pairs.values() {
            let ([Some(a), Some(b)], Some((_, scale))) = (halves.tensors, halves.scaling) else {
                continue;
            };
            if !is_factor(a) || !is_factor(b) {
                continue;
            }
            // The scale is far inside the range of f32, or becomes infinite, which shows in the values.
            let pair = Pair {
                name: halves.name.clone(),
                a: a.clone(),
                b: b.clone(),
                scale: scale as f32,
                transposed: halves.is_transposed(bundle),
                exact: false,
            };
            pair.check_size(self.artifact)?;
            merges.push(pair);
        }
        Ok(merges)
    }

    /// Gives the factors as separate tensors.
    ///
    /// # Errors
    /// `adapter.target.unsupported` for pairs outside the blocks; all are listed.
    pub(super) fn factors(&self) -> Result<BTreeMap<String, Tensor>> {
        let (mut factors, mut outside) = (BTreeMap::new(), Vec::new());
        for (module, halves) in &self.pairs {
            let name = &halves.name;
            if halves.kind == 1 || block_of(name).is_none() {
                let refusal = refused(word!("adapter.target.unsupported"), self.artifact, module)
                    .expected("a matrix inside the blocks")
                    .hint("merge the adapter instead");
                outside.push(refusal);
                continue;
            }
            let own = names::factor_names(name.strip_suffix(".weight").unwrap_or(name));
            let tensors = halves.tensors.into_iter().flatten();
            factors.extend(own.into_iter().zip(tensors).map(|(name, tensor)| {
                let factor = tensor.clone().renamed(&name);
                (name, factor)
            }));
        }
        refuse_all(outside)?;
        Ok(factors)
    }
}

impl Halves<'_> {
    /// Tells if the base has the matrix as [in, out], like those of GPT-2's blocks, or it is a table of embeddings.
    pub(super) fn is_transposed(&self, bundle: &Bundle) -> bool {
        let of_base = names::to_gguf(&self.name, "", &bundle.config);
        self.kind == 1 || of_base.is_some_and(|(_, order)| order == Reordering::Transposed)
    }
}

/// Compares two tensors of an adapter byte for byte.
pub(super) fn equal(a: &Tensor, b: &Tensor) -> Result<bool> {
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
    Ok(a.dtype == b.dtype && a.shape == b.shape && sum(a)? == sum(b)?)
}

/// Name of the tensor that a pair of `module` changes.
pub(super) fn weight(module: &str) -> String {
    format!("{module}.weight")
}

fn is_factor(tensor: &Tensor) -> bool {
    tensor.shape.len() == 2 && Encoding::of_word(&tensor.dtype).is_some()
}
