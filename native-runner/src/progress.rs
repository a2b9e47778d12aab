//! The progress bar of a training run, on stderr; hidden if stderr is not a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Steps done, speed and remaining time.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar over `total` steps of which `done` are complete.
    pub fn new(total: u64, done: u64, shown: bool) -> Self {
        let bar =
            ProgressBar::with_draw_target(Some(total), if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() });
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} · {eta} left") {
            bar.set_style(style);
        }
        bar.set_position(done);
        bar.reset_eta();
        Self { bar }
    }

    /// One more step.
    pub fn step(&self, step: u64, message: String) {
        self.bar.set_position(step);
        self.bar.set_message(message);
    }

    /// Runs `write` while the bar is hidden.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Removes the bar.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
