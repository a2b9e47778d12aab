//! Finds out what a set of files is, and opens it.

use std::collections::{BTreeMap, BTreeSet};

use super::adapter::{attach_adapter, merge_adapter};
use super::decode::Encoding;
use super::fit::refuse_non_finite;
use super::gguf_model::open_gguf;
use super::hf_folder::open_folder;
use super::pieces::{PIECE_ELEMENTS, Pieces};
use super::refusal::{Warning, known_mark};
use super::safetensors::SafetensorsFile;
use super::source::{ByteSource, base_name, for_each_chunk, read_document};
use super::state::{ModelStateTensorManifest, NonFinitePolicy, PortableModelImportRequest, SelectionReport, select};
use super::tensors::{Bundle, Entry};
use crate::error::{Error, Refusal, Result, word};

/// Files of one model.
pub(super) type Files = Vec<Box<dyn ByteSource>>;

/// Largest index, manifest, configuration or template.
pub(super) const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// Opens the files of one model: one GGUF file or its parts in any order, or the files of a Hugging Face folder by their names (`config.json`,
/// `model.safetensors` or shards with their index, and if present `tokenizer.json`, `tokenizer_config.json`, `chat_template.jinja`,
/// `generation_config.json`, and the documents of a tokenizer for other programs, which go with the model). Only the headers of the weights are read, except that the bytes of embedding and head are compared where they
/// may be equal.
pub fn open_bundle(files: Files) -> Result<Bundle> {
    open_bundle_with(files, OpenOptions::default())
}

/// What is done to a model while it is opened.
#[derive(Default)]
pub struct OpenOptions {
    /// `adapter_config.json` and `adapter_model.safetensors` of a PEFT LoRA, which is merged: every tensor then reads with the product of
    /// its pair added, rounded to its dtype, blocks as F32.
    pub adapter: Option<Vec<Box<dyn ByteSource>>>,
    /// Put the adapter beside the model instead: its factors become tensors of their own, and the base's matrices stay as they are.
    pub apart: bool,
    /// Leave the tensors that an adapter is merged into as F32, whatever they are in the base: for writers that round by themselves.
    pub exact: bool,
    /// Take a table of embeddings that has more rows in the adapter than in the base: tokens were added before it was trained.
    pub resize_vocabulary: bool,
    /// What is taken of the tensors and under which names, before the model's own names are looked for.
    pub request: Option<PortableModelImportRequest>,
    /// Read no values: whether a second head equals the embedding stays open, and it is left out as if it did.
    pub headers_only: bool,
}

/// Opens the files of one model like [`open_bundle`], with options.
pub fn open_bundle_with(files: Files, mut options: OpenOptions) -> Result<Bundle> {
    let adapter = options.adapter.take();
    options.request.as_ref().map_or(Ok(()), PortableModelImportRequest::check_for_model)?;
    let mut bundle = open_base(files, &options)?;
    if options.request.as_ref().is_some_and(|request| request.non_finite == NonFinitePolicy::Refuse) {
        let count = |name: String| bundle.non_finite(&name).map(|count| (name, count));
        refuse_non_finite(&bundle.names().into_iter().map(count).collect::<Result<Vec<_>>>()?)?;
    }
    if let Some(adapter) = adapter {
        match options.apart {
            true => attach_adapter(&mut bundle, adapter)?,
            false => merge_adapter(&mut bundle, adapter, options.exact, options.resize_vocabulary)?,
        }
    }
    Ok(bundle)
}

/// The new name of each tensor that is taken, by its name in the files.
pub(super) struct Taken {
    names: Option<BTreeMap<String, String>>,
    pub(super) report: SelectionReport,
}

impl Taken {
    /// What `request` takes of `tensors`, given as name, dtype and shape; everything without one.
    pub(super) fn of<'a>(
        tensors: impl Iterator<Item = (&'a str, String, &'a [u64])>,
        request: Option<&PortableModelImportRequest>,
        artifact: &str,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self> {
        let Some(request) = request else { return Ok(Self { names: None, report: SelectionReport::default() }) };
        let listed = tensors.map(|(name, dtype, shape)| (name.to_string(), ModelStateTensorManifest::of_name(name, &dtype, shape)));
        let selected = select(&listed.collect(), &[], request, artifact)?;
        warnings.extend(selected.warnings);
        let names = selected.entries.into_iter().map(|entry| (entry.source_key, entry.tensor.state_key)).collect();
        Ok(Self { names: Some(names), report: selected.report })
    }

    /// The name under which the tensor `stored` of a file is taken.
    pub(super) fn name<'a>(&'a self, stored: &'a str) -> Option<&'a str> {
        match &self.names {
            Some(names) => names.get(stored).map(String::as_str),
            None => Some(stored),
        }
    }
}

fn open_base(files: Files, options: &OpenOptions) -> Result<Bundle> {
    refuse_adapter(&files)?;
    let config = find(&files, "config.json").is_some();
    if config && (named(&files, ".gguf").is_empty() || !named(&files, ".safetensors").is_empty()) {
        return open_folder(files, options);
    }
    let gguf = gguf_files(&files);
    if gguf.is_empty() { Err(no_model(&files)) } else { open_gguf(files, &gguf, options) }
}

/// Positions of the files whose names end so.
fn named<S: ByteSource>(files: &[S], end: &str) -> Vec<usize> {
    (0..files.len()).filter(|&at| lower_name(&files[at]).ends_with(end)).collect()
}

/// Positions of the GGUF files: by their names, or where no name says so, by their first bytes.
pub(crate) fn gguf_files<S: ByteSource>(files: &[S]) -> Vec<usize> {
    let named = named(files, ".gguf");
    if named.is_empty() { (0..files.len()).filter(|&at| known_mark(&files[at]) == Some("gguf")).collect() } else { named }
}

fn lower_name(file: &dyn ByteSource) -> String {
    base_name(file.name()).to_ascii_lowercase()
}

/// Refuses adapter files: an adapter changes what its base computes, so it is never ignored.
fn refuse_adapter(files: &Files) -> Result<()> {
    let of_adapter = |name: &str| name == "adapter_config.json" || name.starts_with("adapter_model.");
    let found = files.iter().filter(|file| of_adapter(&lower_name(file.as_ref())));
    let refusals: Vec<Refusal> = found.map(|file| adapter(file.name())).collect();
    if refusals.is_empty() { Ok(()) } else { Err(Error::Refused(refusals)) }
}

/// The refusal of an adapter's file.
pub(super) fn adapter(name: &str) -> Refusal {
    let hint = "give the adapter's files by themselves as mergeAdapter (--merge-adapter), or open the base alone";
    Refusal::new(word!("bundle.adapter")).of(name).subject(base_name(name)).expected("a model's own files").found("an adapter").hint(hint)
}

fn no_model(files: &Files) -> Error {
    let Some(first) = files.first() else {
        return Refusal::new(word!("bundle.empty")).expected("one GGUF file, or config.json and model.safetensors").into();
    };
    let hint = "give one .gguf file, or config.json together with model.safetensors and tokenizer.json";
    if let Some(file) = files.iter().find(|file| base_name(file.name()).ends_with(".safetensors")) {
        return match SafetensorsFile::open(file.as_ref()) {
            Ok(_) => Refusal::new(word!("bundle.config.missing")).of(file.name()).subject("config.json").hint(hint).into(),
            Err(error) => error,
        };
    }
    if let Some(error) = pickle(files) {
        return error;
    }
    Refusal::new(word!("format.unsupported"))
        .of(first.name())
        .found(known_mark(first.as_ref()).unwrap_or("no model file"))
        .hint(hint)
        .into()
}

/// The refusal of weights that are a pickle, if one is among the files.
pub(super) fn pickle(files: &Files) -> Option<Error> {
    let is_pickle = |file: &dyn ByteSource| {
        let name = lower_name(file);
        [".bin", ".pt", ".pth", ".ckpt"].iter().any(|end| name.ends_with(end)) && matches!(known_mark(file), Some("zip" | "pickle"))
    };
    let file = files.iter().find(|file| is_pickle(file.as_ref()))?;
    let hint = "Python pickles are never loaded; save the model as safetensors where it was made";
    Some(Refusal::new(word!("format.unsupported")).of(file.name()).found("pickle").hint(hint).into())
}

/// Position of the file `name`.
pub(super) fn find(files: &Files, name: &str) -> Option<usize> {
    files.iter().position(|file| base_name(file.name()) == name)
}

/// The bytes of the file `name`, if it is present.
pub(super) fn document(files: &Files, name: &str, limit: u64) -> Result<Option<Vec<u8>>> {
    find(files, name).and_then(|at| files.get(at)).map(|file| read_document(file.as_ref(), limit)).transpose()
}

/// A tokenizer that was refused leaves the tensors usable; a file that cannot be read does not.
pub(super) fn or_refused<T>(result: Result<Option<T>>, refused: &mut Option<Error>, warnings: &mut Vec<Warning>) -> Result<Option<T>> {
    match result {
        Err(error) if of_tokenizer(&error) => {
            warnings.push(Warning::of_error(&error, "tokenizer"));
            *refused = Some(error);
            Ok(None)
        }
        other => other,
    }
}

fn of_tokenizer(error: &Error) -> bool {
    let code = error.code();
    code.starts_with("tokenizer.") || code.starts_with("template.") || code == word!("source.too-large").text()
}

/// A warning for each unused file whose name `counts` accepts.
pub(super) fn unused(files: &Files, used: &BTreeSet<usize>, counts: impl Fn(&str) -> bool) -> Vec<Warning> {
    let left = files.iter().enumerate().filter(|(at, _)| !used.contains(at)).map(|(_, file)| file);
    left.filter(|file| counts(&lower_name(file.as_ref())))
        .map(|file| Warning::new(word!("bundle.unused"), base_name(file.name())))
        .collect()
}

/// Whether two tensors have the same shape and numbers: the same bytes of one dtype, or equal values of two that f32 holds; `unread` counts as
/// equal.
pub(super) fn same_numbers(files: &Files, a: &Entry, b: &Entry, unread: bool) -> Result<bool> {
    let exact = |entry: &Entry| matches!(entry.encoding, Some(Encoding::F32 | Encoding::F16 | Encoding::Bf16));
    if a.shape == b.shape && a.dtype != b.dtype && exact(a) && exact(b) {
        return if unread { Ok(true) } else { same_values(files, a, b) };
    }
    let (Some(a_end), Some(b_end)) = (a.end, b.end) else { return Ok(false) };
    if a.dtype != b.dtype || a.shape != b.shape || a_end - a.begin != b_end - b.begin {
        return Ok(false);
    }
    if unread {
        return Ok(true);
    }
    let mut same = true;
    let mut at = b.begin;
    let mut other = Vec::new();
    for_each_chunk(files[a.source].as_ref(), a.begin, a_end, 1, |piece| {
        if same {
            other.resize(piece.len(), 0);
            files[b.source].read_at(at, &mut other)?;
            same = other == piece;
            at += piece.len() as u64;
        }
        Ok(())
    })?;
    Ok(same)
}

/// Whether two tensors of one shape have equal values, bit for bit in f32.
fn same_values(files: &Files, a: &Entry, b: &Entry) -> Result<bool> {
    let mut of_a = Pieces::new(a, files[a.source].as_ref(), PIECE_ELEMENTS)?;
    let mut of_b = Pieces::new(b, files[b.source].as_ref(), PIECE_ELEMENTS)?;
    loop {
        match (of_a.next_piece()?, of_b.next_piece()?) {
            (None, None) => return Ok(true),
            (Some((_, a)), Some((_, b))) if a.iter().map(|value| value.to_bits()).eq(b.iter().map(|value| value.to_bits())) => {}
            _ => return Ok(false),
        }
    }
}
