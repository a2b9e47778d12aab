//! Writes a model as one GGUF file.

use super::choice::ExportChoice;
use super::format::{BaseFiles, Exporting, Format};
use super::gguf_types::{GgufTypes, words};
use super::merged::{merged, opened_merged};
use super::options::ExportOptions;
use super::patch::patch;
use super::recipe::{Start, has_none_of, recipe};
use super::source::ExportSource;
use super::{ExportFormat, check_kind};
use crate::bundle::FileStream;
use crate::error::{Result, Warning, word};
use crate::state::{RECEIPT, ReceiptFile, ReceiptWarning};
use crate::tokenizer::Tokenizer;

/// Name of the file without its ending, and of the model in it, unless another one is asked for.
const NAME: &str = "model";

/// Writes the model as one GGUF file: `base_files`, a GGUF file or its parts, with the model's tensors in place of theirs, or without such
/// files a new one; then its receipt.
///
/// With a base, a tensor whose values are those that the base gave the model is copied unchanged, and so are metadata and tokenizer. Without a
/// base, vectors and GPT-2's table of positions are F32, and matrices have the requested type, or the one that each has.
///
/// # Errors
/// `export.gguf.type` for a type that cannot be written; `export.gguf.quantised-source` for blocks that would become other blocks, unless
/// `requantise` allows it. With a base: `export.gguf.base` if it has other tensors, shapes or settings than the model, or, unless every
/// tensor is replaced, is another file than the recorded base. Without: `export.gguf.arch` for a model that no architecture describes, or
/// that could not be opened again; `export.gguf.tokenizer` for a tokenizer that GGUF cannot hold, and the refusal of one that was refused.
/// While the stream is read, `export.overflow` for finite values beyond their type.
pub async fn export_gguf(
    source: &ExportSource,
    base_files: BaseFiles,
    options: &ExportOptions,
) -> Result<FileStream> {
    let types = options
        .types
        .as_deref()
        .map_or(Ok(GgufTypes::AsBase), GgufTypes::from_word)?;
    let name = options.name.as_deref().unwrap_or(NAME);
    options.check_names(".gguf")?;
    check_kind(source, ExportFormat::Gguf)?;
    let mut draft = source.draft();
    let mut stream = if base_files.is_empty() {
        let start = Start::of(source)?;
        draft.warnings.extend(lost(
            source,
            &start,
            types,
            options.types.as_deref().unwrap_or_default(),
        ));
        recipe(source, &start, name, types, options.requantise)?
    } else {
        let (stream, base, kept) =
            patch(source, base_files, name, types, options.requantise).await?;
        draft
            .warnings
            .extend(kept.as_ref().map(ReceiptWarning::from));
        let given: Vec<ReceiptFile> = base
            .files
            .iter()
            .map(|file| ReceiptFile::of_name(&file.name, file.bytes, file.sha256))
            .collect();
        draft.inputs.retain(|file| {
            !given
                .iter()
                .any(|one| (&one.name, one.bytes) == (&file.name, file.bytes))
        });
        draft.inputs.extend(given);
        // The given files are those that the run started from, unless every tensor is replaced.
        if let Some(recorded) = draft
            .base
            .as_mut()
            .filter(|recorded| recorded.matches(&base))
        {
            recorded.take_sums(&base);
            if recorded.files.iter().all(|file| file.sha256.is_some()) {
                draft.checks.retain(|check| check.name != "base");
            }
        }
        stream
    };
    options
        .file_name
        .iter()
        .for_each(|name| stream.rename_first(name));
    stream.allow_non_finite(options.allow_non_finite);
    stream.push_receipt(RECEIPT, draft)?;
    Ok(stream)
}

/// Returns the warnings about facts that a new file cannot hold, and about a type of which no matrix is; `word` asks for it.
fn lost(source: &ExportSource, start: &Start, types: GgufTypes, word: &str) -> Vec<ReceiptWarning> {
    let bordered = source
        .assets
        .tokenizer
        .as_ref()
        .map(Tokenizer::bordered_tokens)
        .unwrap_or_default();
    let more = if bordered.len() > 1 {
        format!(" and {} more", bordered.len() - 1)
    } else {
        String::new()
    };
    let border = bordered
        .first()
        .map(|first| Warning::new(word!("export.gguf.token-border"), &format!("{first}{more}")));
    let none = has_none_of(&source.weights, start.family(), types)
        .then(|| Warning::new(word!("export.gguf.type-unused"), word));
    let end = start
        .end_by_default()
        .map(|token| Warning::new(word!("export.gguf.end"), &token));
    let composes = source
        .assets
        .tokenizer
        .as_ref()
        .is_some_and(Tokenizer::composes);
    let normalizer = composes.then(|| Warning::new(word!("export.gguf.normalizer"), "NFC"));
    border
        .iter()
        .chain(&none)
        .chain(&end)
        .chain(&normalizer)
        .map(ReceiptWarning::from)
        .collect()
}

/// One GGUF file.
pub(super) struct Gguf;

impl Format for Gguf {
    fn word(&self) -> &'static str {
        "gguf"
    }

    fn about(&self) -> &'static str {
        "GGUF for llama.cpp"
    }

    fn ending(&self) -> &'static str {
        ".gguf"
    }

    fn own_options(&self) -> &'static [&'static str] {
        &["base", "type", "requantise"]
    }

    fn export<'a>(
        &self,
        source: &'a ExportSource,
        base_files: BaseFiles,
        options: &'a ExportOptions,
    ) -> Exporting<'a> {
        Box::pin(async move {
            let merged = merged(source, base_files, options).await?;
            export_gguf(&merged.source, merged.files, &merged.options).await
        })
    }

    /// One file for each type of the matrices.
    fn choices(&self, source: &ExportSource) -> Vec<ExportChoice> {
        let start = Start::of(source);
        // The base's metadata and tokenizer serve where no new ones can be made.
        let patched = source
            .base
            .as_ref()
            .is_some_and(|base| base.format == "gguf");
        if source.adapter_settings.is_some() {
            let refused = start.err().filter(|_| !patched);
            return words()
                .map(|word| ExportChoice::merged(ExportFormat::Gguf, Some(word), refused.as_ref()))
                .collect();
        }
        words()
            .map(|word| choice(source, &start, patched && start.is_err(), word))
            .collect()
    }
}

/// The plan of a file whose matrices have the types of this word; `patched` if the base's file has to be given for it.
fn choice(source: &ExportSource, start: &Result<Start>, patched: bool, word: &str) -> ExportChoice {
    let options = ExportOptions {
        format: ExportFormat::Gguf,
        types: Some(word.to_string()),
        ..ExportOptions::default()
    };
    let merged = opened_merged(source, &options).ok().flatten();
    let source = merged.as_ref().map_or(source, |merged| &merged.source);
    let plan = |start: &Start| {
        let types = GgufTypes::from_word(word)?;
        let mut stream = recipe(source, start, NAME, types, false)?;
        let mut draft = source.draft();
        draft.warnings.extend(lost(source, start, types, word));
        stream.push_receipt(RECEIPT, draft)?;
        Ok(stream)
    };
    let made = start.as_ref().map_err(Clone::clone).and_then(plan);
    let mut choice = ExportChoice::planned(ExportFormat::Gguf, Some(word), made);
    if patched {
        choice = ExportChoice {
            ok: true,
            needs: Some("base"),
            reason: None,
            plain: None,
            ..choice
        };
    }
    if merged
        .as_ref()
        .is_some_and(|merged| !merged.files.is_empty())
    {
        // The base's file with the sums in their places has another size.
        choice.bytes = None;
    }
    choice.lossy = choice.ok.then(|| "groups and optimizer state".to_string());
    choice
}
