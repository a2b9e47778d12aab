//! Checks the tensors of an adapter: by themselves, and against its base.

use std::collections::{BTreeMap, BTreeSet};

use super::pairs::{Halves, Parts, conv1d, weight};
use super::tables::{hint_about, more_rows};
use crate::bundle::tensors::Bundle;
use crate::config::{BlockPattern, Names, Pattern, ends};
use crate::error::{Error, Refusal, Result, Warning, Word, add_warning, word};
use crate::families::names::{HEAD, block_of};
use crate::families::{PAIRS, names};
use crate::formats::{Encoding, unreadable};
use crate::state::Tensor;

const UNMATCHED: Word = word!("adapter.target.unmatched");

impl<'a> Parts<'a> {
    /// Refuses faults of the adapter and mismatches with the base: all faults of the first kind that occurs. With `resize` an embedding and a
    /// head may have more rows than the base's.
    pub(super) fn check(&self, bundle: &Bundle, resize: bool) -> Result<Vec<Warning>> {
        let shapes = self.other_shapes(bundle, resize);
        for faults in [
            self.unreadable(),
            self.incomplete(),
            self.other_ranks(),
            shapes,
            self.unmatched(bundle)?,
        ] {
            if !faults.is_empty() {
                return Err(Error::Refused(
                    faults
                        .into_iter()
                        .map(|refusal| refusal.of(self.artifact))
                        .collect(),
                ));
            }
        }
        let mut warnings = self.nameless()?;
        warnings.extend(self.idle(bundle));
        warnings.extend(self.idle_patterns()?);
        warnings.extend(self.absent(bundle)?);
        warnings.extend(
            self.renamed
                .map(|name| Warning::new(word!("model.tensor.prefix"), name)),
        );
        for module in &self.spared {
            add_warning(&mut warnings, word!("adapter.target.excluded"), module);
        }
        for pattern in &self.unread {
            add_warning(&mut warnings, word!("adapter.pattern.invalid"), pattern);
        }
        Ok(warnings)
    }

    fn unreadable(&self) -> Vec<Refusal> {
        let pairs = self
            .pairs
            .values()
            .flat_map(|halves| halves.tensors.iter().flatten());
        let all = pairs
            .chain(self.saved.values())
            .filter(|tensor| Encoding::of_word(&tensor.dtype).is_none());
        all.map(|tensor| unreadable(&tensor.dtype, &tensor.name, self.artifact).stage("open"))
            .collect()
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
            Some(
                refusal
                    .expected(format!("{a} and {b}"))
                    .found(format!("{alone} alone")),
            )
        };
        self.pairs.iter().filter_map(fault).collect()
    }

    /// Iterates over the complete pairs, by module.
    fn whole(&self) -> impl Iterator<Item = (&String, &Halves<'a>, &'a Tensor, &'a Tensor)> {
        self.pairs
            .iter()
            .filter_map(|(module, halves)| match halves.tensors {
                [Some(a), Some(b)] => Some((module, halves, a, b)),
                _ => None,
            })
    }

    fn other_ranks(&self) -> Vec<Refusal> {
        let fault = |(module, halves, a, b): (&String, &Halves<'_>, &Tensor, &Tensor)| {
            let rank = halves.scaling?.rank;
            let ([of_a, _], [_, of_b]) = (a.shape.as_slice(), b.shape.as_slice()) else {
                return None;
            };
            let refusal = Refusal::new(word!("adapter.rank.mismatch"))
                .subject(module)
                .expected(format!("rank {rank}"));
            (*of_a != rank || *of_b != rank)
                .then(|| refusal.found(format!("A {:?}, B {:?}", a.shape, b.shape)))
        };
        self.whole().filter_map(fault).collect()
    }

    fn other_shapes(&self, bundle: &Bundle, resize: bool) -> Vec<Refusal> {
        let of_base = |own: &str| {
            let shape = bundle.shape(&names::from_hf(own, &bundle.config)?)?;
            Some(
                shape
                    .into_iter()
                    .map(|dim| dim as u64)
                    .collect::<Vec<u64>>(),
            )
        };
        // A pair of a resized table is compared with the shape of that table.
        let shape_of = |own: &str| {
            resize
                .then(|| self.shape_of_table(bundle, own))
                .flatten()
                .or_else(|| of_base(own))
        };
        let refuse = |subject: &str, expected: String, found: String| {
            Refusal::new(word!("adapter.shape"))
                .subject(subject)
                .expected(expected)
                .found(found)
        };
        let pair = |(module, halves, a, b): (&String, &Halves<'_>, &Tensor, &Tensor)| {
            let base = shape_of(&weight(module))?;
            let turned = halves.kind == 1
                || names::from_hf(&weight(module), &bundle.config)
                    .is_some_and(|name| conv1d(bundle, &name));
            let fits = match (a.shape.as_slice(), b.shape.as_slice()) {
                ([_, inner], [outer, _]) if turned => base == [*inner, *outer],
                ([_, inner], [outer, _]) => base == [*outer, *inner],
                _ => false,
            };
            (!fits).then(|| {
                refuse(
                    module,
                    format!("a pair for {base:?}"),
                    format!("A {:?}, B {:?}", a.shape, b.shape),
                )
            })
        };
        let saved = |(own, tensor): (&String, &&Tensor)| {
            let base = of_base(own)?;
            let fits = base == tensor.shape || resize && more_rows(bundle, own, tensor).is_some();
            let refusal = refuse(own, format!("{base:?}"), format!("{:?}", tensor.shape));
            (!fits).then(|| match hint_about(bundle, own, tensor) {
                Some(hint) => refusal.hint(hint),
                None => refusal,
            })
        };
        self.whole()
            .filter_map(pair)
            .chain(self.saved.iter().filter_map(saved))
            .collect()
    }

    /// Lists modules that the base lacks or the configuration does not name.
    fn unmatched(&self, bundle: &Bundle) -> Result<Vec<Refusal>> {
        let refuse = |subject: &str, expected: &str| {
            Refusal::new(UNMATCHED).subject(subject).expected(expected)
        };
        let absent = |own: &str| {
            names::from_hf(own, &bundle.config).is_none_or(|name| bundle.shape(&name).is_none())
        };
        let mut faults: Vec<Refusal> = self
            .strange
            .iter()
            .map(|name| refuse(name, "a name that begins with base_model.model."))
            .collect();
        let (mut found, mut lacking) = (Vec::new(), Vec::new());
        for module in self.pairs.keys() {
            match names::from_hf(&weight(module), &bundle.config)
                .filter(|name| bundle.shape(name).is_some())
            {
                Some(name) => found.push((module.as_str(), block_of(&name))),
                None => lacking.push(refuse(module, "a module of the base")),
            }
        }
        faults.extend(lacking);
        let within = match self.config.layers_to_transform {
            Some(_) => {
                "a module that target_modules names, in a block that layers_to_transform names"
            }
            None => "a module that target_modules names",
        };
        faults.extend(
            self.config
                .untargeted(&found)?
                .into_iter()
                .map(|module| refuse(module, within)),
        );
        faults.extend(
            self.saved
                .keys()
                .filter(|own| absent(own))
                .map(|own| refuse(own, "a tensor of the base")),
        );
        Ok(faults)
    }

    /// Lists names of the configuration that have no tensor, which PEFT ignores too. They are refused if the file has no tensor at all.
    fn nameless(&self) -> Result<Vec<Warning>> {
        let saved: Vec<&str> = self
            .saved
            .keys()
            .filter_map(|own| Some(own.rsplit_once('.')?.0))
            .collect();
        let unused = self.spared.iter().map(String::as_str);
        let modules: Vec<&str> = self
            .pairs
            .keys()
            .map(String::as_str)
            .chain(saved.iter().copied())
            .chain(unused)
            .collect();
        let targets = self.config.target_modules.unmatched(&modules)?;
        let in_both = |name: &str| self.both && HEAD.strip_suffix(".weight") == Some(name);
        let without = |name: &&String| {
            !in_both(name) && !saved.iter().any(|module| module.ends_with(name.as_str()))
        };
        let names: Vec<String> = targets
            .into_iter()
            .map(str::to_string)
            .chain(self.config.modules_to_save.iter().filter(without).cloned())
            .collect();
        if self.pairs.is_empty() && saved.is_empty() {
            let refuse = |name: &String, expected: &str| {
                Refusal::new(UNMATCHED)
                    .of(self.artifact)
                    .subject(name)
                    .expected(expected)
            };
            let nameless = names
                .iter()
                .map(|name| refuse(name, "a target with tensors"));
            let spared = self.spared.iter().map(|module| {
                refuse(
                    module,
                    "a pair that exclude_modules and modules_to_save do not name",
                )
            });
            return Err(Error::Refused(nameless.chain(spared).collect()));
        }
        Ok(names
            .iter()
            .map(|name| Warning::new(UNMATCHED, name))
            .collect())
    }

    /// Lists exclusions, and names of parts before the number of a block, that match no module of the base. A pattern that cannot be read is a
    /// fault only in training.
    fn idle(&self, bundle: &Bundle) -> Vec<Warning> {
        let tensors = bundle.names();
        let weights = tensors
            .iter()
            .map(String::as_str)
            .chain([HEAD])
            .filter_map(|name| name.rsplit_once('.'));
        let modules: BTreeSet<&str> = weights.map(|(module, _)| module).flat_map(inside).collect();
        let without = |fits: &dyn Fn(&str) -> bool| !modules.iter().any(|module| fits(module));
        let excludes_none = |text: &str| {
            let matches =
                Pattern::whole("exclude_modules", text).and_then(|pattern| pattern.prepared());
            matches.is_ok_and(|matches| without(&matches))
        };
        let is_no_part = |text: &str| {
            let pattern = BlockPattern::new("layers_pattern", Some(text));
            pattern.is_ok_and(|pattern| without(&|module| pattern.block_of(module).is_some()))
        };
        let all: BTreeSet<&str> = modules.iter().copied().flat_map(ends).collect();
        let texts = |names: &'a Option<Names>| {
            names
                .as_ref()
                .filter(|names| !names.is_empty())
                .map_or(&[][..], Names::texts)
        };
        let one = matches!(self.config.exclude_modules, Some(Names::One(_)));
        let is_idle = |name: &&String| {
            if one {
                excludes_none(name)
            } else {
                !all.contains(name.as_str())
            }
        };
        let excluded = texts(&self.config.exclude_modules)
            .iter()
            .filter(is_idle)
            .map(|name| format!("{name} in exclude_modules"));
        let parts = texts(&self.config.layers_pattern)
            .iter()
            .filter(|text| is_no_part(text));
        let parts = parts.map(|name| format!("{name} in layers_pattern"));
        let count = bundle.config.num_hidden_layers as u64;
        let layers = self
            .config
            .layers_to_transform
            .iter()
            .flatten()
            .filter(|layer| **layer >= count);
        let layers = layers.map(|layer| format!("{layer} in layers_to_transform"));
        excluded
            .chain(parts)
            .chain(layers)
            .map(|subject| Warning::new(UNMATCHED, &subject))
            .collect()
    }

    /// Lists patterns of ranks and alphas that match no pair.
    fn idle_patterns(&self) -> Result<Vec<Warning>> {
        let modules: Vec<&str> = self.pairs.keys().map(String::as_str).collect();
        let ranks = self
            .config
            .rank_pattern
            .iter()
            .map(|(pattern, _)| ("rank_pattern", pattern));
        let alphas = self
            .config
            .alpha_pattern
            .iter()
            .map(|(pattern, _)| ("alpha_pattern", pattern));
        let mut idle = Vec::new();
        for (key, pattern) in ranks.chain(alphas) {
            let matches = pattern.prepared()?;
            if !modules.iter().any(|module| matches(module)) {
                idle.push(Warning::new(
                    UNMATCHED,
                    &format!("{} in {key}", pattern.text()),
                ));
            }
        }
        Ok(idle)
    }

    /// Warns about modules that the configuration names, and that have no pair in this file although the same modules of other blocks have one.
    fn absent(&self, bundle: &Bundle) -> Result<Option<Warning>> {
        let block = |module: &str| {
            names::from_hf(&weight(module), &bundle.config).and_then(|name| block_of(&name))
        };
        let mut candidates: BTreeMap<String, Option<usize>> = BTreeMap::new();
        for module in self.pairs.keys() {
            let Some(at) = block(module) else { continue };
            let Some((before, after)) = module.split_once(&format!(".{at}.")) else {
                continue;
            };
            candidates.extend(
                (0..bundle.config.num_hidden_layers)
                    .map(|other| (format!("{before}.{other}.{after}"), Some(other))),
            );
        }
        candidates.retain(|module, _| !self.pairs.contains_key(module));
        let modules: Vec<(&str, Option<usize>)> = candidates
            .iter()
            .map(|(module, block)| (module.as_str(), *block))
            .collect();
        let untargeted = self.config.untargeted(&modules)?;
        let all: Vec<&str> = modules.iter().map(|(module, _)| *module).collect();
        let (spared, _) = self.config.spared(&all);
        let mut absent = all
            .into_iter()
            .filter(|module| !untargeted.contains(module) && !spared.contains(module));
        let Some(first) = absent.next() else {
            return Ok(None);
        };
        let more = match absent.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Ok(Some(Warning::new(
            word!("adapter.pair.absent"),
            &format!("{first}{more}"),
        )))
    }
}

/// Returns the name of a module, and the names of the modules that it is in.
fn inside(module: &str) -> impl Iterator<Item = &str> {
    std::iter::once(module).chain(module.match_indices('.').map(|(at, _)| &module[..at]))
}
