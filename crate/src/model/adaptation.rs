//! Which matrices of a model get factors, and which modules are trained beside them.

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

/// Purpose of the noise of dropout.
const DROPOUT: &str = "dropout:";

/// An adapter of a model before it has values. Everything else of the model is constant; beside an empty one, which is the default, all of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Adaptation {
    targets: BTreeMap<String, Target>,
    saved: BTreeSet<String>,
    dropout: f64,
    init: Init,
    seed: u64,
    warnings: Vec<AdapterWarning>,
}

/// The settings of the adapter beside `bundle`, if it was opened with one, without names that its model has no module of.
///
/// # Errors
/// Those of [`AdapterConfig::limited_to`].
pub fn attached_settings(bundle: &Bundle) -> Result<Option<AdapterConfig>> {
    let limited = |settings: AdapterConfig| settings.limited_to(bundle.config.architecture, &modules(&bundle.config)?);
    bundle.attached().map(|saved| limited(saved.settings())).transpose()
}

/// The factors that a layer asks for: name, shape and kind of A and B, and how they are used.
pub(super) struct AskedFactors {
    pub a: (String, [usize; 2], Kind),
    pub b: (String, [usize; 2], Kind),
    pub low_rank: LowRank,
}

impl Adaptation {
    /// What `settings` mean for a model of this configuration; `seed` is that of new factors and of dropout.
    ///
    /// # Errors
    /// Those of [`AdapterConfig::resolve`].
    pub fn new(settings: &AdapterConfig, model: &ModelConfig, seed: u64) -> Result<Self> {
        let resolved = settings.resolve(model.architecture, &modules(model)?)?;
        let targets = resolved.targets.into_iter().map(|target| (target.module.clone(), target)).collect();
        let saved = resolved.saved.into_iter().collect();
        let warnings = resolved.warnings;
        Ok(Self { targets, saved, dropout: settings.dropout, init: settings.init, seed, warnings })
    }

    /// That of a run, if it trains an adapter.
    ///
    /// # Errors
    /// Those of [`AdapterConfig::resolve`].
    pub fn of_run(train: &TrainConfig, model: &ModelConfig) -> Result<Option<Self>> {
        train.adapter.as_ref().map(|settings| Self::new(settings, model, train.seed)).transpose()
    }

    /// That of the files of the adapter beside `bundle`, if it was opened with one.
    ///
    /// # Errors
    /// Those of [`AdapterConfig::resolve`].
    pub fn attached(bundle: &Bundle) -> Result<Option<Self>> {
        attached_settings(bundle)?.map(|settings| Self::new(&settings, &bundle.config, 0)).transpose()
    }

    /// The matrices with factors, by the names of their modules.
    pub fn targets(&self) -> &BTreeMap<String, Target> {
        &self.targets
    }

    /// What is worth knowing of settings that work.
    pub fn warnings(&self) -> &[AdapterWarning] {
        &self.warnings
    }

    /// Seed of new factors and of dropout.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether the parameter `name` of the base is trained in full.
    pub fn saves(&self, name: &str) -> bool {
        name.rsplit_once('.').is_some_and(|(module, _)| self.saved.contains(module))
    }

    /// What the matrix [out, input] of `module` gets.
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

/// PEFT's `adapter_config.json` of an adapter with these settings, for a model of this configuration, with the unknown fields of the adapter
/// that it goes on from.
///
/// # Errors
/// Those of [`AdapterConfig::resolve`].
pub fn adapter_document(
    settings: &AdapterConfig,
    model: &ModelConfig,
    base_name: Option<&str>,
    kept: &Map<String, Value>,
) -> Result<String> {
    let resolved = settings.resolve(model.architecture, &modules(model)?)?;
    Ok(adapter_config_json(settings, model.architecture, base_name, &resolved, kept))
}

/// The refusal of an adapter beside a new model.
pub fn no_base() -> Error {
    Error::InvalidConfig(vec![Fault::new(
        "adapter",
        "null for a new model: an adapter is trained beside a model that was opened",
        "an adapter",
    )])
}

/// The modules of a model that have weights, in its order.
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
