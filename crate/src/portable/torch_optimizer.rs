//! Reads the state of an optimizer of PyTorch from a safetensors file (crate/FORMATS.md, "State of a PyTorch optimizer"): tensors
//! `state.<parameter>.<key>`, and the parameter groups as JSON in the metadata.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::config::{AdamwConfig, OptimizerConfig, SgdConfig, StateWord};
use crate::error::{Refusal, Result, word};
use crate::formats::{ByteSource, FileTensor, SafetensorsFile};
use crate::state::{
    Bytes, GroupClass, GroupMember, ModelStateGroupAssignment, ParameterSemantics, Tensor,
    TensorRole,
};
use crate::train::optimizer_record;

/// Key of the metadata with the groups, as `Optimizer.state_dict()` has them.
pub(super) const PARAM_GROUPS: &str = "param_groups";

/// Groups and state tensors of an optimizer.
pub(super) struct TorchOptimizer {
    pub(super) groups: Vec<ModelStateGroupAssignment>,
    pub(super) tensors: Vec<Tensor>,
}

impl TorchOptimizer {
    /// Reads the optimizer of `file`, whose metadata has `groups`. Only the counters of steps are read of its values.
    ///
    /// # Errors
    /// `state.group.hyperparameter` for groups without names or numbers, `state.tensor.orphan` for state of a parameter that no group has,
    /// `state.group.state-words` for a state that neither AdamW nor SGD keeps.
    pub(super) fn read(
        source: &Rc<dyn ByteSource>,
        file: &SafetensorsFile,
        groups: &str,
    ) -> Result<Self> {
        let wrong = |subject: &str, expected: &str| {
            Refusal::new(word!("state.group.hyperparameter"))
                .of(source.name())
                .subject(subject)
                .expected(expected)
        };
        let list: Vec<Map<String, Value>> = serde_json::from_str(groups)
            .map_err(|_| wrong(PARAM_GROUPS, "the list of groups as JSON"))?;
        let mut of_parameter: BTreeMap<String, BTreeMap<StateWord, Tensor>> = BTreeMap::new();
        let (mut read, mut tensors) = (Vec::new(), Vec::new());
        for record in &file.tensors {
            let (parameter, tensor) = state_tensor(source, record)?;
            let StateTensor { word, tensor } = tensor;
            of_parameter
                .entry(parameter)
                .or_default()
                .insert(word, tensor);
        }
        for (at, group) in list.iter().enumerate() {
            let subject = |key: &str| format!("{PARAM_GROUPS}/{at}/{key}");
            let optimizer = optimizer_of(group)
                .map_err(|key| wrong(&subject(key), "a number, or no such setting"))?;
            let rate = number(group, "lr").map_err(|key| wrong(&subject(key), "a number"))?;
            let mut record = optimizer_record(&optimizer, rate.unwrap_or_default())?;
            for key in ["amsgrad", "maximize", "dampening"] {
                // Settings that no rule here has are refused by their names.
                if let Some(value) = number(group, key)
                    .ok()
                    .flatten()
                    .filter(|value| *value != 0.0)
                {
                    record.hyperparameters.insert(key.to_string(), value);
                }
            }
            if group.get("decoupled_weight_decay") == Some(&Value::Bool(false)) {
                record.kind = "adam".to_string();
            }
            let names = names_of(group).ok_or_else(|| {
                wrong(
                    &subject("param_names"),
                    "the names of the group's parameters",
                )
            })?;
            let mut members = Vec::new();
            let mut applied_steps = 0;
            for name in names {
                let mut state = BTreeMap::new();
                let mut kept = of_parameter.remove(&name).unwrap_or_default();
                if !kept.is_empty() {
                    // SGD counts no steps; its buffer has seen one at least.
                    kept.entry(StateWord::Step)
                        .or_insert_with(|| step_tensor(1));
                }
                for (word, tensor) in kept {
                    if word == StateWord::Step {
                        applied_steps = applied_steps.max(step_in(&tensor));
                    }
                    let tensor = tensor.renamed(&format!("{name}:{}", word.text()));
                    state.insert(word, tensor.name.clone());
                    tensors.push(tensor);
                }
                members.push(GroupMember {
                    parameter: name,
                    state,
                });
            }
            read.push(ModelStateGroupAssignment {
                group_id: format!("groups/{at}"),
                class: GroupClass::Mixed,
                model_tree_path: Vec::new(),
                optimizer: record,
                parameter_semantics: ParameterSemantics::default(),
                scheduler: None,
                members,
                applied_steps,
                residency_policy: None,
                residency: None,
            });
        }
        if let Some((parameter, _)) = of_parameter.first_key_value() {
            let refusal = Refusal::new(word!("state.tensor.orphan")).of(source.name());
            return Err(refusal.subject(&format!("state.{parameter}")).into());
        }
        Ok(Self {
            groups: read,
            tensors,
        })
    }
}

struct StateTensor {
    word: StateWord,
    tensor: Tensor,
}

/// The parameter of a tensor `state.<parameter>.<key>`, and its state.
fn state_tensor(source: &Rc<dyn ByteSource>, record: &FileTensor) -> Result<(String, StateTensor)> {
    let own = record.name.strip_prefix("state.");
    let (parameter, key) = own.and_then(|own| own.rsplit_once('.')).unwrap_or(("", ""));
    let word = match key {
        "exp_avg" => StateWord::M,
        "exp_avg_sq" => StateWord::V,
        "momentum_buffer" => StateWord::Momentum,
        "step" => StateWord::Step,
        _ => {
            return Err(Refusal::new(word!("state.group.state-words"))
                .of(source.name())
                .subject(&record.name)
                .expected("state.<parameter>. and exp_avg, exp_avg_sq, momentum_buffer or step")
                .found(key)
                .into());
        }
    };
    let mut tensor = Tensor::in_file(record, source);
    if word == StateWord::Step {
        let step = read_step(source, record)?;
        tensor = step_tensor(step);
    }
    tensor = tensor.renamed(&format!("{parameter}:{}", word.text()));
    tensor.role = TensorRole::State(word);
    Ok((parameter.to_string(), StateTensor { word, tensor }))
}

/// A counter of steps, which is named later.
fn step_tensor(step: u64) -> Tensor {
    Tensor::of_name("state:step", "U64", &[], Bytes::host(step.to_le_bytes()))
}

/// The number of steps that a scalar holds: F32 in PyTorch, or I64.
fn read_step(source: &Rc<dyn ByteSource>, record: &FileTensor) -> Result<u64> {
    let mut bytes = [0; 8];
    let len = usize::try_from(record.end() - record.begin).unwrap_or(usize::MAX);
    let value = match (record.dtype.as_str(), bytes.get_mut(..len)) {
        ("F32", Some(four @ [_, _, _, _])) => {
            source.read_at(record.begin, four)?;
            let value = f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
            (value >= 0.0 && value.fract() == 0.0).then_some(value as u64)
        }
        ("I64", Some(eight)) if len == 8 => {
            source.read_at(record.begin, eight)?;
            u64::try_from(i64::from_le_bytes(bytes)).ok()
        }
        _ => None,
    };
    let wrong = Refusal::new(word!("state.step.range"))
        .of(source.name())
        .subject(&record.name)
        .expected("a whole number of steps, F32 or I64")
        .found(&record.dtype);
    Ok(value.ok_or(wrong)?)
}

fn step_in(tensor: &Tensor) -> u64 {
    let bytes = tensor.in_memory().map(|bytes| bytes.as_ref().try_into());
    bytes.and_then(Result::ok).map_or(0, u64::from_le_bytes)
}

/// A number of a group, 0 and 1 for a switch.
fn number<'k>(
    group: &Map<String, Value>,
    key: &'k str,
) -> std::result::Result<Option<f64>, &'k str> {
    match group.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(switch)) => Ok(Some(f64::from(u8::from(*switch)))),
        Some(value) => value.as_f64().map(Some).ok_or(key),
    }
}

/// The rule of a group: AdamW if it has betas, else SGD. The error is the key of a setting that is no number.
fn optimizer_of(group: &Map<String, Value>) -> std::result::Result<OptimizerConfig, &'static str> {
    let decay = number(group, "weight_decay")?.unwrap_or_default();
    let Some(betas) = group.get("betas") else {
        return Ok(OptimizerConfig::Sgd(SgdConfig {
            momentum: number(group, "momentum")?.unwrap_or_default(),
            nesterov: group.get("nesterov") == Some(&Value::Bool(true)),
            weight_decay: decay,
            ..SgdConfig::default()
        }));
    };
    let beta = |at: usize| betas.get(at).and_then(Value::as_f64).ok_or("betas");
    Ok(OptimizerConfig::Adamw(AdamwConfig {
        beta1: beta(0)?,
        beta2: beta(1)?,
        eps: number(group, "eps")?.ok_or("eps")?,
        weight_decay: decay,
        ..AdamwConfig::default()
    }))
}

/// The names of a group's parameters: `param_names`, or `params` where those are names.
fn names_of(group: &Map<String, Value>) -> Option<Vec<String>> {
    let names = |key: &str| -> Option<Vec<String>> {
        let list = group.get(key)?.as_array()?;
        list.iter()
            .map(|name| Some(name.as_str()?.to_string()))
            .collect()
    };
    names("param_names").or_else(|| names("params"))
}
