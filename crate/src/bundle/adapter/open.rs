//! Opens the files of an adapter and merges them into a bundle.

use std::rc::Rc;

use super::base_digest::check_base;
use super::config::{LoraConfig, of_mlx};
use super::merge::{Merge, MergedAdapter};
use super::pairs::{PREFIX, Parts};
use crate::bundle::entry::Entry;
use crate::bundle::files::or_refused;
use crate::bundle::tensors::Bundle;
use crate::bundle::tokenizer_files::{carried, hf_tokenizer};
use crate::bundle::tokenizer_part::TokenizerPart;
use crate::config::ModelConfig;
use crate::error::{Error, Refusal, Result, Warning, word};
use crate::families::names::{self, HEAD};
use crate::formats::{
    ByteSource, Encoding, FileTensor, SafetensorsFile, base_name, known_mark, sha256_of,
};
use crate::state::{ReceiptFile, Reordering, SourceFormat};
use crate::tokenizer::TOKENIZER_FILE;

pub(crate) const CONFIG: &str = "adapter_config.json";
pub(crate) const WEIGHTS: &str = "adapter_model.safetensors";
/// Name of the file of an adapter that MLX trained.
const MLX_WEIGHTS: &str = "adapters.safetensors";

/// Merges the adapter of `files` (`adapter_config.json`, `adapter_model.safetensors`; others are skipped) into an opened model: from then on
/// its tensors read as W + scale·(B·A), or as the tensors that the adapter stores in their place.
///
/// A tied model has one tensor for input embedding and head, and an adapter may change only one of the two: PEFT adds a pair of the embedding
/// to the embedding's output and leaves the head as it is. Both are right only as two tensors, so such a model is untied, with the warning
/// `adapter.untied`, and the one that the adapter does not change keeps the base's values. A table that the adapter stores with a pair takes
/// the place of both, and the pair is added to one of them.
///
/// The sums are rounded to the dtypes of the tensors, except for blocks, and for all tensors if `exact`: those become F32. With `resize` an
/// embedding and a head of more rows than the base's replace them, and the tokenizer next to them replaces that of the base, even if it is
/// refused.
///
/// # Errors
/// `adapter.*` as in crate/FORMATS.md, "PEFT adapter"; `format.unsupported` for pickles and other formats; `bundle.config.missing` and
/// `bundle.weights.missing` for absent files.
pub(in crate::bundle) fn merge_adapter(
    bundle: &mut Bundle,
    files: Vec<Box<dyn ByteSource>>,
    exact: bool,
    resize: bool,
) -> Result<()> {
    let (mut refused, mut of_tokenizer) = (None, Vec::new());
    let own = if resize {
        or_refused(hf_tokenizer(&files), &mut refused, &mut of_tokenizer)?
    } else {
        None
    };
    let (documents, told_of_documents) = carried(&files, own.as_ref())?;
    let opened = Opened::of(bundle, files)?;
    let parts = opened.parts(bundle)?;
    untie(bundle, &parts);
    let told = parts.check(bundle, resize)?;
    if let Some(rows) = parts.vocabulary(bundle)? {
        let tokenizer = match (&own, &refused) {
            (Some(_), _) => "with the adapter's tokenizer",
            (None, Some(_)) => "without a tokenizer, since the adapter's was refused",
            (None, None) => "with the base's tokenizer",
        };
        let subject = format!("{} → {rows} rows, {tokenizer}", bundle.config.vocab_size);
        bundle
            .warnings
            .push(Warning::new(word!("adapter.vocabulary"), &subject));
        bundle.config.vocab_size = rows;
        bundle.warnings.extend(of_tokenizer);
        if own.is_some() || refused.is_some() {
            let part = TokenizerPart::of(own, refused, TOKENIZER_FILE, rows, &mut bundle.warnings);
            (bundle.tokenizer, bundle.tokenizer_refused) = (part.tokenizer, part.refused);
            bundle.tokenizer_documents = documents;
            bundle.warnings.extend(told_of_documents);
        }
    }
    bundle.warnings.extend(told);
    let source = bundle.files.len();
    replace(bundle, &parts, source)?;
    for merge in parts.merges(bundle, source)? {
        let Some(entry) = bundle.entries.get_mut(&merge.name) else {
            continue;
        };
        if exact || matches!(entry.encoding, Some(Encoding::Blocks(_))) {
            entry.dtype = "F32".to_string();
        }
        entry.merge = Some(Rc::new(Merge { exact, ..merge }));
    }
    opened.keep(bundle);
    Ok(())
}

/// Attaches the adapter of `files` to an opened model: its factors become separate tensors, named as in PEFT without `base_model.model.`, and
/// the tensors that it stores in full replace the base's. The base's matrices stay as they are.
///
/// # Errors
/// The errors of [`merge_adapter`], and `adapter.target.unsupported` for pairs of an embedding or a head.
pub(in crate::bundle) fn attach_adapter(
    bundle: &mut Bundle,
    files: Vec<Box<dyn ByteSource>>,
) -> Result<()> {
    let opened = Opened::of(bundle, files)?;
    let parts = opened.parts(bundle)?;
    let told = parts.check(bundle, false)?;
    bundle.warnings.extend(told);
    let source = bundle.files.len();
    let factors = parts.factors(bundle, source)?;
    replace(bundle, &parts, source)?;
    bundle.factors = factors
        .into_iter()
        .map(|entry| (entry.name.clone(), entry))
        .collect();
    opened.keep(bundle);
    Ok(())
}

impl Bundle {
    /// Opens the adapter of `files` without its base, for a model of this configuration: the bundle has the adapter's tensors, named as in PEFT
    /// without `base_model.model.`, and no tensors of a model.
    ///
    /// # Errors
    /// The errors of the files by themselves; they are not compared with a base.
    pub(crate) fn of_adapter(config: ModelConfig, files: Vec<Box<dyn ByteSource>>) -> Result<Self> {
        let mut bundle = Self::of_entries(config, SourceFormat::HfFolder, Vec::new(), Vec::new())?;
        let opened = Opened::of(&mut bundle, files)?;
        for tensor in &opened.file.tensors {
            let name = tensor.name.strip_prefix(PREFIX).unwrap_or(&tensor.name);
            bundle.factors.insert(
                name.to_string(),
                Entry::new(
                    name.to_string(),
                    tensor.clone(),
                    Reordering::Same,
                    0,
                    opened.weights.name(),
                )?,
            );
        }
        opened.keep(&mut bundle);
        Ok(bundle)
    }
}

/// The files of an adapter.
struct Opened {
    config: LoraConfig,
    /// File of the configuration, as a receipt lists it.
    config_input: ReceiptFile,
    weights: Box<dyn ByteSource>,
    file: SafetensorsFile,
}

impl Opened {
    /// Opens the files, and refuses or warns about an adapter of another base.
    fn of(bundle: &mut Bundle, mut files: Vec<Box<dyn ByteSource>>) -> Result<Self> {
        let find = |files: &[Box<dyn ByteSource>], name: &str| {
            files.iter().position(|file| base_name(file.name()) == name)
        };
        refuse_other_formats(&files)?;
        let absent = |code, name: &str| {
            Error::from(
                Refusal::new(code)
                    .of(name)
                    .subject(name)
                    .expected(format!("{CONFIG} and {WEIGHTS}")),
            )
        };
        let config =
            find(&files, CONFIG).ok_or_else(|| absent(word!("bundle.config.missing"), CONFIG))?;
        let config_file = files[config].as_ref();
        let config_sum = sha256_of(config_file, 0, config_file.len())?;
        let config_input =
            ReceiptFile::of_name(config_file.name(), config_file.len(), Some(config_sum));
        let mut config = LoraConfig::open(config_file)?;
        let weights = find(&files, WEIGHTS)
            .ok_or_else(|| absent(word!("bundle.weights.missing"), WEIGHTS))?;
        let weights = files.swap_remove(weights);
        let file = SafetensorsFile::open(weights.as_ref())?;
        check_base(bundle, &mut config, &file, &files, weights.name())?;
        Ok(Self {
            config,
            config_input,
            weights,
            file,
        })
    }

    /// Returns its tensors, sorted by their purpose.
    fn parts(&self, bundle: &Bundle) -> Result<Parts<'_>> {
        Parts::of(bundle, &self.config, &self.file, self.weights.as_ref())
    }

    /// Moves the file of the weights to the end of the bundle's files.
    fn keep(self, bundle: &mut Bundle) {
        let Self {
            config,
            config_input,
            weights,
            file,
        } = self;
        bundle
            .warnings
            .extend(config.warnings.iter().chain(&file.warnings).cloned());
        let inputs = vec![
            config_input,
            ReceiptFile::of_name(weights.name(), weights.len(), None),
        ];
        bundle.adapter = Some(MergedAdapter {
            file: weights.name().to_string(),
            bytes: weights.len(),
            config,
            inputs,
        });
        bundle.files.push(weights);
    }
}

/// Replaces tensors of the base by those that the adapter stores in full, in the file at `source`.
fn replace(bundle: &mut Bundle, parts: &Parts<'_>, source: usize) -> Result<()> {
    for (name, tensor) in parts.replacements(bundle) {
        if let Some(entry) = bundle.entries.get_mut(&name) {
            *entry = replaced(entry.clone(), tensor, source)?;
        }
    }
    Ok(())
}

/// Refuses pickles and adapters of other programs.
fn refuse_other_formats(files: &[Box<dyn ByteSource>]) -> Result<()> {
    if files.iter().any(|file| base_name(file.name()) == WEIGHTS) {
        return Ok(());
    }
    let lower = |file: &dyn ByteSource| base_name(file.name()).to_ascii_lowercase();
    let pickled = |name: &str| {
        [".bin", ".pt", ".pth"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    for file in files.iter().map(AsRef::as_ref) {
        let refusal = Refusal::new(word!("format.unsupported"))
            .of(file.name())
            .expected(WEIGHTS);
        if pickled(&lower(file)) {
            let hint = "Python pickles are never loaded; save the adapter as safetensors where it was made";
            return Err(refusal.found("pickle").hint(hint).into());
        }
        if lower(file) == MLX_WEIGHTS {
            return Err(of_mlx(refusal).into());
        }
        if known_mark(file) == Some("gguf") {
            return Err(refusal
                .found("gguf")
                .hint("give the files of PEFT that the adapter was made from")
                .into());
        }
    }
    Ok(())
}

/// Gives a tied head a tensor of its own, with the bytes of the embedding, if the adapter changes only one of the two.
fn untie(bundle: &mut Bundle, parts: &Parts<'_>) {
    let embedding = names::embedding(bundle.config.architecture);
    let apart =
        parts.changes(bundle, HEAD) || parts.changes(bundle, embedding) && !parts.ties(bundle);
    let Some(entry) = bundle
        .entries
        .get(embedding)
        .filter(|_| bundle.config.tie_word_embeddings && apart)
    else {
        return;
    };
    let head = Entry {
        name: HEAD.to_string(),
        ..entry.clone()
    };
    bundle.entries.insert(HEAD.to_string(), head);
    bundle.config.tie_word_embeddings = false;
    bundle
        .warnings
        .push(Warning::new(word!("adapter.untied"), HEAD));
}

/// Returns the base's tensor with the adapter's bytes, which keep their dtype.
fn replaced(entry: Entry, tensor: &FileTensor, source: usize) -> Result<Entry> {
    let own = Entry::new(
        entry.name.clone(),
        tensor.clone(),
        Reordering::Same,
        source,
        "",
    )?;
    Ok(Entry {
        replaced: Some(Rc::new(entry)),
        ..own
    })
}
