//! Continues a state as a run: its weights, groups and optimizer state become those of a trainer.

use std::collections::{BTreeMap, BTreeSet};

use burn::tensor::Device;

use super::training::TrainingGroups;
use crate::bundle::Bundle;
use crate::checkpoint::saved_state;
use crate::config::{GroupConfig, ModelConfig, TrainConfig};
use crate::data::{Dataset, Loader};
use crate::error::{Error, Refusal, Result, refuse_all, word};
use crate::interrupt::Interrupt;
use crate::model::{Adaptation, Model, Plan};
use crate::schedule;
use crate::state::{
    GroupMember, ModelStateGroupAssignment, PortableModelStateDict, Tensor, TensorRole,
    check_trainable,
};
use crate::train::{
    DEFAULT_GROUP, LEARNING_RATE, Notice, Progress, Trainer, optimizer_config, schedule_config,
};

impl PortableModelStateDict {
    /// Creates the run that continues from this state: `settings` state what groups do not (steps, batches, seed, clipping), and the groups
    /// state the rest. The order of the data begins again. Parameters of F16, F32, F64 and BF16 are stored as `settings.precision` requires.
    ///
    /// # Errors
    /// `state.tensor.quantised` for blocks; `state.group.kind` and `.state-words` for groups that tabtune does not train;
    /// `state.group.hyperparameter` for settings that one run cannot have; `state.group.member-missing` without groups; `model.tensor.*` for
    /// tensors that are not the model's; `optim.state-mismatch` for state of other shapes or dtypes.
    pub async fn to_training_groups(
        &self,
        model: &ModelConfig,
        settings: &TrainConfig,
        dataset: Dataset,
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<TrainingGroups> {
        let config = self.train_config(settings)?;
        let bundle = Bundle::without_files(model.clone());
        self.run(&bundle, config, true, dataset, device, interrupt)
            .await
    }

    /// The largest number of steps of its groups.
    pub(super) fn applied_steps(&self) -> u64 {
        let steps = self.groups().iter().map(|group| group.applied_steps);
        steps.max().unwrap_or(0)
    }

    /// Creates the run of `bundle` with these settings, in which the state's tensors replace those of the model. With `all_grouped` each trained
    /// parameter must be a member of a group.
    pub(super) async fn run(
        &self,
        bundle: &Bundle,
        config: TrainConfig,
        all_grouped: bool,
        dataset: Dataset,
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<TrainingGroups> {
        let groups = self.groups();
        self.check_for(bundle, &config, all_grouped && !groups.is_empty())?;
        let mut values = Vec::new();
        for tensor in self.tensors().values().filter(|tensor| !tensor.is_state()) {
            values.push(tensor.clone().readable().await?);
        }
        let bundle = bundle.with_values(values);
        let model = Model::for_run(&bundle, &config, device, interrupt).await?;
        let mut schedules = groups.iter().filter_map(|group| group.scheduler.as_ref());
        let start = schedules.find_map(|schedule| schedule.start);
        let completed_steps = self.applied_steps();
        let progress = Progress {
            completed_steps,
            schedule_start: schedule::resolve_start(&config.schedule, start, completed_steps),
            ..Progress::default()
        };
        let loader = Loader::for_run(&dataset, &config)?.state();
        let mut trainer = Trainer::resume(model, dataset, loader, config, progress)?;
        let (state, with_state) = self.optimizer_state().await?;
        let dropped = trainer
            .optim_mut()
            .load_state(saved_state(&state), &with_state, device, interrupt)
            .await?;
        trainer.add_notices(Vec::from_iter(Notice::of_dropped(&dropped)));
        Ok(TrainingGroups::carrying(trainer, groups.to_vec()))
    }

    /// The state tensors of its members as `<parameter>:<word>`, and the parameters that have them.
    async fn optimizer_state(&self) -> Result<(Vec<Tensor>, Vec<String>)> {
        let (mut tensors, mut with_state) = (Vec::new(), Vec::new());
        let members = self.groups().iter().flat_map(|group| &group.members);
        for GroupMember { parameter, state } in members.filter(|member| !member.state.is_empty()) {
            for (word, key) in state {
                let tensor = self.entry(key)?.clone().readable().await?;
                tensors.push(tensor.renamed(&format!("{parameter}:{}", word.text())));
            }
            with_state.push(parameter.clone());
        }
        Ok((tensors, with_state))
    }

    /// Refuses tensors that are not those of this model, and trained parameters without a group: all of them at once.
    pub(super) fn check_for(
        &self,
        bundle: &Bundle,
        config: &TrainConfig,
        all_grouped: bool,
    ) -> Result<()> {
        let adaptation = Adaptation::of_run(config, &bundle.config)?;
        let plan = Plan::of(&bundle.config, adaptation.as_ref())?;
        let planned: BTreeMap<&str, Vec<usize>> = plan
            .parameters
            .iter()
            .map(|request| (request.name.as_str(), request.shape.clone()))
            .collect();
        let mut refusals = Vec::new();
        let refuse = |code, name: &str| Refusal::new(code).stage("bind").subject(name);
        let absent =
            |name: &str| !self.tensors().contains_key(name) && bundle.shape(name).is_none();
        let members: BTreeSet<&str> = member_names(self.groups()).collect();
        for request in plan.parameters.iter().filter(|request| request.trained) {
            let name = &request.name;
            if absent(name) && (!request.kind.is_factor() || all_grouped) {
                let refusal = refuse(word!("model.tensor.missing"), name);
                refusals.push(refusal.expected(format!("{:?}", request.shape)));
            } else if all_grouped && !members.contains(name.as_str()) {
                let refusal = refuse(word!("state.group.member-missing"), name);
                refusals.push(refusal.expected("a group that trains it").found("none"));
            }
        }
        let parameters = self.tensors().values();
        for tensor in parameters.filter(|tensor| tensor.role == TensorRole::Parameter) {
            let name = &tensor.name;
            match planned.get(name.as_str()) {
                None => refusals.push(refuse(word!("model.tensor.unexpected"), name)),
                Some(_) if tensor.is_blocks() => {
                    let refusal = refuse(word!("state.tensor.quantised"), name).stage("read");
                    let hint = "dequantise it by an explicit conversion to f32, bf16 or f16";
                    refusals.push(refusal.found(&tensor.dtype).hint(hint));
                }
                Some(shape) if *shape != tensor.dims() => {
                    let refusal = refuse(word!("model.tensor.shape"), name);
                    let [expected, found] = [shape, &tensor.dims()].map(|dims| format!("{dims:?}"));
                    refusals.push(refusal.expected(expected).found(found));
                }
                Some(_) => {}
            }
        }
        refuse_all(refusals)
    }

    /// Completes `settings` with the optimizers, groups, rate and schedule of this state.
    pub(super) fn train_config(&self, settings: &TrainConfig) -> Result<TrainConfig> {
        if settings.block_coordinate.is_some() {
            // The blocks that train follow from the steps of the run, and those of a parameter restart.
            let rule = "null for groups, which do not say how many steps their run has had";
            return Err(Error::invalid("block_coordinate", rule, "an object"));
        }
        check_trainable(self.groups(), "")?;
        let Some(first) = self.groups().first() else {
            return Err(Refusal::new(word!("state.group.member-missing"))
                .expected("groups")
                .found("weights alone")
                .into());
        };
        let rates = self.groups().iter().filter_map(rate);
        let learning_rate = rates.reduce(f64::max).unwrap_or(settings.learning_rate);
        let (mut groups, mut refusals) = (Vec::new(), Vec::new());
        for group in self.groups() {
            if group.scheduler != first.scheduler {
                let refusal = Refusal::new(word!("state.group.hyperparameter"))
                    .subject(&format!("{}/scheduler", group.group_id));
                refusals.push(refusal.expected("one schedule for all groups"));
            }
            let semantics = &group.parameter_semantics;
            let optimizer = match optimizer_config(&group.optimizer.trained()) {
                Ok(optimizer) => optimizer,
                Err(Error::Refused(list)) => {
                    refusals.extend(list);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let decay = optimizer.weight_decay() * semantics.weight_decay_scale;
            let names: Vec<&str> = member_names(std::slice::from_ref(group)).collect();
            let share = rate(group).map_or(1.0, |rate| ratio(rate, learning_rate));
            groups.push(GroupConfig {
                pattern: format!("{{{}}}", names.join(",")),
                optimizer: Some(optimizer.with_weight_decay(decay)),
                weight_decay: None,
                learning_rate_scale: semantics.learning_rate_scale * share,
                frozen: semantics.frozen,
            });
        }
        refuse_all(refusals)?;
        let schedule = first.scheduler.as_ref().map(schedule_config).transpose()?;
        let optimizer = groups[0].optimizer.clone().unwrap_or_default();
        // The single group of a run without groups is converted back to no groups.
        if let [only] = groups.as_slice()
            && first.group_id == DEFAULT_GROUP
            && !only.frozen
            && only.learning_rate_scale == 1.0
        {
            groups.clear();
        }
        Ok(TrainConfig {
            optimizer,
            groups,
            schedule: schedule.unwrap_or_else(|| settings.schedule.clone()),
            learning_rate,
            ..settings.clone()
        })
    }
}

/// The learning rate of a group.
fn rate(group: &ModelStateGroupAssignment) -> Option<f64> {
    group.optimizer.hyperparameters.get(LEARNING_RATE).copied()
}

/// The factor that makes `rate` of the rate of the run, exactly if one does.
fn ratio(rate: f64, run: f64) -> f64 {
    let near = if rate == run { 1.0 } else { rate / run };
    let mut exact = [near, near.next_up(), near.next_down()].into_iter();
    exact.find(|factor| factor * run == rate).unwrap_or(near)
}

fn member_names(groups: &[ModelStateGroupAssignment]) -> impl Iterator<Item = &str> {
    let members = groups.iter().flat_map(|group| &group.members);
    members.map(|member| member.parameter.as_str())
}
