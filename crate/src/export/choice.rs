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
    /// A possible export of unknown size.
    pub(super) fn new(format: ExportFormat, types: Option<&str>) -> Self {
        Self {
            format,
            types: types.map(String::from),
            ok: true,
            bytes: None,
            lossy: None,
            needs: None,
            reason: None,
            plain: None,
        }
    }

    /// The choice of an export that was planned.
    pub fn planned(format: ExportFormat, types: Option<&str>, plan: Result<FileStream>) -> Self {
        let choice = Self::new(format, types);
        match plan {
            Ok(stream) => Self {
                bytes: Some(stream.files().iter().map(|file| file.bytes).sum()),
                ..choice
            },
            Err(error) => choice.refused(&error),
        }
    }

    /// The choice of a trained adapter that is merged with the files of its base, which have to be given.
    pub(super) fn merged(
        format: ExportFormat,
        types: Option<&str>,
        refused: Option<&Error>,
    ) -> Self {
        let choice = Self {
            needs: Some("base"),
            ..Self::new(format, types)
        };
        match refused {
            Some(error) => choice.refused(error),
            None => choice,
        }
    }

    fn refused(self, error: &Error) -> Self {
        Self {
            ok: false,
            reason: Some(error.to_string()),
            plain: Some(error.plain()),
            ..self
        }
    }
}
