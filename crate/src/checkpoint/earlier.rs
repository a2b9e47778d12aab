//! What the settings of a checkpoint meant before a setting was added: a run goes on as it began, whatever the defaults are now.

use crate::bundle::{Json, ModelStateGroupAssignment};
use crate::config::{OptimizerConfig, TrainConfig};
use crate::train::complete_account;

/// Spells out in `train`, read from `document`, what was not a setting when it was written.
pub(super) fn complete_settings(train: &mut TrainConfig, document: Json<'_>) {
    complete_rule(&mut train.optimizer, document.get("optimizer"));
    let groups = document.get("groups").and_then(Json::list).into_iter().flatten();
    for (group, document) in train.groups.iter_mut().zip(groups) {
        if let Some(rule) = &mut group.optimizer {
            complete_rule(rule, document.get("optimizer"));
        }
    }
}

fn complete_rule(rule: &mut OptimizerConfig, document: Option<Json<'_>>) {
    if let OptimizerConfig::Apollo(config) = rule
        && document.is_some_and(|document| document.get("growth_limit").is_none())
    {
        *config = config.clone().before_growth_limit();
    }
}

/// The same of the plain data of groups.
pub(super) fn complete_groups(groups: &mut [ModelStateGroupAssignment]) {
    groups.iter_mut().for_each(|group| complete_account(&mut group.optimizer));
}
