//! Finds the modules that an adapter's settings select, by PEFT's matching rules.

use std::collections::BTreeSet;

use super::adapter::{AdapterConfig, adapter_scale, is_all_linear};
use super::adapter_modules::{Known, Module, ModuleKind, PeftNames, known, once_a_block};
use super::adapter_values::{Names, Table};
use super::patterns::{BlockPattern, Pattern, ends, first_matches};
use crate::error::{Error, Refusal, Result, Word, word};

/// A matrix with factors A [r, in] and B [out, r].
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Name of the module, as in [`Module::name`].
    pub module: String,
    /// Rank r of the factors.
    pub rank: usize,
    /// Alpha that applies to this module.
    pub alpha: f64,
    /// Factor of the product B A: alpha / r, or alpha / √r with `rslora`.
    pub scale: f64,
    /// Number of rows of the matrix.
    pub out: usize,
    /// Number of columns of the matrix.
    pub input: usize,
}

/// Warning about settings that are valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterWarning {
    /// Code of the warning.
    pub code: Word,
    /// Name of the module; for modules that differ only in their block, the first one.
    pub subject: String,
}

/// The modules that an adapter trains, in the order of the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resolved {
    /// Matrices that get factors.
    pub targets: Vec<Target>,
    /// Names of the modules that are trained in full.
    pub saved: Vec<String>,
    /// True if the base stores the matrices of the targets as `[in, out]`.
    pub fan_in_fan_out: bool,
    /// Warnings about the settings.
    pub warnings: Vec<AdapterWarning>,
}

type Matcher = Box<dyn Fn(&Known<'_>) -> bool>;

#[doc(hidden)]
impl AdapterConfig {
    /// Returns `target_modules`, or PEFT's default for the family.
    pub fn targets(&self, family: &PeftNames) -> Names {
        self.target_modules
            .clone()
            .unwrap_or_else(|| Names::many(family.targets))
    }

    /// Resolves these settings to modules with rank and scale. `modules` are the model's modules that have weights.
    ///
    /// # Errors
    /// `config.invalid` for settings that are invalid for every model. Otherwise all of the following together:
    /// `adapter.target.unsupported` for modules that cannot have factors or cannot be trained in full; `adapter.target.tied` for a tied
    /// embedding or head in `modules_to_save`; `adapter.target.unknown` for each name, pattern and block that the model does not have.
    pub fn resolve(&self, family: &PeftNames, modules: &[Module]) -> Result<Resolved> {
        Error::of_faults(self.faults())?;
        let known = known(family, modules);
        let (targets, mut findings) = self.chosen(family, &known)?;
        let saved = self.saved(&known, &mut findings);
        self.unmatched(family, &known, &mut findings)?;
        if targets.is_empty() && findings.is_empty() {
            let none = refusal(word!("adapter.target.unknown"), "target_modules");
            findings
                .push(none.expected("a matrix that is not excluded, in one of the chosen blocks"));
        }
        if !findings.is_empty() {
            return Err(Error::Refused(findings));
        }
        let fan_in_fan_out = targets.iter().any(|module| module.fan_in_fan_out);
        let targets = self.ranked(&targets)?;
        let large = targets
            .iter()
            .filter(|target| target.rank > target.out.min(target.input));
        let warnings = once_a_block(large.map(|target| (target.module.as_str(), ())));
        let code = word!("adapter.rank.large");
        let warnings = warnings
            .into_iter()
            .map(|(module, (), _)| AdapterWarning {
                code,
                subject: module.to_string(),
            })
            .collect();
        Ok(Resolved {
            targets,
            saved,
            fan_in_fan_out,
            warnings,
        })
    }

    /// The matrices that the settings select, and a refusal for each other module that they select.
    fn chosen<'a>(
        &self,
        family: &PeftNames,
        known: &[Known<'a>],
    ) -> Result<(Vec<&'a Module>, Vec<Refusal>)> {
        let spared = self.spared()?;
        let wanted = self.wanted(family)?;
        let (mut targets, mut others) = (Vec::new(), Vec::new());
        for one in known.iter().filter(|one| !spared(one) && wanted(one)) {
            match one.module {
                Some(module)
                    if one.kind() == Some(ModuleKind::Matrix) && module.block.is_some() =>
                {
                    targets.push(module)
                }
                _ => others.push((one.name.as_ref(), one.what())),
            }
        }
        let refused = |(name, what, count): (&str, &str, usize)| {
            let found = if count == 1 {
                what.to_string()
            } else {
                format!("{what}, in {count} blocks")
            };
            refusal(word!("adapter.target.unsupported"), name)
                .expected("a matrix inside a block")
                .found(found)
        };
        Ok((
            targets,
            once_a_block(others.into_iter())
                .into_iter()
                .map(refused)
                .collect(),
        ))
    }

    /// A test for modules that never get factors: excluded ones, and those trained in full.
    fn spared(&self) -> Result<Matcher> {
        let excluded = match &self.exclude_modules {
            Some(names) => matcher("exclude_modules", names.clone())?,
            None => Box::new(|_: &Known<'_>| false),
        };
        let saved: Vec<_> = self
            .saved_names()
            .iter()
            .map(|text| Pattern::part("modules_to_save", text)?.prepared())
            .collect::<Result<_>>()?;
        Ok(Box::new(move |one| {
            excluded(one) || saved.iter().any(|matches| matches(&one.name))
        }))
    }

    /// A test for modules that `target_modules` and the chosen blocks select.
    fn wanted(&self, family: &PeftNames) -> Result<Matcher> {
        let names = match self.targets(family) {
            Names::One(text) if is_all_linear(&text) => {
                let inside =
                    |module: &Module| module.kind == ModuleKind::Matrix && module.block.is_some();
                return Ok(Box::new(move |one| one.module.is_some_and(inside)));
            }
            one @ Names::One(_) => return matcher("target_modules", one),
            Names::Many(list) => list.into_iter().collect::<BTreeSet<String>>(),
        };
        let Some(layers) = self.layers().map(<[u64]>::to_vec) else {
            return Ok(Box::new(move |one| {
                ends(&one.name).any(|end| names.contains(end))
            }));
        };
        let patterns: Vec<BlockPattern> = self
            .block_patterns()?
            .into_iter()
            .map(|(_, pattern)| pattern)
            .collect();
        let within = move |name: &str| {
            patterns
                .iter()
                .find_map(|pattern| pattern.block_of(name))
                .is_some_and(|n| layers.contains(&n))
        };
        // A whole name is selected in any block.
        Ok(Box::new(move |one| {
            names.contains(one.name.as_ref())
                || ends(&one.name).any(|end| names.contains(end)) && within(&one.name)
        }))
    }

    /// The patterns that find the number of a block in a name, each with its text.
    fn block_patterns(&self) -> Result<Vec<(&str, BlockPattern)>> {
        let path = "layers_pattern";
        match self.layer_patterns() {
            None => Ok(vec![("", BlockPattern::new(path, None)?)]),
            Some(texts) => texts
                .iter()
                .map(|text| Ok((text.as_str(), BlockPattern::new(path, Some(text))?)))
                .collect(),
        }
    }

    fn saved_names(&self) -> &[String] {
        self.modules_to_save.as_deref().unwrap_or_default()
    }

    /// The modules that are trained in full. A name is compared by its end, which need not begin after a dot.
    fn saved(&self, known: &[Known<'_>], findings: &mut Vec<Refusal>) -> Vec<String> {
        let (mut saved, mut tied, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for one in known.iter().filter(|one| {
            self.saved_names()
                .iter()
                .any(|end| one.name.ends_with(end.as_str()))
        }) {
            match (one.kind(), one.module.is_some_and(|module| module.tied)) {
                (Some(ModuleKind::Norm), _)
                | (Some(ModuleKind::Embedding | ModuleKind::Head), false) => {
                    saved.push(one.name.to_string())
                }
                (Some(ModuleKind::Embedding | ModuleKind::Head), true) => {
                    tied.push(one.name.as_ref())
                }
                _ => others.push((one.name.as_ref(), one.what())),
            }
        }
        let refused = |(name, what, _): (&str, &str, usize)| {
            let refusal = refusal(word!("adapter.target.unsupported"), name);
            refusal
                .expected("modules_to_save: a norm, or an embedding or a head that is not tied")
                .found(what)
        };
        findings.extend(once_a_block(others.into_iter()).into_iter().map(refused));
        findings.extend(tied.into_iter().map(|name| {
            let refusal = refusal(word!("adapter.target.tied"), name)
                .expected("modules_to_save: an embedding or a head of its own");
            refusal.found("a matrix that is both embedding and head")
        }));
        saved
    }

    /// Adds a refusal for each name, pattern and block that matches nothing in the model.
    fn unmatched(
        &self,
        family: &PeftNames,
        known: &[Known<'_>],
        findings: &mut Vec<Refusal>,
    ) -> Result<()> {
        let mut refuse = |key: &str, text: &str, expected: &str| {
            findings.push(
                refusal(word!("adapter.target.unknown"), text)
                    .expected(format!("{key}: {expected}")),
            );
        };
        let all: BTreeSet<&str> = known.iter().flat_map(|one| ends(&one.name)).collect();
        let targets = self.targets(family);
        for (key, names) in [
            ("target_modules", Some(&targets)),
            ("exclude_modules", self.exclude_modules.as_ref()),
        ] {
            match names {
                Some(Names::One(text)) if key == "target_modules" && is_all_linear(text) => {}
                Some(Names::One(text)) => {
                    let matches = Pattern::whole(key, text)?.prepared()?;
                    if !known.iter().any(|one| matches(&one.name)) {
                        refuse(key, text, "a pattern that a module matches");
                    }
                }
                Some(Names::Many(list)) => {
                    list.iter()
                        .filter(|name| !all.contains(name.as_str()))
                        .for_each(|name| refuse(key, name, "a module of the model"));
                }
                None => {}
            }
        }
        let blocks: BTreeSet<u64> = known
            .iter()
            .filter_map(|one| Some(one.module?.block? as u64))
            .collect();
        for layer in self
            .layers()
            .unwrap_or_default()
            .iter()
            .filter(|layer| !blocks.contains(layer))
        {
            refuse(
                "layers_to_transform",
                &layer.to_string(),
                "a block of the model",
            );
        }
        if self.layer_patterns().is_some() {
            let idle = |pattern: &BlockPattern| {
                !known
                    .iter()
                    .any(|one| pattern.block_of(&one.name).is_some())
            };
            for (text, _) in self
                .block_patterns()?
                .iter()
                .filter(|(_, pattern)| idle(pattern))
            {
                refuse(
                    "layers_pattern",
                    text,
                    "a part of a name that the number of a block follows",
                );
            }
        }
        for (key, texts) in self.tables() {
            for text in texts {
                let matches = Pattern::end(key, text)?.prepared()?;
                let mut modules = known.iter().filter(|one| one.module.is_some());
                if !modules.any(|one| matches(&one.name)) {
                    refuse(key, text, "a pattern that a module matches");
                }
            }
        }
        for end in self
            .saved_names()
            .iter()
            .filter(|end| !known.iter().any(|one| one.name.ends_with(end.as_str())))
        {
            refuse("modules_to_save", end, "a module of the model");
        }
        Ok(())
    }

    /// Computes rank and scale of each target. The tables of ranks and alphas are searched independently; in each the first key that
    /// matches counts.
    fn ranked(&self, targets: &[&Module]) -> Result<Vec<Target>> {
        let names: Vec<&str> = targets.iter().map(|module| module.name.as_str()).collect();
        let ranks = first_matches(&prepared("rank_pattern", &self.rank_pattern)?, &names)?;
        let alphas = first_matches(&prepared("alpha_pattern", &self.alpha_pattern)?, &names)?;
        let target = |((module, rank), alpha): ((&&Module, Option<u64>), Option<f64>)| {
            let (rank, alpha) = (rank.unwrap_or(self.r), alpha.unwrap_or(self.alpha));
            let ([out, input], scale) = (module.shape, adapter_scale(rank, alpha, self.rslora));
            // At most 65,536, so it fits a 32-bit usize.
            Target {
                module: module.name.clone(),
                rank: rank as usize,
                alpha,
                scale,
                out,
                input,
            }
        };
        Ok(targets.iter().zip(ranks).zip(alphas).map(target).collect())
    }
}

fn matcher(path: &str, names: Names) -> Result<Matcher> {
    Ok(match names {
        Names::One(text) => {
            let matches = Pattern::whole(path, &text)?.prepared()?;
            Box::new(move |one| matches(&one.name))
        }
        Names::Many(list) => {
            Box::new(move |one| ends(&one.name).any(|end| list.iter().any(|name| name == end)))
        }
    })
}

/// Compiles the keys of a table in the settings.
fn prepared<T: Copy>(path: &str, table: &Table<T>) -> Result<Vec<(Pattern, T)>> {
    table
        .0
        .iter()
        .map(|(text, value)| Ok((Pattern::end(path, text)?, *value)))
        .collect()
}

fn refusal(code: Word, subject: &str) -> Refusal {
    Refusal::new(code).stage("bind").subject(subject)
}
