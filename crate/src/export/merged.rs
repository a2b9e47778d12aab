//! Merges a trained adapter into its base and exports the whole model.

use std::rc::Rc;

use super::ExportFormat;
use super::format::BaseFiles;
use super::gguf_types::GgufTypes;
use super::options::{ExportDtype, ExportOptions};
use super::peft::push_adapter;
use super::source::{ExportSource, Weights};
use crate::bundle::{
    Bundle, FileStream, ModelAssets, OpenOptions, StreamTensor, StreamValues, open_bundle_with,
};
use crate::error::{Error, Fault, Refusal, Result, Warning, word};
use crate::formats::{ByteSource, MemorySource};
use crate::model::open_model_with;
use crate::state::{SelectionReport, SourceFormat, VerifyPolicy};

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
        Some(merged) if base_files.is_empty() => merged,
        Some(merged) => Merged {
            files: base_files,
            ..merged
        },
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
    merged
        .source
        .warnings
        .extend(changes_nothing(&merged.source)?);
    Ok(merged)
}

/// Returns a warning if every pair of the adapter is zero, as in one that was never trained.
fn changes_nothing(source: &ExportSource) -> Result<Option<Warning>> {
    let mut targets = 0;
    for tensor in &source.weights.tensors {
        let StreamValues::Stored(stored) = &tensor.values else {
            continue;
        };
        match stored.is_changed()? {
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
    base_files: BaseFiles,
    options: &ExportOptions,
) -> Result<Merged> {
    if options.optimizer {
        let expected = "false: the optimizer's state belongs to the factors, which a merged model does not have";
        return Err(Error::InvalidConfig(vec![Fault::new(
            "optimizer",
            expected,
            "true",
        )]));
    }
    let files: Vec<Rc<dyn ByteSource>> = base_files.into_iter().map(Rc::from).collect();
    let shared = || -> Vec<Box<dyn ByteSource>> {
        files
            .iter()
            .map(|file| Box::new(Rc::clone(file)) as Box<dyn ByteSource>)
            .collect()
    };
    let base = checked_base(source, shared())?;
    let Merging {
        dtype,
        patched,
        exact,
    } = Merging::of(&base, options)?;
    let adapter = Some(adapter_files(source).await?);
    let bundle = Rc::new(open_model_with(
        shared(),
        OpenOptions {
            adapter,
            exact,
            ..OpenOptions::default()
        },
    )?);
    let mut recorded = source.base.clone().unwrap_or_else(|| base.base.clone());
    if !patched {
        recorded.take_sums(&base.base.clone().hashed(&base)?);
    }
    let mut weights = Weights::of_bundle(&bundle)?;
    sum(&mut weights, exact);
    let merged = ExportSource {
        weights,
        assets: ModelAssets::of_bundle(&bundle),
        base: Some(recorded),
        groups: Vec::new(),
        state: Vec::new(),
        warnings: bundle.warnings.clone(),
        adapter_settings: None,
        ..source.clone()
    };
    let files = if patched { shared() } else { Vec::new() };
    Ok(Merged {
        source: merged,
        files,
        options: ExportOptions {
            dtype,
            ..options.clone()
        },
    })
}

/// Method of merging an adapter into a base for an export: the sum is computed in f32 and rounded once, to the type that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Merging {
    /// dtype of a folder's tensors: by default F16 throughout for a packed base.
    dtype: ExportDtype,
    /// True if the output is the base's GGUF file with the targets in place of its own, in the types that they have there.
    patched: bool,
    /// True if the sums are F32 for the writer. Otherwise they have the dtype that they are rounded to.
    exact: bool,
}

impl Merging {
    /// Chooses the method for a base and the options of the export.
    ///
    /// # Errors
    /// `export.gguf.type` for a type that cannot be written.
    fn of(base: &Bundle, options: &ExportOptions) -> Result<Self> {
        let gguf = options.format == ExportFormat::Gguf;
        let dtype = if options.dtype == ExportDtype::Stored && base.stores_blocks() {
            ExportDtype::F16
        } else {
            options.dtype
        };
        let types = options
            .types
            .as_deref()
            .map_or(Ok(GgufTypes::AsBase), GgufTypes::from_word)?;
        let patched = gguf && base.source_format == SourceFormat::Gguf;
        let exact = if gguf {
            patched || types != GgufTypes::AsBase
        } else {
            dtype != ExportDtype::Stored
        };
        Ok(Self {
            dtype,
            patched,
            exact,
        })
    }
}

/// Leaves sums to the writer, which rounds them and reports how much of the change is left: as F32 if they are `exact`, else of their own
/// dtype.
fn sum(weights: &mut Weights, exact: bool) {
    for tensor in &mut weights.tensors {
        if let StreamValues::Stored(stored) = &mut tensor.values {
            *stored = if exact {
                stored.clone().exactly()
            } else {
                stored.clone().exactly_summed()
            };
        }
    }
}

/// Opens the base, which must be the one that the adapter was trained on.
fn checked_base(source: &ExportSource, files: Vec<Box<dyn ByteSource>>) -> Result<Bundle> {
    let stated = source.base.as_ref();
    if files.is_empty() {
        let names = stated.map(|base| {
            base.files
                .iter()
                .map(|file| file.name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        });
        let refusal = Refusal::new(word!("checkpoint.base.missing"))
            .stage("bind")
            .subject(stated.map_or("", |base| &base.name));
        return Err(refusal
            .expected(names.unwrap_or_default())
            .hint("give the files of the base: a merged model is made of both")
            .into());
    }
    let base = open_bundle_with(
        files,
        OpenOptions {
            headers_only: true,
            ..OpenOptions::default()
        },
    )?;
    stated.map_or(Ok(()), |stated| stated.check(&base, VerifyPolicy::Full))?;
    Ok(base)
}

/// A model that an adapter was merged into, as it is exported.
pub(super) struct Merged {
    /// The model with its sums.
    pub(super) source: ExportSource,
    /// Files that the sums are written into, if those are the base's.
    pub(super) files: Vec<Box<dyn ByteSource>>,
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
    let of_tensor = |tensor: &StreamTensor| match &tensor.values {
        StreamValues::Stored(stored) => stored.merged_in().cloned(),
        _ => None,
    };
    let Some(bundle) = source.weights.tensors.iter().find_map(of_tensor) else {
        return Ok(None);
    };
    let Merging {
        dtype,
        patched,
        exact,
    } = Merging::of(&bundle, options)?;
    let mut source = source.clone();
    sum(&mut source.weights, exact);
    let whole = source.selection == SelectionReport::default();
    let files = if patched && whole {
        bundle.own_files()
    } else {
        Vec::new()
    };
    Ok(Some(Merged {
        source,
        files,
        options: ExportOptions {
            dtype,
            ..options.clone()
        },
    }))
}

/// Writes the adapter in its present state to PEFT's files.
async fn adapter_files(source: &ExportSource) -> Result<Vec<Box<dyn ByteSource>>> {
    let mut stream = FileStream::new();
    push_adapter(&mut stream, source, None, None, None)?;
    let mut files: Vec<(String, Vec<u8>)> = stream
        .files()
        .iter()
        .map(|file| (file.name.clone(), Vec::new()))
        .collect();
    while let Some(chunk) = stream.next_chunk().await? {
        files[chunk.file].1.extend(chunk.bytes);
    }
    Ok(files
        .into_iter()
        .map(|(name, bytes)| Box::new(MemorySource::new(name, bytes)) as Box<dyn ByteSource>)
        .collect())
}
