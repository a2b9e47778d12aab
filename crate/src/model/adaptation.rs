//! Resolves which matrices of a model get low-rank factors, and which modules are trained in full alongside them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::family::Part;
use super::load::{Asked, Kind, Plan};
use super::low_rank::LowRank;
use crate::bundle::{Bundle, adapter_config_json};
use crate::config::{AdapterConfig, AdapterWarning, Architecture, Init, ModelConfig, Module, ModuleKind, Target, TrainConfig};
use crate::error::{Error, Fault, Result};
use crate::families::factor_names;
use crate::random;

/// Purpose of the dropout noise, as part of its key.
const DROPOUT: &str = "dropout:";

/// Adapter of a model, before its tensors have values. All other parameters of the model are constants; with an empty adapter, which is the
/// default, every parameter is one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Adaptation {
    targets: BTreeMap<String, Target>,
    saved: BTreeSet<String>,
    dropout: f64,
    init: Init,
    seed: u64,
    warnings: Vec<AdapterWarning>,
}

/// Returns the settings of the adapter attached to `bundle` (opened with it and not merged into it), if any, without names that match no
/// module of the model.
///
/// # Errors
/// The errors of [`AdapterConfig::limited_to`].
pub fn attached_settings(bundle: &Bundle) -> Result<Option<AdapterConfig>> {
    let limited = |settings: AdapterConfig| settings.limited_to(bundle.config.architecture, &modules(&bundle.config)?);
    bundle.attached().map(|saved| limited(saved.settings())).transpose()
}

/// Factors that a layer requests: name, shape and kind of A and B, and how they are used.
pub(super) struct AskedFactors {
    pub a: (String, [usize; 2], Kind),
    pub b: (String, [usize; 2], Kind),
    pub low_rank: LowRank,
}

impl Adaptation {
    /// Resolves `settings` for a model of this configuration; `seed` is the seed of new factors and of dropout.
    ///
    /// # Errors
    /// The errors of [`AdapterConfig::resolve`].
    pub fn new(settings: &AdapterConfig, model: &ModelConfig, seed: u64) -> Result<Self> {
        let resolved = settings.resolve(model.architecture, &modules(model)?)?;
        let targets = resolved.targets.into_iter().map(|target| (target.module.clone(), target)).collect();
        let saved = resolved.saved.into_iter().collect();
        let warnings = resolved.warnings;
        Ok(Self { targets, saved, dropout: settings.dropout, init: settings.init, seed, warnings })
    }

    /// Returns the adapter that a run trains, if it trains one.
    ///
    /// # Errors
    /// The errors of [`AdapterConfig::resolve`].
    pub fn of_run(train: &TrainConfig, model: &ModelConfig) -> Result<Option<Self>> {
        train.adapter.as_ref().map(|settings| Self::new(settings, model, train.seed)).transpose()
    }

    /// Returns the adapter attached to `bundle`, if any.
    ///
    /// # Errors
    /// The errors of [`AdapterConfig::resolve`].
    pub fn attached(bundle: &Bundle) -> Result<Option<Self>> {
        attached_settings(bundle)?.map(|settings| Self::new(&settings, &bundle.config, 0)).transpose()
    }

    /// Returns the matrices that have factors, keyed by the names of their modules.
    pub fn targets(&self) -> &BTreeMap<String, Target> {
        &self.targets
    }

    /// Returns the warnings about settings that work but deserve attention.
    pub fn warnings(&self) -> &[AdapterWarning] {
        &self.warnings
    }

    /// Returns the seed of new factors and of dropout.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns whether the base's parameter `name` is trained in full.
    pub fn saves(&self, name: &str) -> bool {
        name.rsplit_once('.').is_some_and(|(module, _)| self.saved.contains(module))
    }

    /// Returns the factors of the matrix `[out, input]` of `module`, if it is a target.
    pub(super) fn factors(&self, module: &str, [out, input]: [usize; 2]) -> Option<AskedFactors> {
        let &Target { rank, scale, .. } = self.targets.get(module)?;
        let [a, b] = factor_names(module);
        let low_rank = LowRank { scale: scale as f32, dropout: self.dropout, key: random::key(DROPOUT, self.seed, module) };
        let first = match self.init {
            Init::Uniform => Kind::Uniform,
            Init::Gaussian => Kind::Gaussian,
        };
        Some(AskedFactors { a: (a, [rank, input], first), b: (b, [out, rank], Kind::Zero), low_rank })
    }
}

/// Renders PEFT's `adapter_config.json` for an adapter with these settings on a model of this configuration. `kept` holds the unknown
/// fields of the adapter that this one continues from.
///
/// # Errors
/// The errors of [`AdapterConfig::resolve`].
pub fn adapter_document(
    settings: &AdapterConfig,
    model: &ModelConfig,
    base_name: Option<&str>,
    kept: &Map<String, Value>,
) -> Result<String> {
    let resolved = settings.resolve(model.architecture, &modules(model)?)?;
    Ok(adapter_config_json(settings, model.architecture, base_name, &resolved, kept))
}

/// Returns the error that refuses an adapter for a new model, which has no base.
pub fn no_base() -> Error {
    Error::InvalidConfig(vec![Fault::new(
        "adapter",
        "null for a new model: an adapter is trained beside a model that was opened",
        "an adapter",
    )])
}

/// Returns the modules of a model that have weights, in the model's order.
///
/// # Errors
/// The errors of [`ModelConfig::validate`].
pub fn modules(model: &ModelConfig) -> Result<Vec<Module>> {
    let fan_in_fan_out = |part: Part| model.architecture == Architecture::Gpt2 && part.block().is_some();
    let module = |asked: Asked| {
        let name = asked.name.strip_suffix(".weight")?.to_string();
        let (kind, shape) = match (asked.kind, asked.part, asked.shape.as_slice()) {
            (Kind::Matrix(_), Part::Table { .. }, &[rows, width]) => (ModuleKind::Embedding, [rows, width]),
            (Kind::Matrix(_), Part::Head, &[rows, width]) => (ModuleKind::Head, [rows, width]),
            (Kind::Matrix(_), part, &[input, out]) if fan_in_fan_out(part) => (ModuleKind::Matrix, [out, input]),
            (Kind::Matrix(_), Part::Block(_), &[out, input]) => (ModuleKind::Matrix, [out, input]),
            (_, _, &[width]) => (ModuleKind::Norm, [width, 1]),
            _ => return None,
        };
        let tied = asked.part == Part::Table { tied: true };
        Some(Module { name, block: asked.part.block(), shape, kind, tied, fan_in_fan_out: fan_in_fan_out(asked.part) })
    };
    Ok(Plan::of(model, None)?.parameters.into_iter().filter_map(module).collect())
}
