//! Extracts an adapter from two models: for each matrix the best product of low rank for their difference.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::difference::Difference;
use super::factors::{Factors, READINGS, factors_of, in_memory};
use crate::bundle::{Bundle, FileStream, ModelAssets};
use crate::config::{AdapterConfig, AdapterWarning, ModelConfig, Module, Names};
use crate::error::{Error, Fault, Refusal, Result, word};
use crate::export::{
    ExportFormat, ExportOptions, ExportSource, ModelCard, Weights, export_adapter,
};
use crate::families::{factor_names, peft_names};
use crate::interrupt::Interrupt;
use crate::model::modules;
use crate::state::{Base, Operation, ReceiptFile, Tensor};

/// Number of values that are measured together.
const MEASURED: usize = 1 << 16;

/// Options of an extraction; in JSON under the names of an adapter's settings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtractOptions {
    /// Rank of the factors.
    #[serde(rename = "r")]
    pub rank: u64,
    /// Matrices that get factors.
    #[serde(rename = "target_modules")]
    pub targets: Names,
}

/// Accuracy of the factors of a tensor. Lengths are Frobenius norms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExtractedTensor {
    /// Length of the difference that the factors leave, divided by that of the whole difference; 0 if there is no difference.
    pub error: f64,
    /// Length of the difference.
    pub norm: f64,
}

/// A tensor without factors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UncoveredTensor {
    /// Length of its difference.
    pub norm: f64,
    /// Its share of the squared length of all differences.
    pub share: f64,
}

/// Accuracy of an adapter that was extracted from two models.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExtractReport {
    /// Rank of the factors.
    pub rank: u64,
    /// Error of all targets together.
    pub error: f64,
    /// Targets, by the names of their tensors.
    pub tensors: BTreeMap<String, ExtractedTensor>,
    /// All other tensors: norms, biases, tables.
    pub uncovered: BTreeMap<String, UncoveredTensor>,
}

/// An adapter that was extracted from two models.
pub struct Extracted {
    /// Accuracy of the adapter.
    pub report: ExtractReport,
    /// Warnings about options that work.
    pub warnings: Vec<AdapterWarning>,
    /// Folder of the adapter.
    pub stream: FileStream,
}

/// Extracts a folder of a PEFT adapter from the difference of `tuned` and `base`, two models of one shape in any format: for each target the
/// best product of the given rank in the Frobenius norm, both factors with the root of each direction's size, alpha = rank. The error is that
/// of the factors as they are written, in f32. If the difference has no greater rank, it is below 1e-6.
///
/// The method is subspace iteration in f64 with `rank` + 8 vectors and four rounds, which start from Philox noise of the target's name: equal
/// models give equal bytes. Each target is read seven times. Memory holds pieces of both models (32 MiB), 16 bytes for each of the vectors'
/// values in the largest target, (rank + 8) · (in + out), and all factors in f32.
///
/// `progress` is called with the number of values that were read, and their total number.
///
/// # Errors
/// `extract.shape` for each tensor that the models do not share; those of [`AdapterConfig::resolve`]; `config.invalid` for a rank above that of
/// every target; `model.non-finite` for each tensor with NaN or infinity in either model; `call.aborted` if the interrupt was requested.
pub async fn extract_adapter(
    tuned: &Bundle,
    base: &Bundle,
    options: &ExtractOptions,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Extracted> {
    check_shapes(tuned, base)?;
    let targets = Some(options.targets.clone());
    // A valid rank is far below 2⁵³.
    let settings = AdapterConfig {
        r: options.rank,
        alpha: options.rank as f64,
        target_modules: targets,
        ..AdapterConfig::default()
    };
    let modules = modules(&base.config)?;
    let resolved = settings.resolve(peft_names(base.config.architecture), &modules)?;
    // All targets have one rank, and there is at least one target.
    let rank = resolved
        .targets
        .iter()
        .map(|target| target.rank)
        .max()
        .unwrap_or_default();
    let side = resolved
        .targets
        .iter()
        .map(|target| target.out.min(target.input))
        .max()
        .unwrap_or_default();
    if rank > side {
        let fault = Fault::new(
            "rank",
            format!("at most {side}, the smaller side of the largest target: more would be zeros"),
            rank,
        );
        return Err(Error::InvalidConfig(vec![fault]));
    }
    let chosen = |module: &&Module| {
        resolved
            .targets
            .iter()
            .any(|target| target.module == module.name)
    };
    let targets: Vec<(String, &Module)> = modules
        .iter()
        .filter(chosen)
        .map(|module| (format!("{}.weight", module.name), module))
        .collect();

    let size = |[out, input]: [usize; 2]| out as u64 * input as u64;
    let values = |name: &String| {
        base.shape(name)
            .unwrap_or_default()
            .iter()
            .map(|&dim| dim as u64)
            .product::<u64>()
    };
    let measured: u64 = base.names().iter().map(values).sum();
    let multiplied: u64 = targets
        .iter()
        .map(|(_, module)| size(module.shape) * READINGS)
        .sum();
    let total = measured + multiplied;
    let mut difference = Difference {
        tuned,
        base,
        interrupt,
        progress,
        done: 0,
        total,
    };
    let mut squares = measure(&mut difference).await?;
    let all: f64 = squares.values().sum();

    let (mut tensors, mut written, mut sums) = (BTreeMap::new(), Vec::new(), [0.0; 2]);
    for (name, module) in targets {
        let square = squares.remove(&name).unwrap_or_default();
        let [out, input] = module.shape;
        let factors = if square > 0.0 {
            factors_of(&mut difference, &name, module, rank).await?
        } else {
            difference.skip(size(module.shape) * READINGS);
            Factors {
                a: vec![0.0; rank * input],
                b: vec![0.0; out * rank],
                rest: 0.0,
            }
        };
        tensors.insert(
            name,
            ExtractedTensor {
                error: ratio(factors.rest, square).sqrt(),
                norm: square.sqrt(),
            },
        );
        sums = [sums[0] + factors.rest, sums[1] + square];
        let [a, b] = factor_names(&module.name);
        written.extend([
            in_memory(&a, [rank, input], &factors.a),
            in_memory(&b, [out, rank], &factors.b),
        ]);
    }
    (difference.progress)(total, total);
    let uncovered = |(name, square): (String, f64)| {
        (
            name,
            UncoveredTensor {
                norm: square.sqrt(),
                share: ratio(square, all),
            },
        )
    };
    let uncovered = squares.into_iter().map(uncovered).collect();
    let report = ExtractReport {
        rank: options.rank,
        error: ratio(sums[0], sums[1]).sqrt(),
        tensors,
        uncovered,
    };
    let stream = folder(tuned, base, settings, written, report.error)?;
    Ok(Extracted {
        report,
        warnings: resolved.warnings,
        stream,
    })
}

/// Divides a part by a whole; 0 if the whole is 0.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Refuses models of different sizes, all findings at once.
fn check_shapes(tuned: &Bundle, base: &Bundle) -> Result<()> {
    let refuse = |subject: &str, expected: String, found: String| {
        Refusal::new(word!("extract.shape"))
            .stage("bind")
            .subject(subject)
            .expected(expected)
            .found(found)
    };
    type Number = (&'static str, fn(&ModelConfig) -> usize);
    let numbers: [Number; 3] = [
        ("num_attention_heads", |config| config.num_attention_heads),
        ("num_key_value_heads", |config| config.num_key_value_heads),
        ("head_dim", |config| config.head_dim),
    ];
    let mut refusals = Vec::new();
    for (name, number) in numbers
        .into_iter()
        .filter(|(_, number)| number(&tuned.config) != number(&base.config))
    {
        refusals.push(refuse(
            name,
            format!("{}, as the base has it", number(&base.config)),
            number(&tuned.config).to_string(),
        ));
    }
    let shown = |shape: Option<Vec<usize>>| {
        shape.map_or_else(
            || "no such tensor".to_string(),
            |shape| format!("{shape:?}"),
        )
    };
    let mut names = [tuned.names(), base.names()].concat();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let (found, expected) = (tuned.shape(&name), base.shape(&name));
        if found != expected {
            refusals.push(refuse(
                &name,
                format!("{} in the base", shown(expected)),
                format!("{} in the tuned model", shown(found)),
            ));
        }
    }
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(Error::Refused(refusals))
    }
}

/// Computes the squared length of each tensor's difference.
async fn measure(difference: &mut Difference<'_>) -> Result<BTreeMap<String, f64>> {
    let (mut squares, mut refusals) = (BTreeMap::new(), Vec::new());
    for name in difference.base.names() {
        let mut sum = 0.0;
        let counts = difference
            .read(&name, MEASURED, |block| {
                sum += block.iter().map(|value| value * value).sum::<f64>()
            })
            .await?;
        for (count, model) in counts
            .into_iter()
            .zip(["the tuned model", "the base"])
            .filter(|(count, _)| *count > 0)
        {
            let refusal = Refusal::new(word!("model.non-finite"))
                .stage("read")
                .subject(&name)
                .expected("finite values");
            refusals.push(refusal.found(format!("{count} NaN or infinite in {model}")));
        }
        squares.insert(name, sum);
    }
    if refusals.is_empty() {
        Ok(squares)
    } else {
        Err(Error::Refused(refusals))
    }
}

/// Writes the folder of the adapter. Its receipt lists the files of both models.
fn folder(
    tuned: &Bundle,
    base: &Bundle,
    settings: AdapterConfig,
    tensors: Vec<Tensor>,
    error: f64,
) -> Result<FileStream> {
    let text = format!(
        "The difference of `{}` and its base at rank {}: the factors leave {error:.3e} of the length of the difference of their matrices.",
        tuned.base.name.replace('`', "'"),
        settings.r
    );
    let weights = Weights {
        config: base.config.clone(),
        precision: None,
        tensors,
    };
    let files = base.base.files.iter().chain(&tuned.base.files);
    let inputs = files
        .map(|file| ReceiptFile::of_name(&file.name, file.bytes, file.sha256))
        .collect();
    let source = ExportSource {
        base: Some(Base {
            weights_digest: Some(base.base_digest()?),
            ..base.base.clone()
        }),
        adapter_settings: Some(settings),
        made_by: Some((Operation::Derive, inputs)),
        ..ExportSource::of_weights(weights, ModelAssets::of_config(&base.config, None))
    };
    let card = ModelCard {
        text: Some(text),
        ..ModelCard::default()
    };
    export_adapter(
        &source,
        &ExportOptions {
            format: ExportFormat::Peft,
            card: Some(card),
            ..ExportOptions::default()
        },
    )
}
