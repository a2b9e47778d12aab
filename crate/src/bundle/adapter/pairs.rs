//! The tensors of `adapter_model.safetensors`: pairs of matrices by module, and tensors that replace the base's.

use std::collections::{BTreeMap, BTreeSet};

use super::config::LoraConfig;
use super::merge::{Factor, Merge};
use super::scaling::Scaling;
use super::tensor_names::{PAIRS, half, plain};
use crate::bundle::decode::Encoding;
use crate::bundle::names::{self, HEAD, Layout, block_of};
use crate::bundle::refusal::Warning;
use crate::bundle::safetensors::{SafetensorsFile, SafetensorsTensor};
use crate::bundle::tensors::{Bundle, Entry, narrow, unreadable};
use crate::error::{Error, Refusal, Result, Word, word};

/// What PEFT puts in front of every name.
pub(crate) const PREFIX: &str = "base_model.model.";
const UNMATCHED: Word = word!("adapter.target.unmatched");

/// The matrices of one module, of which a file may lack one.
struct Halves<'a> {
    /// Position in [`PAIRS`].
    kind: usize,
    tensors: [Option<&'a SafetensorsTensor>; 2],
    /// `None` for a module that the base does not have.
    scaling: Option<Scaling>,
}

/// The tensors of an adapter by what they do.
pub(super) struct Parts<'a> {
    config: &'a LoraConfig,
    artifact: &'a str,
    /// Module, as the adapter calls it → its pair.
    pairs: BTreeMap<String, Halves<'a>>,
    /// Name of a tensor of the base, as the adapter calls it → what replaces it.
    saved: BTreeMap<String, &'a SafetensorsTensor>,
    /// Tensors that are neither.
    strange: Vec<&'a str>,
}

impl<'a> Parts<'a> {
    /// Sorts the tensors of an adapter.
    ///
    /// # Errors
    /// `model.tensor.name-twice` if two tensors are the same one.
    pub(super) fn of(bundle: &Bundle, config: &'a LoraConfig, file: &'a SafetensorsFile, artifact: &'a str) -> Result<Self> {
        let mut parts = Self { config, artifact, pairs: BTreeMap::new(), saved: BTreeMap::new(), strange: Vec::new() };
        for tensor in &file.tensors {
            let twice = match tensor.name.strip_prefix(PREFIX) {
                None => {
                    parts.strange.push(&tensor.name);
                    false
                }
                Some(name) => match half(name) {
                    Some((module, kind, side)) => {
                        let halves =
                            parts.pairs.entry(module.to_string()).or_insert_with(|| Halves { kind, tensors: [None; 2], scaling: None });
                        halves.kind != kind || halves.tensors[side].replace(tensor).is_some()
                    }
                    None => parts.saved.insert(plain(name), tensor).is_some(),
                },
            };
            if twice {
                return Err(Refusal::new(word!("model.tensor.name-twice")).of(artifact).subject(&tensor.name).into());
            }
        }
        parts.refuse_twice(bundle)?;
        let of_base = |module: &str| {
            names::from_hf(&weight(module), &bundle.config).is_some_and(|name| bundle.shape(&name).is_some() || name == HEAD)
        };
        let known: Vec<&str> = parts.pairs.keys().map(String::as_str).filter(|module| of_base(module)).collect();
        let mut scalings = config.scalings(&known)?.into_iter();
        for (_, halves) in parts.pairs.iter_mut().filter(|(module, _)| of_base(module)) {
            halves.scaling = scalings.next();
        }
        Ok(parts)
    }

    /// Refuses two names of one tensor of the base.
    fn refuse_twice(&self, bundle: &Bundle) -> Result<()> {
        let pairs: Vec<String> = self.pairs.keys().map(|module| weight(module)).collect();
        for owns in [pairs, self.saved.keys().cloned().collect()] {
            let mut seen = BTreeSet::new();
            for own in owns {
                if names::from_hf(&own, &bundle.config).is_some_and(|name| !seen.insert(name)) {
                    return Err(Refusal::new(word!("model.tensor.name-twice")).of(self.artifact).subject(&own).into());
                }
            }
        }
        Ok(())
    }

    /// Whether the adapter changes the tensor `name` of the base.
    pub(super) fn changes(&self, bundle: &Bundle, name: &str) -> bool {
        let is = |own: &str| names::from_hf(own, &bundle.config).as_deref() == Some(name);
        self.pairs.keys().any(|module| is(&weight(module))) || self.saved.keys().any(|own| is(own))
    }

    /// Whether a change of the input embedding is meant for a tied head too.
    pub(super) fn ties(&self) -> bool {
        self.config.ensure_weight_tying
    }

    /// Name of a tensor of the base → what replaces it.
    pub(super) fn replacements(&self, bundle: &Bundle) -> Vec<(String, &'a SafetensorsTensor)> {
        let named = |(own, tensor): (&String, &&'a SafetensorsTensor)| Some((names::from_hf(own, &bundle.config)?, *tensor));
        self.saved.iter().filter_map(named).collect()
    }

    /// The pairs, by the names of the tensors that they change; the adapter's file is the bundle's at `source`.
    pub(super) fn merges(&self, bundle: &Bundle, source: usize) -> Result<Vec<Merge>> {
        let mut merges = Vec::new();
        for (module, halves) in &self.pairs {
            let (Some(name), [Some(a), Some(b)]) = (names::from_hf(&weight(module), &bundle.config), halves.tensors) else { continue };
            let (Some(a), Some(b), Some(scaling)) = (factor(a), factor(b), halves.scaling) else { continue };
            let transposed = halves.kind == 1 || conv1d(bundle, &name);
            // Far inside f32, or infinite, which shows in the values.
            let merge = Merge { source, name, a, b, scale: scaling.scale as f32, transposed, exact: false };
            merge.check_size(self.artifact)?;
            merges.push(merge);
        }
        Ok(merges)
    }

    /// The factors as tensors of their own; the adapter's file is the bundle's at `source`.
    ///
    /// # Errors
    /// `adapter.target.unsupported` for pairs outside the blocks; all are listed.
    pub(super) fn factors(&self, bundle: &Bundle, source: usize) -> Result<Vec<Entry>> {
        let (mut entries, mut outside) = (Vec::new(), Vec::new());
        for (module, halves) in &self.pairs {
            let Some(name) = names::from_hf(&weight(module), &bundle.config) else { continue };
            if halves.kind == 1 || block_of(&name).is_none() {
                let refusal = Refusal::new(word!("adapter.target.unsupported")).of(self.artifact).subject(module);
                outside.push(refusal.expected("a matrix inside the blocks").hint("merge the adapter instead"));
                continue;
            }
            let own = name.strip_suffix(".weight").unwrap_or(&name);
            for (name, tensor) in names::factor_names(own).into_iter().zip(halves.tensors.into_iter().flatten()) {
                entries.push(entry(name, tensor, source, self.artifact)?);
            }
        }
        if outside.is_empty() { Ok(entries) } else { Err(Error::Refused(outside)) }
    }

    /// Refuses what is wrong with the adapter or does not fit the base: the first kind of fault, everywhere.
    pub(super) fn check(&self, bundle: &Bundle) -> Result<Vec<Warning>> {
        for faults in [self.unreadable(), self.incomplete(), self.other_ranks(), self.other_shapes(bundle), self.unmatched(bundle)?] {
            if !faults.is_empty() {
                return Err(Error::Refused(faults.into_iter().map(|refusal| refusal.of(self.artifact)).collect()));
            }
        }
        self.nameless()
    }

    fn unreadable(&self) -> Vec<Refusal> {
        let pairs = self.pairs.values().flat_map(|halves| halves.tensors.iter().flatten());
        let all = pairs.chain(self.saved.values()).filter(|tensor| Encoding::of_word(&tensor.dtype).is_none());
        all.map(|tensor| unreadable(&tensor.dtype, &tensor.name, self.artifact).stage("open")).collect()
    }

    fn incomplete(&self) -> Vec<Refusal> {
        let fault = |(module, halves): (&String, &Halves<'_>)| {
            let [a, b] = PAIRS[halves.kind];
            let alone = match halves.tensors {
                [Some(_), None] => a,
                [None, Some(_)] => b,
                _ => return None,
            };
            let refusal = Refusal::new(word!("adapter.pair.incomplete")).subject(module);
            Some(refusal.expected(format!("{a} and {b}")).found(format!("{alone} alone")))
        };
        self.pairs.iter().filter_map(fault).collect()
    }

    /// The whole pairs, by module.
    fn whole(&self) -> impl Iterator<Item = (&String, &Halves<'a>, &'a SafetensorsTensor, &'a SafetensorsTensor)> {
        self.pairs.iter().filter_map(|(module, halves)| match halves.tensors {
            [Some(a), Some(b)] => Some((module, halves, a, b)),
            _ => None,
        })
    }

    fn other_ranks(&self) -> Vec<Refusal> {
        let fault = |(module, halves, a, b): (&String, &Halves<'_>, &SafetensorsTensor, &SafetensorsTensor)| {
            let rank = halves.scaling?.rank;
            let ([of_a, _], [_, of_b]) = (a.shape.as_slice(), b.shape.as_slice()) else { return None };
            let refusal = Refusal::new(word!("adapter.rank.mismatch")).subject(module).expected(format!("rank {rank}"));
            (*of_a != rank || *of_b != rank).then(|| refusal.found(format!("A {:?}, B {:?}", a.shape, b.shape)))
        };
        self.whole().filter_map(fault).collect()
    }

    fn other_shapes(&self, bundle: &Bundle) -> Vec<Refusal> {
        let shape_of = |own: &str| {
            let shape = bundle.shape(&names::from_hf(own, &bundle.config)?)?;
            Some(shape.into_iter().map(|dim| dim as u64).collect::<Vec<u64>>())
        };
        let refuse = |subject: &str, expected: String, found: String| {
            Refusal::new(word!("adapter.shape")).subject(subject).expected(expected).found(found)
        };
        let pair = |(module, halves, a, b): (&String, &Halves<'_>, &SafetensorsTensor, &SafetensorsTensor)| {
            let base = shape_of(&weight(module))?;
            let turned = halves.kind == 1 || names::from_hf(&weight(module), &bundle.config).is_some_and(|name| conv1d(bundle, &name));
            let fits = match (a.shape.as_slice(), b.shape.as_slice()) {
                ([_, inner], [outer, _]) if turned => base == [*inner, *outer],
                ([_, inner], [outer, _]) => base == [*outer, *inner],
                _ => false,
            };
            (!fits).then(|| refuse(module, format!("a pair for {base:?}"), format!("A {:?}, B {:?}", a.shape, b.shape)))
        };
        let saved = |(own, tensor): (&String, &&SafetensorsTensor)| {
            let base = shape_of(own)?;
            (base != tensor.shape).then(|| refuse(own, format!("{base:?}"), format!("{:?}", tensor.shape)))
        };
        self.whole().filter_map(pair).chain(self.saved.iter().filter_map(saved)).collect()
    }

    /// Modules that the base lacks or the configuration does not name.
    fn unmatched(&self, bundle: &Bundle) -> Result<Vec<Refusal>> {
        let refuse = |subject: &str, expected: &str| Refusal::new(UNMATCHED).subject(subject).expected(expected);
        let absent = |own: &str| names::from_hf(own, &bundle.config).is_none_or(|name| bundle.shape(&name).is_none());
        let mut faults: Vec<Refusal> = self.strange.iter().map(|name| refuse(name, "a name that begins with base_model.model.")).collect();
        let (mut found, mut lacking) = (Vec::new(), Vec::new());
        for module in self.pairs.keys() {
            match names::from_hf(&weight(module), &bundle.config).filter(|name| bundle.shape(name).is_some()) {
                Some(name) => found.push((module.as_str(), block_of(&name))),
                None => lacking.push(refuse(module, "a module of the base")),
            }
        }
        faults.extend(lacking);
        faults.extend(self.config.untargeted(&found)?.into_iter().map(|module| refuse(module, "a module that target_modules names")));
        faults.extend(self.saved.keys().filter(|own| absent(own)).map(|own| refuse(own, "a tensor of the base")));
        Ok(faults)
    }

    /// Names of the configuration without a tensor, which PEFT passes over too. Refused if the file has no tensor at all.
    fn nameless(&self) -> Result<Vec<Warning>> {
        let saved: Vec<&str> = self.saved.keys().filter_map(|own| Some(own.rsplit_once('.')?.0)).collect();
        let modules: Vec<&str> = self.pairs.keys().map(String::as_str).chain(saved.iter().copied()).collect();
        let targets = self.config.target_modules.unmatched(&modules)?;
        let without = |name: &&String| !saved.iter().any(|module| module.ends_with(name.as_str()));
        let names: Vec<String> =
            targets.into_iter().map(str::to_string).chain(self.config.modules_to_save.iter().filter(without).cloned()).collect();
        if modules.is_empty() {
            let refuse = |name: &String| Refusal::new(UNMATCHED).of(self.artifact).subject(name).expected("a target with tensors");
            return Err(Error::Refused(names.iter().map(refuse).collect()));
        }
        Ok(names.iter().map(|name| Warning::new(UNMATCHED, name)).collect())
    }
}

/// The tensor of an adapter's file, which is the bundle's at `source`, under its own name.
pub(super) fn entry(name: String, tensor: &SafetensorsTensor, source: usize, artifact: &str) -> Result<Entry> {
    Ok(Entry {
        name,
        stored_name: tensor.name.clone(),
        dtype: tensor.dtype.clone(),
        encoding: Encoding::of_word(&tensor.dtype),
        shape: narrow(&tensor.shape, &tensor.name, artifact)?,
        source,
        begin: tensor.begin,
        end: Some(tensor.end),
        layout: Layout::Same,
        merge: None,
        replaced: None,
    })
}

/// Whether the base has the matrix `name` as [in, out]: those of GPT-2's blocks.
fn conv1d(bundle: &Bundle, name: &str) -> bool {
    names::to_gguf(name, "", &bundle.config).is_some_and(|(_, layout)| layout == Layout::Transposed)
}

/// Name of the tensor that a pair of `module` changes.
fn weight(module: &str) -> String {
    format!("{module}.weight")
}

fn factor(tensor: &SafetensorsTensor) -> Option<Factor> {
    let [rows, columns] = *tensor.shape.as_slice() else { return None };
    Some(Factor { begin: tensor.begin, end: tensor.end, encoding: Encoding::of_word(&tensor.dtype)?, rows, columns })
}
