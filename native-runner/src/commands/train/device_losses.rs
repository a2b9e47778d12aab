//! Number of devices that a run may lose before it ends.

/// Number of losses without a new step or save between them that end a run.
const MAX_LOSSES: u32 = 3;

/// Losses of devices, counted since the last new step or save.
#[derive(Debug, Default)]
pub(super) struct Losses {
    count: u32,
    /// Last step that was reported, and step of the newest save, at the last loss.
    reached: (u64, Option<u64>),
}

impl Losses {
    /// Counts a loss at this point. Returns true if the run should continue.
    pub fn allows(&mut self, reached: (u64, Option<u64>)) -> bool {
        self.count = if reached == self.reached {
            self.count + 1
        } else {
            1
        };
        self.reached = reached;
        self.count < MAX_LOSSES
    }
}
