//! Converts a live trainer to a state dict and back, without a lost bit.

use std::collections::BTreeMap;

use burn::tensor::{DType, Device, Tensor as DeviceTensor};

use super::parameter_names::refuse_other_names;
use crate::config::{GroupConfig, ModelConfig, Precision, TrainConfig};
use crate::data::{Dataset, Loader};
use crate::error::{Error, Refusal, Result, refuse_all, word};
use crate::formats::unreadable;
use crate::gpu::transfer::{RUN_BYTES, Upload};
use crate::interrupt::Interrupt;
use crate::model::{Model, Plan};
use crate::state::{
    GroupMember, Identity, ModelStateGroupAssignment, PortableModelStateDict, SourceWord,
    StateWord, Tensor, TensorRole, check_trainable,
};
use crate::train::{
    DEFAULT_GROUP, LEARNING_RATE, Progress, Trainer, optimizer_config, schedule_config,
};

/// A run, and the parts of its groups that no trainer uses: their names, the residency of their tensors, the scales as they were given.
pub struct TrainingGroups {
    /// The run.
    pub trainer: Trainer,
    carried: Vec<ModelStateGroupAssignment>,
}

impl TrainingGroups {
    /// Creates a run whose groups are its own.
    pub fn new(trainer: Trainer) -> Self {
        Self {
            trainer,
            carried: Vec::new(),
        }
    }

    /// The groups in their present state.
    #[doc(hidden)]
    pub fn groups(&self) -> Vec<ModelStateGroupAssignment> {
        let live = self.trainer.groups();
        if self.carried.is_empty() {
            return live;
        }
        let schedule = live.first().and_then(|group| group.scheduler.clone());
        let members = live.into_iter().flat_map(|group| group.members);
        let mut states: BTreeMap<String, GroupMember> = members
            .map(|member| (member.parameter.clone(), member))
            .collect();
        let mut groups = self.carried.clone();
        for group in &mut groups {
            group.scheduler = group.scheduler.as_ref().and(schedule.clone());
            for member in &mut group.members {
                let steps = self.trainer.optim().step_count(&member.parameter);
                group.applied_steps = group.applied_steps.max(steps);
                if let Some(live) = states.remove(&member.parameter) {
                    *member = live;
                }
            }
        }
        groups
    }
}

impl PortableModelStateDict {
    /// Collects the parameters, state tensors and groups of a run in their present state. Tensors are handles: a step
    /// that is taken later does not change their values.
    ///
    /// # Errors
    /// `state.*` for groups that contradict themselves, `session.busy` before [`Trainer::settle`].
    pub fn from_training_groups(training: &TrainingGroups) -> Result<Self> {
        let trainer = &training.trainer;
        trainer.check_settled()?;
        let identity = Identity::of_run(
            &trainer.model().config().model_type,
            trainer.progress().completed_steps,
        );
        let mut tensors = trainer.model().stream_tensors();
        tensors.extend(trainer.state_stream());
        let tensors = tensors
            .into_iter()
            .map(|tensor| (tensor.name.clone(), tensor))
            .collect();
        Self::new(identity, SourceWord::Tabtune, tensors, training.groups())
    }

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
        self.refuse_blocks()?;
        let groups = self.groups();
        check_trainable(groups, "")?;
        let config = self.train_config(settings)?;
        let model = self
            .model(model, config.precision, device, interrupt)
            .await?;
        let steps = groups.iter().map(|group| group.applied_steps);
        let mut schedules = groups.iter().filter_map(|group| group.scheduler.as_ref());
        let progress = Progress {
            completed_steps: steps.max().unwrap_or(0),
            schedule_start: schedules.find_map(|schedule| schedule.start),
            ..Progress::default()
        };
        let loader = Loader::for_run(&dataset, &config)?.state();
        let mut trainer = Trainer::resume(model, dataset, loader, config, progress)?;
        let members = groups.iter().flat_map(|group| &group.members);
        for member in members.filter(|member| !member.state.is_empty()) {
            let (mut step, mut tensors) = (0, BTreeMap::new());
            for (word, key) in &member.state {
                let entry = self.entry(key)?;
                if *word == StateWord::Step {
                    step = step_of(entry).await?;
                } else {
                    let tensor = uploaded(entry, None, device, interrupt).await?;
                    tensors.insert(word.text(), tensor);
                }
            }
            trainer
                .optim_mut()
                .put_state(&member.parameter, step, tensors)?;
        }
        Ok(TrainingGroups {
            trainer,
            carried: groups.to_vec(),
        })
    }

    fn refuse_blocks(&self) -> Result<()> {
        let blocks = self.tensors().values().filter(|tensor| tensor.is_blocks());
        let refusal = |tensor: &Tensor| {
            Refusal::new(word!("state.tensor.quantised"))
                .stage("read")
                .subject(&tensor.name)
                .found(&tensor.dtype)
                .hint("dequantise it by an explicit conversion to f32, bf16 or f16")
        };
        refuse_all(blocks.map(refusal).collect())
    }

    /// Completes `settings` with the optimizers, groups, rate and schedule of this state.
    fn train_config(&self, settings: &TrainConfig) -> Result<TrainConfig> {
        if settings.block_coordinate.is_some() {
            // The blocks that train follow from the steps of the run, and those of a parameter restart.
            let rule = "null for groups, which do not say how many steps their run has had";
            return Err(Error::invalid("block_coordinate", rule, "an object"));
        }
        let Some(first) = self.groups().first() else {
            return Err(Refusal::new(word!("state.group.member-missing"))
                .expected("groups")
                .found("weights alone")
                .into());
        };
        let rate = |group: &ModelStateGroupAssignment| {
            group.optimizer.hyperparameters.get(LEARNING_RATE).copied()
        };
        let mut groups = Vec::new();
        for group in self.groups() {
            let differs = |key: &str, expected: &str| {
                Refusal::new(word!("state.group.hyperparameter"))
                    .subject(&format!("{}/{key}", group.group_id))
                    .expected(expected)
            };
            if rate(group) != rate(first) {
                return Err(differs(LEARNING_RATE, "one rate for all groups").into());
            }
            if group.scheduler != first.scheduler {
                return Err(differs("scheduler", "one schedule for all groups").into());
            }
            let semantics = &group.parameter_semantics;
            let optimizer = optimizer_config(&group.optimizer)?;
            let decay = optimizer.weight_decay() * semantics.weight_decay_scale;
            let members = group.members.iter();
            let names: Vec<&str> = members.map(|member| member.parameter.as_str()).collect();
            groups.push(GroupConfig {
                pattern: format!("{{{}}}", names.join(",")),
                optimizer: Some(optimizer.with_weight_decay(decay)),
                weight_decay: None,
                learning_rate_scale: semantics.learning_rate_scale,
                frozen: semantics.frozen,
            });
        }
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
        let (schedule, learning_rate) = (
            schedule.unwrap_or_default(),
            rate(first).unwrap_or(settings.learning_rate),
        );
        Ok(TrainConfig {
            optimizer,
            groups,
            schedule,
            learning_rate,
            ..settings.clone()
        })
    }

    /// Creates the model of the parameters of this state. Missing, further and differently shaped ones are refused.
    async fn model(
        &self,
        config: &ModelConfig,
        precision: Precision,
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<Model> {
        let plan = Plan::of(config, None)?;
        let parameters = plan.parameters.iter();
        let planned: Vec<&str> = parameters.map(|asked| asked.name.as_str()).collect();
        refuse_other_names(self.tensors(), &planned, |tensor| {
            tensor.role == TensorRole::Parameter
        })?;
        let mut loaded = BTreeMap::new();
        for asked in &plan.parameters {
            let entry = self.entry(&asked.name)?;
            let found = entry.dims();
            if found != asked.shape {
                return Err(Error::TensorShape {
                    name: asked.name.clone(),
                    expected: asked.shape.clone(),
                    found,
                });
            }
            let packed = precision == Precision::Bf16 && asked.kind.is_matrix();
            let dtype = if packed { DType::BF16 } else { DType::F32 };
            loaded.insert(
                asked.name.clone(),
                uploaded(entry, Some(dtype), device, interrupt).await?,
            );
        }
        Model::from_tensors(config, precision, device, loaded)
    }
}

async fn step_of(tensor: &Tensor) -> Result<u64> {
    let bytes = tensor.all_bytes().await?;
    Ok(u64::from_le_bytes(
        bytes
            .as_ref()
            .try_into()
            .expect("a step is U64 [], as the groups were checked"),
    ))
}

/// Uploads the tensor to the device, piece by piece: its bytes if it is stored as `dtype`, or if no dtype is requested, else its values.
async fn uploaded(
    tensor: &Tensor,
    dtype: Option<DType>,
    device: &Device,
    interrupt: &Interrupt,
) -> Result<DeviceTensor<1>> {
    let unread = || unreadable(&tensor.dtype, &tensor.name, "");
    let too_large = || {
        Refusal::new(word!("source.too-large"))
            .stage("read")
            .subject(&tensor.name)
    };
    let stored = match tensor.dtype.as_str() {
        "F32" => Some(DType::F32),
        "BF16" => Some(DType::BF16),
        _ => None,
    };
    let target = dtype.or(stored).ok_or_else(unread)?;
    let elements = tensor.numel();
    let elements = elements.and_then(|count| usize::try_from(count).ok());
    let elements = elements.ok_or_else(too_large)?;
    let mut upload = Upload::new(elements, target, device);
    let (mut at, end) = (0, tensor.len());
    let mut values = Vec::new();
    while at < end {
        interrupt.check()?;
        let to = end.min(at + RUN_BYTES as u64);
        let bytes = tensor.read(at..to).await?;
        if stored == Some(target) {
            upload.put_bytes(&bytes)?;
        } else {
            values.clear();
            tensor
                .encoding()
                .ok_or_else(unread)?
                .decode(&bytes, &mut values);
            upload.put(&values)?;
        }
        upload.settle(interrupt).await?;
        at = to;
    }
    upload.finish()
}
