//! Checks that the tensors and groups in `checkpoint.json` agree with the other files and with the settings of the run.

use std::collections::BTreeMap;

use super::Checkpoint;
use super::manifest::{MANIFEST, Manifest};
use super::settings::GROUPS;
use crate::data::Dataset;
use crate::error::{Fault, Refusal, Result, refuse_all, shown, word};
use crate::state::{ModelStateGroupAssignment, TensorRecord, check_groups};
use crate::train::{Notice, group_accounts};

/// Refuses tensors that the manifest lists and the files do not have, those that it does not list, and those of another dtype, shape, file or
/// role; all of them are listed.
pub(super) fn check_tensors(
    said: &BTreeMap<String, TensorRecord>,
    found: &BTreeMap<String, TensorRecord>,
) -> Result<()> {
    let refuse = |code, key: &str| Refusal::new(code).of(MANIFEST).subject(key);
    let told = |record: &TensorRecord| {
        format!(
            "{} {:?} in {} as {}",
            record.dtype, record.shape, record.file, record.role
        )
    };
    let (mut refusals, mut mismatches) = (Vec::new(), Vec::new());
    for (key, record) in said {
        let Some(other) = found.get(key) else {
            let refusal = refuse(word!("manifest.tensor.missing"), key);
            refusals.push(refusal.expected(told(record)).found("none"));
            continue;
        };
        // A path is plain data; everything else follows from the file.
        let expected = TensorRecord {
            path: record.path.clone(),
            ..other.clone()
        };
        if *record != expected {
            let refusal = refuse(word!("manifest.tensor.mismatch"), key);
            mismatches.push(refusal.expected(told(record)).found(told(other)));
        }
    }
    for (key, record) in found.iter().filter(|(key, _)| !said.contains_key(*key)) {
        let refusal = refuse(word!("manifest.tensor.unlisted"), key);
        refusals.push(refusal.found(told(record)));
    }
    refusals.extend(mismatches);
    refuse_all(refusals)
}

/// Refuses groups that do not fit the tensors of their checkpoint, and steps beyond those of their group.
pub(super) fn check_groups_of(checkpoint: &Checkpoint) -> Result<()> {
    let Manifest {
        tensors, groups, ..
    } = &checkpoint.manifest;
    let tensors = tensors
        .iter()
        .map(|(key, record)| (key.clone(), record.clone().manifest(key)))
        .collect();
    let steps = checkpoint.steps()?;
    check_groups(&tensors, groups, &|key| steps.get(key).copied(), MANIFEST)
}

/// The difference between the saved groups and those of the saved settings, if there is one. The residency of tensors and the progress
/// of members do not count.
pub(super) fn groups_fault(manifest: &Manifest) -> Result<Option<Fault>> {
    let saved = &manifest.groups;
    let resolved = group_accounts(&manifest.model, &manifest.train, None, &|_| None)?;
    let rule = "the groups that the saved settings resolve to (groups overrides)";
    if saved.len() != resolved.len() {
        let found = format!("{} groups instead of {}", saved.len(), resolved.len());
        return Ok(Some(Fault::new(GROUPS, rule, found)));
    }
    let mut pairs = saved.iter().zip(&resolved);
    let other = pairs.find(|(saved, resolved)| settled(saved) != settled(resolved));
    Ok(other.map(|(saved, _)| {
        let found = format!("another {}", shown(&saved.group_id));
        Fault::new(GROUPS, rule, found)
    }))
}

/// A group without the parts that change while it is trained.
fn settled(group: &ModelStateGroupAssignment) -> ModelStateGroupAssignment {
    let mut group = ModelStateGroupAssignment {
        applied_steps: 0,
        residency_policy: None,
        residency: None,
        ..group.clone()
    };
    group
        .members
        .iter_mut()
        .for_each(|member| member.state.clear());
    if let Some(scheduler) = &mut group.scheduler {
        scheduler.start = None;
    }
    group
}

/// The warning that the data to evaluate on differ from those of the last evaluation.
pub(super) fn other_validation(manifest: &Manifest, dataset: &Dataset) -> Option<Notice> {
    let (saved, found) = (
        manifest.progress.evaluation?.data_digest.to_string(),
        dataset.evaluated_digest(),
    );
    (saved != found)
        .then(|| Notice::filled(word!("checkpoint.validation.changed"), ["", &saved, &found]))
}
