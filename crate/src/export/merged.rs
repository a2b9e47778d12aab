//! Merges a trained adapter into its base and exports the whole model.

use super::ExportFormat;
use super::format::BaseFiles;
use super::gguf_types::GgufTypes;
use super::options::{ExportDtype, ExportOptions};
use super::source::{ExportSource, Weights};
use crate::bundle::{Bundle, ModelAssets, adapter_tensors, open_bundle};
use crate::error::{Error, Refusal, Result, Warning, word};
use crate::model::{adapter_document, planned_parameters};
use crate::state::{Base, SelectionReport, SourceFormat, Tensor, VerifyPolicy};

/// Prepares `source` for an export: as it is, or with the adapter merged that it was opened with or consists of.
///
/// # Errors
/// Errors of reading an adapter, and of merging it into `base_files`; `checkpoint.base.missing` without them.
pub(super) async fn merged(
    source: &ExportSource,
    base_files: BaseFiles,
    options: &ExportOptions,
) -> Result<Merged> {
    let mut merged = match opened_merged(source, options)? {
        Some(mut merged) => {
            if !base_files.is_empty() {
                merged.files = base_files;
            }
            merged
        }
        None if source.adapter_settings.is_some() => {
            merge_into(source, base_files, options).await?
        }
        None => {
            return Ok(Merged {
                source: source.clone(),
                files: base_files,
                options: options.clone(),
            });
        }
    };
    let warning = changes_nothing(&merged.source)?;
    merged.source.warnings.extend(warning);
    Ok(merged)
}

/// The warning that every pair of the adapter is zero, as in one that was never trained; `None` if one is not.
fn changes_nothing(source: &ExportSource) -> Result<Option<Warning>> {
    let mut targets = 0;
    for tensor in &source.weights.tensors {
        match tensor.is_changed()? {
            Some(true) => return Ok(None),
            Some(false) => targets += 1,
            None => {}
        }
    }
    Ok((targets > 0).then(|| Warning::new(word!("adapter.zero"), &format!("{targets} matrices"))))
}

/// Exports the model of the adapter and `base_files`, as a folder or as a GGUF file: W′ = round(W + s · B A), and modules that were trained in
/// full in place of the base's. No device computes anything. The base is read piece by piece; the adapter is held in memory.
///
/// A folder has the dtypes of a dense base, or F16 throughout for a packed one, unless a dtype is requested. A GGUF file is the base with the
/// targets in place of its own, in the types that they have there unless others are requested; its receipt states how much of the change each
/// keeps. Each value is rounded once.
///
/// # Errors
/// `checkpoint.base.missing` without a base, `checkpoint.base.mismatch` for another one; those of [`export_folder`] and [`export_gguf`].
async fn merge_into(
    source: &ExportSource,
    files: BaseFiles,
    options: &ExportOptions,
) -> Result<Merged> {
    if options.optimizer {
        let expected = "false: the optimizer's state belongs to the factors, which a merged model does not have";
        return Err(Error::invalid("optimizer", expected, "true"));
    }
    let mut bundle = checked_base(source, files.clone())?;
    let is_gguf = bundle.source_format == SourceFormat::Gguf;
    let Merging {
        options,
        patched,
        exact,
    } = Merging::of(&Weights::of_bundle(&bundle)?, is_gguf, options)?;
    let mut recorded = source.base.clone().unwrap_or_else(|| bundle.base.clone());
    if !patched {
        recorded.take_sums(&bundle.base.clone().hashed(&bundle)?);
    }
    let (settings, config) = (source.adapter_settings.clone(), &source.weights.config);
    let settings = settings.unwrap_or_default();
    let document = adapter_document(&settings, config, None, &source.assets.kept)?;
    let mut factors = Vec::new();
    for tensor in adapter_tensors(source.weights.tensors.clone()) {
        factors.push(tensor.held().await?);
    }
    bundle.merge_trained(&document, &factors, exact)?;
    bundle.check_tensors(&planned_parameters(&bundle.config)?)?;
    let merged = ExportSource {
        weights: Weights::of_bundle(&bundle)?.summed(exact),
        assets: ModelAssets::of_bundle(&bundle),
        base: Some(recorded),
        groups: Vec::new(),
        state: Vec::new(),
        warnings: bundle.warnings.clone(),
        adapter_settings: None,
        ..source.clone()
    };
    Ok(Merged {
        source: merged,
        files: if patched { files } else { Vec::new() },
        options,
    })
}

/// Method of merging an adapter into a base for an export: the sum is computed in f32 and rounded once, to the type that is written.
struct Merging {
    /// Options of the export. Without a dtype, a folder of a packed base is F16 throughout.
    options: ExportOptions,
    /// True if the output is the base's GGUF file with the targets in place of its own, in the types that they have there.
    patched: bool,
    /// True if the sums are F32 for the writer. Otherwise they have the dtype that they are rounded to.
    exact: bool,
}

impl Merging {
    /// Chooses the method for a base, which may be in GGUF files, and the options of the export.
    ///
    /// # Errors
    /// `export.gguf.type` for a type that cannot be written.
    fn of(base: &Weights, is_gguf: bool, options: &ExportOptions) -> Result<Self> {
        let mut options = options.clone();
        let stored = |tensor| Tensor::merged(tensor).map_or(tensor, |merged| &merged.base);
        let has_blocks = base.tensors.iter().any(|tensor| stored(tensor).is_blocks());
        if options.dtype == ExportDtype::Stored && has_blocks {
            options.dtype = ExportDtype::F16;
        }
        let types = GgufTypes::of(&options)?;
        let to_gguf = options.format == ExportFormat::Gguf;
        let patched = to_gguf && is_gguf;
        let exact = if to_gguf {
            patched || types != GgufTypes::AsBase
        } else {
            options.dtype != ExportDtype::Stored
        };
        Ok(Self {
            options,
            patched,
            exact,
        })
    }
}

impl Weights {
    /// Leaves sums to the writer, which rounds them and reports how much of the change is left: as F32 if they are
    /// `exact`, else of their own dtype.
    fn summed(mut self, exact: bool) -> Self {
        let sums = self.tensors.into_iter();
        self.tensors = sums.map(|tensor| tensor.summed_exactly(exact)).collect();
        self
    }
}

/// Opens the base, which must be the one that the adapter was trained on.
fn checked_base(source: &ExportSource, files: BaseFiles) -> Result<Bundle> {
    let stated = source.base.as_ref();
    if files.is_empty() {
        return Err(Refusal::new(word!("checkpoint.base.missing"))
            .stage("bind")
            .subject(stated.map_or("", |base| &base.name))
            .expected(stated.map(Base::file_names).unwrap_or_default())
            .hint("give the files of the base: a merged model is made of both")
            .into());
    }
    let base = open_bundle(files)?;
    if let Some(stated) = stated {
        stated.check(&base, VerifyPolicy::Full)?;
    }
    Ok(base)
}

/// A model that an adapter was merged into, as it is exported.
pub(super) struct Merged {
    /// The model with its sums.
    pub(super) source: ExportSource,
    /// Files that the sums are written into, if those are the base's.
    pub(super) files: BaseFiles,
    /// Options, with the values that follow from the base.
    pub(super) options: ExportOptions,
}

/// Prepares `source` for an export with these options; `None` if nothing was merged while it was opened.
///
/// # Errors
/// `export.gguf.type` for a type that cannot be written.
pub(super) fn opened_merged(
    source: &ExportSource,
    options: &ExportOptions,
) -> Result<Option<Merged>> {
    let mut tensors = source.weights.tensors.iter();
    if !tensors.any(|tensor| tensor.merged().is_some()) {
        return Ok(None);
    }
    let is_gguf = source.base.as_ref().is_some_and(Base::is_gguf);
    let Merging {
        options,
        patched,
        exact,
    } = Merging::of(&source.weights, is_gguf, options)?;
    let mut source = source.clone();
    source.weights = source.weights.summed(exact);
    let whole = source.selection == SelectionReport::default();
    let files = if patched && whole {
        source.merged_files.clone()
    } else {
        Vec::new()
    };
    Ok(Some(Merged {
        source,
        files,
        options,
    }))
}
