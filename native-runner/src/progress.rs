//! Progress on stderr: a bar in a terminal, otherwise lines.

use std::cell::{Cell, RefCell};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time after which a new line is due; a tenth of all steps makes one due as well.
const EVERY: Duration = Duration::from_secs(10);

/// Progress of a run: steps done, speed and remaining time.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    lines: Option<Lines>,
}

/// Progress as lines, for a stderr that is not a terminal.
#[derive(Debug)]
struct Lines {
    total: u64,
    first: u64,
    started: Instant,
    told: Cell<(u64, Instant)>,
    /// Last step with its message, which is printed at the end of the run.
    last: RefCell<(u64, String)>,
}

impl Progress {
    /// Shows a run of `total` steps, of which `done` are complete; shows nothing if `shown` is false.
    pub fn new(total: u64, done: u64, shown: bool) -> Self {
        let target = if shown {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} · {eta} left")
        {
            bar.set_style(style);
        }
        bar.set_position(done);
        bar.reset_eta();
        let now = Instant::now();
        let lines = (shown && !std::io::stderr().is_terminal()).then(|| Lines {
            total,
            first: done,
            started: now,
            told: Cell::new((done, now)),
            last: RefCell::new((done, String::new())),
        });
        Self { bar, lines }
    }

    /// Reports that `step` is complete.
    pub fn step(&self, step: u64, message: String) {
        if let Some(lines) = &self.lines {
            lines.step(step, &message);
        }
        self.bar.set_position(step);
        self.bar.set_message(message);
    }

    /// Runs `write` while the bar is hidden.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Prints a line of its own.
    pub fn note(&self, text: &str) {
        self.bar.suspend(|| tell(text));
    }

    /// Leaves the last state of the bar on the screen, and prints the last step if lines are printed.
    pub fn end(&self) {
        if let Some(lines) = &self.lines {
            let (step, message) = lines.last.take();
            if step > lines.told.get().0 {
                tell(&format!("{step}/{} {message}", lines.total));
            }
        }
        self.bar.abandon();
    }
}

impl Lines {
    fn step(&self, step: u64, message: &str) {
        self.last.replace((step, message.to_owned()));
        let (told, at) = self.told.get();
        let now = Instant::now();
        let due = now.duration_since(at) >= EVERY
            || step.saturating_sub(told) >= (self.total / 10).max(1)
            || step >= self.total;
        if !due || step == told {
            return;
        }
        self.told.set((step, now));
        let done = step.saturating_sub(self.first).max(1);
        let left = self
            .started
            .elapsed()
            .mul_f64(self.total.saturating_sub(step) as f64 / done as f64)
            .as_secs();
        tell(&format!(
            "{step}/{} {message} · {}:{:02} left",
            self.total,
            left / 60,
            left % 60
        ));
    }
}

/// Prints a line. `eprintln!` panics when stderr is closed; a run continues without its log.
fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
