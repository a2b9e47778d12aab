//! Exports weights for other programs: a Hugging Face folder that `safetensors`, `transformers` and tabtune load, and GGUF files for llama.cpp,
//! from a model on the device or from one that is only in its files. Every export has a receipt.

mod architecture;
mod card;
mod choice;
mod device_forms;
mod folder;
mod format;
mod gguf;
mod gguf_adapter;
mod gguf_base;
mod gguf_form;
mod gguf_types;
mod json;
mod json_document;
mod merged;
mod options;
mod patch;
mod peft;
mod recipe;
mod source;

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::bundle::FileStream;
use crate::error::{Error, Refusal, Result, word};
use crate::formats::ByteSource;

pub use options::{ExportDtype, ExportOptions, JsonEncoding, ModelCard};
pub(crate) use peft::export_adapter;
pub(crate) use source::training_record;
pub use source::{ExportSource, Weights};

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    choice::ExportChoice,
    folder::{SHARD_BYTES, export_folder},
    gguf::export_gguf,
    gguf_types::GgufTypes,
};

/// Format of an export ([example](crate)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The row of a format. A new format is its file, a variant and its row here.
fn format_of(format: ExportFormat) -> &'static format::Format {
    match format {
        ExportFormat::Safetensors => &folder::FORMAT,
        ExportFormat::Gguf => &gguf::FORMAT,
        ExportFormat::Json => &json::FORMAT,
        ExportFormat::Peft => &peft::FORMAT,
        ExportFormat::GgufAdapter => &gguf_adapter::FORMAT,
    }
}

#[doc(hidden)]
impl ExportFormat {
    /// All formats.
    pub const ALL: [Self; 5] = [
        Self::Safetensors,
        Self::Gguf,
        Self::Json,
        Self::Peft,
        Self::GgufAdapter,
    ];

    /// Its word in options.
    pub fn word(self) -> &'static str {
        format_of(self).word
    }

    /// Describes the format for a list, as a noun phrase without an article.
    pub fn about(self) -> &'static str {
        format_of(self).about
    }

    /// Ending of its one file; empty for a folder.
    pub fn ending(self) -> &'static str {
        format_of(self).ending
    }

    /// True for the format of a trained adapter alone, false for that of a whole model.
    pub fn is_of_adapter(self) -> bool {
        format_of(self).is_of_adapter
    }

    /// Keys of [`ExportOptions`] that are of use for this format and not for all; `base` for files of a base.
    pub fn own_options(self) -> &'static [&'static str] {
        format_of(self).own_options
    }

    /// True if an option of [`ExportOptions`], or `base`, is of use for this format; those that all formats have are.
    pub fn takes(self, option: &str) -> bool {
        let own = |format: Self| format.own_options().contains(&option);
        own(self) || !Self::ALL.into_iter().any(own)
    }
}

/// Prepares the files of `source` in the format that is asked for, the receipt last. `base_files` are those of a GGUF file that the model's
/// tensors go into, or of the base that a trained adapter is merged into ([example](crate)).
///
/// # Errors
/// `export.*` for a model that the format cannot hold, or options that do not fit it, `config.invalid` for the optimizer of a model that has
/// none. For an adapter that is merged `checkpoint.base.missing` without its base and `checkpoint.base.mismatch` for another one. While the
/// stream is read, `tensor.non-finite` for weights with NaN or infinite values that are not allowed, and `export.overflow` for finite values
/// beyond their type.
pub async fn export(
    source: &ExportSource,
    base_files: Vec<Rc<dyn ByteSource>>,
    options: &ExportOptions,
) -> Result<FileStream> {
    let of_run = |key: &str, lack: &str| {
        let expected =
            format!("false: these are the files of a model, which {lack}; export a checkpoint");
        Err(Error::invalid(key, expected, "true"))
    };
    let format = options.format;
    if options.manifest && source.groups.is_empty() && format == ExportFormat::Safetensors {
        return of_run("manifest", "no optimizer trains");
    }
    if options.optimizer && source.groups.is_empty() {
        return of_run("optimizer", "have no state of an optimizer");
    }
    (format_of(format).export)(source, base_files, options).await
}

/// Plans every export of `source`, by the functions that make them. Nothing is read.
#[doc(hidden)]
pub fn export_choices(source: &ExportSource) -> Vec<ExportChoice> {
    let source = &source.planned();
    let mut formats = ExportFormat::ALL.map(format_of);
    // The adapter, which was trained, comes first.
    formats.sort_by_key(|format| !format.is_of_adapter);
    formats
        .iter()
        .flat_map(|format| (format.choices)(source))
        .collect()
}

/// Refuses the format of a whole model for an adapter, and that of an adapter for a whole model.
fn check_kind(source: &ExportSource, format: ExportFormat) -> Result<()> {
    let refusal = Refusal::new(word!("export.adapter")).found(format.word());
    match (source.adapter_settings.is_some(), format.is_of_adapter()) {
        (true, false) => {
            let mut formats = ExportFormat::ALL.to_vec();
            formats.retain(|format| format.is_of_adapter());
            let words: Vec<&str> = formats.into_iter().map(ExportFormat::word).collect();
            Err(refusal
                .expected(format!(
                    "{}: only an adapter was trained",
                    words.join(" or ")
                ))
                .hint("merge it into the base: safetensors and gguf with the files of the base")
                .into())
        }
        (false, true) => Err(refusal
            .expected("the format of a whole model: no adapter was trained")
            .into()),
        _ => Ok(()),
    }
}
