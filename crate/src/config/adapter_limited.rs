//! Limits the settings of an adapter's files to the modules that a model has.

use std::collections::BTreeSet;

use super::adapter::{AdapterConfig, is_all_linear};
use super::adapter_modules::{Module, PeftNames, known};
use super::adapter_values::Names;
use super::patterns::{Pattern, ends};
use crate::error::Result;

impl AdapterConfig {
    /// Drops names that match no module of the model, which PEFT ignores: an adapter's files may name targets of several families. If no
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
                    known.iter().any(|one| matches(&one.name)).then_some(Names::One(text))
                }
                Names::One(text) => Some(Names::One(text)),
                Names::Many(list) => {
                    let list: Vec<String> = list.into_iter().filter(|name| all.contains(name.as_str())).collect();
                    (!list.is_empty()).then_some(Names::Many(list))
                }
            })
        };
        let limit = |key: &str, names: Option<Names>| names.map_or(Ok(None), |names| limited(key, names));
        let targets = limit("target_modules", self.target_modules.clone())?.or_else(|| self.target_modules.clone());
        let excluded = limit("exclude_modules", self.exclude_modules.clone())?;
        let is_known = |end: &String| known.iter().any(|one| one.name.ends_with(end.as_str()));
        let saved = self.modules_to_save.clone().map(|list| list.into_iter().filter(is_known).collect::<Vec<_>>());
        Ok(Self { target_modules: targets, exclude_modules: excluded, modules_to_save: saved.filter(|list| !list.is_empty()), ..self })
    }
}
