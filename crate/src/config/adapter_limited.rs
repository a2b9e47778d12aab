//! Limits the settings of an adapter's files to the modules that a model has.

use std::collections::BTreeSet;

use super::adapter::{AdapterConfig, is_all_linear};
use super::adapter_modules::{Known, Module, PeftNames, known};
use super::adapter_values::{Layers, Names, Table};
use super::patterns::{Pattern, ends};
use crate::error::Result;

impl AdapterConfig {
    /// Drops names, patterns and blocks that match no module of the model, which PEFT ignores: an adapter's files may name targets of several families. If no
    /// target is left, all stay, so that they are refused later.
    ///
    /// # Errors
    /// `adapter.pattern.*` for patterns that cannot be read.
    pub(crate) fn limited_to(self, names: &PeftNames, modules: &[Module]) -> Result<Self> {
        let known = known(names, modules);
        let all: BTreeSet<&str> = known.iter().flat_map(|one| ends(&one.name)).collect();
        let limited = |key: &str, names: Names| -> Result<Option<Names>> {
            Ok(match names {
                Names::One(text) if key == "exclude_modules" || !is_all_linear(&text) => {
                    let matches = Pattern::whole(key, &text)?.prepared()?;
                    known
                        .iter()
                        .any(|one| matches(&one.name))
                        .then_some(Names::One(text))
                }
                Names::One(text) => Some(Names::One(text)),
                Names::Many(list) => {
                    let list: Vec<String> = list
                        .into_iter()
                        .filter(|name| all.contains(name.as_str()))
                        .collect();
                    (!list.is_empty()).then_some(Names::Many(list))
                }
            })
        };
        let limit =
            |key: &str, names: Option<Names>| names.map_or(Ok(None), |names| limited(key, names));
        let targets = limit("target_modules", self.target_modules.clone())?
            .or_else(|| self.target_modules.clone());
        let excluded = limit("exclude_modules", self.exclude_modules.clone())?;
        let layers = self.layers().map(|numbers| {
            let blocks: BTreeSet<u64> = known
                .iter()
                .filter_map(|one| Some(one.module?.block? as u64))
                .collect();
            numbers
                .iter()
                .copied()
                .filter(|layer| blocks.contains(layer))
                .collect::<Vec<u64>>()
        });
        // Without a block that is there the list stays, since an empty one would mean all blocks.
        let layers = layers
            .filter(|list| !list.is_empty())
            .map(Layers::Many)
            .or_else(|| self.layers_to_transform.clone());
        let rank_pattern = matching("rank_pattern", &self.rank_pattern, &known)?;
        let alpha_pattern = matching("alpha_pattern", &self.alpha_pattern, &known)?;
        let is_known = |end: &String| known.iter().any(|one| one.name.ends_with(end.as_str()));
        let saved = self
            .modules_to_save
            .clone()
            .map(|list| list.into_iter().filter(is_known).collect::<Vec<_>>());
        Ok(Self {
            target_modules: targets,
            exclude_modules: excluded,
            layers_to_transform: layers,
            rank_pattern,
            alpha_pattern,
            modules_to_save: saved.filter(|list| !list.is_empty()),
            ..self
        })
    }
}

/// Returns the entries whose pattern matches a module.
fn matching<T: Copy>(key: &str, table: &Table<T>, known: &[Known<'_>]) -> Result<Table<T>> {
    let mut kept = Vec::new();
    for (text, value) in &table.0 {
        let matches = Pattern::end(key, text)?.prepared()?;
        if known
            .iter()
            .any(|one| one.module.is_some() && matches(&one.name))
        {
            kept.push((text.clone(), *value));
        }
    }
    Ok(Table(kept))
}
