//! Computes from headers which formats an artifact can be read from and written as, and whether it survives a round trip.

use serde::Serialize;

use crate::bundle::MAX_JSON_BYTES;
use crate::config::ModelConfig;
use crate::error::{Error, Result};
use crate::families::gguf_word;
use crate::formats::Digest;
use crate::state::{DocumentKind, Identity, ModelStateTensorManifest, document_digest};

/// Degree to which something can be done, in a [`ContractCell`] ([example](crate::portable)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// Possible without loss.
    Supported,
    /// Possible, with the loss that the reason states.
    Lossy,
    /// Not possible.
    Unsupported,
}

impl Support {
    /// Its word in documents.
    pub fn text(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Lossy => "lossy",
            Self::Unsupported => "unsupported",
        }
    }
}

/// Degree to which something can be done, with the reason; a cell of a [`ContractRow`] ([example](crate::portable)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContractCell {
    /// Degree of support.
    pub support: Support,
    /// Reason, as a sentence.
    pub reason: String,
}

fn cell(support: Support, reason: impl Into<String>) -> ContractCell {
    let reason = reason.into();
    ContractCell { support, reason }
}

fn yes(reason: impl Into<String>) -> ContractCell {
    cell(Support::Supported, reason)
}

fn lossy(reason: impl Into<String>) -> ContractCell {
    cell(Support::Lossy, reason)
}

fn no(reason: impl Into<String>) -> ContractCell {
    cell(Support::Unsupported, reason)
}

/// One container in a [`ModelIoCompatibilityContract`] ([example](crate::portable)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContractRow {
    /// Name of the container.
    pub surface: String,
    /// Support for reading it.
    pub import: ContractCell,
    /// Support for writing this artifact to it.
    pub export: ContractCell,
    /// Support for writing this artifact to it and reading the result.
    pub round_trip: ContractCell,
}

/// Formats that one artifact can be read from and written in, with the reasons ([example](crate::portable)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelIoCompatibilityContract {
    /// Family of the model.
    pub model_family: String,
    /// Revision of the model.
    pub revision: String,
    /// Digest of its state, if all values were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_digest: Option<Digest>,
    /// A row for each container, always the same ones in the same order.
    pub surfaces: Vec<ContractRow>,
    /// Digest of everything above.
    pub contract_digest: Digest,
}

/// Reason why the file of an adapter for llama.cpp does not come back.
const UNREAD: &str = "low-rank adapters in GGUF files are not read";

/// Facts about an artifact that its tensors do not show.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContractFacts<'a> {
    /// Digest of the state, if it is known.
    pub state_digest: Option<Digest>,
    /// Shape of the model, if it is known.
    pub config: Option<&'a ModelConfig>,
    /// Reason why the recipe of its architecture cannot make a new GGUF file of it, if it cannot.
    pub recipe_refused: Option<&'a str>,
    /// True for the tensors of a trained adapter.
    pub adapter: bool,
    /// True if the model came from GGUF files, into which a trained model can be patched.
    pub gguf_base: bool,
}

impl ModelIoCompatibilityContract {
    /// Computes the contract of an artifact with these tensors.
    ///
    /// # Errors
    /// `config.invalid` for a contract that is no JSON.
    #[doc(hidden)]
    pub fn of(
        identity: &Identity,
        facts: ContractFacts<'_>,
        tensors: &[ModelStateTensorManifest],
    ) -> Result<Self> {
        let blocks = tensors.iter().find(|tensor| !tensor.is_dense());
        let dense = |lossless: &str| match blocks {
            None => yes(lossless),
            Some(tensor) => no(format!(
                "{} is {}: dequantise it by an explicit conversion to f32, bf16 or f16",
                tensor.state_key, tensor.dtype
            )),
        };
        let both = |surface: &str, import: ContractCell, export: ContractCell| ContractRow {
            surface: surface.to_string(),
            import,
            round_trip: export.clone(),
            export,
        };
        let never = |surface: &str, reason: &str| both(surface, no(reason), no(reason));
        let whole = "tensors, groups, state and digests come back";
        let factors = |to: &str| match facts.adapter {
            true => yes(format!("the trained factors, {to}")),
            false => no("the state holds no low-rank factors"),
        };
        let pickle = "an opaque Python pickle is never loaded; save the model as safetensors where it was made";
        let difference = "the difference to a base with the same tensors, bit for bit";
        let surfaces = vec![
            both(
                "tabtune_state_dict",
                yes("the canonical form"),
                yes("the canonical form"),
            ),
            both("tabtune_manifest_safetensors", yes(whole), dense(whole)),
            both(
                "torch_state_dict_json",
                yes("any JSON of the format up to 64 MiB"),
                json_cell(tensors),
            ),
            both(
                "gguf",
                yes("every tensor is listed, those of known types are read"),
                gguf_cell(facts),
            ),
            never("torch_pickle", pickle),
            never(
                "legacy_opaque_checkpoint",
                "a checkpoint without a manifest does not say what it holds",
            ),
            both(
                "hf_folder",
                yes("weights, configuration, tokenizer and template"),
                match facts.config {
                    Some(_) => dense(
                        "every byte of weights and documents, and the state with its manifest",
                    ),
                    None => no("the state has no configuration of a model"),
                },
            ),
            both(
                "peft_adapter",
                yes("a LoRA is merged into its base, or attached to it"),
                factors("for PEFT"),
            ),
            ContractRow {
                surface: "gguf_adapter".to_string(),
                import: no(UNREAD),
                export: factors("for llama.cpp"),
                round_trip: no(UNREAD),
            },
            both("exact_delta", yes(difference), yes(difference)),
        ];
        let mut contract = Self {
            model_family: identity.model_family.clone(),
            revision: identity.revision.clone(),
            state_digest: facts.state_digest,
            surfaces,
            contract_digest: Digest::of(&[]),
        };
        let wrong = |error: serde_json::Error| Error::invalid("contract", "JSON", error);
        let mut document = serde_json::to_value(&contract).map_err(wrong)?;
        document
            .as_object_mut()
            .map(|fields| fields.remove("contract_digest"));
        contract.contract_digest = document_digest(DocumentKind::Contract, &document)?;
        Ok(contract)
    }

    /// Finds the row of a container by its name.
    pub fn row(&self, surface: &str) -> Option<&ContractRow> {
        self.surfaces.iter().find(|row| row.surface == surface)
    }

    /// The contract in lines that are equal for equal contracts.
    pub fn stable_signature_lines(&self) -> Vec<String> {
        let state = self
            .state_digest
            .map(|digest| digest.to_string())
            .unwrap_or_default();
        let mut lines = vec![
            format!("model_family={}", self.model_family),
            format!("revision={}", self.revision),
            format!("state_digest={state}"),
            format!("contract_digest={}", self.contract_digest),
        ];
        lines.extend(self.surfaces.iter().map(|row| {
            let [import, export, round_trip] =
                [&row.import, &row.export, &row.round_trip].map(|cell| cell.support.text());
            format!(
                "{}|import={import}|export={export}|roundtrip={round_trip}",
                row.surface
            )
        }));
        lines
    }
}

/// Judges JSON, which holds artifacts that are small enough, and only finite values as numbers.
fn json_cell(tensors: &[ModelStateTensorManifest]) -> ContractCell {
    // This counts base64, the shorter form; names and punctuation come on top.
    let encoded = |tensor: &ModelStateTensorManifest| {
        let bytes = tensor.byte_len().unwrap_or(u64::MAX);
        (bytes / 3)
            .saturating_mul(4)
            .saturating_add(tensor.state_key.len() as u64)
    };
    let total = tensors.iter().map(encoded).fold(0, u64::saturating_add);
    if total <= MAX_JSON_BYTES {
        return yes(
            "if it stays below 64 MiB and no value is NaN or infinite, which is found when values are read",
        );
    }
    let largest = tensors.iter().max_by_key(|tensor| encoded(tensor));
    let largest = largest.map_or("", |tensor| &tensor.state_key);
    no(format!(
        "{total} bytes at least, of at most {MAX_JSON_BYTES}; the largest tensor is {largest}"
    ))
}

/// Judges GGUF, which is written by the recipe of an architecture, or into the files that the model came from.
fn gguf_cell(facts: ContractFacts<'_>) -> ContractCell {
    let of_recipe = facts
        .config
        .filter(|_| facts.recipe_refused.is_none())
        .and_then(|config| gguf_word(config).ok())
        .map(|architecture| format!("by the recipe of {architecture}"));
    let into_base = "into the files it came from";
    let way = match (of_recipe, facts.gguf_base) {
        (Some(recipe), true) => format!("{recipe}, or {into_base}"),
        (Some(recipe), false) => recipe,
        (None, true) => into_base.to_string(),
        (None, false) => {
            let none = "no recipe for this architecture, and no GGUF file that it came from";
            return no(facts.recipe_refused.unwrap_or(none));
        }
    };
    lossy(format!(
        "{way}; groups, optimizer state and paths are left out"
    ))
}
