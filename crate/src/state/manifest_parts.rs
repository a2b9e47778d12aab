//! Reads the parts of a manifest that may be long. Before a list is read, its items are counted: an item in memory may take many times its
//! text, and a list without a limit would take as much memory as its file asks for.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::group::ModelStateGroupAssignment;
use super::manifest::TensorRecord;
use crate::formats::{DocumentError, Fields, Json, json_typed, wrong_if};
use crate::state::Base;

/// Maximum length of a tensor's record, and of the settings of an optimizer and a schedule.
const MAX_RECORD_BYTES: usize = 64 << 10;
/// Maximum number of names in a path, beyond one for each dot of the key.
const MAX_NAMES: usize = 32;
const MAX_GROUPS: usize = 10_000;
/// Maximum number of hyperparameters, and of values in a schedule's settings.
const MAX_SETTINGS: usize = 64;
const MAX_FILES: usize = 20_000;
const DIGEST_CHARACTERS: usize = 64;
/// Found in place of the digest of a piece.
pub(super) const NO_DIGEST: &str = "a piece that is no SHA-256 in lower-case hex";

fn items(value: Option<Json<'_>>) -> usize {
    value.map_or(0, |value| value.items().count())
}

/// Reads the field `tensors`.
pub(crate) fn tensors(
    fields: &mut Fields<'_>,
) -> Result<BTreeMap<String, TensorRecord>, DocumentError> {
    let value = fields.value("tensors");
    wrong_if(value.object().is_none(), "tensors", "no object")?;
    let mut tensors = BTreeMap::new();
    for (key, record) in value.entries() {
        let path = format!("tensors/{key}");
        wrong_if(record.len() > MAX_RECORD_BYTES, &path, "more than 64 KiB")?;
        let names = MAX_NAMES + key.matches('.').count();
        let path_is_long = items(record.get("path")) > names;
        wrong_if(path_is_long, &path, "a path of too many names")?;
        tensors.insert(key.into_owned(), json_typed(record, &path)?);
    }
    Ok(tensors)
}

/// Reads the field `groups` of a manifest with this number of tensors.
pub(crate) fn groups(
    fields: &mut Fields<'_>,
    tensors: usize,
) -> Result<Vec<ModelStateGroupAssignment>, DocumentError> {
    let value = fields.value("groups");
    let list = value
        .list()
        .ok_or_else(|| DocumentError::new("groups", "no list"))?;
    let are_many = list.clone().count() > MAX_GROUPS;
    wrong_if(are_many, "groups", "more than 10,000 groups")?;
    let mut members = 0;
    let mut groups = Vec::new();
    for (at, group) in list.enumerate() {
        let path = format!("groups/{at}");
        let [optimizer, scheduler, names, of] =
            group.fields(["optimizer", "scheduler", "model_tree_path", "members"]);
        for (part, key) in [(optimizer, "optimizer"), (scheduler, "scheduler")] {
            let (part, path) = (part.unwrap_or(Json::Null), format!("{path}/{key}"));
            wrong_if(part.len() > MAX_RECORD_BYTES, &path, "more than 64 KiB")?;
            wrong_if(part.values() > MAX_SETTINGS, &path, "more than 64 settings")?;
        }
        wrong_if(items(names) > MAX_NAMES, &path, "a path of too many names")?;
        members += items(of);
        wrong_if(
            members > tensors,
            &path,
            "more members than there are tensors",
        )?;
        groups.push(json_typed(group, &path)?);
    }
    Ok(groups)
}

/// Reads the field `base`.
pub(crate) fn base(fields: &mut Fields<'_>) -> Result<Option<Base>, DocumentError> {
    let value = fields.value("base");
    let are_many = items(value.get("files")) > MAX_FILES;
    wrong_if(are_many, "base", "more than 20,000 files")?;
    json_typed(value, "base")
}

/// Reads the field `files`; if it is null or absent, it has the value that `T` reads from null.
pub(crate) fn files<T: DeserializeOwned>(fields: &mut Fields<'_>) -> Result<T, DocumentError> {
    let value = fields.value("files");
    let are_many = value.items().count() > MAX_FILES;
    wrong_if(are_many, "files", "more than 20,000 files")?;
    let mut pieces = value
        .items()
        .filter_map(|file| file.get("pieces"))
        .flat_map(Json::items);
    let is_wrong = |piece| !matches!(piece, Json::Text(text) if text.len() == DIGEST_CHARACTERS);
    wrong_if(pieces.any(is_wrong), "files", NO_DIGEST)?;
    json_typed(value, "files")
}
