//! Checks the tensors of an adapter: by themselves, and against its base.

use std::collections::{BTreeMap, BTreeSet};

use super::pairs::{Halves, Parts, Saved, weight};
use super::tables::{hint_about, more_rows};
use crate::bundle::tensors::Bundle;
use crate::config::{BlockPattern, Names, Pattern, ends};
use crate::error::{Error, Refusal, Result, Warning, Word, add_warning, refuse_all, word};
use crate::families::PAIRS;
use crate::families::names::{HEAD, block_of};
use crate::formats::{Encoding, unreadable};
use crate::state::Tensor;

const UNMATCHED: Word = word!("adapter.target.unmatched");

/// Refuses what no tensor or module matches.
fn unmatched(subject: &str, expected: &str) -> Refusal {
    Refusal::new(UNMATCHED).subject(subject).expected(expected)
}

/// Tells that a text of the setting `key` matches nothing.
fn idle(text: impl std::fmt::Display, key: &str) -> Warning {
    Warning::new(UNMATCHED, &format!("{text} in {key}"))
}

/// A complete pair and its module.
type Whole<'p, 'a> = (&'p String, &'p Halves<'a>, &'a Tensor, &'a Tensor);

impl<'a> Parts<'a> {
    /// Refuses faults of the adapter and mismatches with the base: all faults of the first kind that occurs. With `resize` an embedding and a
    /// head may have more rows than the base's.
    pub(super) fn check(&self, bundle: &Bundle, resize: bool) -> Result<Vec<Warning>> {
        for faults in [
            self.unreadable(),
            self.incomplete(),
            self.other_ranks(),
            self.other_shapes(bundle, resize),
            self.unmatched(bundle)?,
        ] {
            let faults = faults.into_iter();
            refuse_all(faults.map(|fault| fault.of(self.artifact)).collect())?;
        }
        let mut warnings = self.nameless()?;
        warnings.extend(self.idle(bundle));
        warnings.extend(self.idle_patterns()?);
        warnings.extend(self.absent(bundle)?);
        let renamed = self.renamed.iter();
        warnings.extend(renamed.map(|name| Warning::new(word!("model.tensor.prefix"), name)));
        for module in &self.spared {
            add_warning(&mut warnings, word!("adapter.target.excluded"), module);
        }
        for pattern in &self.unread {
            add_warning(&mut warnings, word!("adapter.pattern.invalid"), pattern);
        }
        Ok(warnings)
    }

    fn unreadable(&self) -> Vec<Refusal> {
        let pairs = self.pairs.values().flat_map(|halves| halves.tensors);
        let all = pairs
            .flatten()
            .chain(self.saved.values().map(|saved| saved.tensor));
        all.filter(|tensor| Encoding::of_word(&tensor.dtype).is_none())
            .map(|tensor| unreadable(&tensor.dtype, &tensor.name, self.artifact).stage("open"))
            .collect()
    }

    fn incomplete(&self) -> Vec<Refusal> {
        let mut faults = Vec::new();
        for (module, halves) in &self.pairs {
            let [a, b] = PAIRS[halves.kind];
            let alone = match halves.tensors {
                [Some(_), None] => a,
                [None, Some(_)] => b,
                _ => continue,
            };
            let refusal = Refusal::new(word!("adapter.pair.incomplete"))
                .subject(module)
                .expected(format!("{a} and {b}"));
            faults.push(refusal.found(format!("{alone} alone")));
        }
        faults
    }

    /// Iterates over the complete pairs, by module.
    fn whole(&self) -> impl Iterator<Item = Whole<'_, 'a>> {
        let pairs = self.pairs.iter();
        pairs.filter_map(|(module, halves)| match halves.tensors {
            [Some(a), Some(b)] => Some((module, halves, a, b)),
            _ => None,
        })
    }

    fn other_ranks(&self) -> Vec<Refusal> {
        let mut faults = Vec::new();
        for (module, halves, a, b) in self.whole() {
            let ([of_a, _], [_, of_b], Some((rank, _))) =
                (a.shape.as_slice(), b.shape.as_slice(), halves.scaling)
            else {
                continue;
            };
            if *of_a != rank || *of_b != rank {
                let refusal = Refusal::new(word!("adapter.rank.mismatch"))
                    .subject(module)
                    .expected(format!("rank {rank}"));
                faults.push(refusal.found(format!("A {:?}, B {:?}", a.shape, b.shape)));
            }
        }
        faults
    }

    fn other_shapes(&self, bundle: &Bundle, resize: bool) -> Vec<Refusal> {
        let refuse = |subject: &str, expected: String, found: String| {
            Refusal::new(word!("adapter.shape"))
                .subject(subject)
                .expected(expected)
                .found(found)
        };
        let mut faults = Vec::new();
        for (module, halves, a, b) in self.whole() {
            // A pair of a resized table is compared with the shape of that table.
            let table = self.table(&weight(module), &halves.name).filter(|_| resize);
            let Some(base) = table.or_else(|| bundle.tensor(&halves.name)) else {
                continue;
            };
            let base = &base.shape;
            let turned = halves.is_transposed(bundle);
            let fits = match (a.shape.as_slice(), b.shape.as_slice()) {
                ([_, inner], [outer, _]) if turned => *base == [*inner, *outer],
                ([_, inner], [outer, _]) => *base == [*outer, *inner],
                _ => false,
            };
            if !fits {
                let found = format!("A {:?}, B {:?}", a.shape, b.shape);
                faults.push(refuse(module, format!("a pair for {base:?}"), found));
            }
        }
        for (own, Saved { name, tensor }) in &self.saved {
            let Some(name) = name else { continue };
            let Some(base) = bundle.tensor(name) else {
                continue;
            };
            let grown = resize && more_rows(bundle, name, tensor).is_some();
            if base.shape != tensor.shape && !grown {
                let expected = format!("{:?}", base.shape);
                let mut refusal = refuse(own, expected, format!("{:?}", tensor.shape));
                if let Some(hint) = hint_about(bundle, name, tensor) {
                    refusal = refusal.hint(hint);
                }
                faults.push(refusal);
            }
        }
        faults
    }

    /// Lists modules that the base lacks or the configuration does not name.
    fn unmatched(&self, bundle: &Bundle) -> Result<Vec<Refusal>> {
        let mut faults = Vec::new();
        for name in &self.strange {
            faults.push(unmatched(name, "a name that begins with base_model.model."));
        }
        let mut found = Vec::new();
        for (module, halves) in &self.pairs {
            match bundle.tensor(&halves.name) {
                Some(_) => found.push((module.as_str(), block_of(&halves.name))),
                None => faults.push(unmatched(module, "a module of the base")),
            }
        }
        let within = match self.config.layers_to_transform {
            Some(_) => {
                "a module that target_modules names, in a block that layers_to_transform names"
            }
            None => "a module that target_modules names",
        };
        for module in self.config.untargeted(&found)? {
            faults.push(unmatched(module, within));
        }
        for (own, Saved { name, .. }) in &self.saved {
            let tensor = name.as_ref().and_then(|name| bundle.tensor(name));
            if tensor.is_none() {
                faults.push(unmatched(own, "a tensor of the base"));
            }
        }
        Ok(faults)
    }

    /// Lists names of the configuration that have no tensor, which PEFT ignores too. They are refused if the file has no tensor at all.
    fn nameless(&self) -> Result<Vec<Warning>> {
        let saved = self.saved.keys().filter_map(|own| own.rsplit_once('.'));
        let saved: Vec<&str> = saved.map(|(module, _)| module).collect();
        let own = self.pairs.keys().chain(&self.spared).map(String::as_str);
        let modules: Vec<&str> = own.chain(saved.iter().copied()).collect();
        let mut names = self.config.target_modules.unmatched(&modules)?;
        for name in &self.config.modules_to_save {
            let in_both = self.both && HEAD.strip_suffix(".weight") == Some(name);
            if !in_both && !saved.iter().any(|module| module.ends_with(name)) {
                names.push(name);
            }
        }
        let names = names.into_iter();
        if !self.pairs.is_empty() || !saved.is_empty() {
            return Ok(names.map(|name| Warning::new(UNMATCHED, name)).collect());
        }
        let without = "a pair that exclude_modules and modules_to_save do not name";
        let names = names.map(|name| unmatched(name, "a target with tensors"));
        let spared = self.spared.iter().map(|module| unmatched(module, without));
        let all = names.chain(spared).map(|refusal| refusal.of(self.artifact));
        Err(Error::Refused(all.collect()))
    }

    /// Lists exclusions, and names of parts before the number of a block, that match no module of the base. A pattern that cannot be read is a
    /// fault only in training.
    fn idle(&self, bundle: &Bundle) -> Vec<Warning> {
        let config = self.config;
        let tensors = bundle.names();
        let names = tensors.iter().map(String::as_str).chain([HEAD]);
        let modules = names.filter_map(|name| name.rsplit_once('.'));
        let modules: BTreeSet<&str> = modules.flat_map(|(module, _)| inside(module)).collect();
        let all: BTreeSet<&str> = modules.iter().copied().flat_map(ends).collect();
        let without = |fits: &dyn Fn(&str) -> bool| !modules.iter().any(|module| fits(module));
        let texts = |names: &'a Option<Names>| {
            let names = names.as_ref().filter(|names| !names.is_empty());
            names.map_or(&[][..], Names::texts)
        };
        let one = matches!(config.exclude_modules, Some(Names::One(_)));
        let mut warnings = Vec::new();
        for name in texts(&config.exclude_modules) {
            let excludes_none = if one {
                let pattern = Pattern::whole("exclude_modules", name);
                let matches = pattern.and_then(|pattern| pattern.prepared());
                matches.is_ok_and(|matches| without(&matches))
            } else {
                !all.contains(name.as_str())
            };
            if excludes_none {
                warnings.push(idle(name, "exclude_modules"));
            }
        }
        for text in texts(&config.layers_pattern) {
            let pattern = BlockPattern::new("layers_pattern", Some(text));
            if pattern.is_ok_and(|pattern| without(&|module| pattern.block_of(module).is_some())) {
                warnings.push(idle(text, "layers_pattern"));
            }
        }
        for layer in config.layers_to_transform.iter().flatten() {
            if *layer >= bundle.config.num_hidden_layers as u64 {
                warnings.push(idle(layer, "layers_to_transform"));
            }
        }
        warnings
    }

    /// Lists patterns of ranks and alphas that match no pair.
    fn idle_patterns(&self) -> Result<Vec<Warning>> {
        let mut warnings = Vec::new();
        let mut check = |key: &str, pattern: &Pattern| {
            let matches = pattern.prepared()?;
            if !self.pairs.keys().any(|module| matches(module)) {
                warnings.push(idle(pattern.text(), key));
            }
            Ok::<(), Error>(())
        };
        for (pattern, _) in &self.config.rank_pattern {
            check("rank_pattern", pattern)?;
        }
        for (pattern, _) in &self.config.alpha_pattern {
            check("alpha_pattern", pattern)?;
        }
        Ok(warnings)
    }

    /// Warns about modules that the configuration names, and that have no pair in this file although the same modules of other blocks have one.
    fn absent(&self, bundle: &Bundle) -> Result<Option<Warning>> {
        let mut candidates = BTreeMap::new();
        for (module, halves) in &self.pairs {
            let Some(at) = block_of(&halves.name) else {
                continue;
            };
            if let Some((before, after)) = module.split_once(&format!(".{at}.")) {
                for other in 0..bundle.config.num_hidden_layers {
                    candidates.insert(format!("{before}.{other}.{after}"), Some(other));
                }
            }
        }
        // Blocks may be of different kinds.
        let exists = |module: &str| bundle.shape(&format!("{module}.weight")).is_some();
        candidates.retain(|module, _| !self.pairs.contains_key(module) && exists(module));
        let modules = candidates.iter();
        let modules = modules.map(|(module, block)| (module.as_str(), *block));
        let modules: Vec<(&str, Option<usize>)> = modules.collect();
        let untargeted = self.config.untargeted(&modules)?;
        let all: Vec<&str> = modules.iter().map(|(module, _)| *module).collect();
        let (spared, _) = self.config.spared(&all);
        let mut absent = all
            .into_iter()
            .filter(|module| !untargeted.contains(module) && !spared.contains(module));
        let Some(first) = absent.next() else {
            return Ok(None);
        };
        let subject = match absent.count() {
            0 => first.to_string(),
            more => format!("{first} and {more} more"),
        };
        Ok(Some(Warning::new(word!("adapter.pair.absent"), &subject)))
    }
}

/// The name of a module, and the names of the modules that it is in.
fn inside(module: &str) -> impl Iterator<Item = &str> {
    std::iter::once(module).chain(module.match_indices('.').map(|(at, _)| &module[..at]))
}
