//! What an export is asked for: plain data, as TypeScript and the terminal send it.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Fault, Result};
use crate::formats::TensorType;

/// The format of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// A Hugging Face folder.
    #[default]
    Safetensors,
    /// One GGUF file.
    Gguf,
    /// A state dict as JSON.
    Json,
    /// The trained adapter alone, as a folder of PEFT.
    Peft,
    /// The trained adapter alone, as one GGUF file for llama.cpp.
    #[serde(rename = "gguf-adapter")]
    GgufAdapter,
}

impl ExportFormat {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Safetensors, Self::Gguf, Self::Json, Self::Peft, Self::GgufAdapter];

    /// Its word in options.
    pub fn word(self) -> &'static str {
        match self {
            Self::Safetensors => "safetensors",
            Self::Gguf => "gguf",
            Self::Json => "json",
            Self::Peft => "peft",
            Self::GgufAdapter => "gguf-adapter",
        }
    }
}

/// The dtype of the tensors of a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportDtype {
    /// Each as it is stored.
    #[default]
    Stored,
    /// f32.
    F32,
    /// The upper half of an f32.
    Bf16,
    /// IEEE half precision.
    F16,
}

impl ExportDtype {
    /// The type in which every tensor is written; `None` for each in its own.
    pub fn tensor_type(self) -> Option<TensorType> {
        match self {
            Self::Stored => None,
            Self::F32 => Some(TensorType::F32),
            Self::Bf16 => Some(TensorType::Bf16),
            Self::F16 => Some(TensorType::F16),
        }
    }
}

/// How a JSON state dict has its values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonEncoding {
    /// As numbers.
    #[default]
    Numbers,
    /// As base64 of the stored bytes.
    Base64,
}

/// What an export is asked for; everything has a default.
///
/// ```
/// use tabtune::export::{ExportDtype, ExportOptions};
///
/// let options: ExportOptions = serde_json::from_str(r#"{"dtype": "bf16", "card": {"license": "mit"}}"#)?;
/// assert_eq!((options.dtype, options.shard_bytes), (ExportDtype::Bf16, None));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExportOptions {
    /// The format.
    pub format: ExportFormat,
    /// Types of the matrices of a GGUF file: a word of [`super::GgufTypes::from_word`]; absent: `as-base`. Of an adapter's file `f32`, or `f16`; absent: `f32`.
    #[serde(rename = "type")]
    pub types: Option<String>,
    /// dtype of the tensors of a folder.
    pub dtype: ExportDtype,
    /// Maximum number of bytes of tensors in one file of a folder, but for a tensor that is larger; absent: [`super::SHARD_BYTES`].
    pub shard_bytes: Option<u64>,
    /// Whether a folder gets the optimizer's state.
    pub optimizer: bool,
    /// Whether the manifest of the state goes with the weights.
    pub manifest: bool,
    /// Whether blocks may be encoded a second time, as another type.
    pub requantise: bool,
    /// How a JSON state dict has its values.
    pub encoding: JsonEncoding,
    /// Whether a JSON state dict may hold NaN and infinity.
    pub allow_non_finite: bool,
    /// What the model is called; of a GGUF file also its name, without the ending.
    pub name: Option<String>,
    /// Name of the one file of a GGUF or JSON export, where it is another than that of the model with its ending, `.gguf` or
    /// `.state_dict.json`.
    pub file_name: Option<String>,
    /// What the model card says beside what is measured.
    pub card: Option<ModelCard>,
}

impl ExportOptions {
    /// Refuses names that are no names of files, and that of a file without `ending`, by which readers know its format.
    pub(crate) fn check_names(&self, ending: &str) -> Result<()> {
        let path = |name: &str| name.is_empty() || name.chars().any(|c| c.is_control() || matches!(c, '/' | '\\'));
        let mut faults = Vec::new();
        if let Some(name) = self.name.as_deref().filter(|name| path(name)) {
            faults.push(Fault::new("name", "a file name without a path", name));
        }
        let wrong = |name: &&str| path(name) || !name.to_ascii_lowercase().ends_with(ending);
        if let Some(name) = self.file_name.as_deref().filter(wrong) {
            faults.push(Fault::new("file_name", format!("a file name without a path that ends in {ending}"), name));
        }
        if faults.is_empty() { Ok(()) } else { Err(Error::InvalidConfig(faults)) }
    }
}

/// What the user says of a model on its card.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelCard {
    /// The title.
    pub name: Option<String>,
    /// Its licence, in a word of Hugging Face's list, for example `apache-2.0`.
    pub license: Option<String>,
    /// The model on Hugging Face that it was made from.
    pub base_model: Option<String>,
    /// What it was trained on.
    pub data: Option<String>,
    /// Anything else, in Markdown.
    pub text: Option<String>,
}
