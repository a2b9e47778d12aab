//! Recognises a set of files, and opens it.

use super::adapter::{attach_adapter, merge_adapter};
use super::files::{Files, adapter, find, gguf_files, lower_name, named, other_weights};
use super::gguf_model::open_gguf;
use super::hf_folder::open_folder;
use super::options::OpenOptions;
use super::tensors::Bundle;
use crate::error::{Error, Refusal, Result, word};
use crate::formats::{SafetensorsFile, base_name, known_mark};
use crate::state::{NonFinitePolicy, PortableModelImportRequest, refuse_non_finite};

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
pub fn open_bundle_with(files: Files, mut options: OpenOptions) -> Result<Bundle> {
    let adapter = options.adapter.take();
    options
        .request
        .as_ref()
        .map_or(Ok(()), PortableModelImportRequest::check_for_model)?;
    let mut bundle = open_base(files, &options)?;
    if options
        .request
        .as_ref()
        .is_some_and(|request| request.non_finite == NonFinitePolicy::Refuse)
    {
        let count = |name: String| bundle.non_finite(&name).map(|count| (name, count));
        refuse_non_finite(
            &bundle
                .names()
                .into_iter()
                .map(count)
                .collect::<Result<Vec<_>>>()?,
        )?;
    }
    if let Some(adapter) = adapter {
        match options.apart {
            true => attach_adapter(&mut bundle, adapter)?,
            false => merge_adapter(
                &mut bundle,
                adapter,
                options.exact,
                options.resize_vocabulary,
            )?,
        }
    }
    Ok(bundle)
}

fn open_base(files: Files, options: &OpenOptions) -> Result<Bundle> {
    refuse_adapter(&files)?;
    let config = find(&files, "config.json").is_some();
    if config && (named(&files, ".gguf").is_empty() || !named(&files, ".safetensors").is_empty()) {
        return open_folder(files, options);
    }
    let gguf = gguf_files(&files);
    if gguf.is_empty() {
        Err(no_model(&files))
    } else {
        open_gguf(files, &gguf, options)
    }
}

/// Refuses adapter files: an adapter changes what its base computes, so it is never ignored.
fn refuse_adapter(files: &Files) -> Result<()> {
    let of_adapter =
        |name: &str| name == "adapter_config.json" || name.starts_with("adapter_model.");
    let found = files
        .iter()
        .filter(|file| of_adapter(&lower_name(file.as_ref())));
    let refusals: Vec<Refusal> = found.map(|file| adapter(file.name())).collect();
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(Error::Refused(refusals))
    }
}

fn no_model(files: &Files) -> Error {
    let Some(first) = files.first() else {
        return Refusal::new(word!("bundle.empty"))
            .expected("one GGUF file, or config.json and model.safetensors")
            .into();
    };
    let hint = "give one .gguf file, or config.json, model.safetensors and every tokenizer file of the folder";
    if let Some(file) = files
        .iter()
        .find(|file| base_name(file.name()).ends_with(".safetensors"))
    {
        return match SafetensorsFile::open(file.as_ref()) {
            Ok(_) => Refusal::new(word!("bundle.config.missing"))
                .of(file.name())
                .subject("config.json")
                .hint(hint)
                .into(),
            Err(error) => error,
        };
    }
    if let Some(error) = other_weights(files) {
        return error;
    }
    Refusal::new(word!("format.unsupported"))
        .of(first.name())
        .found(known_mark(first.as_ref()).unwrap_or("no model file"))
        .hint(hint)
        .into()
}
