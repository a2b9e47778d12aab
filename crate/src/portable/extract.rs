//! Extracts an adapter from two models: for each matrix the best product of low rank for their difference.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::difference::Difference;
use super::factors::{Factors, READINGS, factors_of, in_memory};
use crate::bundle::{Bundle, FileStream, ModelAssets};
use crate::config::{AdapterConfig, AdapterWarning, ModelConfig, Module, Names, Target};
use crate::error::{Error, Refusal, Result, refuse_all, word};
use crate::export::{
    ExportFormat, ExportOptions, ExportSource, ModelCard, Weights, export_adapter,
};
use crate::families::{factor_names, peft_names};
use crate::interrupt::Interrupt;
use crate::model::modules;
use crate::state::{Base, Operation, Tensor};

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
    // A valid rank is far below 2⁵³.
    let settings = AdapterConfig {
        r: options.rank,
        alpha: options.rank as f64,
        target_modules: Some(options.targets.clone()),
        ..AdapterConfig::default()
    };
    let modules = modules(&base.config)?;
    let resolved = settings.resolve(peft_names(base.config.architecture), &modules)?;
    let rank = rank_of(&resolved.targets)?;
    let is_target =
        |module: &&Module| (resolved.targets.iter()).any(|target| target.module == module.name);
    let targets: Vec<&Module> = modules.iter().filter(is_target).collect();

    let readings = |module: &Module| {
        let [out, input] = module.shape;
        out as u64 * input as u64 * READINGS
    };
    let names = base.names();
    let values = names.iter().filter_map(|name| base.tensor(name)?.numel());
    let total = values.sum::<u64>() + targets.iter().map(|module| readings(module)).sum::<u64>();
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

    let (mut tensors, mut written) = (BTreeMap::new(), Vec::new());
    let (mut rest, mut whole) = (0.0, 0.0);
    for module in targets {
        let name = format!("{}.weight", module.name);
        let square = squares.remove(&name).unwrap_or_default();
        let [out, input] = module.shape;
        let factors = if square > 0.0 {
            factors_of(&mut difference, &name, module, rank).await?
        } else {
            difference.skip(readings(module));
            Factors {
                a: vec![0.0; rank * input],
                b: vec![0.0; out * rank],
                rest: 0.0,
            }
        };
        let accuracy = ExtractedTensor {
            error: ratio(factors.rest, square).sqrt(),
            norm: square.sqrt(),
        };
        tensors.insert(name, accuracy);
        rest += factors.rest;
        whole += square;
        let [a, b] = factor_names(&module.name);
        written.extend([
            in_memory(&a, [rank, input], &factors.a),
            in_memory(&b, [out, rank], &factors.b),
        ]);
    }
    (difference.progress)(total, total);
    let uncovered = |square: f64| UncoveredTensor {
        norm: square.sqrt(),
        share: ratio(square, all),
    };
    let report = ExtractReport {
        rank: options.rank,
        error: ratio(rest, whole).sqrt(),
        tensors,
        uncovered: squares
            .into_iter()
            .map(|(name, square)| (name, uncovered(square)))
            .collect(),
    };
    let stream = folder(tuned, base, settings, written, report.error)?;
    Ok(Extracted {
        report,
        warnings: resolved.warnings,
        stream,
    })
}

/// The rank of all targets, of which there is at least one.
fn rank_of(targets: &[Target]) -> Result<usize> {
    let ranks = targets.iter().map(|target| target.rank);
    let sides = targets.iter().map(|target| target.out.min(target.input));
    let (rank, side) = (ranks.max().unwrap_or(0), sides.max().unwrap_or(0));
    if rank <= side {
        return Ok(rank);
    }
    let rule =
        format!("at most {side}, the smaller side of the largest target: more would be zeros");
    Err(Error::invalid("rank", rule, rank))
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
    let numbers = |config: &ModelConfig| {
        [
            ("num_attention_heads", config.num_attention_heads),
            ("num_key_value_heads", config.num_key_value_heads),
            ("head_dim", config.head_dim),
        ]
    };
    let mut refusals = Vec::new();
    for ((name, expected), (_, found)) in numbers(&base.config)
        .into_iter()
        .zip(numbers(&tuned.config))
    {
        if found != expected {
            let expected = format!("{expected}, as the base has it");
            refusals.push(refuse(name, expected, found.to_string()));
        }
    }
    let shown = |shape: Option<Vec<usize>>| match shape {
        Some(shape) => format!("{shape:?}"),
        None => "no such tensor".to_string(),
    };
    let names: BTreeSet<String> = tuned.names().into_iter().chain(base.names()).collect();
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
    refuse_all(refusals)
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
        for (count, model) in counts.into_iter().zip(["the tuned model", "the base"]) {
            if count > 0 {
                let refusal = Refusal::new(word!("model.non-finite"))
                    .stage("read")
                    .subject(&name)
                    .expected("finite values")
                    .found(format!("{count} NaN or infinite in {model}"));
                refusals.push(refusal);
            }
        }
        squares.insert(name, sum);
    }
    refuse_all(refusals)?;
    Ok(squares)
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
        tensors,
    };
    let inputs = [base.base.receipt_files(), tuned.base.receipt_files()].concat();
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
