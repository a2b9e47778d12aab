//! `checkpoint.json`: what it says, and the versions of it that are read.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::corrupt;
use super::pieces::count_of;
use crate::bundle::{Base, ByteSource, Identity, ModelStateGroupAssignment, TensorRecord, TokenizerAccount, parse_json};
use crate::config::{ModelConfig, Precision, TrainConfig};
use crate::data::LoaderState;
use crate::error::{Error, Result};
use crate::gpu::launch;
use crate::train::{Progress, check_rate};

/// Newest format that this version reads and the one it writes.
pub const FORMAT_VERSION: u64 = 3;
/// The document that makes a checkpoint complete.
pub const MANIFEST: &str = "checkpoint.json";
pub(super) const FORMAT: &str = "tabtune.checkpoint";
/// Maximum depth of a manifest's JSON.
const MAX_DEPTH: usize = 32;
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

/// The fields of a document, each taken once.
struct Fields(Map<String, Value>);

impl Fields {
    fn take<T: DeserializeOwned>(&mut self, key: &str) -> Result<T> {
        let value = self.0.remove(key).ok_or_else(|| corrupt(key, "the field is absent"))?;
        serde_json::from_value(value).map_err(|error| corrupt(key, error))
    }
}

/// Parses `source`; a newer version, a missing or unknown field and an impossible value are refused by path.
pub(super) fn read(source: &dyn ByteSource) -> Result<Manifest> {
    let len = usize::try_from(source.len()).ok().filter(|_| source.len() <= MAX_MANIFEST_BYTES);
    let len = len.ok_or_else(|| corrupt(MANIFEST, format!("{} bytes, at most {MAX_MANIFEST_BYTES}", source.len())))?;
    let mut bytes = vec![0; len];
    source.read_at(0, &mut bytes)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| corrupt(MANIFEST, error))?;
    // One scan for what serde_json would let pass, such as a key that stands twice.
    parse_json(text, MAX_DEPTH).map_err(|fault| corrupt(MANIFEST, format!("not JSON of at most {MAX_DEPTH} levels: {fault:?}")))?;
    let value: Value = serde_json::from_str(text).map_err(|error| corrupt(MANIFEST, error))?;
    if value["format"] != FORMAT {
        return Err(corrupt("format", format!("expected \"{FORMAT}\", found {}", value["format"])));
    }
    let version = value["version"].as_u64().ok_or_else(|| corrupt("version", format!("expected a number, found {}", value["version"])))?;
    if version == 0 || version > FORMAT_VERSION {
        return Err(Error::CheckpointVersion { found: version, supported: FORMAT_VERSION });
    }
    check_counts(&value)?;
    let Value::Object(fields) = value else { return Err(corrupt(MANIFEST, "expected an object")) };
    let mut fields = Fields(fields);
    let newer = version >= 2;
    let accounted = version >= 3;
    if newer && !accounted {
        name_base(&mut fields.0);
    }
    let manifest = Manifest {
        format: fields.take("format")?,
        version: fields.take("version")?,
        written_by: fields.take("written_by")?,
        identity: if accounted { Some(fields.take("identity")?) } else { None },
        model: fields.take("model")?,
        precision: fields.take("precision")?,
        train: fields.take("train")?,
        progress: fields.take("progress")?,
        loader: fields.take("loader")?,
        data_digest: fields.take("data_digest")?,
        with_state: if newer && !accounted { Some(fields.take("with_state")?) } else { None },
        base: if newer { fields.take("base")? } else { None },
        tensors: if accounted { Some(fields.take("tensors")?) } else { None },
        groups: if accounted { Some(fields.take("groups")?) } else { None },
        tokenizer: if accounted { fields.take("tokenizer")? } else { None },
        environment: if newer { Some(fields.take("environment")?) } else { None },
        files: fields.take("files")?,
    };
    if let Some(key) = fields.0.keys().next() {
        return Err(corrupt(key, format!("unknown in version {version}")));
    }
    manifest.files.iter().enumerate().try_for_each(|(index, file)| check_file(index, file, newer))?;
    if let Some(rate) = manifest.progress.manual_learning_rate {
        check_rate(&manifest.train, "manual_learning_rate", rate).map_err(|error| corrupt("progress.manual_learning_rate", error))?;
    }
    Ok(manifest)
}

/// Gives the base of version 2, which has no name, that of its first file of weights.
fn name_base(fields: &mut Map<String, Value>) {
    let Some(Value::Object(base)) = fields.get_mut("base") else { return };
    let names = base.get("files").and_then(Value::as_array).into_iter().flatten().filter_map(|file| file["name"].as_str());
    let weights = |name: &&str| [".gguf", ".safetensors"].iter().any(|end| name.to_ascii_lowercase().ends_with(end));
    let name = names.into_iter().find(weights).unwrap_or_default().to_string();
    base.entry("name").or_insert(name.into());
}

/// Refuses impossible counts.
fn check_counts(manifest: &Value) -> Result<()> {
    let counts = ["/progress/completed_steps", "/progress/tokens", "/progress/schedule_start", "/loader/epoch", "/loader/cursor"];
    for pointer in counts {
        let Some(count) = manifest.pointer(pointer).filter(|count| count.is_number()) else { continue };
        if count.as_u64().is_none_or(|count| count > MAX_COUNT) {
            let path = pointer[1..].replace('/', ".");
            return Err(corrupt(&path, format!("expected an integer of at most {MAX_COUNT}, found {count}")));
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
