//! Selects a part of a state dict, under other names (crate/FORMATS.md, "Selection"): keys and groups only, no payload.

use std::collections::{BTreeMap, BTreeSet};

use super::findings::{Findings, Steps, listed};
use super::group::ModelStateGroupAssignment;
use super::request::{
    GroupPolicy, PortableModelImportRequest, PortableTensorImportSelection, PortableTensorKeyRemap,
};
use super::tensor_manifest::ModelStateTensorManifest;
use crate::config::{check_glob, glob_matches};
use crate::error::{Result, Warning, Word, word};

/// Maximum length of a tensor's name in bytes.
const MAX_NAME_BYTES: usize = 1_024;

const INCLUDE_MISSING: Word = word!("select.include.missing");
const PATTERN_INVALID: Word = word!("select.pattern.invalid");
const PATTERN_UNMATCHED: Word = word!("select.pattern.unmatched");
const EXCLUDE_UNKNOWN: Word = word!("select.exclude.unknown");
const SOURCE_MISSING: Word = word!("remap.source.missing");
const SOURCE_UNSELECTED: Word = word!("remap.source.unselected");
const TARGET_INVALID: Word = word!("remap.target.invalid");
const TARGET_COLLISION: Word = word!("remap.target.collision");
const GROUP_INCOMPLETE: Word = word!("select.group.incomplete");
const RESULT_EMPTY: Word = word!("select.result.empty");

const STEPS: Steps = &[
    &[INCLUDE_MISSING, PATTERN_INVALID],
    &[EXCLUDE_UNKNOWN],
    &[SOURCE_MISSING],
    &[TARGET_INVALID, TARGET_COLLISION],
    &[GROUP_INCOMPLETE],
];

type Tensors = BTreeMap<String, ModelStateTensorManifest>;

/// Result of applying a request to a state dict.
#[derive(Debug, Clone, PartialEq)]
pub struct Selected {
    /// The tensors, ascending by their new keys.
    pub entries: Vec<SelectedTensor>,
    /// The groups in their order, with the new keys.
    pub groups: Vec<ModelStateGroupAssignment>,
    /// Report of the tensors and groups that were taken or left.
    pub report: SelectionReport,
    /// Warnings of the selection.
    pub warnings: Vec<Warning>,
}

/// A tensor that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedTensor {
    /// Its key in the source.
    pub source_key: String,
    /// The tensor under its new key; its path is that of the source.
    pub tensor: ModelStateTensorManifest,
}

/// Report of the tensors and groups that a selection took and left ([example](crate::portable)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SelectionReport {
    /// New keys of the tensors that were taken, ascending.
    pub admitted: Vec<String>,
    /// Keys of the tensors that were left, ascending.
    pub dropped: Vec<String>,
    /// Old and new key of each renamed tensor, ascending by the old one.
    pub renamed: Vec<(String, String)>,
    /// Names of the groups that were taken, in their order.
    pub groups_admitted: Vec<String>,
    /// Names of the groups that were left, in their order.
    pub groups_dropped: Vec<String>,
}

/// Selects what `request` asks for. Equal tensors and requests give equal results, whatever the order of their lists.
///
/// # Errors
/// `select.include.missing` and `select.pattern.invalid`; `select.exclude.unknown`; `remap.source.missing`; `remap.target.invalid` and
/// `remap.target.collision`, which names all sources; `select.group.incomplete`, which names all missing keys: all findings, in this order
/// and then by subject.
pub fn select(
    tensors: &Tensors,
    groups: &[ModelStateGroupAssignment],
    request: &PortableModelImportRequest,
    artifact: &str,
) -> Result<Selected> {
    let mut findings = Findings::new(artifact, STEPS);
    let mut warnings = Vec::new();
    let weights_only = request.group_policy == GroupPolicy::WeightsOnly;
    let mut taken = candidates(tensors, &request.selection, &mut findings, &mut warnings);
    if weights_only {
        taken.retain(|key| !tensors[*key].role.is_state());
    }
    let names = new_names(
        tensors,
        &request.key_remap,
        &taken,
        &mut findings,
        &mut warnings,
    );
    check_targets(&names, &mut findings);
    let (kept, left): (Vec<_>, Vec<_>) = groups
        .iter()
        .partition(|group| !weights_only && stays(group, &taken, &mut findings));
    findings.result()?;
    if taken.is_empty() {
        warnings.push(Warning::new(RESULT_EMPTY, artifact));
    }
    let mut entries: Vec<SelectedTensor> = names
        .iter()
        .map(|(key, name)| renamed_tensor(&tensors[*key], name))
        .collect();
    entries.sort_by(|a, b| a.tensor.state_key.cmp(&b.tensor.state_key));
    let report = SelectionReport {
        admitted: entries
            .iter()
            .map(|entry| entry.tensor.state_key.clone())
            .collect(),
        dropped: tensors
            .keys()
            .filter(|key| !taken.contains(key.as_str()))
            .cloned()
            .collect(),
        renamed: names
            .iter()
            .filter(|(key, name)| *key != name)
            .map(|(key, name)| (key.to_string(), name.clone()))
            .collect(),
        groups_admitted: kept.iter().map(|group| group.group_id.clone()).collect(),
        groups_dropped: left.iter().map(|group| group.group_id.clone()).collect(),
    };
    let groups = kept
        .into_iter()
        .map(|group| renamed_group(group, &names))
        .collect();
    Ok(Selected {
        entries,
        groups,
        report,
        warnings,
    })
}

/// Keys that are taken: the includes or everything, without the excludes.
fn candidates<'a>(
    tensors: &'a Tensors,
    selection: &PortableTensorImportSelection,
    findings: &mut Findings<'_>,
    warnings: &mut Vec<Warning>,
) -> BTreeSet<&'a str> {
    for key in selection
        .include_state_keys
        .iter()
        .filter(|key| !tensors.contains_key(*key))
    {
        findings.lacks(INCLUDE_MISSING, key, "a tensor of the source");
    }
    let everything =
        selection.include_state_keys.is_empty() && selection.include_patterns.is_empty();
    let mut patterns = [&selection.include_patterns, &selection.exclude_patterns]
        .map(|given| given.iter().collect::<BTreeSet<_>>());
    let mut unmatched = BTreeSet::new();
    for pattern in patterns[0].union(&patterns[1]) {
        if !check_glob(pattern) {
            findings.lacks(
                PATTERN_INVALID,
                pattern,
                "1 to 1,024 bytes, at most 1,024 alternatives",
            );
        } else if !tensors.keys().any(|key| glob_matches(pattern, key)) {
            unmatched.insert(pattern);
        }
    }
    warnings.extend(
        unmatched
            .into_iter()
            .map(|pattern| Warning::new(PATTERN_UNMATCHED, pattern)),
    );
    for key in selection
        .exclude_state_keys
        .iter()
        .filter(|key| !tensors.contains_key(*key))
    {
        if selection.allow_unknown_excludes {
            warnings.push(Warning::new(EXCLUDE_UNKNOWN, key));
        } else {
            findings.lacks(EXCLUDE_UNKNOWN, key, "a tensor of the source");
        }
    }
    patterns
        .iter_mut()
        .for_each(|patterns| patterns.retain(|pattern| check_glob(pattern)));
    let [include, exclude] = patterns;
    let named = |keys: &BTreeSet<String>, patterns: &BTreeSet<&String>, key: &str| {
        keys.contains(key) || patterns.iter().any(|pattern| glob_matches(pattern, key))
    };
    let taken = |key: &&str| {
        (everything || named(&selection.include_state_keys, &include, key))
            && !named(&selection.exclude_state_keys, &exclude, key)
    };
    tensors.keys().map(String::as_str).filter(taken).collect()
}

/// New key of each tensor that is taken.
fn new_names<'a>(
    tensors: &Tensors,
    remap: &PortableTensorKeyRemap,
    taken: &BTreeSet<&'a str>,
    findings: &mut Findings<'_>,
    warnings: &mut Vec<Warning>,
) -> BTreeMap<&'a str, String> {
    for key in remap.source_to_target.keys() {
        if !tensors.contains_key(key) {
            findings.lacks(SOURCE_MISSING, key, "a tensor of the source");
        } else if !taken.contains(key.as_str()) {
            warnings.push(Warning::new(SOURCE_UNSELECTED, key));
        }
    }
    let new = |key: &str| {
        let along = || {
            let (parameter, word) = key
                .rsplit_once(':')
                .filter(|_| remap.rename_state && tensors[key].role.is_state())?;
            Some(format!("{}:{word}", remap.source_to_target.get(parameter)?))
        };
        remap
            .source_to_target
            .get(key)
            .cloned()
            .or_else(along)
            .unwrap_or_else(|| key.to_string())
    };
    taken.iter().map(|key| (*key, new(key))).collect()
}

/// Checks that new keys are valid names, and that each has one source.
fn check_targets(names: &BTreeMap<&str, String>, findings: &mut Findings<'_>) {
    let mut sources: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, name) in names {
        sources.entry(name).or_default().push(key);
    }
    for (name, sources) in sources {
        let renamed = sources.iter().any(|key| *key != name);
        if renamed
            && (name.is_empty()
                || name.len() > MAX_NAME_BYTES
                || name.chars().any(char::is_control))
        {
            findings.lacks(
                TARGET_INVALID,
                name,
                "1 to 1,024 bytes without control characters",
            );
        }
        if sources.len() > 1 {
            findings.add(TARGET_COLLISION, name, |mut refusal| {
                refusal.found = Some(listed(sources));
                refusal.expected("one source")
            });
        }
    }
}

/// True if all tensors of a group are taken; a part of them is a finding.
fn stays(
    group: &ModelStateGroupAssignment,
    taken: &BTreeSet<&str>,
    findings: &mut Findings<'_>,
) -> bool {
    let keys = || group.members.iter().flat_map(|member| member.keys());
    let missing: Vec<&str> = keys().filter(|key| !taken.contains(key)).collect();
    if !missing.is_empty() && missing.len() < keys().count() {
        findings.add(GROUP_INCOMPLETE, &group.group_id, |mut refusal| {
            refusal.found = Some(listed(missing.iter().copied()));
            refusal
                .expected("all tensors of the group, or none")
                .hint("weights_only takes weights without their groups")
        });
    }
    missing.is_empty()
}

fn renamed_tensor(tensor: &ModelStateTensorManifest, name: &str) -> SelectedTensor {
    let renamed = ModelStateTensorManifest {
        state_key: name.to_string(),
        ..tensor.clone()
    };
    SelectedTensor {
        source_key: tensor.state_key.clone(),
        tensor: renamed,
    }
}

fn renamed_group(
    group: &ModelStateGroupAssignment,
    names: &BTreeMap<&str, String>,
) -> ModelStateGroupAssignment {
    let mut group = group.clone();
    let keys = group
        .members
        .iter_mut()
        .flat_map(|member| std::iter::once(&mut member.parameter).chain(member.state.values_mut()));
    for key in keys {
        if let Some(name) = names.get(key.as_str()) {
            key.clone_from(name);
        }
    }
    group
}
