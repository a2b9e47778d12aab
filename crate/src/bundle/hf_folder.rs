//! Opens the files of a Hugging Face folder as a bundle.

use std::fmt::Display;

use serde_json::Value;

use super::bundle_tokenizer::{or_refused, value_of};
use super::files::{CONFIG, Files, GENERATION, document, unused};
use super::folder_weights::FolderWeights;
use super::options::{OpenOptions, Taken};
use super::prefixes::settle_prefix;
use super::refusals::refused;
use super::tensors::{Bundle, artifact};
use super::tokenizer_files::{carried, hf_tokenizer};
use crate::config::ModelConfig;
use crate::error::{Error, Refusal, Result, Warning, word};
use crate::families::{check, config_of_weights, config_to_hf, names, text_part};
use crate::formats::{describe_flaw, foreign, key_twice};
use crate::state::{Base, SourceFormat, Tensor};
use crate::tokenizer::{SPECIALS_FILE, TOKENIZER_FILE};

/// Beginnings of the names of tensors that belong to images, sounds, and the prediction of several tokens.
const OTHER_PARTS: [&str; 6] = [
    "vision_tower.",
    "visual.",
    "multi_modal_projector.",
    "audio_tower.",
    "embed_vision.",
    "mtp.",
];

/// Opens a folder that has a `config.json`.
pub(super) fn open_folder(files: Files, options: &OpenOptions) -> Result<Bundle> {
    let config_json = document(&files, CONFIG)?.unwrap_or_default();
    let value = read_config(&config_json)?;
    let part = text_part(&value);
    let has_parts = part.is_some();
    let value = part.unwrap_or(value);
    let (config, taken) = config_of_weights(&value)?;
    // Exports are folders of the text model.
    let config_json = if has_parts {
        text_document(&value, &config)
    } else {
        config_json
    };
    let weights = FolderWeights::open(&files)?;
    let mut bundle = Bundle::new(config, SourceFormat::HfFolder, files);
    bundle.warnings.extend(weights.warnings);
    bundle.warn_of_window();
    for (key, value) in taken {
        bundle.warn(word!("model.config.default"), &format!("{key}: {value}"));
    }
    let listed = weights.tensors.iter();
    let listed = listed.map(|stored| (&*stored.name, &*stored.dtype, &*stored.shape));
    let request = options.request.as_ref();
    let taken = Taken::of(listed, request, CONFIG, &mut bundle.warnings)?;
    let mut tensors = Vec::new();
    for stored in weights.tensors {
        let own = taken.name(&stored.name);
        if let Some(name) = own.and_then(|own| names::from_hf(own, &bundle.config)) {
            tensors.push(stored.renamed(&name));
        }
    }
    if has_parts {
        bundle.warnings.extend(without_other_parts(&mut tensors));
    }
    let renamed = settle_prefix(&mut tensors, bundle.config.architecture);
    // Tensors of a part have the name of the part in front.
    bundle.warnings.extend(renamed.filter(|_| !has_parts));
    let used = weights.used;
    let unused = unused(&bundle.files, &used, &[".safetensors", ".gguf"]);
    bundle.warnings.extend(unused);
    bundle.settle_vocabulary(&tensors, used.first().copied().unwrap_or(0))?;
    if bundle.config.tie_word_embeddings
        && bundle.drop_copied_head(&mut tensors, options.headers_only)? == Some(false)
    {
        let head = tensors.iter().find(|tensor| tensor.name == names::HEAD);
        return Err(refused(
            word!("model.tied.conflict"),
            head.map_or("", artifact),
            names::HEAD,
        )
        .expected("the input embedding, as config.json says")
        .found("other values")
        .into());
    }
    let (tokenizer, refused) = or_refused(hf_tokenizer(&bundle.files))?;
    bundle.refuse_tokenizer(refused);
    let broken = tokenizer
        .as_ref()
        .filter(|found| found.has_chat_template() || found.has_tool_template())
        .and_then(|found| found.check_chat_template().err());
    if let Some(error) = broken {
        let reason = match error {
            Error::Template { reason } => reason,
            other => other.to_string(),
        };
        bundle.warn(word!("tokenizer.template"), &reason);
    }
    let generation_config = document(&bundle.files, GENERATION)?;
    let specials = document(&bundle.files, SPECIALS_FILE)?;
    // `_name_or_path` is where its maker had another model: a path of a stranger, or this model's parent.
    bundle.base = Base::new("", SourceFormat::HfFolder, weights.sums);
    bundle.take_tokenizer(tokenizer, TOKENIZER_FILE);
    let (documents, told) = carried(&bundle.files, bundle.tokenizer.as_ref())?;
    bundle.tokenizer_documents = documents;
    bundle.warnings.extend(told);
    let generation = value_of(generation_config.as_deref());
    bundle.warn_of_ids([&value, &generation]);
    bundle.add_generation_config(generation_config);
    bundle.add_other_ends(&value, specials.as_deref());
    bundle.selection = taken.report;
    bundle.config_json = Some(config_json);
    bundle.with_tensors(tensors)
}

/// Writes the configuration of a text model that was a part of another.
fn text_document(part: &Value, config: &ModelConfig) -> Vec<u8> {
    let mut part = part.clone();
    part["architectures"] = config_to_hf(config)["architectures"].clone();
    format!("{part:#}").into_bytes()
}

/// Leaves out the tensors of parts that are no text model, with a warning that says how many they are.
fn without_other_parts(tensors: &mut Vec<Tensor>) -> Option<Warning> {
    let (mut count, mut bytes) = (0, 0);
    tensors.retain(|tensor| {
        let name = tensor.name.strip_prefix("model.").unwrap_or(&tensor.name);
        let other = OTHER_PARTS.iter().any(|part| name.starts_with(part));
        if other {
            count += 1;
            bytes += tensor.len();
        }
        !other
    });
    let tensors = if count == 1 { "tensor" } else { "tensors" };
    let found = format!("{count} {tensors} of {bytes} bytes");
    (count > 0).then(|| Warning::new(word!("model.part.ignored"), &found))
}

/// Reads `config.json`, in whose place a hub may have sent a message.
fn read_config(bytes: &[u8]) -> Result<Value> {
    let not_json = |found: &dyn Display| {
        let refusal = Refusal::new(word!("bundle.config.json"))
            .of(CONFIG)
            .expected("JSON")
            .found(found);
        Error::from(describe_flaw(refusal, bytes))
    };
    let value: Value = serde_json::from_slice(bytes).map_err(|error| not_json(&error))?;
    if let Some(key) = key_twice(bytes) {
        return Err(not_json(&format!("the key {key} twice")));
    }
    if value.get("model_type").is_none() && foreign(bytes).is_some() {
        // A hub writes its messages as JSON, too.
        return Err(not_json(&"a message"));
    }
    let end = &value["eos_token_id"];
    let is_ids = match end {
        Value::Array(ids) => ids.iter().all(Value::is_i64),
        one => one.is_null() || one.is_i64(),
    };
    if !is_ids {
        return Err(refused(word!("model.config.type"), CONFIG, "eos_token_id")
            .expected("an id, or a list of ids")
            .found(end)
            .into());
    }
    Ok(value)
}

impl Bundle {
    /// Warns about a window that hides nothing, since the context is not longer.
    pub(super) fn warn_of_window(&mut self) {
        let config = &self.config;
        let window = config
            .sliding_window
            .filter(|_| !config.window_layers.is_empty());
        if let Some(window) = window.filter(|_| !config.sees_less_than_context()) {
            self.warn(word!("model.window.context"), &window.to_string());
        }
    }

    /// Warns about each role whose id, or one of whose ids, no row has; early files write −1 where there is no id. The ids that begin and end a
    /// text are among them: transformers writes 50256 into every configuration of GPT-2, however small its vocabulary.
    fn warn_of_ids(&mut self, documents: [&Value; 2]) {
        let rows = self.config.vocab_size;
        let beyond = |id: &Value| {
            let stated = id.as_i64().filter(|id| *id != -1);
            stated.is_some_and(|id| usize::try_from(id).map_or(true, |id| id >= rows))
        };
        for role in ["bos", "eos", "pad", "mask", "cls", "sep"] {
            let of_role = |document: &&Value| match &document[format!("{role}_token_id")] {
                Value::Array(ids) => ids.iter().any(beyond),
                one => beyond(one),
            };
            if documents.iter().any(of_role) {
                self.warn(word!("tokenizer.id.unused"), role);
            }
        }
    }

    /// Enlarges the vocabulary to the rows of the embedding: rows beyond it are padding and are kept, as tokens that never occur. Fewer rows
    /// are refused, in the name of the weights' first file.
    fn settle_vocabulary(&mut self, tensors: &[Tensor], first: usize) -> Result<()> {
        let name = names::embedding(self.config.architecture);
        let table = tensors.iter().find(|tensor| tensor.name == name);
        let Some(rows) = table.and_then(|table| table.dims().first().copied()) else {
            return Ok(());
        };
        if rows < self.config.vocab_size {
            return Err(
                refused(word!("model.vocab.rows"), self.files[first].name(), name)
                    .expected(format!("at least {} rows", self.config.vocab_size))
                    .found(rows)
                    .into(),
            );
        }
        if rows > self.config.vocab_size {
            self.warn(word!("model.vocab.padded"), name);
            self.config.vocab_size = rows;
            check(&self.config)?;
        }
        Ok(())
    }
}
