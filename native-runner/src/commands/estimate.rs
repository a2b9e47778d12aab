//! `tabtune estimate`: the memory that a run needs, computed without a device.

use tabtune::bundle::Bundle;
use tabtune::config::{Beginning, Choices, ModelConfig};
use tabtune::export::GgufTypes;
use tabtune::families::config_from_hf;
use tabtune::model::{ParameterRequest, files_form};
use tabtune::train::{Estimate, estimate};

use super::Outcome;
use crate::args::EstimateArgs;
use crate::error::Result;
use crate::files::{Wanted, open_wanted, read_json};
use crate::output::Output;
use crate::settings::{given, resolve, resolve_on};

/// Prints the bytes by purpose, their sum, the largest tensor, and the limits that the run fits and does not fit.
///
/// # Errors
/// Errors of the settings, `source.read`, and refusals of the model or the type.
pub fn run(args: &EstimateArgs, output: &Output) -> Result<Outcome> {
    let given = given(&args.settings)?;
    let mut train = resolve(given.clone(), None)?;
    let types = args
        .types
        .as_deref()
        .map(GgufTypes::from_word)
        .transpose()?
        .filter(|types| *types != GgufTypes::AsBase);
    let bundle = args.model.as_deref().map(|path| {
        let wanted = Wanted {
            adapter: args.adapter.as_deref(),
            apart: true,
            unread: true,
            ..Wanted::default()
        };
        open_wanted(path, wanted)
    });
    let bundle = bundle.transpose()?;
    if let Some(bundle) = &bundle {
        train = resolve_on(bundle, given.clone())?;
    }
    let model = shape(args, bundle.as_ref())?;
    // As `train` chooses them, so far as they need memory.
    let beginning = Beginning {
        model: &model,
        fresh: bundle.is_none(),
        chooses: true,
        evaluates_apart: true,
    };
    let (train, _) = Choices::begin(train, &given, beginning)?;
    let of_types =
        |request: &ParameterRequest| types.and_then(|types| types.planned_form(request, &model));
    let in_files = files_form(bundle.as_ref());
    let estimate = if types.is_some() {
        estimate(&model, &train, &of_types)
    } else {
        estimate(&model, &train, &in_files)
    }?;
    output.line(&estimate, || described(&estimate))?;
    Ok(Outcome::Good)
}

/// Returns the configuration of the model to estimate.
fn shape(args: &EstimateArgs, bundle: Option<&Bundle>) -> Result<ModelConfig> {
    match (bundle, &args.config) {
        (Some(bundle), _) => Ok(bundle.config.clone()),
        (None, Some(path)) => Ok(config_from_hf(&read_json(path)?)?),
        (None, None) => Err(crate::error::RunError::Usage(
            "expected --model or --config".into(),
        )),
    }
}

fn described(estimate: &Estimate) -> String {
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let parts = &estimate.parts;
    let named = [
        ("weights", parts.weights),
        ("base", parts.base),
        ("adapter", parts.adapter),
        ("gradients", Some(parts.grads)),
        ("optimizer", Some(parts.optimizer)),
        ("activations", Some(parts.activations)),
    ];
    let mut lines = vec![format!(
        "needs {:.1} MB, training {} values",
        mb(estimate.need_bytes),
        estimate.trained
    )];
    lines.extend(
        named
            .iter()
            .filter_map(|(name, bytes)| Some(format!("  {name} {:.1} MB", mb((*bytes)?)))),
    );
    lines.push(format!(
        "largest tensor {}: {:.1} MB",
        estimate.largest_tensor.name,
        mb(estimate.largest_tensor.bytes)
    ));
    let fits = |wanted: bool| {
        let names: Vec<&str> = estimate
            .fits
            .iter()
            .filter(|(_, fits)| *fits == wanted)
            .map(|(name, _)| *name)
            .collect();
        if names.is_empty() {
            "none".to_string()
        } else {
            names.join(", ")
        }
    };
    lines.push(format!("fits {}", fits(true)));
    lines.push(format!("does not fit {}", fits(false)));
    lines.join("\n")
}
