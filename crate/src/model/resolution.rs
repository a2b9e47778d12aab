//! Resolves the settings of an adapter for a model, by the modules that the model has.

use serde_json::{Map, Value, json};

use super::adaptation::Adaptation;
use super::load::Plan;
use super::parameter_request::{Kind, ParameterRequest};
use super::part::Part;
use crate::bundle::{Bundle, adapter_config_json};
use crate::config::{AdapterConfig, ModelConfig, Module, ModuleKind, TrainConfig};
use crate::error::{Error, Result};
use crate::families::peft_names;

/// The settings of the adapter attached to `bundle` (opened with it and not merged into it), if any, without names that match no
/// module of the model.
///
/// # Errors
/// `adapter.pattern.*` for patterns that cannot be read.
pub fn attached_settings(bundle: &Bundle) -> Result<Option<AdapterConfig>> {
    let limited = |settings: AdapterConfig| {
        settings.limited_to(
            peft_names(bundle.config.architecture),
            &modules(&bundle.config)?,
        )
    };
    bundle
        .attached()
        .map(|saved| limited(saved.settings()))
        .transpose()
}

/// The settings of a new run on the model of `bundle`: the `given` ones over the defaults. An adapter that was opened with it and is
/// trained further brings those in its files, which `adapter` may repeat.
///
/// # Errors
/// The errors of [`attached_settings`], [`AdapterConfig::continued`] and [`TrainConfig::overlaid`].
pub fn settings_on(bundle: &Bundle, mut given: Value) -> Result<TrainConfig> {
    // A value that is not an object is refused as in any run.
    if let (Some(saved), Some(keys)) = (attached_settings(bundle)?, given.as_object_mut()) {
        let adapter = saved.continued(keys.get("adapter").unwrap_or(&json!({})))?;
        let adapter = serde_json::to_value(adapter).expect("settings are JSON");
        keys.insert("adapter".into(), adapter);
    }
    TrainConfig::default().overlaid(given)
}

impl Adaptation {
    /// Resolves `settings` for a model of this configuration; `seed` is the seed of new factors and of dropout.
    ///
    /// # Errors
    /// The errors of [`AdapterConfig::resolve`].
    pub fn new(settings: &AdapterConfig, model: &ModelConfig, seed: u64) -> Result<Self> {
        let resolved = settings.resolve(peft_names(model.architecture), &modules(model)?)?;
        Ok(Self::of_resolved(settings, resolved, seed))
    }

    /// The adapter that a run trains, if it trains one.
    ///
    /// # Errors
    /// The errors of [`AdapterConfig::resolve`].
    pub fn of_run(train: &TrainConfig, model: &ModelConfig) -> Result<Option<Self>> {
        train
            .adapter
            .as_ref()
            .map(|settings| Self::new(settings, model, train.seed))
            .transpose()
    }

    /// The adapter attached to `bundle`, if any.
    ///
    /// # Errors
    /// The errors of [`AdapterConfig::resolve`].
    pub fn attached(bundle: &Bundle) -> Result<Option<Self>> {
        attached_settings(bundle)?
            .map(|settings| Self::new(&settings, &bundle.config, 0))
            .transpose()
    }
}

/// Renders PEFT's `adapter_config.json` for an adapter with these settings on a model of this configuration. `kept` holds the unknown
/// fields of the adapter that this one continues from.
///
/// # Errors
/// The errors of [`AdapterConfig::resolve`].
pub(crate) fn adapter_document(
    settings: &AdapterConfig,
    model: &ModelConfig,
    base_name: Option<&str>,
    kept: &Map<String, Value>,
) -> Result<String> {
    let resolved = settings.resolve(peft_names(model.architecture), &modules(model)?)?;
    Ok(adapter_config_json(
        settings,
        peft_names(model.architecture),
        base_name,
        &resolved,
        kept,
    ))
}

/// The error that refuses an adapter for a new model, which has no base.
pub fn no_base() -> Error {
    Error::invalid(
        "adapter",
        "null for a new model: an adapter is trained on a model that was opened",
        "an adapter",
    )
}

/// The modules of a model that have weights, in the model's order.
///
/// # Errors
/// The errors of [`ModelConfig::validate`].
pub fn modules(model: &ModelConfig) -> Result<Vec<Module>> {
    let Plan {
        stack, parameters, ..
    } = Plan::of(model, None)?;
    let fan_in_fan_out = |part: Part| stack.conv1d && part.block().is_some();
    let module = |request: ParameterRequest| {
        let name = request.name.strip_suffix(".weight")?.to_string();
        let (kind, shape) = match (request.kind, request.part, request.shape.as_slice()) {
            (Kind::Matrix(_), Part::Table { .. }, &[rows, width]) => {
                (ModuleKind::Embedding, [rows, width])
            }
            (Kind::Matrix(_), Part::Head, &[rows, width]) => (ModuleKind::Head, [rows, width]),
            (Kind::Matrix(_), part, &[input, out]) if fan_in_fan_out(part) => {
                (ModuleKind::Matrix, [out, input])
            }
            (Kind::Matrix(_), Part::Block(_), &[out, input]) => (ModuleKind::Matrix, [out, input]),
            (_, _, &[width]) => (ModuleKind::Norm, [width, 1]),
            _ => return None,
        };
        let tied = request.part == Part::Table { tied: true };
        Some(Module {
            name,
            block: request.part.block(),
            shape,
            kind,
            tied,
            fan_in_fan_out: fan_in_fan_out(request.part),
        })
    };
    Ok(parameters.into_iter().filter_map(module).collect())
}
