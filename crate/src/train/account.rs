//! Describes each group of a run as plain data (crate/FORMATS.md, "Checkpoint folder"): its hyperparameters and its progress.

use std::collections::BTreeMap;

use super::Trainer;
use super::hyperparameters::{optimizer_record, scheduler_account};
use crate::config::{ModelConfig, TrainConfig};
use crate::error::Result;
use crate::model::{Adaptation, Kind, ParameterRequest, Part, Plan};
use crate::optim::{ResolvedGroup, StateData, StateTensor, resolved_groups};
use crate::state::{
    Bytes, GroupClass, GroupMember, ModelStateGroupAssignment, ParameterSemantics, Residency,
    ResidencyPolicy, StateWord, Tensor,
};

/// Name of the group of a run that configures none.
pub(crate) const DEFAULT_GROUP: &str = "default";
/// State of a parameter in training.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemberState {
    /// Number of updates of the parameter.
    pub step: u64,
    /// State tensors of the parameter, `step` among them.
    pub words: Vec<StateWord>,
}

#[doc(hidden)]
impl Trainer {
    /// Returns the groups of this run: members in the order in which the model requests its parameters, the hyperparameters in force, and
    /// the progress of schedule and members.
    pub fn groups(&self) -> Vec<ModelStateGroupAssignment> {
        let state_of = |name: &str| {
            let (step, words) = self.optim().state_of(name)?;
            let words = words
                .into_iter()
                .chain([StateWord::Step.text()])
                .filter_map(StateWord::from_text)
                .collect();
            Some(MemberState { step, words })
        };
        let groups = group_accounts(
            self.model().config(),
            self.config(),
            self.progress().schedule_start,
            &state_of,
        );
        groups.expect("the run was made of this configuration and these groups")
    }

    /// Returns handles of every state tensor as `<parameter>:<word>`, ascending by name, for writing them to a file.
    pub fn state_stream(&self) -> Vec<Tensor> {
        let stream = |(name, state): (String, StateTensor)| match state.data {
            StateData::Step(step) => {
                Tensor::of_name(&name, "U64", &[], Bytes::host(step.to_le_bytes()))
            }
            StateData::Tensor(flat) => Tensor::on(&name, &state.shape, flat),
        };
        self.optim()
            .state_tensors()
            .into_iter()
            .map(stream)
            .collect()
    }
}

/// Returns the groups that a run of `train` on a model of this shape has, with the state of each parameter that `state_of` knows.
///
/// # Errors
/// `optim.groups` for groups that do not cover the model, `config.invalid` for settings that no plain data can hold.
pub fn group_accounts(
    model: &ModelConfig,
    train: &TrainConfig,
    schedule_start: Option<u64>,
    state_of: &dyn Fn(&str) -> Option<MemberState>,
) -> Result<Vec<ModelStateGroupAssignment>> {
    let plan = Plan::of(model, Adaptation::of_run(train, model)?.as_ref())?;
    let trained: Vec<&ParameterRequest> = plan
        .parameters
        .iter()
        .filter(|request| request.trained)
        .collect();
    let request: BTreeMap<&str, &ParameterRequest> = trained
        .iter()
        .map(|request| (request.name.as_str(), *request))
        .collect();
    let names: Vec<&str> = trained
        .iter()
        .map(|request| request.name.as_str())
        .collect();
    let account = |(index, group): (usize, ResolvedGroup)| {
        let states: Vec<(String, Option<MemberState>)> = group
            .members
            .iter()
            .map(|name| (name.clone(), state_of(name)))
            .collect();
        Ok(ModelStateGroupAssignment {
            group_id: if train.groups.is_empty() {
                DEFAULT_GROUP.to_string()
            } else {
                format!("groups/{index}")
            },
            class: common_class(
                group
                    .members
                    .iter()
                    .filter_map(|name| request.get(name.as_str()).copied()),
            ),
            model_tree_path: common_module(&group.members),
            optimizer: optimizer_record(&group.optimizer, train.learning_rate)?,
            parameter_semantics: ParameterSemantics {
                learning_rate_scale: group.learning_rate_scale,
                frozen: group.frozen,
                ..ParameterSemantics::default()
            },
            scheduler: Some(scheduler_account(&train.schedule, schedule_start)?),
            applied_steps: states
                .iter()
                .flat_map(|(_, state)| state)
                .map(|state| state.step)
                .max()
                .unwrap_or(0),
            members: states
                .into_iter()
                .map(|(name, state)| member(name, state))
                .collect(),
            residency_policy: Some(ResidencyPolicy {
                step: Residency::Device,
                idle: Residency::Device,
            }),
            residency: Some(Residency::Device),
        })
    };
    resolved_groups(train, &names)?
        .into_iter()
        .enumerate()
        .map(account)
        .collect()
}

fn member(parameter: String, state: Option<MemberState>) -> GroupMember {
    let words = state.map(|state| state.words).unwrap_or_default();
    let state = words
        .into_iter()
        .map(|word| (word, format!("{parameter}:{}", word.text())))
        .collect();
    GroupMember { parameter, state }
}

fn class_of(request: &ParameterRequest) -> GroupClass {
    match (request.part, request.kind) {
        (Part::Table { .. }, _) => GroupClass::Embedding,
        (Part::Head, Kind::Matrix(_)) => GroupClass::Head,
        (Part::Block(_), Kind::Matrix(_)) => GroupClass::Matrix,
        (_, Kind::Vector(_)) if request.name.ends_with(".bias") => GroupClass::Bias,
        (_, Kind::Vector(_) | Kind::Rates | Kind::Taps) => GroupClass::Scalar,
        (_, Kind::Uniform | Kind::Gaussian | Kind::Zero) => GroupClass::Matrix,
    }
}

fn common_class<'a>(members: impl Iterator<Item = &'a ParameterRequest>) -> GroupClass {
    let mut classes = members.map(class_of);
    let first = classes.next().unwrap_or(GroupClass::Mixed);
    if classes.all(|class| class == first) {
        first
    } else {
        GroupClass::Mixed
    }
}

/// Returns the innermost module that contains all members.
fn common_module(members: &[String]) -> Vec<String> {
    let modules = members
        .iter()
        .filter_map(|name| name.rsplit_once('.'))
        .map(|(module, _)| module.split('.').collect::<Vec<_>>());
    let shared = |path: Vec<_>, other: Vec<_>| {
        path.into_iter()
            .zip(other)
            .take_while(|(a, b)| a == b)
            .map(|(name, _)| name)
            .collect()
    };
    modules
        .reduce(shared)
        .unwrap_or_default()
        .into_iter()
        .map(String::from)
        .collect()
}
