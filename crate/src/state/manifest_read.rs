//! Reads a manifest: an untrusted document of which every value is checked.

use serde_json::Value;

use super::digest::canonical;
use super::findings::{Findings, Steps};
use super::group::Residency;
use super::manifest::{FORMAT, StateManifest, VERSION};
use super::manifest_parts::{NO_DIGEST, base, files, groups, tensors};
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
