//! Opens the files of an adapter and merges them into a bundle.

use std::rc::Rc;

use super::base_digest::check_base;
use super::config::{LoraConfig, of_mlx};
use super::merged_adapter::MergedAdapter;
use super::pairs::{PREFIX, Parts};
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
    files: Vec<Rc<dyn ByteSource>>,
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
    replace(bundle, &parts);
    add_pairs(bundle, &parts, exact)?;
    opened.keep(bundle);
    Ok(())
}

/// Adds the pairs of an adapter to tensors of the base: the sums are exact, or rounded to their dtypes.
fn add_pairs(bundle: &mut Bundle, parts: &Parts<'_>, exact: bool) -> Result<()> {
    for pair in parts.merges(bundle)? {
        let Some(base) = bundle.tensors.remove(&pair.name) else {
            continue;
        };
        let name = base.name.clone();
        let as_f32 = exact || matches!(base.encoding(), Some(Encoding::Blocks(_)));
        let sums = Bytes::Merged(Rc::new(Merged {
            base: base.clone(),
            pair: Pair { exact, ..pair },
        }));
        let mut tensor = base.with_bytes(sums);
        if as_f32 {
            tensor.dtype = "F32".to_string();
        }
        bundle.tensors.insert(name, tensor);
    }
    Ok(())
}

/// Attaches the adapter of `files` to an opened model: its factors become separate tensors, named as in PEFT without `base_model.model.`, and
/// the tensors that it stores in full replace the base's. The base's matrices stay as they are.
///
/// # Errors
/// The errors of [`merge_adapter`], and `adapter.target.unsupported` for pairs of an embedding or a head.
pub(in crate::bundle) fn attach_adapter(
    bundle: &mut Bundle,
    files: Vec<Rc<dyn ByteSource>>,
) -> Result<()> {
    let opened = Opened::of(bundle, files)?;
    let parts = opened.parts(bundle)?;
    let told = parts.check(bundle, false)?;
    bundle.warnings.extend(told);
    let factors = parts.factors(bundle)?;
    replace(bundle, &parts);
    bundle.factors = factors
        .into_iter()
        .map(|tensor| (tensor.name.clone(), tensor))
        .collect();
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
        let config = LoraConfig::of_text(document)?;
        let parts = Parts::of(self, &config, tensors, WEIGHTS)?;
        untie(self, &parts);
        let warnings = parts.check(self, false)?;
        self.warnings.extend(warnings);
        replace(self, &parts);
        add_pairs(self, &parts, exact)?;
        self.warnings.extend(config.warnings.iter().cloned());
        Ok(())
    }

    /// Opens the adapter of `files` without its base, for a model of this configuration: the bundle has the adapter's tensors, named as in PEFT
    /// without `base_model.model.`, and no tensors of a model.
    ///
    /// # Errors
    /// The errors of the files by themselves; they are not compared with a base.
    pub(crate) fn of_adapter(config: ModelConfig, files: Vec<Rc<dyn ByteSource>>) -> Result<Self> {
        let mut bundle = Self::of_tensors(config, SourceFormat::HfFolder, Vec::new(), Vec::new())?;
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
    fn of(bundle: &mut Bundle, mut files: Vec<Rc<dyn ByteSource>>) -> Result<Self> {
        let find = |files: &[Rc<dyn ByteSource>], name: &str| {
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
        let file = SafetensorsFile::open(&weights)?;
        check_base(bundle, &mut config, &file, &files, weights.name())?;
        let tensor = |record: &FileTensor| {
            Tensor::of_file(record.name.clone(), record, Reordering::Same, &weights)
        };
        let tensors = file.tensors.iter().map(tensor).collect::<Result<_>>()?;
        Ok(Self {
            config,
            config_input,
            weights,
            file,
            tensors,
        })
    }

    /// Returns its tensors, sorted by their purpose.
    fn parts(&self, bundle: &Bundle) -> Result<Parts<'_>> {
        Parts::of(bundle, &self.config, &self.tensors, self.weights.name())
    }

    /// Moves the file of the weights to the end of the bundle's files.
    fn keep(self, bundle: &mut Bundle) {
        let Self {
            config,
            config_input,
            weights,
            file,
            ..
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

/// Replaces tensors of the base by those that the adapter stores in full, which keep their dtype.
fn replace(bundle: &mut Bundle, parts: &Parts<'_>) {
    for (name, tensor) in parts.replacements(bundle) {
        if let Some(of_base) = bundle.tensors.get_mut(&name) {
            let own = tensor.clone().renamed(&name);
            let of_base = std::mem::replace(of_base, own);
            bundle.replaced.insert(name, of_base);
        }
    }
}

/// Refuses pickles and adapters of other programs.
fn refuse_other_formats(files: &[Rc<dyn ByteSource>]) -> Result<()> {
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
    let Some(table) = bundle
        .tensors
        .get(embedding)
        .filter(|_| bundle.config.tie_word_embeddings && apart)
    else {
        return;
    };
    let head = table.clone().renamed(HEAD);
    bundle.tensors.insert(HEAD.to_string(), head);
    bundle.config.tie_word_embeddings = false;
    bundle
        .warnings
        .push(Warning::new(word!("adapter.untied"), HEAD));
}
