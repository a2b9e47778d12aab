//! Parameter groups, which assign settings of optimization to parameters by their names. The first match wins.

use std::collections::BTreeSet;

use super::{ParamInfo, made};
use crate::config::{OptimizerConfig, TrainConfig, glob_matches};
use crate::error::{Error, Fault, Result};

/// Maximum number of parameters without a group that a refusal names.
const MAX_NAMED: usize = 3;

/// A group with its members.
#[derive(Debug)]
pub(super) struct Group {
    /// Path of its rule in the configuration, for faults.
    pub key: String,
    pub pattern: String,
    pub rule: OptimizerConfig,
    pub rate_scale: f64,
    pub frozen: bool,
    /// Indices of its parameters, in the order of the parameters.
    pub members: Vec<usize>,
}

/// A group of a configuration with the parameters that belong to it.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedGroup {
    /// Its pattern; `*` if no groups are configured.
    pub pattern: String,
    /// Its update rule: by default that of the run.
    pub optimizer: OptimizerConfig,
    /// Factor of the learning rate.
    pub learning_rate_scale: f64,
    /// True if its parameters have no gradient, no state and no update.
    pub frozen: bool,
    /// Names of its parameters, in the given order.
    pub members: Vec<String>,
}

/// The groups of `config`, each with its parameters among `names`; without configured groups, one group of everything.
///
/// # Errors
///
/// `optim.groups` for patterns that match nothing and parameters that no pattern matches, all of them listed.
pub(crate) fn resolved_groups(config: &TrainConfig, names: &[&str]) -> Result<Vec<ResolvedGroup>> {
    let (groups, faults) = resolve(config, names);
    if !faults.is_empty() {
        return Err(Error::Groups(faults));
    }
    let resolved = |group: Group| ResolvedGroup {
        members: group
            .members
            .iter()
            .map(|&at| names[at].to_string())
            .collect(),
        pattern: group.pattern,
        optimizer: group.rule,
        learning_rate_scale: group.rate_scale,
        frozen: group.frozen,
    };
    Ok(groups.into_iter().map(resolved).collect())
}

/// The names of the parameters whose rules step each element by itself, or that are frozen, so that they may lie in parts.
///
/// # Errors
///
/// As [`resolved_groups`].
pub(crate) fn stepped_in_parts(
    config: &TrainConfig,
    params: &[ParamInfo],
) -> Result<BTreeSet<String>> {
    let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
    let (groups, faults) = resolve(config, &names);
    if !faults.is_empty() {
        return Err(Error::Groups(faults));
    }
    let members = groups.iter().flat_map(|group| {
        let of = group.members.iter().map(|&at| &params[at]);
        of.filter(|info| group.frozen || made(&group.rule, info).0.takes_parts())
    });
    Ok(members.map(|info| info.name.clone()).collect())
}

/// Sorts parameters into groups; returns them with the faults: patterns that match nothing, and parameters that no pattern matches.
pub(super) fn resolve(config: &TrainConfig, names: &[&str]) -> (Vec<Group>, Vec<Fault>) {
    let mut groups: Vec<Group> = config
        .groups_in_force()
        .iter()
        .enumerate()
        .map(|(index, group)| Group {
            key: if config.groups.is_empty() {
                "optimizer".into()
            } else {
                format!("groups[{index}].optimizer")
            },
            pattern: group.pattern.clone(),
            rule: group.rule(&config.optimizer),
            rate_scale: group.learning_rate_scale,
            frozen: group.frozen,
            members: Vec::new(),
        })
        .collect();
    let mut left = Vec::new();
    for (at, name) in names.iter().enumerate() {
        match groups
            .iter_mut()
            .find(|group| glob_matches(&group.pattern, name))
        {
            Some(group) => group.members.push(at),
            None => left.push(*name),
        }
    }
    let rule = "a pattern that matches parameters of no earlier group";
    let empty = groups
        .iter()
        .enumerate()
        .filter(|(_, group)| group.members.is_empty());
    let mut faults: Vec<Fault> = empty
        .map(|(index, group)| Fault::new(format!("groups[{index}].pattern"), rule, &group.pattern))
        .collect();
    if !left.is_empty() {
        let named = left[..left.len().min(MAX_NAMED)].join(", ");
        let more = if left.len() > MAX_NAMED {
            format!(" and {} more", left.len() - MAX_NAMED)
        } else {
            String::new()
        };
        faults.push(Fault::new(
            "groups",
            "a pattern for every parameter (a last group * takes the rest)",
            format!("none for {named}{more}"),
        ));
    }
    (groups, faults)
}
