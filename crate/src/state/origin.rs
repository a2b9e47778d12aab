//! The files that a model started from, and the containers that a state can come from.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::request::VerifyPolicy;
use crate::error::{base_name, shown};
use crate::formats::{ByteSource, Digest, HubOrigin};

/// Format of the files that a model came from ([example](crate::portable)).
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceFormat {
    /// config.json, safetensors files, tokenizer.json.
    HfFolder,
    /// One GGUF file.
    Gguf,
}

impl fmt::Display for SourceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HfFolder => "hf_folder",
            Self::Gguf => "gguf",
        })
    }
}

/// Container that a state was read from ([example](crate::portable)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceWord {
    /// A run of tabtune.
    Tabtune,
    /// One safetensors file, or shards with a manifest.
    Safetensors,
    /// A Hugging Face folder.
    HfFolder,
    /// A JSON state dict.
    TorchStateDictJson,
    /// A GGUF file.
    Gguf,
    /// A PEFT adapter.
    Peft,
    /// A checkpoint folder.
    Checkpoint,
}

impl SourceWord {
    /// Word for it in documents.
    pub fn text(self) -> &'static str {
        match self {
            Self::Tabtune => "tabtune",
            Self::Safetensors => "safetensors",
            Self::HfFolder => "hf_folder",
            Self::TorchStateDictJson => "torch_state_dict_json",
            Self::Gguf => "gguf",
            Self::Peft => "peft",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// Model that training started from ([example](crate::portable)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// Name that its files state, else the name of the first file without its ending; empty in checkpoints that do not state it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `hf_folder` or `gguf`.
    pub format: String,
    /// The weight files.
    pub files: Vec<BaseFile>,
    /// Digest of its weights, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights_digest: Option<Digest>,
    /// Repository that its files came from, if they came from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub: Option<HubOrigin>,
    /// Files of an adapter that was merged into it before it was trained, if there was one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged_adapter: Vec<BaseFile>,
    /// Extent to which the last resume compared its files, if it did not compare all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<VerifyPolicy>,
}

/// A file of a [`Base`] ([example](crate::portable)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BaseFile {
    /// File name.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the part that lists its tensors: the length word and header of a safetensors file, everything before the data of a GGUF file.
    /// Absent in checkpoints that do not state it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_sha256: Option<Digest>,
    /// SHA-256 of the whole file, where all of it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// SHA-256 of each piece of 8 MiB, the last one shorter; present if an adapter is trained on this base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pieces: Option<Vec<Digest>>,
}

impl BaseFile {
    /// Describes the file `source`, whose header has this digest.
    pub(crate) fn new(source: &dyn ByteSource, header_sha256: Digest) -> Self {
        Self {
            name: base_name(source.name()).to_string(),
            bytes: source.len(),
            header_sha256: Some(header_sha256),
            sha256: None,
            pieces: None,
        }
    }
}

impl Base {
    /// Describes a base whose files name it `title`.
    pub(crate) fn new(title: &str, format: SourceFormat, files: Vec<BaseFile>) -> Self {
        let stem = |file: &BaseFile| {
            file.name
                .rsplit_once('.')
                .map_or(file.name.clone(), |(stem, _)| stem.to_string())
        };
        let name = if title.is_empty() {
            files.first().map(stem).unwrap_or_default()
        } else {
            title.to_string()
        };
        Self {
            name: shown(&name),
            format: format.to_string(),
            files,
            weights_digest: None,
            hub: None,
            merged_adapter: Vec::new(),
            verified: None,
        }
    }

    /// True if its weights are in GGUF files.
    pub(crate) fn is_gguf(&self) -> bool {
        self.format == SourceFormat::Gguf.to_string()
    }

    /// Lists the names of its files, for a message.
    pub(crate) fn file_names(&self) -> String {
        let names = self.files.iter().map(|file| file.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }

    /// Copies the digests of whole files that `other` has for the same files.
    pub(crate) fn take_sums(&mut self, other: &Self) {
        for file in self.files.iter_mut().filter(|file| file.sha256.is_none()) {
            let own = (file.bytes, file.header_sha256);
            let mut others = other.files.iter();
            let same = others.find(|one| (one.bytes, one.header_sha256) == own);
            file.sha256 = same.and_then(|one| one.sha256);
        }
    }

    /// True if these are the same files, whatever their names: equal sizes, and equal digests of headers where both state them.
    pub fn matches(&self, other: &Self) -> bool {
        let sorted = |base: &Self| {
            // Older checkpoints also list other files of the folder of a GGUF file.
            let weights = base.files.iter().filter(|file| {
                file.header_sha256.is_some() || file.name.to_ascii_lowercase().ends_with(".gguf")
            });
            let mut files: Vec<(u64, Option<Digest>)> = weights
                .map(|file| (file.bytes, file.header_sha256))
                .collect();
            files.sort_unstable();
            files
        };
        let (own, others) = (sorted(self), sorted(other));
        let mut all = own.iter().chain(&others);
        if all.all(|(_, header)| header.is_some()) {
            return own == others;
        }
        let sizes = own.iter().map(|(bytes, _)| bytes);
        sizes.eq(others.iter().map(|(bytes, _)| bytes))
    }
}
