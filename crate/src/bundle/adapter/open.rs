//! Opens the files of an adapter and merges them into a bundle.

use std::rc::Rc;

use super::base_digest::check_base;
use super::config::{LoraConfig, of_mlx, read};
use super::merged_adapter::MergedAdapter;
use super::pairs::{PREFIX, Parts};
use crate::bundle::bundle_tokenizer::or_refused;
use crate::bundle::files::{Files, find, lower_name};
use crate::bundle::refusals::refused;
use crate::bundle::tensors::Bundle;
use crate::bundle::tokenizer_files::{carried, hf_tokenizer};
use crate::config::ModelConfig;
use crate::error::{Error, Refusal, Result, Word, word};
use crate::families::names::{self, HEAD};
use crate::formats::{ByteSource, Encoding, SafetensorsFile, known_mark, sha256_of};
use crate::state::{Bytes, Merged, Pair, ReceiptFile, Reordering, SourceFormat, Tensor};
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
    files: Files,
    exact: bool,
    resize: bool,
) -> Result<()> {
    let (own, refused) = match resize {
        true => or_refused(hf_tokenizer(&files))?,
        false => (None, None),
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
        bundle.warn(word!("adapter.vocabulary"), &subject);
        bundle.config.vocab_size = rows;
        if own.is_some() || refused.is_some() {
            (bundle.tokenizer, bundle.tokenizer_refused) = (None, None);
            bundle.refuse_tokenizer(refused);
            bundle.take_tokenizer(own, TOKENIZER_FILE);
            bundle.tokenizer_documents = documents;
            bundle.warnings.extend(told_of_documents);
        }
    }
    bundle.warnings.extend(told);
    merge(bundle, &parts, exact)?;
    opened.keep(bundle);
    Ok(())
}

/// Replaces tensors of the base, and adds the pairs of an adapter to others: the sums are exact, or rounded to their dtypes.
fn merge(bundle: &mut Bundle, parts: &Parts<'_>, exact: bool) -> Result<()> {
    replace(bundle, parts);
    for pair in parts.merges(bundle)? {
        let Some(base) = bundle.tensors.remove(&pair.name) else {
            continue;
        };
        let sums = Bytes::Merged(Rc::new(Merged {
            base: base.clone(),
            pair: Pair { exact, ..pair },
        }));
        let mut tensor = base.with_bytes(sums);
        if exact || matches!(tensor.encoding(), Some(Encoding::Blocks(_))) {
            tensor.dtype = "F32".to_string();
        }
        bundle.tensors.insert(tensor.name.clone(), tensor);
    }
    Ok(())
}

/// Attaches the adapter of `files` to an opened model: its factors become separate tensors, named as in PEFT without `base_model.model.`, and
/// the tensors that it stores in full replace the base's. The base's matrices stay as they are.
///
/// # Errors
/// The errors of [`merge_adapter`], and `adapter.target.unsupported` for pairs of an embedding or a head.
pub(in crate::bundle) fn attach_adapter(bundle: &mut Bundle, files: Files) -> Result<()> {
    let opened = Opened::of(bundle, files)?;
    let parts = opened.parts(bundle)?;
    let told = parts.check(bundle, false)?;
    bundle.warnings.extend(told);
    bundle.factors = parts.factors()?;
    replace(bundle, &parts);
    opened.keep(bundle);
    Ok(())
}

impl Bundle {
    /// Merges an adapter that a run has trained into its base: `tensors` in memory, named as in PEFT, and `document`, the contents of its
    /// `adapter_config.json`. The rules and the errors are those of [`merge_adapter`].
    pub(crate) fn merge_trained(
        &mut self,
        document: &str,
        tensors: &[Tensor],
        exact: bool,
    ) -> Result<()> {
        let config = read(document.as_bytes())?;
        let parts = Parts::of(self, &config, tensors, WEIGHTS)?;
        untie(self, &parts);
        let warnings = parts.check(self, false)?;
        self.warnings.extend(warnings);
        merge(self, &parts, exact)?;
        self.warnings.extend_from_slice(&config.warnings);
        Ok(())
    }

    /// Opens the adapter of `files` without its base, for a model of this configuration: the bundle has the adapter's tensors, named as in PEFT
    /// without `base_model.model.`, and no tensors of a model.
    ///
    /// # Errors
    /// The errors of the files by themselves; they are not compared with a base.
    pub(crate) fn of_adapter(config: ModelConfig, files: Files) -> Result<Self> {
        let mut bundle = Self::new(config, SourceFormat::HfFolder, Vec::new());
        let opened = Opened::of(&mut bundle, files)?;
        for tensor in &opened.tensors {
            let name = tensor.name.strip_prefix(PREFIX).unwrap_or(&tensor.name);
            let factor = tensor.clone().renamed(name);
            bundle.factors.insert(name.to_string(), factor);
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
    weights: Rc<dyn ByteSource>,
    file: SafetensorsFile,
    /// Its tensors under their own names.
    tensors: Vec<Tensor>,
}

impl Opened {
    /// Opens the files, and refuses or warns about an adapter of another base.
    fn of(bundle: &mut Bundle, mut files: Files) -> Result<Self> {
        refuse_other_formats(&files)?;
        let place = |name: &str, code: Word| {
            let absent = refused(code, name, name).expected(format!("{CONFIG} and {WEIGHTS}"));
            find(&files, name).ok_or_else(|| Error::from(absent))
        };
        let config = &files[place(CONFIG, word!("bundle.config.missing"))?];
        let sum = sha256_of(config, 0, config.len())?;
        let config_input = ReceiptFile::of_name(config.name(), config.len(), Some(sum));
        let mut config = LoraConfig::open(config)?;
        let weights = place(WEIGHTS, word!("bundle.weights.missing"))?;
        let weights = files.swap_remove(weights);
        let file = SafetensorsFile::open(&weights)?;
        check_base(bundle, &mut config, &file, &files, weights.name())?;
        let mut tensors = Vec::new();
        for tensor in &file.tensors {
            let name = tensor.name.clone();
            tensors.push(Tensor::of_file(name, tensor, Reordering::Same, &weights)?);
        }
        Ok(Self {
            config,
            config_input,
            weights,
            file,
            tensors,
        })
    }

    /// Sorts its tensors by their purpose.
    fn parts(&self, bundle: &Bundle) -> Result<Parts<'_>> {
        Parts::of(bundle, &self.config, &self.tensors, self.weights.name())
    }

    /// Moves the file of the weights to the end of the bundle's files.
    fn keep(self, bundle: &mut Bundle) {
        bundle.warnings.extend_from_slice(&self.config.warnings);
        bundle.warnings.extend(self.file.warnings);
        let weights = ReceiptFile::of_name(self.weights.name(), self.weights.len(), None);
        bundle.adapter = Some(MergedAdapter {
            file: self.weights.name().to_string(),
            bytes: self.weights.len(),
            config: self.config,
            inputs: vec![self.config_input, weights],
        });
        bundle.files.push(self.weights);
    }
}

/// Replaces tensors of the base by those that the adapter stores in full, which keep their dtype.
fn replace(bundle: &mut Bundle, parts: &Parts<'_>) {
    for (name, tensor) in parts.replacements() {
        if let Some(of_base) = bundle.tensors.get_mut(name) {
            let of_base = std::mem::replace(of_base, tensor.clone().renamed(name));
            bundle.replaced.insert(name.to_string(), of_base);
        }
    }
}

/// Refuses pickles and adapters of other programs.
fn refuse_other_formats(files: &Files) -> Result<()> {
    if find(files, WEIGHTS).is_some() {
        return Ok(());
    }
    for file in files {
        let refusal = Refusal::new(word!("format.unsupported"))
            .of(file.name())
            .expected(WEIGHTS);
        let name = lower_name(file);
        let refusal = if [".bin", ".pt", ".pth"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            let hint = "Python pickles are never loaded; save the adapter as safetensors where it was made";
            refusal.found("pickle").hint(hint)
        } else if name == MLX_WEIGHTS {
            of_mlx(refusal)
        } else if known_mark(file) == Some("gguf") {
            let hint = "give the files of PEFT that the adapter was made from";
            refusal.found("gguf").hint(hint)
        } else {
            continue;
        };
        return Err(refusal.into());
    }
    Ok(())
}

/// Gives a tied head a tensor of its own, with the bytes of the embedding, if the adapter changes only one of the two.
fn untie(bundle: &mut Bundle, parts: &Parts<'_>) {
    let embedding = names::embedding(bundle.config.architecture);
    let apart = parts.changes(HEAD) || parts.changes(embedding) && !parts.ties(bundle);
    let table = bundle.tensors.get(embedding);
    if let Some(table) = table.filter(|_| bundle.config.tie_word_embeddings && apart) {
        let head = table.clone().renamed(HEAD);
        bundle.tensors.insert(HEAD.to_string(), head);
        bundle.config.tie_word_embeddings = false;
        bundle.warn(word!("adapter.untied"), HEAD);
    }
}
