//! Writes a model as one GGUF file.

use super::gguf_types::GgufTypes;
use super::options::{ExportFormat, ExportOptions};
use super::patch::patch;
use super::peft::check_kind;
use super::recipe::{Start, recipe};
use super::source::ExportSource;
use crate::bundle::FileStream;
use crate::error::Result;
use crate::formats::ByteSource;
use crate::state::{RECEIPT, ReceiptFile};

/// Default name of the file, without its ending, and of the model in it.
pub(super) const NAME: &str = "model";

/// Writes the model as one GGUF file: `base_files`, a GGUF file or its parts, with the model's tensors in place of theirs, or without such
/// files a new one; then its receipt.
///
/// With a base, a tensor whose values are those that the base gave the model is copied unchanged, and so are metadata and tokenizer. Without a
/// base, vectors and GPT-2's table of positions are F32, and matrices have the requested type, or the one that each has.
///
/// # Errors
/// `export.gguf.type` for a type that cannot be written; `export.gguf.quantised-source` for blocks that would become other blocks, unless
/// `requantise` allows it. With a base: `export.gguf.base` if it has other tensors, shapes or settings than the model, or, unless every tensor
/// is replaced, is another file than the recorded base. Without a base: `export.gguf.arch` for a model that no architecture describes, or that
/// could not be opened again; `export.gguf.tokenizer` for a tokenizer that GGUF cannot hold, and the refusal of one that was refused. While the
/// stream is read, `export.overflow` for finite values beyond their type.
pub async fn export_gguf(source: &ExportSource, base_files: Vec<Box<dyn ByteSource>>, options: &ExportOptions) -> Result<FileStream> {
    let types = options.types.as_deref().map_or(Ok(GgufTypes::AsBase), GgufTypes::from_word)?;
    let name = options.name.as_deref().unwrap_or(NAME);
    options.check_names(".gguf")?;
    check_kind(source, ExportFormat::Gguf)?;
    let mut draft = source.draft();
    let mut stream = if base_files.is_empty() {
        recipe(source, &Start::of(source)?, name, types, options.requantise)?
    } else {
        let (stream, base) = patch(source, base_files, name, types, options.requantise).await?;
        let given: Vec<ReceiptFile> = base.files.iter().map(|file| ReceiptFile::of_name(&file.name, file.bytes, file.sha256)).collect();
        draft.inputs.retain(|file| !given.iter().any(|one| (&one.name, one.bytes) == (&file.name, file.bytes)));
        draft.inputs.extend(given);
        // The given files are those that the run started from, unless every tensor is replaced.
        if let Some(recorded) = draft.base.as_mut().filter(|recorded| recorded.matches(&base)) {
            recorded.take_sums(&base);
            if recorded.files.iter().all(|file| file.sha256.is_some()) {
                draft.checks.retain(|check| check.name != "base");
            }
        }
        stream
    };
    options.file_name.iter().for_each(|name| stream.rename_first(name));
    stream.push_receipt(RECEIPT, draft)?;
    Ok(stream)
}
