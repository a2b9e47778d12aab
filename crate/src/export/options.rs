//! Options of an export: plain data, as TypeScript and the terminal send them.

use serde::{Deserialize, Serialize};

use super::ExportFormat;
use crate::bundle::FileStream;
use crate::error::{Error, Fault, Result};
use crate::formats::TensorType;
use crate::state::{ModelIoArtifactReceipt, RECEIPT};

/// dtype of the tensors of a folder ([example](crate)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportDtype {
    /// Each tensor as it is stored.
    #[default]
    Stored,
    /// f32.
    F32,
    /// The upper half of an f32.
    Bf16,
    /// IEEE half precision.
    F16,
}

#[doc(hidden)]
impl ExportDtype {
    /// The type in which every tensor is written; `None` if each keeps its own.
    pub fn tensor_type(self) -> Option<TensorType> {
        match self {
            Self::Stored => None,
            Self::F32 => Some(TensorType::F32),
            Self::Bf16 => Some(TensorType::Bf16),
            Self::F16 => Some(TensorType::F16),
        }
    }
}

/// Encoding of the values of a JSON state dict ([example](crate)).
#[doc(hidden)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonEncoding {
    /// Values as numbers.
    #[default]
    Numbers,
    /// Stored bytes as base64.
    Base64,
}

/// Options of an export; everything has a default.
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
    /// Format of the export.
    pub format: ExportFormat,
    /// Types of the matrices of a GGUF file: a word such as `f16` or `q8_0`, by default `as-base`. For an adapter's file `f32` or
    /// `f16`, by default `f32`.
    #[serde(rename = "type")]
    pub types: Option<String>,
    /// dtype of the tensors of a folder.
    pub dtype: ExportDtype,
    /// Maximum number of bytes of tensors in one file of a folder, except for a single larger tensor; by default 1.9 GB.
    pub shard_bytes: Option<u64>,
    /// True if a folder gets the optimizer's state.
    pub optimizer: bool,
    /// True if the manifest of the state is written with the weights.
    pub manifest: bool,
    /// True if blocks may be encoded a second time, as another type.
    pub requantise: bool,
    /// Encoding of the values of a JSON state dict.
    pub encoding: JsonEncoding,
    /// True if NaN and infinity are allowed.
    pub allow_non_finite: bool,
    /// Name of the model; for a GGUF file also the file name, without the ending.
    pub name: Option<String>,
    /// File name of a GGUF or JSON export. By default the name of the model with the ending `.gguf` or `.state_dict.json`.
    pub file_name: Option<String>,
    /// Contents of the model card in addition to measured facts.
    pub card: Option<ModelCard>,
}

impl ExportOptions {
    /// Adds the receipt that begins as `draft`, and sets if weights may be NaN or infinite.
    pub(super) fn finish(
        &self,
        mut stream: FileStream,
        draft: ModelIoArtifactReceipt,
    ) -> Result<FileStream> {
        stream.allow_non_finite(self.allow_non_finite);
        stream.push_receipt(RECEIPT, draft)?;
        Ok(stream)
    }

    /// Refuses names that are no file names, and a file name without `ending`, by which readers recognise its format.
    pub(crate) fn check_names(&self, ending: &str) -> Result<()> {
        let path = |name: &str| {
            name.is_empty() || name.contains(|c: char| c.is_control() || matches!(c, '/' | '\\'))
        };
        let mut faults = Vec::new();
        if let Some(name) = self.name.as_deref().filter(|name| path(name)) {
            faults.push(Fault::new("name", "a file name without a path", name));
        }
        let wrong = |name: &&str| path(name) || !name.to_ascii_lowercase().ends_with(ending);
        if let Some(name) = self.file_name.as_deref().filter(wrong) {
            faults.push(Fault::new(
                "file_name",
                format!("a file name without a path that ends in {ending}"),
                name,
            ));
        }
        Error::of_faults(faults)
    }
}

/// Contents of a model card that the user states ([example](crate)).
#[doc(hidden)]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelCard {
    /// Title.
    pub name: Option<String>,
    /// Licence, in a word of Hugging Face's list, for example `apache-2.0`.
    pub license: Option<String>,
    /// Model on Hugging Face that it was made from.
    pub base_model: Option<String>,
    /// Data that it was trained on.
    pub data: Option<String>,
    /// Any other text, in Markdown.
    pub text: Option<String>,
}
