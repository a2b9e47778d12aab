//! Converts a live trainer to a state dict, without a lost bit.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::state::{
    GroupMember, Identity, ModelStateGroupAssignment, PortableModelStateDict, SourceWord,
};
use crate::train::Trainer;

/// A run, and the parts of its groups that no trainer uses: their names, the residency of their tensors, the scales as they were given.
/// [Example](crate::portable).
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

    /// Creates the run that continues these groups.
    pub(super) fn carrying(trainer: Trainer, carried: Vec<ModelStateGroupAssignment>) -> Self {
        Self { trainer, carried }
    }

    /// The groups in their present state.
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
}
