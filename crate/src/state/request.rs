//! What a person asks of an import: which tensors, under which names, how much of it at once.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Fault, Refusal, Result, word};
use crate::formats::{json_document, json_typed};

/// Which tensors of a source are taken. All includes empty is everything; an exclude wins over an include.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PortableTensorImportSelection {
    /// Exact keys of the source.
    pub include_state_keys: BTreeSet<String>,
    /// Exact keys of the source.
    pub exclude_state_keys: BTreeSet<String>,
    /// Patterns as those of optimizer groups ([`glob_matches`](crate::config::glob_matches)).
    pub include_patterns: Vec<String>,
    /// Patterns of the same kind.
    pub exclude_patterns: Vec<String>,
    /// An excluded key that the source does not have is a warning.
    pub allow_unknown_excludes: bool,
}

/// New names of tensors, all given at once: a swap is a legal renaming, and so is a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PortableTensorKeyRemap {
    /// New key by the exact key of the source.
    pub source_to_target: BTreeMap<String, String>,
    /// `<old>:<state word>` is renamed along with the parameter `<old>`.
    pub rename_state: bool,
}

/// When values are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TensorMaterializationPolicy {
    /// At once.
    #[default]
    Eager,
    /// When they are asked for.
    Deferred,
}

/// What a selection may do to groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupPolicy {
    /// A group comes with all of its tensors, or not at all.
    #[default]
    RequireComplete,
    /// Every group and state tensor is left behind, and listed.
    WeightsOnly,
}

/// What NaN and infinities are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NonFinitePolicy {
    /// A warning.
    #[default]
    Warn,
    /// A refusal.
    Refuse,
}

/// How much is compared with stated digests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifyPolicy {
    /// All values.
    #[default]
    Full,
    /// Headers.
    Header,
}

/// The names under which tensors are imported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamePolicy {
    /// Those of the file.
    #[default]
    Source,
    /// Those of Hugging Face.
    Hf,
}

/// A request of an import; the default is everything, as it is.
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
    /// Which tensors.
    pub selection: PortableTensorImportSelection,
    /// Their names.
    pub key_remap: PortableTensorKeyRemap,
    /// When values are read.
    pub materialization_policy: TensorMaterializationPolicy,
    /// What happens to groups.
    pub group_policy: GroupPolicy,
    /// What NaN and infinities are.
    pub non_finite: NonFinitePolicy,
    /// What is compared with stated digests.
    pub verify: VerifyPolicy,
    /// Which names the source's tensors have.
    pub names: NamePolicy,
}

impl PortableModelImportRequest {
    /// The request that a JSON text is.
    ///
    /// # Errors
    /// `config.invalid` for a text that is not JSON, a key given twice, an unknown field, a value of the wrong type.
    pub fn read(text: &str) -> Result<Self> {
        let request = json_document(text).and_then(|value| json_typed(value, ""));
        request.map_err(|wrong| {
            let key = if wrong.path.is_empty() { "request".to_string() } else { format!("request/{}", wrong.path) };
            Error::InvalidConfig(vec![Fault::new(key, "the fields of a request", wrong.found)])
        })
    }

    /// Refuses what the opening of a model does not do: it reads values when they are asked for, compares no digests, and takes patterns and new
    /// names by the names in the files.
    ///
    /// # Errors
    /// `request.unsupported` for each such field that asks for something else than the default.
    pub fn check_for_model(&self) -> Result<()> {
        let deferred = self.materialization_policy != TensorMaterializationPolicy::default();
        let fields = [
            ("materialization_policy", deferred, "a model's values are read when they are asked for"),
            ("verify", self.verify != VerifyPolicy::default(), "no digests are compared: tabtune verify and verifyFiles do that"),
            ("names", self.names != NamePolicy::default(), "patterns and new names go by the names in the files"),
        ];
        let refused = fields.into_iter().filter(|(_, asked, _)| *asked).map(|(field, _, reason)| {
            let refusal = Refusal::new(word!("request.unsupported")).of("request").subject(field);
            refusal.expected("nothing of it, when a model is opened or converted").hint(reason)
        });
        let refused: Vec<Refusal> = refused.collect();
        if refused.is_empty() { Ok(()) } else { Err(Error::Refused(refused)) }
    }

    /// The same request with its patterns ascending, each once: equal for requests that mean the same, so that their digests are.
    #[must_use]
    pub fn in_order(&self) -> Self {
        let mut ordered = self.clone();
        for patterns in [&mut ordered.selection.include_patterns, &mut ordered.selection.exclude_patterns] {
            patterns.sort();
            patterns.dedup();
        }
        ordered
    }
}
