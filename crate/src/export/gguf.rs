//! Writes a model as one GGUF file.

use super::choice::ExportChoice;
use super::format::{BaseFiles, Format};
use super::gguf_types::{GgufTypes, and_more, words};
use super::merged::{merged, opened_merged};
use super::options::ExportOptions;
use super::patch::patch;
use super::recipe::{Start, has_none_of, recipe};
use super::source::ExportSource;
use super::{ExportFormat, check_kind};
use crate::bundle::FileStream;
use crate::error::{Result, Warning, word};
use crate::state::{Base, ModelIoArtifactReceipt, RECEIPT, ReceiptFile, ReceiptWarning};
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
    let source = &*source.in_gguf_form();
    let types = GgufTypes::of(options)?;
    let name = options.name.as_deref().unwrap_or(NAME);
    options.check_names(".gguf")?;
    check_kind(source, ExportFormat::Gguf)?;
    let mut draft = source.draft();
    let mut stream = if base_files.is_empty() {
        let start = Start::of(source)?;
        let word = options.types.as_deref().unwrap_or_default();
        draft.warnings.extend(lost(source, &start, types, word));
        recipe(source, &start, name, types, options.requantise)?
    } else {
        let (stream, base, kept) =
            patch(source, base_files, name, types, options.requantise).await?;
        draft
            .warnings
            .extend(kept.as_ref().map(ReceiptWarning::from));
        add_base(&mut draft, &base);
        stream
    };
    if let Some(name) = &options.file_name {
        stream.rename_first(name);
    }
    options.finish(stream, draft)
}

/// Adds the files that a patch was written into, with their checksums.
fn add_base(draft: &mut ModelIoArtifactReceipt, base: &Base) {
    let given = base.receipt_files();
    let is_given = |file: &ReceiptFile| {
        let same = |one: &ReceiptFile| (&one.name, one.bytes) == (&file.name, file.bytes);
        given.iter().any(same)
    };
    draft.inputs.retain(|file| !is_given(file));
    draft.inputs.extend(given);
    // The given files are those that the run started from, unless every tensor is replaced.
    let recorded = draft.base.as_mut();
    if let Some(recorded) = recorded.filter(|recorded| recorded.matches(base)) {
        recorded.take_sums(base);
        if recorded.files.iter().all(|file| file.sha256.is_some()) {
            draft.checks.retain(|check| check.name != "base");
        }
    }
}

/// The architecture whose window llama.cpp reads and does not use (src/models/phi3.cpp).
const WINDOW_IGNORED: &str = "phi3";

/// The warnings about facts that a new file cannot hold, and about a type of which no matrix is; `word` asks for it.
fn lost(source: &ExportSource, start: &Start, types: GgufTypes, word: &str) -> Vec<ReceiptWarning> {
    let tokenizer = source.assets.tokenizer.as_ref();
    let bordered = tokenizer.map(Tokenizer::bordered_tokens);
    let bordered = bordered.unwrap_or_default();
    let border = bordered.first().map(|first| {
        let subject = and_more(first.to_string(), bordered.len() - 1);
        Warning::new(word!("export.gguf.token-border"), &subject)
    });
    let none = has_none_of(&source.weights, start.family, types)
        .then(|| Warning::new(word!("export.gguf.type-unused"), word));
    let end = start
        .end_by_default()
        .map(|token| Warning::new(word!("export.gguf.end"), &token));
    let composes = tokenizer.is_some_and(Tokenizer::composes);
    let normalizer = composes.then(|| Warning::new(word!("export.gguf.normalizer"), "NFC"));
    let config = &source.weights.config;
    let hidden = start.family == WINDOW_IGNORED && config.sees_less_than_context();
    let window = config.sliding_window.filter(|_| hidden);
    let window =
        window.map(|window| Warning::new(word!("export.gguf.window"), &window.to_string()));
    let lost = [border, none, end, normalizer, window];
    let lost = lost.iter().flatten();
    lost.map(ReceiptWarning::from).collect()
}

/// One GGUF file.
pub(super) const FORMAT: Format = Format {
    word: "gguf",
    about: "GGUF for llama.cpp",
    ending: ".gguf",
    is_of_adapter: false,
    own_options: &["base", "type", "requantise"],
    export: |source, base_files, options| {
        Box::pin(async move {
            let merged = merged(source, base_files, options).await?;
            export_gguf(&merged.source, merged.files, &merged.options).await
        })
    },
    choices,
};

/// One file for each type of the matrices.
fn choices(source: &ExportSource) -> Vec<ExportChoice> {
    let source = &*source.in_gguf_form();
    let start = Start::of(source);
    // The base's metadata and tokenizer serve where no new ones can be made.
    let patched = start.is_err() && source.base.as_ref().is_some_and(Base::is_gguf);
    if source.adapter_settings.is_some() {
        let refused = start.err().filter(|_| !patched);
        return words()
            .map(|word| ExportChoice::merged(ExportFormat::Gguf, Some(word), refused.as_ref()))
            .collect();
    }
    words()
        .map(|word| choice(source, &start, patched, word))
        .collect()
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
    let mut choice = if patched {
        ExportChoice::merged(ExportFormat::Gguf, Some(word), None)
    } else {
        let made = start.as_ref().map_err(Clone::clone).and_then(plan);
        ExportChoice::planned(ExportFormat::Gguf, Some(word), made)
    };
    // The base's file with the sums in their places has another size.
    let into_base = merged
        .as_ref()
        .is_some_and(|merged| !merged.files.is_empty());
    choice.bytes = choice.bytes.filter(|_| !into_base);
    choice.lossy = choice.ok.then(|| "groups and optimizer state".to_string());
    choice
}
