//! Reads a manifest: an untrusted document of which every value is checked.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::digest::canonical;
use super::findings::{Findings, Steps};
use super::group::{ModelStateGroupAssignment, Residency};
use super::manifest::{FORMAT, StateManifest, TensorRecord, VERSION};
use super::origin::Base;
use super::receipt::MAX_COUNT;
use crate::error::{Error, Refusal, Result, Word, word};
use crate::formats::{
    Digest, DocumentError, Fields, Json, json_document, json_typed, refuse_if, wrong_if,
};

const MAX_DIMENSIONS: usize = 8;
const MAX_KEY_BYTES: usize = 1_024;
/// Maximum length of a profile contract as canonical JSON.
const MAX_CONTRACT_BYTES: usize = 64 << 10;

/// Found in place of an integer that JavaScript holds exactly.
const INEXACT: &str = "an integer beyond 2^53 - 1";

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
const NO_DIGEST: &str = "a piece that is no SHA-256 in lower-case hex";

const RESIDENCY: Word = word!("state.group.residency");
const STEPS: Steps = &[&[RESIDENCY]];

impl StateManifest {
    /// Reads a manifest from `text`, found in `artifact`. [`check_groups`](crate::state::check_groups) checks that its groups are sound.
    ///
    /// # Errors
    /// `manifest.json` with the path of the first value that is not as it must be; `manifest.version` for a newer version;
    /// `state.group.residency` for an unknown residency.
    pub fn read(text: &str, artifact: &str) -> Result<Self> {
        let document = json_document(text).map_err(|wrong| refused(&wrong, artifact))?;
        Self::of_json(document, artifact)
    }

    /// Reads a document that was scanned; otherwise like [`Self::read`].
    pub(crate) fn of_json(document: Json<'_>, artifact: &str) -> Result<Self> {
        let wrong = |wrong: DocumentError| refused(&wrong, artifact);
        let mut fields = Fields::new(document).map_err(wrong)?;
        let version = version(&mut fields).map_err(wrong)?;
        refuse_if(version > VERSION, || {
            Refusal::new(word!("manifest.version"))
                .of(artifact)
                .expected(format!("at most {VERSION}"))
                .found(version)
                .hint("a newer version of tabtune wrote it")
        })?;
        check_residency(fields.value("groups"), artifact)?;
        let manifest = Self::of_fields(fields).map_err(wrong)?;
        check_limits(&manifest).map_err(wrong)?;
        Ok(manifest)
    }

    fn of_fields(mut fields: Fields<'_>) -> Result<Self, DocumentError> {
        let tensors = tensors(&mut fields)?;
        let groups = groups(&mut fields, tensors.len())?;
        let manifest = Self {
            base: base(&mut fields)?,
            tokenizer: fields.take("tokenizer")?,
            profile_contract: fields.take("profile_contract")?,
            preferred_formats: fields.take("preferred_formats")?,
            digests: fields.take("digests")?,
            files: files(&mut fields)?,
            ..Self::new(fields.take("identity")?, tensors, groups)
        };
        fields.end()?;
        Ok(manifest)
    }
}

fn refused(wrong: &DocumentError, artifact: &str) -> Error {
    Refusal::new(word!("manifest.json"))
        .of(artifact)
        .subject(&wrong.path)
        .found(&wrong.found)
        .into()
}

/// Reads the version of a document that is a manifest.
fn version(fields: &mut Fields<'_>) -> Result<u64, DocumentError> {
    let format: Option<String> = fields.take("format")?;
    wrong_if(
        format.as_deref() != Some(FORMAT),
        "format",
        format.unwrap_or_default(),
    )?;
    let version = fields.take("version")?;
    wrong_if(version == 0, "version", version)?;
    Ok(version)
}

/// Checks that the residencies of `groups` are known words. Values that are no texts are left to the types.
fn check_residency(groups: Json<'_>, artifact: &str) -> Result<()> {
    let mut findings = Findings::new(artifact, STEPS);
    for group in groups.items() {
        let [id, policy, residency] = group.fields(["group_id", "residency_policy", "residency"]);
        let [step, idle] = policy.unwrap_or(Json::Null).fields(["step", "idle"]);
        for word in [step, idle, residency].into_iter().flatten() {
            let unknown = json_typed::<Residency>(word, "").is_err();
            if let Some(found) = word.text().filter(|_| unknown) {
                let id = id.and_then(Json::text).unwrap_or_default();
                findings.differs(RESIDENCY, &id, "host, device or offloaded", found);
            }
        }
    }
    findings.result()
}

/// True if a value contains an integer that JavaScript does not hold exactly.
fn inexact(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.as_u64().is_some_and(|number| number > MAX_COUNT)
                || number
                    .as_i64()
                    .is_some_and(|number| number.unsigned_abs() > MAX_COUNT)
        }
        Value::Array(items) => items.iter().any(inexact),
        Value::Object(fields) => fields.values().any(inexact),
        _ => false,
    }
}

/// Checks the rules that the types do not express: numbers that JSON holds exactly, lengths, hex.
fn check_limits(manifest: &StateManifest) -> Result<(), DocumentError> {
    let exact = |path: &str, count: u64| wrong_if(count > MAX_COUNT, path, count);
    for (key, tensor) in &manifest.tensors {
        let path = format!("tensors/{key}");
        wrong_if(
            !(1..=MAX_KEY_BYTES).contains(&key.len()),
            &path,
            "a key of 0 or more than 1,024 bytes",
        )?;
        let has_many = tensor.shape.len() > MAX_DIMENSIONS;
        wrong_if(has_many, &path, "more than 8 dimensions")?;
        tensor.shape.iter().try_for_each(|&dim| exact(&path, dim))?;
    }
    for (at, group) in manifest.groups.iter().enumerate() {
        let Some(scheduler) = &group.scheduler else {
            continue;
        };
        let path = format!("groups/{at}/scheduler");
        exact(&path, scheduler.start.unwrap_or(0))?;
        wrong_if(inexact(&scheduler.config), &path, INEXACT)?;
    }
    for file in manifest.base.iter().flat_map(|base| &base.files) {
        exact("base/files", file.bytes)?;
    }
    if let Some(tokenizer) = &manifest.tokenizer {
        exact("tokenizer/record/vocab_size", tokenizer.record.vocab_size)?;
        let mut assets = tokenizer.assets.iter();
        assets.try_for_each(|asset| exact("tokenizer/assets", asset.bytes))?;
    }
    if let Some(contract) = &manifest.profile_contract {
        wrong_if(inexact(contract), "profile_contract", INEXACT)?;
        let length = canonical(contract).map_or(usize::MAX, |text| text.len());
        let is_long = length > MAX_CONTRACT_BYTES;
        wrong_if(is_long, "profile_contract", "more than 64 KiB")?;
    }
    for file in manifest.files.iter().flatten() {
        exact("files", file.bytes)?;
        let mut digests = file.pieces.iter().map(|piece| Digest::from_hex(piece));
        let is_wrong = digests.any(|digest| digest.is_none());
        wrong_if(is_wrong, "files", NO_DIGEST)?;
    }
    Ok(())
}

/// Number of items of a list, counted before it is read: an item in memory may take many times its text, and a list without a limit would take
/// as much memory as its file asks for.
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
