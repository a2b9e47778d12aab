//! Checks that the tensors and groups in `checkpoint.json` agree with the other files and with the settings of the run.

use std::collections::BTreeMap;

use super::Checkpoint;
use super::manifest::{MANIFEST, Manifest};
use super::settings::GROUPS;
use crate::data::Dataset;
use crate::error::{Error, Fault, Refusal, Result, shown, word};
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
    let missing = said.iter().filter(|(key, _)| !found.contains_key(*key));
    let mut refusals: Vec<Refusal> = missing
        .map(|(key, record)| {
            refuse(word!("manifest.tensor.missing"), key)
                .expected(told(record))
                .found("none")
        })
        .collect();
    let unlisted = found.iter().filter(|(key, _)| !said.contains_key(*key));
    refusals.extend(
        unlisted.map(|(key, record)| {
            refuse(word!("manifest.tensor.unlisted"), key).found(told(record))
        }),
    );
    for (key, record) in said {
        let Some(other) = found.get(key) else {
            continue;
        };
        // A path is plain data; everything else follows from the file.
        if *record
            != (TensorRecord {
                path: record.path.clone(),
                ..other.clone()
            })
        {
            refusals.push(
                refuse(word!("manifest.tensor.mismatch"), key)
                    .expected(told(record))
                    .found(told(other)),
            );
        }
    }
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(Error::Refused(refusals))
    }
}

/// Refuses groups that do not fit the tensors of their checkpoint, and steps beyond those of their group.
pub(super) fn check_groups_of(checkpoint: &Checkpoint) -> Result<()> {
    let records = checkpoint.manifest.tensors.clone().into_iter();
    let tensors = records.map(|(key, record)| (key.clone(), record.manifest(&key)));
    let tensors = tensors.collect();
    let steps = checkpoint.steps()?;
    check_groups(
        &tensors,
        &checkpoint.manifest.groups,
        &|key| steps.get(key).copied(),
        MANIFEST,
    )
}

/// Returns the difference between the saved groups and those of the saved settings, if there is one. The residency of tensors and the progress
/// of members do not count.
pub(super) fn groups_fault(manifest: &Manifest) -> Result<Option<Fault>> {
    let saved = &manifest.groups;
    let resolved = group_accounts(&manifest.model, &manifest.train, None, &|_| None)?;
    let rule = "the groups that the saved settings resolve to (groups overrides)";
    if saved.len() != resolved.len() {
        return Ok(Some(Fault::new(
            GROUPS,
            rule,
            format!("{} groups instead of {}", saved.len(), resolved.len()),
        )));
    }
    let differs = |(saved, resolved): &(&ModelStateGroupAssignment, &ModelStateGroupAssignment)| {
        settled(saved) != settled(resolved)
    };
    let found = saved.iter().zip(&resolved).find(differs);
    Ok(found
        .map(|(saved, _)| Fault::new(GROUPS, rule, format!("another {}", shown(&saved.group_id)))))
}

/// Returns a group without the parts that change while it is trained.
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

/// Returns the warning that the data to evaluate on differ from those of the last evaluation.
pub(super) fn other_validation(manifest: &Manifest, dataset: &Dataset) -> Option<Notice> {
    let (saved, found) = (
        manifest.progress.evaluation?.data_digest.to_string(),
        dataset.evaluated_digest(),
    );
    (saved != found)
        .then(|| Notice::filled(word!("checkpoint.validation.changed"), ["", &saved, &found]))
}
