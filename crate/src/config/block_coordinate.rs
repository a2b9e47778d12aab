//! Settings of block-coordinate AdamW.

use super::declare::{settings, words};
use super::rules::Rules;
use super::{GroupConfig, OptimizerConfig, TrainConfig};
use crate::error::Fault;

words! {
    /// Order in which blocks train.
    #[doc(hidden)]
    pub enum BlockOrder {
        /// Shuffled by the seed, differently in each cycle.
        #[default]
        Shuffled,
        /// From the first block to the last in each cycle.
        Ascending,
        /// From the last block to the first in each cycle.
        Descending,
    }
}

settings! {
    /// AdamW on a few blocks of the model at a time (BAdam, arXiv:2404.02827; LISA, arXiv:2403.17919): `blocks` train
    /// for `interval` steps, then the next ones; everything else rests, without gradients and state, and the backward
    /// pass ends at the lowest block that trains. A block begins each of its turns with new moments.
    #[doc(hidden)]
    #[derive(Eq)]
    pub struct BlockCoordinateConfig {
        /// Number of adjacent blocks that train at a time, ≥ 1. A block that groups freeze entirely has no turn.
        blocks: usize = 1,
        /// Number of steps before the next blocks train, ≥ 1.
        interval: u64 = 50,
        /// Order of the blocks: shuffled draws a new one by the seed in each cycle; ascending begins with the first
        /// block, descending with the last.
        order: BlockOrder = BlockOrder::default(),
        /// Train the embedding tables in every step. A table that is also the head trains if either is set.
        embedding: bool = false,
        /// Train the norm before the head in every step.
        norm: bool = false,
        /// Train the head in every step.
        head: bool = false,
    }
}

impl BlockCoordinateConfig {
    /// The rules that these settings break in `run`. The number of blocks is compared with the model's
    /// elsewhere, once there is a model.
    ///
    /// Only AdamW is accepted: restarting moments were studied with it, and the other rules keep little or no state
    /// that could be dropped. An adapter is refused since its factors take little memory, and gradient release since it
    /// updates before the norm is known.
    pub(super) fn faults(&self, run: &TrainConfig) -> Vec<Fault> {
        let mut rules = Rules::default();
        for (key, value) in [
            ("block_coordinate.blocks", self.blocks as u64),
            ("block_coordinate.interval", self.interval),
        ] {
            rules.check(value > 0, key, "an integer ≥ 1", value);
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
            let holds = matches!(rule, OptimizerConfig::Adamw(_));
            rules.check(holds, &key, "adamw with block_coordinate", rule.kind());
        }
        rules.check(
            run.adapter.is_none(),
            "block_coordinate",
            "null with an adapter",
            "an object",
        );
        rules.check(
            !run.gradient_release,
            "gradient_release",
            "false with block_coordinate, which clips and accumulates in as little memory",
            true,
        );
        rules.faults
    }
}
