//! Requests of an import: which tensors are taken, under which names, and how they are read and checked.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Fault, Refusal, Result, refuse_all, word};
use crate::formats::{json_document, json_typed};

/// Selection of tensors of a source. If all includes are empty, everything is taken; an exclude takes precedence over an include.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PortableTensorImportSelection {
    /// Exact keys of the source that are taken.
    pub include_state_keys: BTreeSet<String>,
    /// Exact keys of the source that are left out.
    pub exclude_state_keys: BTreeSet<String>,
    /// Patterns of keys that are taken, as those of optimizer groups ([`glob_matches`](crate::config::glob_matches)).
    pub include_patterns: Vec<String>,
    /// Patterns of keys that are left out.
    pub exclude_patterns: Vec<String>,
    /// True if an excluded key that the source does not have is only a warning.
    pub allow_unknown_excludes: bool,
}

/// New names of tensors, all given at once: a swap is a legal renaming, and so is a chain ([example](PortableModelImportRequest)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PortableTensorKeyRemap {
    /// New key by the exact key of the source.
    pub source_to_target: BTreeMap<String, String>,
    /// True if `<old>:<state word>` is renamed along with the parameter `<old>`.
    pub rename_state: bool,
}

/// Time at which values are read ([example](PortableModelImportRequest)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TensorMaterializationPolicy {
    /// Values are read at once.
    #[default]
    Eager,
    /// Values are read on demand.
    Deferred,
}

/// Treatment of groups by a selection ([example](PortableModelImportRequest)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupPolicy {
    /// A group comes with all of its tensors, or not at all.
    #[default]
    RequireComplete,
    /// Every group and state tensor is left behind, and listed.
    WeightsOnly,
}

/// Treatment of NaN and infinities ([example](PortableModelImportRequest)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NonFinitePolicy {
    /// Reported as a warning.
    #[default]
    Warn,
    /// Reported as a refusal.
    Refuse,
}

/// Extent of the comparison with stated digests ([example](PortableModelImportRequest)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerifyPolicy {
    /// All values are compared.
    #[default]
    Full,
    /// Headers are compared.
    Header,
}

/// Names under which tensors are imported ([example](PortableModelImportRequest)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamePolicy {
    /// Names in the file.
    #[default]
    Source,
    /// Names in Hugging Face's format.
    Hf,
}

/// Request of an import; the default takes everything unchanged.
///
/// ```
/// use tabtune::state::{GroupPolicy, PortableModelImportRequest};
///
/// let text = r#"{"selection": {"include_patterns": ["head.*"]}, "group_policy": "weights_only"}"#;
/// let request = PortableModelImportRequest::read(text)?;
/// assert_eq!((request.selection.include_patterns.len(), request.group_policy), (1, GroupPolicy::WeightsOnly));
/// # Ok::<(), tabtune::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PortableModelImportRequest {
    /// Tensors that are taken.
    pub selection: PortableTensorImportSelection,
    /// New names of tensors.
    pub key_remap: PortableTensorKeyRemap,
    /// Time at which values are read.
    pub materialization_policy: TensorMaterializationPolicy,
    /// Treatment of groups.
    pub group_policy: GroupPolicy,
    /// Treatment of NaN and infinities.
    pub non_finite: NonFinitePolicy,
    /// Extent of the comparison with stated digests.
    pub verify: VerifyPolicy,
    /// Names of the source's tensors.
    pub names: NamePolicy,
}

impl PortableModelImportRequest {
    /// Reads a request from JSON text.
    ///
    /// # Errors
    /// `config.invalid` for a text that is not JSON, a key given twice, an unknown field, a value of the wrong type.
    pub fn read(text: &str) -> Result<Self> {
        let request = json_document(text).and_then(|value| json_typed(value, ""));
        request.map_err(|wrong| {
            let key = match wrong.path.as_str() {
                "" => "request".to_string(),
                path => format!("request/{path}"),
            };
            Error::InvalidConfig(vec![Fault::new(
                key,
                "the fields of a request",
                wrong.found,
            )])
        })
    }

    /// Refuses options that do not apply to opening a model: it reads values on demand, compares no digests, and applies patterns and new names
    /// to the names in the files.
    ///
    /// # Errors
    /// `request.unsupported` for each such field that differs from the default.
    pub(crate) fn check_for_model(&self) -> Result<()> {
        let fields = [
            (
                "materialization_policy",
                self.materialization_policy != TensorMaterializationPolicy::default(),
                "a model's values are read when they are asked for",
            ),
            (
                "verify",
                self.verify != VerifyPolicy::default(),
                "no digests are compared: tabtune verify and verifyFiles do that",
            ),
            (
                "names",
                self.names != NamePolicy::default(),
                "patterns and new names go by the names in the files",
            ),
        ];
        let asked = fields.into_iter().filter(|(_, asked, _)| *asked);
        let refused = asked.map(|(field, _, reason)| {
            Refusal::new(word!("request.unsupported"))
                .of("request")
                .subject(field)
                .expected("nothing of it, when a model is opened or converted")
                .hint(reason)
        });
        refuse_all(refused.collect())
    }

    /// Puts the patterns of the request in order, ascending, each once: requests that mean the same become equal, and so do their digests.
    #[must_use]
    pub fn in_order(&self) -> Self {
        let mut ordered = self.clone();
        for patterns in [
            &mut ordered.selection.include_patterns,
            &mut ordered.selection.exclude_patterns,
        ] {
            patterns.sort();
            patterns.dedup();
        }
        ordered
    }
}
