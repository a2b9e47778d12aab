//! Telling what a set of files is, and opening it.

use super::config_check::check;
use super::decode::Encoding;
use super::gguf::GgufFile;
use super::gguf_config::config_from_gguf;
use super::gguf_tokenizer::{check_tokenizer, tokenizer_parts};
use super::hf_config::config_from_hf;
use super::index::{MAX_DOCUMENT_BYTES, open_index};
use super::names::{self, Layout};
use super::refusal::{Warning, known_mark};
use super::safetensors::SafetensorsFile;
use super::source::{ByteSource, base_name, for_each_chunk, read_document};
use super::tensors::{Bundle, Entry, SourceFormat, narrow};
use crate::config::ModelConfig;
use crate::error::{Error, Refusal, Result};
use crate::tokenizer::Tokenizer;

const MAX_TOKENIZER_BYTES: u64 = 256 << 20;
const INDEX: &str = "model.safetensors.index.json";

/// Opens the files of one model: one GGUF file, or the files of a Hugging Face folder by their names (`config.json`, `model.safetensors` or
/// shards with their index, and where present `tokenizer.json`, `tokenizer_config.json`, `chat_template.jinja`, `generation_config.json`).
/// Only headers and small documents are read.
pub fn open_bundle(files: Vec<Box<dyn ByteSource>>) -> Result<Bundle> {
    if find(&files, "config.json").is_some() {
        return open_folder(files);
    }
    let gguf: Vec<usize> = (0..files.len()).filter(|&at| is_gguf(files[at].as_ref())).collect();
    match gguf.as_slice() {
        [at] => open_gguf(files, *at),
        [_, second, ..] => {
            let refusal = Refusal::new("bundle.ambiguous").of(files[*second].name()).expected("one GGUF file");
            Err(refusal.found(gguf.len()).into())
        }
        [] => Err(no_model(&files)),
    }
}

fn is_gguf(file: &dyn ByteSource) -> bool {
    base_name(file.name()).to_ascii_lowercase().ends_with(".gguf") || known_mark(file) == Some("gguf")
}

fn no_model(files: &[Box<dyn ByteSource>]) -> Error {
    let Some(first) = files.first() else {
        return Refusal::new("bundle.empty").expected("one GGUF file, or config.json and model.safetensors").into();
    };
    let hint = "give one .gguf file, or config.json together with model.safetensors and tokenizer.json";
    if let Some(file) = files.iter().find(|file| base_name(file.name()).ends_with(".safetensors")) {
        return match SafetensorsFile::open(file.as_ref()) {
            Ok(_) => Refusal::new("bundle.config.missing").of(file.name()).subject("config.json").hint(hint).into(),
            Err(error) => error,
        };
    }
    let pickled = files.iter().find(|file| is_pickle(file.as_ref()));
    if let Some(file) = pickled {
        return pickle(file.as_ref());
    }
    Refusal::new("format.unsupported").of(first.name()).found(known_mark(first.as_ref()).unwrap_or("no model file")).hint(hint).into()
}

fn is_pickle(file: &dyn ByteSource) -> bool {
    let name = base_name(file.name()).to_ascii_lowercase();
    [".bin", ".pt", ".pth", ".ckpt"].iter().any(|end| name.ends_with(end)) && matches!(known_mark(file), Some("zip" | "pickle"))
}

fn pickle(file: &dyn ByteSource) -> Error {
    let hint = "Python pickles are never loaded; save the model as safetensors where it was made";
    Refusal::new("format.unsupported").of(file.name()).found("pickle").hint(hint).into()
}

fn find(files: &[Box<dyn ByteSource>], name: &str) -> Option<usize> {
    files.iter().position(|file| base_name(file.name()) == name)
}

fn document(files: &[Box<dyn ByteSource>], name: &str, limit: u64) -> Result<Option<Vec<u8>>> {
    find(files, name).and_then(|at| files.get(at)).map(|file| read_document(file.as_ref(), limit)).transpose()
}

fn open_folder(files: Vec<Box<dyn ByteSource>>) -> Result<Bundle> {
    let config_json = document(&files, "config.json", MAX_DOCUMENT_BYTES)?.unwrap_or_default();
    let value = serde_json::from_slice(&config_json)
        .map_err(|e| Error::from(Refusal::new("bundle.config.json").of("config.json").expected("JSON").found(e)))?;
    let mut config = config_from_hf(&value)?;
    let (shards, mut warnings) = open_weights(&files)?;
    let mut entries = Vec::new();
    for (source, file) in &shards {
        for tensor in &file.tensors {
            let Some(name) = names::from_hf(&tensor.name, &config) else { continue };
            entries.push(Entry {
                stored_name: tensor.name.clone(),
                encoding: Encoding::of_word(&tensor.dtype),
                dtype: tensor.dtype.clone(),
                shape: narrow(&tensor.shape, &name, files[*source].name())?,
                source: *source,
                begin: tensor.begin,
                end: Some(tensor.end),
                layout: Layout::Same,
                name,
            });
        }
    }
    settle_vocabulary(&mut config, &entries, files[shards.first().map_or(0, |s| s.0)].name(), &mut warnings)?;
    if config.tie_word_embeddings {
        drop_equal_head(&files, &config, &mut entries, &mut warnings)?;
    }
    let tokenizer = match document(&files, "tokenizer.json", MAX_TOKENIZER_BYTES)? {
        Some(json) => {
            let settings = document(&files, "tokenizer_config.json", MAX_DOCUMENT_BYTES)?;
            let template = document(&files, "chat_template.jinja", MAX_DOCUMENT_BYTES)?;
            Some(Tokenizer::from_hf(&json, settings.as_deref(), template.as_deref())?)
        }
        None => None,
    };
    let generation_config_json = document(&files, "generation_config.json", MAX_DOCUMENT_BYTES)?;
    let mut bundle = Bundle::new(config, tokenizer, SourceFormat::HfFolder, files, entries, warnings)?;
    bundle.config_json = Some(config_json);
    bundle.add_generation_config(generation_config_json);
    Ok(bundle)
}

type Shards = Vec<(usize, SafetensorsFile)>;

fn open_weights(files: &[Box<dyn ByteSource>]) -> Result<(Shards, Vec<Warning>)> {
    let plain: Vec<usize> = (0..files.len()).filter(|&at| base_name(files[at].name()).ends_with(".safetensors")).collect();
    let single = find(files, "model.safetensors").or(match (plain.as_slice(), find(files, INDEX)) {
        ([only], None) => Some(*only),
        _ => None,
    });
    if let Some(at) = single {
        let file = SafetensorsFile::open(files[at].as_ref())?;
        let warnings = file.warnings.clone();
        return Ok((vec![(at, file)], warnings));
    }
    if let Some(at) = find(files, INDEX) {
        let all: Vec<&dyn ByteSource> = files.iter().map(AsRef::as_ref).collect();
        let sharded = open_index(files[at].as_ref(), &all)?;
        return Ok((sharded.shards, sharded.warnings));
    }
    if let Some(file) = files.iter().find(|file| is_pickle(file.as_ref())) {
        return Err(pickle(file.as_ref()));
    }
    Err(Refusal::new("bundle.weights.missing").of("config.json").expected("model.safetensors, or shards and their index").into())
}

/// More rows than the vocabulary are padding, and take part as tokens that never occur; fewer are refused.
fn settle_vocabulary(config: &mut ModelConfig, entries: &[Entry], artifact: &str, warnings: &mut Vec<Warning>) -> Result<()> {
    let name = names::embedding(config.architecture);
    let Some(&rows) = entries.iter().find(|entry| entry.name == name).and_then(|entry| entry.shape.first()) else { return Ok(()) };
    if rows < config.vocab_size {
        let refusal = Refusal::new("model.vocab.rows").of(artifact).subject(name);
        return Err(refusal.expected(format!("at least {} rows", config.vocab_size)).found(rows).into());
    }
    if rows > config.vocab_size {
        warnings.push(Warning::new("model.vocab.padded", name));
        config.vocab_size = rows;
        check(config)?;
    }
    Ok(())
}

/// A tied model may carry its head a second time, if it is the same.
fn drop_equal_head(
    files: &[Box<dyn ByteSource>],
    config: &ModelConfig,
    entries: &mut Vec<Entry>,
    warnings: &mut Vec<Warning>,
) -> Result<()> {
    let at = |name: &str| entries.iter().position(|entry| entry.name == name);
    let (Some(head), Some(embedding)) = (at(names::HEAD), at(names::embedding(config.architecture))) else { return Ok(()) };
    if !same_bytes(files, &entries[head], &entries[embedding])? {
        let refusal = Refusal::new("model.tied.conflict").of(files[entries[head].source].name()).subject(names::HEAD);
        return Err(refusal.expected("the input embedding, as config.json says").found("other values").into());
    }
    warnings.push(Warning::new("model.tied.copy", names::HEAD));
    entries.remove(head);
    Ok(())
}

fn same_bytes(files: &[Box<dyn ByteSource>], a: &Entry, b: &Entry) -> Result<bool> {
    let (Some(a_end), Some(b_end)) = (a.end, b.end) else { return Ok(false) };
    if a.dtype != b.dtype || a.shape != b.shape || a_end - a.begin != b_end - b.begin {
        return Ok(false);
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

fn open_gguf(files: Vec<Box<dyn ByteSource>>, at: usize) -> Result<Bundle> {
    let source = files[at].as_ref();
    let name = source.name().to_string();
    let file = GgufFile::open(source)?;
    check_tokenizer(&file).map_err(|error| error.in_file(&name))?;
    let tied = file.tensor("output.weight").is_none();
    let mut config = config_from_gguf(&file, source, tied)?;
    let family = file.get("general.architecture").and_then(super::gguf::GgufValue::text).unwrap_or_default();
    let mut entries = Vec::new();
    for tensor in file.tensors.iter().filter(|tensor| tensor.name != names::ROPE_FREQS) {
        // A tensor without a Hugging Face name keeps its own, so that the model can say that it has no place for it.
        let (name_hf, layout) = names::from_gguf(&tensor.name, family, &config).unwrap_or((tensor.name.clone(), Layout::Same));
        let mut shape = narrow(&tensor.shape, &tensor.name, &name)?;
        if layout == Layout::Transposed {
            shape.reverse();
        }
        entries.push(Entry {
            stored_name: tensor.name.clone(),
            name: name_hf,
            encoding: Encoding::of_ggml(tensor.ggml_type),
            dtype: tensor.ggml_type.dtype(),
            shape,
            source: at,
            begin: tensor.begin,
            end: tensor.bytes.map(|bytes| tensor.begin + bytes),
            layout,
        });
    }
    let mut warnings = file.warnings.clone();
    let find = |name: &str| entries.iter().position(|entry: &Entry| entry.name == name);
    if let (false, Some(head), Some(embedding)) = (tied, find(names::HEAD), find(names::embedding(config.architecture)))
        && same_bytes(&files, &entries[head], &entries[embedding])?
    {
        warnings.push(Warning::new("model.tied.copy", names::HEAD));
        config.tie_word_embeddings = true;
        entries.remove(head);
    }
    let tokenizer = tokenizer_parts(&file)?.map(Tokenizer::from_parts).transpose()?;
    Bundle::new(config, tokenizer, SourceFormat::Gguf, files, entries, warnings)
}
