//! Writes `adapter_config.json` as PEFT does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::config::BASE_NAMES;
use super::pairs::PREFIX;
use crate::config::{AdapterConfig, Names, PeftNames, Resolved, Target, is_all_linear};
use crate::state::Tensor;

/// Number of targets from which on PEFT writes the shortest name ends that distinguish them from other modules. These are the last parts, since
/// in every model here no other module has the same last part as a target.
const SHORT_NAMES: usize = 20;

/// Writes `adapter_config.json` of an adapter with these settings: every field that PEFT 0.17 writes, keys ascending, indented by two spaces.
/// Ranks and alphas of single targets are written under whole names in both tables, because PEFT 0.12 used the key found in one table for the
/// other as well. `base_name` is the name by which PEFT opens the base: without it the one of the adapter that this one continues from, or
/// null. `kept` are fields of that adapter, which are kept unless they have a name of PEFT's.
pub fn adapter_config_json(
    config: &AdapterConfig,
    family: &PeftNames,
    base_name: Option<&str>,
    resolved: &Resolved,
    kept: &Map<String, Value>,
) -> String {
    let targets = match config.targets(family) {
        Names::One(text) if is_all_linear(&text) => json!(all_names(&resolved.targets)),
        Names::One(text) => json!(text),
        Names::Many(list) => json!(list.into_iter().collect::<BTreeSet<_>>()),
    };
    // Empty lists have no effect, and PEFT refuses some of them together with a regular expression.
    let names = |names: &Option<Names>| match names {
        Some(names) if !names.is_empty() => json!(names),
        _ => Value::Null,
    };
    let layers = config.layers_to_transform.as_ref();
    let layers = layers.map(|layers| layers.numbers());
    let layers = layers.filter(|numbers| !numbers.is_empty());
    let of = |differs: &dyn Fn(&Target) -> Option<Value>| {
        let targets = resolved.targets.iter();
        let differing = targets.filter_map(|target| Some((&target.module, differs(target)?)));
        differing.collect::<BTreeMap<_, _>>()
    };
    let r = usize::try_from(config.r).ok();
    let [name, revision] = BASE_NAMES.map(|key| match base_name {
        None => kept.get(key),
        Some(_) => None,
    });
    let fields = json!({
        "alpha_pattern": of(&|target| (target.alpha != config.alpha).then(|| number(target.alpha))),
        "auto_mapping": null,
        "base_model_name_or_path": base_name.map_or(json!(name), Value::from),
        "bias": config.bias,
        "corda_config": null,
        "eva_config": null,
        "exclude_modules": names(&config.exclude_modules),
        "fan_in_fan_out": resolved.fan_in_fan_out,
        "inference_mode": true,
        "init_lora_weights": config.init,
        "layer_replication": null,
        "layers_pattern": names(&config.layers_pattern),
        "layers_to_transform": layers,
        "loftq_config": {},
        "lora_alpha": number(config.alpha),
        "lora_bias": false,
        "lora_dropout": config.dropout,
        "megatron_config": null,
        "megatron_core": "megatron.core",
        "modules_to_save": config.modules_to_save.as_ref().filter(|names| !names.is_empty()),
        "peft_type": "LORA",
        "qalora_group_size": 16,
        "r": config.r,
        "rank_pattern": of(&|target| (Some(target.rank) != r).then(|| json!(target.rank))),
        "revision": revision,
        "target_modules": targets,
        "target_parameters": null,
        "task_type": "CAUSAL_LM",
        "trainable_token_indices": null,
        "use_dora": false,
        "use_qalora": false,
        "use_rslora": config.rslora,
    });
    let own = fields.as_object().into_iter().flatten();
    // PEFT's own fields come last, so that they take precedence.
    let sorted: BTreeMap<&String, &Value> = kept.iter().chain(own).collect();
    format!("{:#}\n", json!(sorted))
}

/// Renames trained tensors to the names of PEFT's files.
pub(crate) fn adapter_tensors(tensors: Vec<Tensor>) -> Vec<Tensor> {
    let named = tensors.into_iter().map(|tensor| {
        let name = format!("{PREFIX}{}", tensor.name);
        tensor.renamed(&name)
    });
    named.collect()
}

/// Names the targets of `all-linear` as PEFT writes them.
fn all_names(targets: &[Target]) -> BTreeSet<&str> {
    let names = targets.iter().map(|target| target.module.as_str());
    if targets.len() < SHORT_NAMES {
        return names.collect();
    }
    names.filter_map(|name| name.rsplit('.').next()).collect()
}

/// Writes a number without a fraction as an integer, as PEFT does.
fn number(value: f64) -> Value {
    // Below 2⁵³ every integer is an f64.
    if value.fract() == 0.0 && value.abs() < 9e15 {
        json!(value as i64)
    } else {
        json!(value)
    }
}
