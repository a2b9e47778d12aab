//! A format and types in which a model can be exported, or the reason why it cannot.

use serde::Serialize;

use super::ExportFormat;
use crate::bundle::FileStream;
use crate::error::{Error, Result};

/// One way of exporting a model, planned as far as that needs no values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExportChoice {
    /// Format of the export.
    pub format: ExportFormat,
    /// Types of the matrices of a GGUF file, or the dtype that must be requested for a folder.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub types: Option<String>,
    /// True if the export is possible.
    pub ok: bool,
    /// Total size of the files, including the receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Parts of the model that are lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lossy: Option<String>,
    /// `base` if the files that the model came from must be given again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["base"])))]
    pub needs: Option<&'static str>,
    /// Reason if it is not possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Codes and values of the reason.
    #[serde(skip)]
    pub(crate) plain: Option<String>,
}

impl ExportChoice {
    /// Creates the choice for a planned export.
    pub fn planned(format: ExportFormat, types: Option<&str>, plan: Result<FileStream>) -> Self {
        let (bytes, refused) = match plan {
            Ok(stream) => (
                Some(stream.files().iter().map(|file| file.bytes).sum()),
                None,
            ),
            Err(error) => (None, Some(error)),
        };
        Self {
            bytes,
            needs: None,
            ..Self::merged(format, types, refused.as_ref())
        }
    }

    /// The choice of a trained adapter that is merged with the files of its base, which have to be given.
    pub(super) fn merged(
        format: ExportFormat,
        types: Option<&str>,
        refused: Option<&Error>,
    ) -> Self {
        let (types, reason, plain) = (
            types.map(String::from),
            refused.map(ToString::to_string),
            refused.map(Error::plain),
        );
        Self {
            format,
            types,
            ok: reason.is_none(),
            bytes: None,
            lossy: None,
            needs: Some("base"),
            reason,
            plain,
        }
    }
}
