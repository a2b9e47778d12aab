//! Opens a GGUF file, or the parts of a split one, as a bundle.

use std::collections::BTreeSet;

use super::files::{Files, MAX_DOCUMENT_BYTES, adapter, document, find, or_refused, unused};
use super::gguf_tokenizer::{default_end, end_ids, tokenizer_parts};
use super::gguf_tokenizer_check::check_tokenizer;
use super::options::{OpenOptions, Taken};
use super::same_numbers::same_numbers;
use super::tensors::Bundle;
use super::tokenizer_files::{GENERATION, TOKENIZER_FILES, carried, hf_tokenizer, more_templates};
use super::tokenizer_part::TokenizerPart;
use crate::error::{Refusal, Result, Warning, word};
use crate::families::{check_keys, config_from_gguf, names};
use crate::formats::{ByteSource, GgufFile, GgufValue, base_name, join_parts};
use crate::state::{Base, BaseFile, CARRIED_FILES, Reordering, SourceFormat, Tensor, dequantise};
use crate::tokenizer::{TOKENIZER_FILE, Tokenizer};

/// Opens the GGUF file at the position `gguf`, or joins its parts, and returns it with the index in `files` of the source of each tensor, and
/// the files as those of a base.
pub(crate) fn summed_gguf<S: ByteSource>(
    files: &[S],
    gguf: &[usize],
) -> Result<(GgufFile, Vec<usize>, Vec<BaseFile>)> {
    let parts = gguf
        .iter()
        .map(|&at| Ok((at, GgufFile::open_part(&files[at])?)))
        .collect::<Result<Vec<_>>>()?;
    let alone = parts
        .iter()
        .find(|(_, part)| !part.is_part())
        .map(|(at, _)| *at);
    if let (Some(alone), [_, _, ..]) = (alone, gguf) {
        let refusal = Refusal::new(word!("bundle.ambiguous"))
            .of(files[alone].name())
            .expected("one GGUF file, or the parts of one");
        return Err(refusal.found(gguf.len()).into());
    }
    let sums = parts
        .iter()
        .map(|(at, part)| BaseFile::new(&files[*at], part.header_sha256))
        .collect();
    let (file, homes) = join_parts(parts, |at| base_name(files[at].name()).to_string())?;
    Ok((file, homes, sums))
}

/// Parts of `general.*` that stay true of a model in another file (ggml's description of GGUF, "General metadata").
const ORIGIN: [&str; 17] = [
    "author",
    "version",
    "organization",
    "basename",
    "finetune",
    "size_label",
    "sampling",
    "description",
    "license",
    "url",
    "doi",
    "repo_url",
    "source",
    "base_model",
    "tags",
    "languages",
    "datasets",
];

/// Returns true for a key about the origin of a model, such as `general.license` and `general.license.link`.
fn tells_origin(key: &str) -> bool {
    let own = key.strip_prefix("general.").unwrap_or_default();
    ORIGIN.iter().any(|part| {
        own.strip_prefix(part)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Opens the GGUF files at the positions `gguf`; the other files are used only where the GGUF file lacks their contents.
pub(super) fn open_gguf(files: Files, gguf: &[usize], options: &OpenOptions) -> Result<Bundle> {
    let (file, homes, sums) = summed_gguf(&files, gguf)?;
    let name = files[homes.first().copied().unwrap_or(gguf[0])]
        .name()
        .to_string();
    if file.get("general.type").and_then(GgufValue::text) == Some("adapter") {
        return Err(adapter(&name).into());
    }
    let home = |tensor: &str| {
        file.tensors
            .iter()
            .position(|t| t.name == tensor)
            .map(|at| (homes[at], &file.tensors[at]))
    };
    let divisors = home(names::ROPE_FREQS)
        .map(|(at, tensor)| dequantise(&files[at], tensor))
        .transpose()?;
    let tied = file.tensor("output.weight").is_none();
    let mut config = config_from_gguf(&file, &name, divisors.as_deref(), tied)?;
    let family = file
        .get("general.architecture")
        .and_then(GgufValue::text)
        .unwrap_or_default();
    let mut warnings = file.warnings.clone();
    check_keys(&file, family, &mut warnings)?;
    let listed = file.tensors.iter().map(|tensor| {
        (
            tensor.name.as_str(),
            tensor.dtype.clone(),
            &tensor.shape[..],
        )
    });
    let taken = Taken::of(listed, options.request.as_ref(), &name, &mut warnings)?;
    let mut tensors = Vec::new();
    for (tensor, &source) in file
        .tensors
        .iter()
        .zip(&homes)
        .filter(|(tensor, _)| tensor.name != names::ROPE_FREQS)
    {
        let Some(own) = taken.name(&tensor.name) else {
            continue;
        };
        // A tensor without a Hugging Face name keeps its own, so that the model can report it as unexpected.
        let (name_hf, order) =
            names::from_gguf(own, family, &config).unwrap_or((own.to_string(), Reordering::Same));
        tensors.push(Tensor::of_file(name_hf, tensor, order, &files[source])?);
    }
    let position = |name: &str| tensors.iter().position(|tensor| tensor.name == name);
    if let (false, Some(head), Some(embedding)) = (
        tied || options.headers_only,
        position(names::HEAD),
        position(names::embedding(config.architecture)),
    ) && same_numbers(&tensors[head], &tensors[embedding], false)?
    {
        warnings.push(Warning::new(word!("model.tied.copy"), names::HEAD));
        config.tie_word_embeddings = true;
        tensors.remove(head);
    }
    let mut used: BTreeSet<usize> = gguf.iter().copied().collect();
    let mut refused = None;
    let (mut of_ids, mut default) = (Vec::new(), None);
    let mut own = || -> Result<Option<Tokenizer>> {
        of_ids = check_tokenizer(&file).map_err(|error| error.in_file(&name))?;
        let Some(parts) = tokenizer_parts(&file, &name)? else {
            return Ok(None);
        };
        default = default_end(&file, &parts);
        Tokenizer::from_parts(parts).map(Some)
    };
    let mut tokenizer = or_refused(own(), &mut refused, &mut warnings)?;
    warnings.append(&mut of_ids);
    let (mut generation, mut of_tokenizer, mut documents) =
        (None, name.as_str(), (Vec::new(), Vec::new()));
    if tokenizer.is_none() && find(&files, TOKENIZER_FILE).is_some() {
        tokenizer = or_refused(hf_tokenizer(&files), &mut refused, &mut warnings)?;
        of_tokenizer = TOKENIZER_FILE;
        // The metadata state what ends a turn, whatever is wrong with the vocabulary.
        if let Some(tokenizer) = &mut tokenizer {
            tokenizer.add_eos(&end_ids(&file));
            let instead = format!("The tokenizer of {} is used instead.", TOKENIZER_FILE);
            warnings
                .iter_mut()
                .for_each(|warning| warning.set_consequence(&instead));
        }
        generation = document(&files, GENERATION, MAX_DOCUMENT_BYTES)?;
        documents = carried(&files, tokenizer.as_ref())?;
        used.extend(
            TOKENIZER_FILES
                .iter()
                .chain(&CARRIED_FILES)
                .chain([&GENERATION])
                .filter_map(|name| find(&files, name)),
        );
        used.extend(more_templates(&files).into_iter().map(|(_, at)| at));
    }
    warnings.extend(unused(&files, &used, |_| true));
    warnings.append(&mut documents.1);
    let title = file
        .get("general.name")
        .and_then(GgufValue::text)
        .unwrap_or_default();
    let base = Base::new(title, SourceFormat::Gguf, sums);
    let mut part = TokenizerPart::of(
        tokenizer,
        refused,
        of_tokenizer,
        config.vocab_size,
        &mut warnings,
    );
    warnings.extend(default.filter(|_| of_tokenizer == name && part.tokenizer.is_some()));
    part.add_generation_config(generation, &mut warnings);
    Ok(Bundle {
        tokenizer: part.tokenizer,
        tokenizer_refused: part.refused,
        base,
        selection: taken.report,
        generation_config_json: part.generation_config_json,
        tokenizer_documents: documents.0,
        origin: file
            .metadata
            .iter()
            .filter(|(key, _)| tells_origin(key))
            .cloned()
            .collect(),
        warnings,
        ..Bundle::of_tensors(config, SourceFormat::Gguf, files, tensors)?
    })
}
