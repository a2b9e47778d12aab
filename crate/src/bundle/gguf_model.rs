//! Opens a GGUF file, or the parts of a split one, as a bundle.

use std::rc::Rc;

use super::bundle_tokenizer::or_refused;
use super::files::{Files, GENERATION, MAX_DOCUMENT_BYTES, adapter, document, find, unused};
use super::gguf_tokenizer::{Metadata, read_tokenizer};
use super::gguf_tokenizer_check::check_tokenizer;
use super::options::{OpenOptions, Taken};
use super::tensors::Bundle;
use super::tokenizer_files::{TOKENIZER_FILES, carried, hf_tokenizer, more_templates};
use crate::error::{Refusal, Result, word};
use crate::families::{Divisors, check_keys, config_from_gguf, names};
use crate::formats::{ByteSource, GgufFile, GgufValue, base_name, join_parts, read_document};
use crate::state::{Base, BaseFile, CARRIED_FILES, Reordering, SourceFormat, Tensor, dequantise};
use crate::tokenizer::{TEMPLATE_FILE, TOKENIZER_FILE};

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
    let alone = parts.iter().find(|(_, part)| !part.is_part());
    if let (Some((alone, _)), [_, _, ..]) = (alone, gguf) {
        let refusal = Refusal::new(word!("bundle.ambiguous"))
            .of(files[*alone].name())
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

/// Reads the divisors of the rotary frequencies, which a file lists as tensors although they are a part of its configuration.
pub(super) fn divisors(
    file: &GgufFile,
    homes: &[usize],
    files: &[Rc<dyn ByteSource>],
) -> Result<Divisors> {
    let read = |name: &str| {
        let mut tensors = file.tensors.iter().zip(homes);
        let listed = tensors.find(|(tensor, _)| tensor.name == name);
        listed
            .map(|(tensor, &at)| dequantise(&files[at], tensor))
            .transpose()
    };
    let [short, long] = names::ROPE_FACTORS.map(read);
    Ok(Divisors {
        freqs: read(names::ROPE_FREQS)?,
        factors: [short?, long?],
    })
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

/// Tells if a key is about the origin of a model, such as `general.license` and `general.license.link`.
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
    let text = |key: &str| file.get(key).and_then(GgufValue::text).unwrap_or_default();
    let first = homes.first().copied().unwrap_or(gguf[0]);
    let name = files[first].name().to_string();
    if text("general.type") == "adapter" {
        return Err(adapter(&name).into());
    }
    let divisors = divisors(&file, &homes, &files)?;
    let tied = file.tensor("output.weight").is_none();
    let config = config_from_gguf(&file, &name, &divisors, tied)?;
    let family = text("general.architecture");
    let mut bundle = Bundle::new(config, SourceFormat::Gguf, files);
    bundle.warnings.clone_from(&file.warnings);
    check_keys(&file, family, &mut bundle.warnings)?;
    bundle.warn_of_window();
    let request = options.request.as_ref();
    let listed = file.tensors.iter();
    let listed = listed.map(|stored| (&*stored.name, &*stored.dtype, &*stored.shape));
    let taken = Taken::of(listed, request, &name, &mut bundle.warnings)?;
    let mut tensors = Vec::new();
    for (tensor, &at) in file.tensors.iter().zip(&homes) {
        if names::is_of_config(&tensor.name, &bundle.config) {
            continue;
        }
        if let Some(own) = taken.name(&tensor.name) {
            // A tensor without a Hugging Face name keeps its own, so that the model can report it as unexpected.
            let (key, order) = names::from_gguf(own, family, &bundle.config)
                .unwrap_or((own.to_string(), Reordering::Same));
            if order.changes_values() && tensor.dtype != "F32" {
                return Err(Refusal::new(word!("model.tensor.dtype"))
                    .of(&name)
                    .subject(&tensor.name)
                    .expected("F32")
                    .found(&tensor.dtype)
                    .into());
            }
            tensors.push(Tensor::of_file(key, tensor, order, &bundle.files[at])?);
        }
    }
    if !tied && !options.headers_only && bundle.drop_copied_head(&mut tensors, false)? == Some(true)
    {
        bundle.config.tie_word_embeddings = true;
    }
    let (found, of_ids) = match check_tokenizer(&file) {
        Ok(warnings) => (read_tokenizer(&file, &name), warnings),
        Err(error) => (Err(error.in_file(&name)), Vec::new()),
    };
    let (found, refused) = or_refused(found)?;
    bundle.refuse_tokenizer(refused);
    bundle.warnings.extend(of_ids);
    let (mut tokenizer, default_end) = found.unzip();
    let mut used = gguf.to_vec();
    let (mut generation, mut of_tokenizer, mut told) = (None, name.as_str(), Vec::new());
    if tokenizer.is_none() && find(&bundle.files, TOKENIZER_FILE).is_some() {
        let (other, refused) = or_refused(hf_tokenizer(&bundle.files))?;
        bundle.refuse_tokenizer(refused);
        tokenizer = other;
        of_tokenizer = TOKENIZER_FILE;
        // The metadata state what ends a turn, whatever is wrong with the vocabulary.
        if let Some(tokenizer) = &mut tokenizer {
            tokenizer.add_eos(&Metadata(&file).ends());
            let instead = format!("The tokenizer of {TOKENIZER_FILE} is used instead.");
            let warnings = bundle.warnings.iter_mut();
            warnings.for_each(|warning| warning.set_consequence(&instead));
        }
        generation = document(&bundle.files, GENERATION)?;
        (bundle.tokenizer_documents, told) = carried(&bundle.files, tokenizer.as_ref())?;
        let names = TOKENIZER_FILES.iter().chain(&CARRIED_FILES);
        let names = names.chain([&GENERATION]);
        used.extend(names.filter_map(|name| find(&bundle.files, name)));
        used.extend(more_templates(&bundle.files).into_iter().map(|(_, at)| at));
    }
    if let (Some(tokenizer), Some(at)) = (&mut tokenizer, find(&bundle.files, TEMPLATE_FILE))
        && !used.contains(&at)
    {
        let text = read_document(&bundle.files[at], MAX_DOCUMENT_BYTES)?;
        tokenizer.take_template_file(&text)?;
        used.push(at);
    }
    let unused = unused(&bundle.files, &used, &[""]);
    bundle.warnings.extend(unused.into_iter().chain(told));
    bundle.base = Base::new(text("general.name"), SourceFormat::Gguf, sums);
    bundle.take_tokenizer(tokenizer, of_tokenizer);
    if bundle.tokenizer.is_some() {
        bundle.warnings.extend(default_end.flatten());
    }
    bundle.add_generation_config(generation);
    bundle.selection = taken.report;
    let origin = file.metadata.iter().filter(|(key, _)| tells_origin(key));
    bundle.origin = origin.cloned().collect();
    bundle.with_tensors(tensors)
}
