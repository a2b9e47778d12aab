//! Recognises a set of files, and opens it.

use super::adapter::{attach_adapter, merge_adapter};
use super::files::{CONFIG, Files, adapter, gguf_files, other_weights};
use super::gguf_model::open_gguf;
use super::hf_folder::open_folder;
use super::kind::{FilesKind, is_of_adapter};
use super::options::OpenOptions;
use super::refusals::refused;
use super::tensors::Bundle;
use crate::error::{Error, Refusal, Result, refuse_all, word};
use crate::formats::{SafetensorsFile, base_name, known_mark};
use crate::state::{NonFinitePolicy, refuse_non_finite};

/// Opens the files of one model: one GGUF file or its parts in any order, or the files of a Hugging Face folder by their names (`config.json`,
/// `model.safetensors` or shards with their index, and if present `tokenizer.json`, `tokenizer_config.json`, `chat_template.jinja`,
/// `generation_config.json`, and the tokenizer documents of other programs, which are kept with the model). Only the headers of the weights are
/// read, except that embedding and head are compared where they may be equal.
///
/// # Errors
/// The errors of [`open_bundle_with`].
pub fn open_bundle(files: Files) -> Result<Bundle> {
    open_bundle_with(files, OpenOptions::default())
}

/// Opens the files of one model like [`open_bundle`], with options.
///
/// # Errors
/// `bundle.*`, `model.*` and the codes of the formats (crate/FORMATS.md), `adapter.*` with an adapter, `request.*`, `select.*` and `remap.*`
/// with a request.
pub fn open_bundle_with(files: Files, options: OpenOptions) -> Result<Bundle> {
    let request = options.request.as_ref();
    if let Some(request) = request {
        request.check_for_model()?;
    }
    let hub = files.iter().find_map(|file| file.hub());
    let mut bundle = open_base(files, &options)?;
    bundle.base.hub = hub;
    if request.is_some_and(|request| request.non_finite == NonFinitePolicy::Refuse) {
        let names = bundle.names().into_iter();
        let counts = names.map(|name| bundle.non_finite(&name).map(|count| (name, count)));
        refuse_non_finite(&counts.collect::<Result<Vec<_>>>()?)?;
    }
    if let Some(template) = &options.chat_template {
        let absent = || Error::Tokenizer {
            what: "chat_template".into(),
            reason: "the model has no tokenizer that could write it".into(),
        };
        let tokenizer = bundle.tokenizer.as_mut().ok_or_else(absent)?;
        tokenizer.set_chat_template(template)?;
    }
    let (exact, resize) = (options.exact, options.resize_vocabulary);
    match options.adapter {
        Some(adapter) if options.apart => attach_adapter(&mut bundle, adapter)?,
        Some(adapter) => merge_adapter(&mut bundle, adapter, exact, resize)?,
        None => {}
    }
    Ok(bundle)
}

fn open_base(files: Files, options: &OpenOptions) -> Result<Bundle> {
    refuse_adapter(&files)?;
    match FilesKind::of_model(&files) {
        Some(FilesKind::Folder) => open_folder(files, options),
        Some(_) => {
            let gguf = gguf_files(&files);
            open_gguf(files, &gguf, options)
        }
        None => Err(no_model(&files)),
    }
}

/// Refuses adapter files: an adapter changes what its base computes, so it is never ignored.
fn refuse_adapter(files: &Files) -> Result<()> {
    let found = files.iter().filter(|file| is_of_adapter(file));
    refuse_all(found.map(|file| adapter(file.name())).collect())
}

/// Explains why `files` hold no state that can be opened.
pub(crate) fn no_state(files: &Files) -> Error {
    refuse_adapter(files)
        .err()
        .unwrap_or_else(|| no_model(files))
}

fn no_model(files: &Files) -> Error {
    let Some(first) = files.first() else {
        return Refusal::new(word!("bundle.empty"))
            .expected("one GGUF file, or config.json and model.safetensors")
            .into();
    };
    let hint = "give one .gguf file, or config.json, model.safetensors and every tokenizer file of the folder";
    let mut safetensors = files
        .iter()
        .filter(|file| base_name(file.name()).ends_with(".safetensors"));
    if let Some(file) = safetensors.next() {
        return SafetensorsFile::open(file).err().unwrap_or_else(|| {
            refused(word!("bundle.config.missing"), file.name(), CONFIG)
                .hint(hint)
                .into()
        });
    }
    if let Some(error) = other_weights(files) {
        return error;
    }
    Refusal::new(word!("format.unsupported"))
        .of(first.name())
        .found(known_mark(first).unwrap_or("no model file"))
        .hint(hint)
        .into()
}
