//! The turns of blocks in a run of block-coordinate training.

use super::trainer::Trainer;

#[doc(hidden)]
impl Trainer {
    /// Returns the blocks that the next step trains, if only some do.
    pub fn active_blocks(&self) -> Option<&[usize]> {
        Some(
            self.block_coordinate
                .as_ref()?
                .active(self.progress().completed_steps + 1),
        )
    }

    /// Returns whether the next step trains other blocks than the last: the state of the last is dropped then, so the run cannot go back to
    /// before it.
    pub(super) fn turn_ends(&self) -> bool {
        let step = self.progress.completed_steps;
        self.block_coordinate
            .as_ref()
            .is_some_and(|blocks| blocks.active(step) != blocks.active(step + 1))
    }

    /// Prepares the optimizer for the next step: parameters that rest in it have no state.
    pub(super) fn rest(&mut self) {
        let step = self.progress.completed_steps + 1;
        if let Some(blocks) = &self.block_coordinate {
            let active = blocks.active(step);
            self.optim.rest(step, &|name| blocks.rests(name, active));
        }
    }
}
