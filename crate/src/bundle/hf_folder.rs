//! Opens the files of a Hugging Face folder as a bundle.

use std::collections::BTreeSet;
use std::fmt::Display;

use super::files::{Files, MAX_DOCUMENT_BYTES, document, find, or_refused, other_weights, unused};
use super::index::open_index;
use super::options::{OpenOptions, Taken};
use super::prefixes::settle_prefix;
use super::same_numbers::same_numbers;
use super::tensors::{Bundle, home};
use super::tokenizer_files::{GENERATION, carried, hf_tokenizer};
use super::tokenizer_part::TokenizerPart;
use crate::config::ModelConfig;
use crate::error::{Error, Refusal, Result, Warning, word};
use crate::families::{check, config_of_weights, names};
use crate::formats::{ByteSource, SafetensorsFile, base_name, describe_flaw, foreign, key_twice};
use crate::state::{Base, BaseFile, Reordering, SourceFormat, Tensor};
use crate::tokenizer::{SPECIALS_FILE, TOKENIZER_FILE};

/// File that lists the shards and the tensors in them.
pub(super) const INDEX: &str = "model.safetensors.index.json";

/// Opens a folder that has a `config.json`.
pub(super) fn open_folder(files: Files, options: &OpenOptions) -> Result<Bundle> {
    let config_json = document(&files, "config.json", MAX_DOCUMENT_BYTES)?.unwrap_or_default();
    let not_json = |found: &dyn Display| {
        let refusal = Refusal::new(word!("bundle.config.json"))
            .of("config.json")
            .expected("JSON")
            .found(found);
        Error::from(describe_flaw(refusal, &config_json))
    };
    let value: serde_json::Value =
        serde_json::from_slice(&config_json).map_err(|error| not_json(&error))?;
    if let Some(key) = key_twice(&config_json) {
        return Err(not_json(&format!("the key {key} twice")));
    }
    if value.get("model_type").is_none() && foreign(&config_json).is_some() {
        // A hub writes its messages as JSON, too.
        return Err(not_json(&"a message"));
    }
    let end = &value["eos_token_id"];
    if !end.is_null()
        && !end.is_i64()
        && !end
            .as_array()
            .is_some_and(|ids| ids.iter().all(serde_json::Value::is_i64))
    {
        let refusal = Refusal::new(word!("model.config.type"))
            .of("config.json")
            .subject("eos_token_id");
        return Err(refusal
            .expected("an id, or a list of ids")
            .found(end)
            .into());
    }
    let (mut config, taken) = config_of_weights(&value)?;
    let (shards, mut warnings) = open_weights(&files)?;
    warnings.extend(taken.iter().map(|(key, value)| {
        Warning::new(word!("model.config.default"), &format!("{key}: {value}"))
    }));
    let listed = shards
        .iter()
        .flat_map(|(_, file)| &file.tensors)
        .map(|tensor| {
            (
                tensor.name.as_str(),
                tensor.dtype.clone(),
                &tensor.shape[..],
            )
        });
    let taken = Taken::of(
        listed,
        options.request.as_ref(),
        "config.json",
        &mut warnings,
    )?;
    let mut tensors = Vec::new();
    for (source, file) in &shards {
        for tensor in &file.tensors {
            let Some(name) = taken
                .name(&tensor.name)
                .and_then(|name| names::from_hf(name, &config))
            else {
                continue;
            };
            let file = &files[*source];
            tensors.push(Tensor::of_file(name, tensor, Reordering::Same, file)?);
        }
    }
    warnings.extend(settle_prefix(&mut tensors, config.architecture));
    let used: BTreeSet<usize> = shards.iter().map(|(at, _)| *at).collect();
    warnings.extend(unused(&files, &used, |name| {
        name.ends_with(".safetensors") || name.ends_with(".gguf")
    }));
    settle_vocabulary(
        &mut config,
        &tensors,
        files[shards.first().map_or(0, |s| s.0)].name(),
        &mut warnings,
    )?;
    if config.tie_word_embeddings {
        drop_equal_head(&config, &mut tensors, &mut warnings, options.headers_only)?;
    }
    let mut refused = None;
    let tokenizer = or_refused(hf_tokenizer(&files), &mut refused, &mut warnings)?;
    let broken = tokenizer
        .as_ref()
        .filter(|found| found.has_chat_template() || found.has_tool_template())
        .and_then(|found| found.check_chat_template().err());
    warnings
        .extend(broken.map(|error| Warning::new(word!("tokenizer.template"), &reason_of(error))));
    let generation_config_json = document(&files, GENERATION, MAX_DOCUMENT_BYTES)?;
    let specials = document(&files, SPECIALS_FILE, MAX_DOCUMENT_BYTES)?;
    let sums = shards
        .iter()
        .map(|(at, shard)| BaseFile::new(&files[*at], shard.header_sha256))
        .collect();
    // `_name_or_path` is where its maker had another model: a path of a stranger, or this model's parent.
    let base = Base::new("", SourceFormat::HfFolder, sums);
    let rows = config.vocab_size;
    let mut part = TokenizerPart::of(tokenizer, refused, TOKENIZER_FILE, rows, &mut warnings);
    let (documents, told) = carried(&files, part.tokenizer.as_ref())?;
    warnings.extend(told);
    let generation: serde_json::Value = generation_config_json
        .as_deref()
        .and_then(|bytes| serde_json::from_slice(bytes).ok())
        .unwrap_or_default();
    warnings.extend(special_ids([&value, &generation], rows));
    part.add_generation_config(generation_config_json, &mut warnings);
    part.add_other_ends(&value, specials.as_deref(), &mut warnings);
    Ok(Bundle {
        tokenizer: part.tokenizer,
        tokenizer_refused: part.refused,
        base,
        selection: taken.report,
        config_json: Some(config_json),
        generation_config_json: part.generation_config_json,
        tokenizer_documents: documents,
        warnings,
        ..Bundle::of_tensors(config, SourceFormat::HfFolder, files, tensors)?
    })
}

/// Returns the reason why a chat template cannot be used.
fn reason_of(error: Error) -> String {
    if let Error::Template { reason } = error {
        reason
    } else {
        error.to_string()
    }
}

/// Returns a warning for each role whose id, or one of whose ids, no row has; early files write −1 where there is no id. The ids that begin
/// and end a text are among them: transformers writes 50256 into every configuration of GPT-2, however small its vocabulary.
fn special_ids(documents: [&serde_json::Value; 2], rows: usize) -> Vec<Warning> {
    let beyond = |id: &serde_json::Value| {
        let stated = id.as_i64().filter(|id| *id != -1);
        stated.is_some_and(|id| usize::try_from(id).map_or(true, |id| id >= rows))
    };
    let of_role =
        |document: &serde_json::Value, role: &str| match &document[format!("{role}_token_id")] {
            serde_json::Value::Array(ids) => ids.iter().any(beyond),
            one => beyond(one),
        };
    let unused = |role: &&str| documents.iter().any(|document| of_role(document, role));
    let roles = ["bos", "eos", "pad", "mask", "cls", "sep"]
        .into_iter()
        .filter(unused);
    roles
        .map(|role| Warning::new(word!("tokenizer.id.unused"), role))
        .collect()
}

type Shards = Vec<(usize, SafetensorsFile)>;

fn open_weights(files: &Files) -> Result<(Shards, Vec<Warning>)> {
    let plain: Vec<usize> = (0..files.len())
        .filter(|&at| base_name(files[at].name()).ends_with(".safetensors"))
        .collect();
    let single =
        find(files, "model.safetensors").or(match (plain.as_slice(), find(files, INDEX)) {
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
    let expected = if plain.is_empty() {
        "model.safetensors, or shards and their index"
    } else {
        "model.safetensors.index.json, the index of the shards"
    };
    let absent = || {
        Refusal::new(word!("bundle.weights.missing"))
            .of("config.json")
            .expected(expected)
    };
    Err(other_weights(files).unwrap_or_else(|| absent().into()))
}

/// Enlarges the vocabulary to the rows of the embedding: rows beyond it are padding and are kept, as tokens that never occur. Fewer rows are
/// refused.
fn settle_vocabulary(
    config: &mut ModelConfig,
    tensors: &[Tensor],
    artifact: &str,
    warnings: &mut Vec<Warning>,
) -> Result<()> {
    let name = names::embedding(config.architecture);
    let Some(rows) = tensors
        .iter()
        .find(|tensor| tensor.name == name)
        .and_then(|tensor| tensor.dims().first().copied())
    else {
        return Ok(());
    };
    if rows < config.vocab_size {
        let refusal = Refusal::new(word!("model.vocab.rows"))
            .of(artifact)
            .subject(name);
        return Err(refusal
            .expected(format!("at least {} rows", config.vocab_size))
            .found(rows)
            .into());
    }
    if rows > config.vocab_size {
        warnings.push(Warning::new(word!("model.vocab.padded"), name));
        config.vocab_size = rows;
        check(config)?;
    }
    Ok(())
}

/// Drops the head of a tied model that is stored as a second tensor with equal values; other values are refused.
fn drop_equal_head(
    config: &ModelConfig,
    tensors: &mut Vec<Tensor>,
    warnings: &mut Vec<Warning>,
    unread: bool,
) -> Result<()> {
    let at = |name: &str| tensors.iter().position(|tensor| tensor.name == name);
    let (Some(head), Some(embedding)) =
        (at(names::HEAD), at(names::embedding(config.architecture)))
    else {
        return Ok(());
    };
    if !same_numbers(&tensors[head], &tensors[embedding], unread)? {
        let refusal = Refusal::new(word!("model.tied.conflict"))
            .of(home(&tensors[head]).map_or("", |file| file.name()))
            .subject(names::HEAD);
        return Err(refusal
            .expected("the input embedding, as config.json says")
            .found("other values")
            .into());
    }
    warnings.push(Warning::new(word!("model.tied.copy"), names::HEAD));
    tensors.remove(head);
    Ok(())
}
