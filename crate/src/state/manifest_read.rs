//! Reads a manifest: an untrusted document of which every value is checked.

use std::fmt::Display;

use serde_json::Value;

use super::check::MAX_COUNT;
use super::digest::canonical;
use super::findings::{Findings, Steps};
use super::group::Residency;
use super::manifest::{FORMAT, StateManifest, VERSION};
use super::manifest_parts::{base, files, groups, tensors};
use crate::error::{Error, Refusal, Result, Word, word};
use crate::formats::{Digest, DocumentError, Fields, Json, json_document, json_typed};

const MAX_DIMENSIONS: usize = 8;
const MAX_KEY_BYTES: usize = 1_024;
/// Maximum length of a profile contract as canonical JSON.
const MAX_CONTRACT_BYTES: usize = 64 << 10;

const RESIDENCY: Word = word!("state.group.residency");
const STEPS: Steps = &[&[RESIDENCY]];

impl StateManifest {
    /// Reads a manifest from `text`, found in `artifact`. [`check_groups`](crate::state::check_groups) checks that its groups are sound.
    ///
    /// # Errors
    /// `manifest.json` with the path of the first value that is not as it must be; `manifest.version` for a newer version;
    /// `state.group.residency` for an unknown residency.
    pub fn read(text: &str, artifact: &str) -> Result<Self> {
        Self::of_json(
            json_document(text).map_err(|wrong| refused(&wrong, artifact))?,
            artifact,
        )
    }

    /// Reads a document that was scanned; otherwise like [`Self::read`].
    pub(crate) fn of_json(document: Json<'_>, artifact: &str) -> Result<Self> {
        let wrong = |wrong: DocumentError| refused(&wrong, artifact);
        let mut fields = Fields::new(document, "").map_err(wrong)?;
        let version = version(&mut fields).map_err(wrong)?;
        if version > VERSION {
            let newer = Refusal::new(word!("manifest.version"))
                .of(artifact)
                .expected(format!("at most {VERSION}"))
                .found(version);
            return Err(newer.hint("a newer version of tabtune wrote it").into());
        }
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

fn wrong_if(wrong: bool, path: &str, found: impl Display) -> Result<(), DocumentError> {
    if wrong {
        Err(DocumentError {
            path: path.to_string(),
            found: found.to_string(),
        })
    } else {
        Ok(())
    }
}

/// Returns the version of a document that is a manifest.
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
    for group in groups.list().into_iter().flatten() {
        let [id, policy, residency] = group.fields(["group_id", "residency_policy", "residency"]);
        let [step, idle] = policy.unwrap_or(Json::Null).fields(["step", "idle"]);
        for word in [step, idle, residency]
            .into_iter()
            .flatten()
            .filter(|word| matches!(word, Json::Text(_)))
        {
            if json_typed::<Residency>(word, "").is_err() {
                let (id, word) = (
                    id.and_then(Json::text).unwrap_or_default(),
                    word.text().unwrap_or_default(),
                );
                findings.add(RESIDENCY, &id, |refusal| {
                    refusal.expected("host, device or offloaded").found(word)
                });
            }
        }
    }
    findings.result()
}

/// Returns whether a value contains an integer that JavaScript does not hold exactly.
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
            key.is_empty() || key.len() > MAX_KEY_BYTES,
            &path,
            "a key of 0 or more than 1,024 bytes",
        )?;
        wrong_if(
            tensor.shape.len() > MAX_DIMENSIONS,
            &path,
            "more than 8 dimensions",
        )?;
        tensor.shape.iter().try_for_each(|&dim| exact(&path, dim))?;
    }
    for (at, scheduler) in manifest
        .groups
        .iter()
        .enumerate()
        .filter_map(|(at, group)| Some((at, group.scheduler.as_ref()?)))
    {
        let path = format!("groups/{at}/scheduler");
        exact(&path, scheduler.start.unwrap_or(0))?;
        wrong_if(
            inexact(&scheduler.config),
            &path,
            "an integer beyond 2^53 - 1",
        )?;
    }
    manifest
        .base
        .iter()
        .flat_map(|base| &base.files)
        .try_for_each(|file| exact("base/files", file.bytes))?;
    if let Some(tokenizer) = &manifest.tokenizer {
        exact("tokenizer/record/vocab_size", tokenizer.record.vocab_size)?;
        tokenizer
            .assets
            .iter()
            .try_for_each(|asset| exact("tokenizer/assets", asset.bytes))?;
    }
    if let Some(contract) = &manifest.profile_contract {
        wrong_if(
            inexact(contract),
            "profile_contract",
            "an integer beyond 2^53 - 1",
        )?;
        let length = canonical(contract).map_or(usize::MAX, |text| text.len());
        wrong_if(
            length > MAX_CONTRACT_BYTES,
            "profile_contract",
            "more than 64 KiB",
        )?;
    }
    for file in manifest.files.iter().flatten() {
        exact("files", file.bytes)?;
        let hex = file
            .pieces
            .iter()
            .all(|piece| Digest::from_hex(piece).is_some());
        wrong_if(
            !hex,
            "files",
            "a piece that is no SHA-256 in lower-case hex",
        )?;
    }
    Ok(())
}
