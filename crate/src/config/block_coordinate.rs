//! Settings of block-coordinate AdamW.

use serde::{Deserialize, Serialize};

use super::{GroupConfig, OptimizerConfig, TrainConfig};
use crate::error::Fault;

/// Order in which blocks train.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum BlockOrder {
    /// Shuffled by the seed, differently in each cycle.
    #[default]
    Shuffled,
    /// From the first block to the last in each cycle.
    Ascending,
    /// From the last block to the first in each cycle.
    Descending,
}

/// AdamW on a few blocks of the model at a time (BAdam, arXiv:2404.02827; LISA, arXiv:2403.17919): `blocks` train for `interval` steps,
/// then the next ones; everything else rests, without gradients and state, and the backward pass ends at the lowest block that trains. A
/// block begins each of its turns with new moments.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BlockCoordinateConfig {
    /// Number of adjacent blocks that train at a time, ≥ 1. A block that groups freeze entirely has no turn.
    pub blocks: usize,
    /// Number of steps before the next blocks train, ≥ 1.
    pub interval: u64,
    /// Order of the blocks: shuffled draws a new one by the seed in each cycle; ascending begins with the first block, descending with the
    /// last.
    pub order: BlockOrder,
    /// Train the embedding tables in every step. A table that is also the head trains if either is set.
    pub embedding: bool,
    /// Train the norm before the head in every step.
    pub norm: bool,
    /// Train the head in every step.
    pub head: bool,
}

impl Default for BlockCoordinateConfig {
    fn default() -> Self {
        Self {
            blocks: 1,
            interval: 50,
            order: BlockOrder::default(),
            embedding: false,
            norm: false,
            head: false,
        }
    }
}

impl BlockCoordinateConfig {
    /// Returns the rules that these settings break in `run`. The number of blocks is compared with the model's elsewhere, once there is a
    /// model.
    ///
    /// Only AdamW is accepted: restarting moments were studied with it, and the other rules keep little or no state that could be dropped.
    /// An adapter is refused since its factors take little memory, and gradient release since it updates before the norm is known.
    pub(super) fn faults(&self, run: &TrainConfig) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (key, value) in [("blocks", self.blocks as u64), ("interval", self.interval)] {
            if value == 0 {
                faults.push(Fault::new(
                    format!("block_coordinate.{key}"),
                    "an integer ≥ 1",
                    value,
                ));
            }
        }
        let trained = |group: &&GroupConfig| !group.frozen;
        let of_groups = run
            .groups
            .iter()
            .enumerate()
            .filter(|(_, group)| trained(group));
        let of_groups = of_groups.filter_map(|(index, group)| {
            Some((
                format!("groups[{index}].optimizer.type"),
                group.optimizer.as_ref()?,
            ))
        });
        for (key, rule) in
            std::iter::once(("optimizer.type".to_string(), &run.optimizer)).chain(of_groups)
        {
            if !matches!(rule, OptimizerConfig::Adamw(_)) {
                faults.push(Fault::new(key, "adamw with block_coordinate", rule.kind()));
            }
        }
        if run.adapter.is_some() {
            faults.push(Fault::new(
                "block_coordinate",
                "null with an adapter",
                "an object",
            ));
        }
        if run.gradient_release {
            let rule =
                "false with block_coordinate, which clips and accumulates in as little memory";
            faults.push(Fault::new("gradient_release", rule, true));
        }
        faults
    }
}
