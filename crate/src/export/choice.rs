//! A format and types in which a model can be exported, or the reason why it cannot.

use serde::Serialize;

use super::options::ExportFormat;
use crate::bundle::FileStream;
use crate::error::Result;

/// One way of exporting a model, planned as far as that needs no values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportChoice {
    /// The format.
    pub format: ExportFormat,
    /// Of a GGUF file the types of its matrices, of a folder the dtype that has to be asked for.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub types: Option<String>,
    /// Whether it can.
    pub ok: bool,
    /// Size of the files together, the receipt included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What is lost on the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lossy: Option<String>,
    /// `base`: the files that the model came from have to be given again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<&'static str>,
    /// Why it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ExportChoice {
    /// The choice that this plan of an export is.
    pub fn planned(format: ExportFormat, types: Option<&str>, plan: Result<FileStream>) -> Self {
        let (bytes, reason) = match plan {
            Ok(stream) => (Some(stream.files().iter().map(|file| file.bytes).sum()), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self { format, types: types.map(String::from), ok: reason.is_none(), bytes, lossy: None, needs: None, reason }
    }

    /// The choice of a trained adapter that is merged with the files of its base, which have to be given.
    pub(super) fn merged(format: ExportFormat, types: Option<&str>, reason: Option<String>) -> Self {
        let types = types.map(String::from);
        Self { format, types, ok: reason.is_none(), bytes: None, lossy: None, needs: Some("base"), reason }
    }
}
