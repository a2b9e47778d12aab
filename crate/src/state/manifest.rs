//! The manifest of a state dict (crate/FORMATS.md, "Manifest and groups"): the tensors of an artifact, and the groups that train them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::group::ModelStateGroupAssignment;
use super::tensor::Tensor;
use super::tensor_manifest::{Identity, ModelStateTensorManifest, TensorRole};
use super::tokenizer_record::TokenizerRecord;
use crate::error::{Error, Fault, Result};
use crate::formats::Digest;
use crate::state::Base;

/// Value of the field `format`.
pub(crate) const FORMAT: &str = "tabtune.manifest";
/// File name of the manifest of shards.
pub(crate) const MANIFEST_FILE: &str = "tabtune.manifest.json";
/// Metadata key of the manifest of a single file.
pub(crate) const MANIFEST_KEY: &str = "tabtune.manifest";
/// Newest version of the format.
pub(crate) const VERSION: u64 = 1;

/// A manifest. In a single safetensors file it is a text of the metadata, without digests and files, because the header is written first.
/// [Example](crate::portable).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateManifest {
    /// Always `tabtune.manifest`.
    pub format: String,
    /// Always 1.
    pub version: u64,
    /// Model and checkpoint that the state belongs to.
    pub identity: Identity,
    /// Model that training started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// The tensors by key.
    pub tensors: BTreeMap<String, TensorRecord>,
    /// Groups that train them.
    pub groups: Vec<ModelStateGroupAssignment>,
    /// The tokenizer, without its assets.
    #[doc(hidden)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<TokenizerAccount>,
    /// Free JSON of at most 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile_contract: Option<Value>,
    /// Names of formats, the preferred one first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferred_formats: Option<Vec<String>>,
    /// Digests of the artifact's contents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digests: Option<StatedDigests>,
    /// Files of the artifact.
    #[doc(hidden)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<ManifestFile>>,
}

/// A tensor of a manifest ([example](crate::portable)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorRecord {
    /// Path of names in the module tree.
    pub path: Vec<String>,
    /// Purpose of the tensor.
    pub role: TensorRole,
    /// dtype: a word of safetensors, or `GGML:<type>`.
    pub dtype: String,
    /// Row-major shape.
    pub shape: Vec<u64>,
    /// Name of the file that contains it.
    pub file: String,
}

impl TensorRecord {
    /// Creates the record of a tensor in `file`.
    pub(crate) fn new(tensor: ModelStateTensorManifest, file: &str) -> Self {
        Self {
            path: tensor.model_tree_path,
            role: tensor.role,
            dtype: tensor.dtype,
            shape: tensor.shape,
            file: file.to_string(),
        }
    }

    /// Describes the tensor `key`.
    pub(crate) fn manifest(self, key: &str) -> ModelStateTensorManifest {
        ModelStateTensorManifest {
            state_key: key.to_string(),
            model_tree_path: self.path,
            role: self.role,
            dtype: self.dtype,
            shape: self.shape,
        }
    }
}

/// A tokenizer in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerAccount {
    /// Known facts about the tokenizer.
    pub record: TokenizerRecord,
    /// Assets of the tokenizer.
    pub assets: Vec<AssetAccount>,
    /// Chat templates.
    pub templates: Vec<TemplateAccount>,
}

/// A tokenizer's asset in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssetAccount {
    /// Name of the asset.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256 of its bytes.
    pub sha256: Digest,
}

/// A chat template in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemplateAccount {
    /// Name of the template; `default` for one without a name.
    pub name: String,
    /// SHA-256 of its text.
    pub sha256: Digest,
}

/// The digests that a document states (crate/FORMATS.md, "Digests") ([example](crate::portable)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StatedDigests {
    /// Digest of parameters and buffers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<Digest>,
    /// Digest of state tensors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<Digest>,
    /// Digest of groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Digest>,
    /// Digest of the state dict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Digest>,
    /// Digest of the tokenizer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<Digest>,
    /// Digest of the chat templates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<Digest>,
    /// Digest of the whole bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Digest>,
}

impl StatedDigests {
    /// Each digest with its name in documents.
    pub(crate) fn each(&self) -> [(&'static str, Option<Digest>); 7] {
        [
            ("weights", self.weights),
            ("optimizer", self.optimizer),
            ("assignment", self.assignment),
            ("state", self.state),
            ("tokenizer", self.tokenizer),
            ("template", self.template),
            ("bundle", self.bundle),
        ]
    }
}

/// A file of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestFile {
    /// File name.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of each piece of 8 MiB, the last one shorter, in lower-case hex.
    pub pieces: Vec<String>,
}

impl StateManifest {
    /// Creates a manifest of these tensors and groups, without the optional parts.
    pub fn new(
        identity: Identity,
        tensors: BTreeMap<String, TensorRecord>,
        groups: Vec<ModelStateGroupAssignment>,
    ) -> Self {
        Self {
            format: FORMAT.to_string(),
            version: VERSION,
            identity,
            base: None,
            tensors,
            groups,
            tokenizer: None,
            profile_contract: None,
            preferred_formats: None,
            digests: None,
            files: None,
        }
    }

    /// Completes the description of a tensor by path and role of its record, if it has one.
    pub(crate) fn complete(&self, tensor: Tensor) -> Tensor {
        let Some(record) = self.tensors.get(&tensor.name) else {
            return tensor;
        };
        let described = ModelStateTensorManifest {
            model_tree_path: record.path.clone(),
            role: record.role,
            ..tensor.manifest()
        };
        tensor.described(described)
    }

    /// Writes the manifest as JSON with two spaces of indentation and a line feed at its end: one text for equal manifests.
    ///
    /// # Errors
    /// `config.invalid` for a hyperparameter that is not finite, which JSON cannot hold.
    pub fn to_text(&self) -> Result<String> {
        for group in &self.groups {
            let semantics = &group.parameter_semantics;
            let scales = [semantics.learning_rate_scale, semantics.weight_decay_scale];
            let mut numbers = group.optimizer.hyperparameters.values().chain(&scales);
            if !numbers.all(|value| value.is_finite()) {
                return Err(Error::InvalidConfig(vec![Fault::new(
                    "groups",
                    "finite numbers",
                    &group.group_id,
                )]));
            }
        }
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|error| {
            Error::InvalidConfig(vec![Fault::new("manifest", "a JSON document", error)])
        })
    }

    /// Descriptions of its tensors by key, as a state dict has them.
    pub fn state_tensors(&self) -> BTreeMap<String, ModelStateTensorManifest> {
        let described =
            |(key, record): (&String, &TensorRecord)| (key.clone(), record.clone().manifest(key));
        self.tensors.iter().map(described).collect()
    }
}
