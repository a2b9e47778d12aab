//! The contents of `checkpoint.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::corrupt;
use super::pieces::{FileRecord, count_of};
use crate::bundle::{ADAPTER_WEIGHTS, CHECKPOINT};
use crate::config::{ModelConfig, Precision, TrainConfig};
use crate::data::LoaderState;
use crate::error::{Error, Result};
use crate::formats::{ByteSource, Digest, DocumentError, Fields, Json, json_document};
use crate::gpu::launch;
use crate::state::{
    Base, Identity, MODEL_FILE, ModelStateGroupAssignment, TensorRecord, TokenizerAccount, base_of,
    files_of, groups_of, tensors_of,
};
use crate::train::{Progress, check_rate};

/// Version of the format that is read and written.
pub const FORMAT_VERSION: u64 = 1;
/// Name of the document that makes a checkpoint complete.
pub const MANIFEST: &str = CHECKPOINT;
pub(super) const FORMAT: &str = "tabtune.checkpoint";
/// Number of bytes at the beginning of a document in which the name of its format is looked for.
const MANIFEST_BEGINNING: u64 = 4096;
/// Maximum size of a manifest.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;
/// Maximum count: JavaScript's numbers are exact up to it.
const MAX_COUNT: u64 = (1 << 53) - 1;

/// Conditions that the bits of a run depend on in addition to its settings ([example](crate::checkpoint)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// Version of tabtune.
    #[doc(hidden)]
    pub version: String,
    /// Name of the adapter; empty if it is not known.
    #[doc(hidden)]
    pub adapter: String,
    /// Kind of kernels that run: `gpu` or `software`.
    #[doc(hidden)]
    pub kernels: String,
}

impl Environment {
    /// Describes the current environment, on a device whose adapter has this name.
    pub fn on(device: &burn::tensor::Device, adapter: &str) -> Self {
        let software = launch::is_software(device);
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            adapter: adapter.into(),
            kernels: if software { "software" } else { "gpu" }.into(),
        }
    }

    /// Describes the differences of `now`; `None` if the same bits are to be expected.
    pub(super) fn differs(&self, now: &Self) -> Option<String> {
        let told = !self.adapter.is_empty() && !now.adapter.is_empty();
        let pairs = [
            ("tabtune", &self.version, &now.version, true),
            ("adapter", &self.adapter, &now.adapter, told),
            ("kernels", &self.kernels, &now.kernels, true),
        ];
        let words: Vec<String> = pairs
            .into_iter()
            .filter(|(_, old, new, told)| *told && old != new)
            .map(|(what, old, new, _)| format!("{what} {old}, now {new}"))
            .collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// The contents of `checkpoint.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Manifest {
    /// Always `tabtune.checkpoint`.
    pub format: String,
    /// Always [`FORMAT_VERSION`].
    pub version: u64,
    /// Version of tabtune that wrote it.
    pub written_by: String,
    /// Model and checkpoint that the state belongs to.
    pub identity: Identity,
    /// Shape of the model.
    pub model: ModelConfig,
    /// Storage of its matrices.
    pub precision: Precision,
    /// Settings of the run.
    pub train: TrainConfig,
    /// Progress of the run.
    pub progress: Progress,
    /// Position in the order of the data.
    pub loader: LoaderState,
    /// SHA-256 of the token stream.
    pub data_digest: String,
    /// Model that the run started from; `None` if that is unknown or the model was new.
    pub base: Option<Base>,
    /// Every tensor of `model.safetensors` and `optimizer.safetensors`.
    pub tensors: BTreeMap<String, TensorRecord>,
    /// Groups with their members, effective settings and steps.
    pub groups: Vec<ModelStateGroupAssignment>,
    /// Account of the tokenizer, whose documents are among the files; `None` without one.
    pub tokenizer: Option<TokenizerAccount>,
    /// Environment in which it was saved.
    pub environment: Environment,
    /// All other files.
    pub files: Vec<FileRecord>,
}

impl Manifest {
    /// Name of the file with the trained weights.
    pub(super) fn weights_file(&self) -> &'static str {
        weights_file(self.train.adapter.is_some())
    }
}

/// Name of the file with the trained weights: those of the adapter alone if there is one, else those of the model.
pub(super) fn weights_file(has_adapter: bool) -> &'static str {
    if has_adapter {
        ADAPTER_WEIGHTS
    } else {
        MODEL_FILE
    }
}

/// True for a document that names this format, whole or not.
pub(super) fn is_ours(source: &dyn ByteSource) -> Result<bool> {
    let beginning = beginning(source, MANIFEST_BEGINNING)?;
    let mut windows = beginning.windows(FORMAT.len());
    Ok(windows.any(|bytes| bytes == FORMAT.as_bytes()))
}

/// Reads the document, or its first `most` bytes if it has more.
fn beginning(source: &dyn ByteSource, most: u64) -> Result<Vec<u8>> {
    let len = usize::try_from(source.len().min(most));
    let mut bytes = vec![0; len.expect("a manifest fits into any memory")];
    source.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// Reads `checkpoint.json`.
///
/// # Errors
/// `checkpoint.version` for another version; `checkpoint.corrupt` names the path of a missing or unknown field and of an impossible value.
pub fn read(source: &dyn ByteSource) -> Result<Manifest> {
    if source.len() > MAX_MANIFEST_BYTES {
        let reason = format!("{} bytes, at most {MAX_MANIFEST_BYTES}", source.len());
        return Err(corrupt(MANIFEST, reason));
    }
    let bytes = beginning(source, MAX_MANIFEST_BYTES)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| corrupt(MANIFEST, error))?;
    let wrong = |wrong: DocumentError| {
        let newer = if wrong.found.contains("unknown field") {
            "; if a newer tabtune wrote it, open it with that one"
        } else {
            ""
        };
        let what = match wrong.path.as_str() {
            "" => MANIFEST,
            path => path,
        };
        corrupt(what, wrong.found + newer)
    };
    let document = json_document(text).map_err(wrong)?;
    let mut fields = Fields::new(document).map_err(wrong)?;
    let format: Option<String> = fields.take("format").map_err(wrong)?;
    let format = format.unwrap_or_default();
    if format != FORMAT {
        let reason = format!("expected \"{FORMAT}\", found \"{format}\"");
        return Err(corrupt("format", reason));
    }
    let version: u64 = fields.take("version").map_err(wrong)?;
    if version != FORMAT_VERSION {
        return Err(Error::CheckpointVersion {
            found: version,
            supported: FORMAT_VERSION,
        });
    }
    check_counts(document)?;
    let manifest = of_fields(fields).map_err(wrong)?;
    for (index, file) in manifest.files.iter().enumerate() {
        check_file(index, file)?;
    }
    if let Some(rate) = manifest.progress.manual_learning_rate {
        check_rate(&manifest.train, "manual_learning_rate", rate)
            .map_err(|error| corrupt("progress.manual_learning_rate", error))?;
    }
    Ok(manifest)
}

fn of_fields(mut fields: Fields<'_>) -> Result<Manifest, DocumentError> {
    fields.need(&["base", "tokenizer"])?;
    let base = base_of(&mut fields)?;
    let tensors = tensors_of(&mut fields)?;
    let manifest = Manifest {
        format: FORMAT.to_string(),
        version: FORMAT_VERSION,
        written_by: fields.take("written_by")?,
        identity: fields.take("identity")?,
        model: fields.take("model")?,
        precision: fields.take("precision")?,
        train: fields.take("train")?,
        progress: fields.take("progress")?,
        loader: fields.take("loader")?,
        data_digest: fields.take("data_digest")?,
        base,
        groups: groups_of(&mut fields, tensors.len())?,
        tensors,
        tokenizer: fields.take("tokenizer")?,
        environment: fields.take("environment")?,
        files: files_of(&mut fields)?,
    };
    fields.end()?;
    Ok(manifest)
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
        let number = manifest.get(part).and_then(|part| part.get(key));
        if let Some(number @ Json::Number(digits)) = number
            && number.count().is_none_or(|count| count > MAX_COUNT)
        {
            return Err(corrupt(
                &format!("{part}.{key}"),
                format!("expected an integer of at most {MAX_COUNT}, found {digits}"),
            ));
        }
    }
    Ok(())
}

/// Refuses a record whose digests do not match its length in number and form.
fn check_file(index: usize, file: &FileRecord) -> Result<()> {
    let expected = count_of(file.bytes);
    let is_digest = |digest: &String| Digest::from_hex(digest).is_some();
    if u64::try_from(file.pieces.len()) == Ok(expected) && file.pieces.iter().all(is_digest) {
        return Ok(());
    }
    let reason = format!(
        "expected {expected} SHA-256 in lower-case hex for {} bytes",
        file.bytes
    );
    Err(corrupt(&format!("files[{index}].pieces"), reason))
}
