//! `checkpoint.json`: what it says, and the versions of it that are read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::corrupt;
use super::earlier::{complete_groups, complete_settings};
use super::pieces::count_of;
use crate::bundle::{
    Base, ByteSource, Fields, Identity, Json, ModelStateGroupAssignment, TensorRecord, TokenizerAccount, Wrong, base_of, files_of,
    groups_of, json_document, json_typed, tensors_of,
};
use crate::config::{ModelConfig, Precision, TrainConfig};
use crate::data::LoaderState;
use crate::error::{Error, Result};
use crate::gpu::launch;
use crate::train::{Progress, check_rate};

/// Newest format that this version reads and the one it writes.
pub const FORMAT_VERSION: u64 = 4;
/// The document that makes a checkpoint complete.
pub const MANIFEST: &str = "checkpoint.json";
pub(super) const FORMAT: &str = "tabtune.checkpoint";
/// Maximum number of tensors in a file.
const MAX_TENSORS: usize = 100_000;
/// Maximum size of a manifest.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;
/// Maximum count: JavaScript's numbers are exact up to it.
const MAX_COUNT: u64 = (1 << 53) - 1;

/// One file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRecord {
    /// File name.
    pub name: String,
    /// Size.
    pub bytes: u64,
    /// SHA-256 of each piece of 8 MiB, the last one shorter, in lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<Vec<String>>,
    /// SHA-256 of the whole file, lower-case hex: version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// What the bits of a run depend on in addition to its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// Version of tabtune.
    pub version: String,
    /// Name of the adapter; empty if it is not known.
    pub adapter: String,
    /// Which kernels run: `gpu` or `software`.
    pub kernels: String,
}

impl Environment {
    /// The current environment, on a device whose adapter has this name.
    pub fn on(device: &burn::tensor::Device, adapter: &str) -> Self {
        let kernels = if launch::is_software(device) { "software" } else { "gpu" };
        Self { version: env!("CARGO_PKG_VERSION").into(), adapter: adapter.into(), kernels: kernels.into() }
    }

    /// How `now` differs, in words; `None` if the same bits are to be expected.
    pub(super) fn differs(&self, now: &Self) -> Option<String> {
        let told = !self.adapter.is_empty() && !now.adapter.is_empty();
        let pairs = [
            ("tabtune", &self.version, &now.version, true),
            ("adapter", &self.adapter, &now.adapter, told),
            ("kernels", &self.kernels, &now.kernels, true),
        ];
        let changed = pairs.into_iter().filter(|(_, old, new, told)| *told && old != new);
        let words: Vec<String> = changed.map(|(what, old, new, _)| format!("{what} {old}, now {new}")).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// The contents of `checkpoint.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Manifest {
    /// Always `tabtune.checkpoint`.
    pub format: String,
    /// At most [`FORMAT_VERSION`].
    pub version: u64,
    /// Version of tabtune that wrote it.
    pub written_by: String,
    /// What the state is a state of; `None` before version 3.
    pub identity: Option<Identity>,
    /// Shape of the model.
    pub model: ModelConfig,
    /// Storage of its matrices.
    pub precision: Precision,
    /// Settings of the run.
    pub train: TrainConfig,
    /// Where the run stands.
    pub progress: Progress,
    /// Where the data order stands.
    pub loader: LoaderState,
    /// SHA-256 of the token stream.
    pub data_digest: String,
    /// The parameters that have optimizer state: version 2. Since version 3 the members of the groups say it.
    #[serde(skip_serializing)]
    pub with_state: Option<Vec<String>>,
    /// What the run started from; `None` if that is unknown or the model was new.
    pub base: Option<Base>,
    /// Every tensor of `model.safetensors` and `optimizer.safetensors`; `None` before version 3.
    pub tensors: Option<BTreeMap<String, TensorRecord>>,
    /// The groups with their members, settings in force and steps; `None` before version 3.
    pub groups: Option<Vec<ModelStateGroupAssignment>>,
    /// The tokenizer, whose documents are among the files; `None` without one and before version 3.
    pub tokenizer: Option<TokenizerAccount>,
    /// Where it was saved; `None` in version 1, which only has `written_by`.
    pub environment: Option<Environment>,
    /// The other files.
    pub files: Vec<FileRecord>,
}

/// Reads `checkpoint.json`.
///
/// # Errors
/// `checkpoint.version` for a newer version; `checkpoint.corrupt` names the path of a missing or unknown field and of an impossible value.
pub fn read(source: &dyn ByteSource) -> Result<Manifest> {
    let len = usize::try_from(source.len()).ok().filter(|_| source.len() <= MAX_MANIFEST_BYTES);
    let len = len.ok_or_else(|| corrupt(MANIFEST, format!("{} bytes, at most {MAX_MANIFEST_BYTES}", source.len())))?;
    let mut bytes = vec![0; len];
    source.read_at(0, &mut bytes)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| corrupt(MANIFEST, error))?;
    let wrong = |wrong: Wrong| corrupt(if wrong.path.is_empty() { MANIFEST } else { &wrong.path }, wrong.found);
    let document = json_document(text).map_err(wrong)?;
    let mut fields = Fields::new(document, "").map_err(wrong)?;
    let format: Option<String> = fields.take("format").map_err(wrong)?;
    if format.as_deref() != Some(FORMAT) {
        return Err(corrupt("format", format!("expected \"{FORMAT}\", found \"{}\"", format.unwrap_or_default())));
    }
    let version: u64 = fields.take("version").map_err(wrong)?;
    if version == 0 || version > FORMAT_VERSION {
        return Err(Error::CheckpointVersion { found: version, supported: FORMAT_VERSION });
    }
    check_counts(document)?;
    let manifest = of_fields(fields, version).map_err(wrong)?;
    manifest.files.iter().enumerate().try_for_each(|(index, file)| check_file(index, file, version >= 2))?;
    if let Some(rate) = manifest.progress.manual_learning_rate {
        check_rate(&manifest.train, "manual_learning_rate", rate).map_err(|error| corrupt("progress.manual_learning_rate", error))?;
    }
    Ok(manifest)
}

fn of_fields(mut fields: Fields<'_>, version: u64) -> Result<Manifest, Wrong> {
    let (newer, accounted) = (version >= 2, version >= 3);
    if newer {
        fields.need(&["base"])?;
    }
    if accounted {
        fields.need(&["tokenizer"])?;
    }
    let mut base = if newer { base_of(&mut fields)? } else { None };
    if let Some(base) = base.as_mut().filter(|base| !accounted && base.name.is_empty()) {
        name_base(base);
    }
    let tensors = if accounted { Some(tensors_of(&mut fields)?) } else { None };
    let mut groups = tensors.as_ref().map(|tensors| groups_of(&mut fields, tensors.len())).transpose()?;
    groups.iter_mut().for_each(|groups| complete_groups(groups));
    let manifest = Manifest {
        format: FORMAT.to_string(),
        version,
        written_by: fields.take("written_by")?,
        identity: if accounted { Some(fields.take("identity")?) } else { None },
        model: fields.take("model")?,
        precision: fields.take("precision")?,
        train: settings(fields.value("train"))?,
        progress: fields.take("progress")?,
        loader: fields.take("loader")?,
        data_digest: fields.take("data_digest")?,
        with_state: if newer && !accounted { Some(with_state(&mut fields)?) } else { None },
        base,
        tensors,
        groups,
        tokenizer: if accounted { fields.take("tokenizer")? } else { None },
        environment: if newer { Some(fields.take("environment")?) } else { None },
        files: files_of(&mut fields)?,
    };
    fields.end()?;
    Ok(manifest)
}

fn settings(document: Json<'_>) -> Result<TrainConfig, Wrong> {
    let mut train = json_typed(document, "train")?;
    complete_settings(&mut train, document);
    Ok(train)
}

/// The names of version 2, which are those of a file's tensors.
fn with_state(fields: &mut Fields<'_>) -> Result<Vec<String>, Wrong> {
    let value = fields.value("with_state");
    if value.list().is_some_and(|names| names.count() > MAX_TENSORS) {
        return Err(Wrong::new("with_state", format!("more than {MAX_TENSORS} names")));
    }
    json_typed(value, "with_state")
}

/// Gives the base of version 2, which has no name, that of its first file of weights.
fn name_base(base: &mut Base) {
    let weights = |name: &&String| [".gguf", ".safetensors"].iter().any(|end| name.to_ascii_lowercase().ends_with(end));
    base.name = base.files.iter().map(|file| &file.name).find(weights).cloned().unwrap_or_default();
}

/// Refuses impossible counts.
fn check_counts(manifest: Json<'_>) -> Result<()> {
    let counts = [
        ("progress", "completed_steps"),
        ("progress", "tokens"),
        ("progress", "schedule_start"),
        ("loader", "epoch"),
        ("loader", "cursor"),
    ];
    for (part, key) in counts {
        let Some(Json::Number(digits)) = manifest.get(part).and_then(|part| part.get(key)) else { continue };
        if Json::Number(digits).count().is_none_or(|count| count > MAX_COUNT) {
            return Err(corrupt(&format!("{part}.{key}"), format!("expected an integer of at most {MAX_COUNT}, found {digits}")));
        }
    }
    Ok(())
}

/// Refuses a record whose digests do not match its version and length in number and form.
fn check_file(index: usize, file: &FileRecord, newer: bool) -> Result<()> {
    let path = |key: &str| format!("files[{index}].{key}");
    let (digests, other, expected, key) = match newer {
        true => (file.pieces.clone(), file.sha256.is_some(), count_of(file.bytes), "pieces"),
        false => (file.sha256.clone().map(|digest| vec![digest]), file.pieces.is_some(), 1, "sha256"),
    };
    let digests = digests.ok_or_else(|| corrupt(&path(key), "the field is absent"))?;
    if other {
        return Err(corrupt(&path(key), "expected either pieces or sha256"));
    }
    let hex = |digest: &String| digest.len() == 64 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let count = u64::try_from(digests.len()).ok();
    if count != Some(expected) || !digests.iter().all(hex) {
        return Err(corrupt(&path(key), format!("expected {expected} SHA-256 in lower-case hex for {} bytes", file.bytes)));
    }
    Ok(())
}
