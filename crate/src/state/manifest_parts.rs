//! Reads the parts of a manifest that may be long. Before a list is read, its items are counted: an item in memory may take many times its
//! text, and a list without a limit would take as much memory as its file asks for.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::group::ModelStateGroupAssignment;
use super::manifest::TensorRecord;
use crate::formats::{DocumentError, Fields, Json, json_typed};
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

fn refuse_if(wrong: bool, path: &str, found: &str) -> Result<(), DocumentError> {
    if wrong {
        Err(DocumentError::new(path, found))
    } else {
        Ok(())
    }
}

fn items(value: Option<Json<'_>>) -> usize {
    value.and_then(Json::list).map_or(0, Iterator::count)
}

/// Reads the field `tensors`.
pub(crate) fn tensors(
    fields: &mut Fields<'_>,
) -> Result<BTreeMap<String, TensorRecord>, DocumentError> {
    let value = fields.value("tensors");
    let mut tensors = BTreeMap::new();
    for (key, record) in value
        .object()
        .ok_or_else(|| DocumentError::new("tensors", "no object"))?
    {
        let path = format!("tensors/{key}");
        refuse_if(record.len() > MAX_RECORD_BYTES, &path, "more than 64 KiB")?;
        let names = MAX_NAMES + key.bytes().filter(|&byte| byte == b'.').count();
        refuse_if(
            items(record.get("path")) > names,
            &path,
            "a path of too many names",
        )?;
        tensors.insert(key.into_owned(), json_typed(record, &path)?);
    }
    Ok(tensors)
}

/// Reads the field `groups` of a manifest with this number of tensors.
pub(crate) fn groups(
    fields: &mut Fields<'_>,
    tensors: usize,
) -> Result<Vec<ModelStateGroupAssignment>, DocumentError> {
    let list = fields
        .value("groups")
        .list()
        .ok_or_else(|| DocumentError::new("groups", "no list"))?;
    refuse_if(
        list.clone().count() > MAX_GROUPS,
        "groups",
        "more than 10,000 groups",
    )?;
    let mut members = 0;
    let mut groups = Vec::new();
    for (at, group) in list.enumerate() {
        let path = format!("groups/{at}");
        let [optimizer, scheduler, names, of] =
            group.fields(["optimizer", "scheduler", "model_tree_path", "members"]);
        for (part, key) in [(optimizer, "optimizer"), (scheduler, "scheduler")] {
            let part = part.unwrap_or(Json::Null);
            refuse_if(
                part.len() > MAX_RECORD_BYTES,
                &format!("{path}/{key}"),
                "more than 64 KiB",
            )?;
            refuse_if(
                part.values() > MAX_SETTINGS,
                &format!("{path}/{key}"),
                "more than 64 settings",
            )?;
        }
        refuse_if(items(names) > MAX_NAMES, &path, "a path of too many names")?;
        members += items(of);
        refuse_if(
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
    refuse_if(
        items(value.get("files")) > MAX_FILES,
        "base",
        "more than 20,000 files",
    )?;
    json_typed(value, "base")
}

/// Reads the field `files`; if it is null or absent, it has the value that `T` reads from null.
pub(crate) fn files<T: DeserializeOwned>(fields: &mut Fields<'_>) -> Result<T, DocumentError> {
    let value = fields.value("files");
    refuse_if(
        items(Some(value)) > MAX_FILES,
        "files",
        "more than 20,000 files",
    )?;
    for file in value.list().into_iter().flatten() {
        let mut pieces = file
            .get("pieces")
            .and_then(Json::list)
            .into_iter()
            .flatten();
        let digest =
            |piece: Json<'_>| matches!(piece, Json::Text(text) if text.len() == DIGEST_CHARACTERS);
        refuse_if(
            !pieces.all(digest),
            "files",
            "a piece that is no SHA-256 in lower-case hex",
        )?;
    }
    json_typed(value, "files")
}
