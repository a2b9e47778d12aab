//! Block-coordinate training: selects the parameters that train in each step (BAdam, arXiv:2404.02827; LISA, arXiv:2403.17919).
//!
//! The blocks that are not entirely frozen are cut into runs of `blocks` neighbours; the last run has those that are left. A cycle gives
//! each run one turn of `interval` steps, in an order that is a pure function of the seed and the cycle. Seed and step alone thus determine
//! which run has its turn, and a checkpoint does not store it. Parameters outside the blocks train in every step if the settings name their
//! part, and otherwise in none.
//!
//! Parameters that rest have neither gradient nor state. State is dropped as soon as the last step of a turn is done, so that a checkpoint
//! has only the state of the next step's parameters, and a run that is resumed with other settings drops the state of parameters that rest
//! under them. A run of blocks whose next turn follows at once continues as if there were no end between them: with all blocks in one run,
//! and everything outside them named, this is AdamW.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::{BlockCoordinateConfig, BlockOrder, Rules, TrainConfig};
use crate::error::Result;
use crate::model::Part;
use crate::random;

/// Purpose string of the noise that orders the blocks (shaders/README.md, "Noise").
const PURPOSE: &str = "blocks:";

/// The blocks among `all` that train in `step`, counted from 1, in a run with this seed.
pub fn active_blocks<'a>(
    config: &BlockCoordinateConfig,
    seed: u64,
    all: &'a [usize],
    step: u64,
) -> &'a [usize] {
    let runs: Vec<&[usize]> = all.chunks(config.blocks.max(1)).collect();
    if runs.is_empty() {
        return all;
    }
    let turn = step.saturating_sub(1) / config.interval.max(1);
    let (cycle, at) = (
        turn / runs.len() as u64,
        (turn % runs.len() as u64) as usize,
    );
    match config.order {
        BlockOrder::Ascending => runs[at],
        BlockOrder::Descending => runs[runs.len() - 1 - at],
        BlockOrder::Shuffled => runs[shuffled(seed, cycle, runs.len())[at]],
    }
}

/// The numbers below `len` in the order of a cycle.
fn shuffled(seed: u64, cycle: u64, len: usize) -> Vec<usize> {
    let key = random::key(PURPOSE, seed, "order");
    let mut order: Vec<usize> = (0..len).collect();
    for index in (1..len).rev() {
        order.swap(
            index,
            random::below(key, index as u64, cycle, index as u64 + 1) as usize,
        );
    }
    order
}

/// Parameter as block-coordinate training sees it.
pub(super) struct BlockParameter<'a> {
    pub name: &'a str,
    pub part: Part,
    /// True if it has one dimension.
    pub is_vector: bool,
}

/// Selection of the parameters of a model that train in each step.
#[derive(Debug)]
pub(super) struct BlockCoordinate {
    config: BlockCoordinateConfig,
    seed: u64,
    /// Blocks that have turns, ascending.
    blocks: Vec<usize>,
    /// Block of each parameter that is in one.
    block_of: BTreeMap<String, usize>,
    /// Parameters that train in every step.
    along: BTreeSet<String>,
}

impl BlockCoordinate {
    /// Creates the selection of a run with these settings and parameters; `frozen` says which parameters the groups freeze. `None` if all
    /// train in every step.
    ///
    /// # Errors
    /// `config.invalid` for more blocks than have turns, and for a part that is named although nothing in it would train.
    pub fn of_run<'a>(
        train: &TrainConfig,
        parameters: impl Iterator<Item = BlockParameter<'a>>,
        frozen: &dyn Fn(&str) -> bool,
    ) -> Result<Option<Self>> {
        let Some(config) = train.block_coordinate.clone() else {
            return Ok(None);
        };
        let (mut block_of, mut along, mut blocks) =
            (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut named = [
            ("embedding", config.embedding, false),
            ("norm", config.norm, false),
            ("head", config.head, false),
        ];
        for BlockParameter {
            name,
            part,
            is_vector,
        } in parameters.filter(|parameter| !frozen(parameter.name))
        {
            if let Some(block) = part.block() {
                block_of.insert(name.to_string(), block);
                blocks.insert(block);
            }
            let of_part = [
                part.is_table(),
                part == Part::Head && is_vector,
                part.in_head() && !is_vector,
            ];
            for ((_, asked, found), of_part) in named.iter_mut().zip(of_part) {
                if *asked && of_part {
                    *found = true;
                    along.insert(name.to_string());
                }
            }
        }
        let mut rules = Rules::of("block_coordinate");
        rules.check(
            config.blocks <= blocks.len(),
            "blocks",
            format!(
                "at most {}, the number of blocks that are not frozen",
                blocks.len()
            ),
            config.blocks,
        );
        for (key, asked, found) in named {
            rules.check(!asked || found, key, "false where groups freeze it", true);
        }
        rules.result()?;
        Ok(Some(Self {
            config,
            seed: train.seed,
            blocks: blocks.into_iter().collect(),
            block_of,
            along,
        }))
    }

    /// The blocks that train in `step`.
    pub fn active(&self, step: u64) -> &[usize] {
        active_blocks(&self.config, self.seed, &self.blocks, step)
    }

    /// Returns whether a parameter rests while these blocks train.
    pub fn rests(&self, name: &str, active: &[usize]) -> bool {
        !(self.along.contains(name)
            || self
                .block_of
                .get(name)
                .is_some_and(|block| active.contains(block)))
    }

    /// Returns every set of blocks that trains at once.
    pub fn turns(&self) -> impl Iterator<Item = &[usize]> {
        self.blocks.chunks(self.config.blocks)
    }
}
