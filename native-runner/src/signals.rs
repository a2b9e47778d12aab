//! Signals that ask a run to end: the first is remembered until the step is complete, or interrupts an evaluation; a second ends the process
//! at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use tabtune::interrupt::Interrupt;

#[cfg(unix)]
const SIGNALS: [(i32, &str); 3] = [
    (SIGINT, "SIGINT"),
    (SIGTERM, "SIGTERM"),
    (signal_hook::consts::SIGHUP, "SIGHUP"),
];
#[cfg(not(unix))]
const SIGNALS: [(i32, &str); 2] = [(SIGINT, "SIGINT"), (SIGTERM, "SIGTERM")];

/// A signal that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    number: i32,
    /// Name of the signal.
    pub name: &'static str,
}

impl Signal {
    /// Returns the exit status by which shells report this signal.
    pub fn status(self) -> u8 {
        u8::try_from(128 + self.number).unwrap_or(1)
    }
}

/// Returns the signals that this process ignores, as a bit mask in which bit n − 1 is signal n. Linux reports it; elsewhere it is 0.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// Handler that listens for signals from its creation to the end of the process.
pub struct Signals {
    came: Arc<AtomicUsize>,
    /// True after the first signal.
    again: Arc<AtomicBool>,
}

impl Signals {
    /// Starts to listen for signals.
    ///
    /// # Errors
    /// The operating system's error if a handler cannot be registered.
    pub fn listen() -> io::Result<Self> {
        let (came, again) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        // Without a handler, a file that reaches the limit of its size would end the process; with one, writing it is an error as any other.
        #[cfg(unix)]
        flag::register(signal_hook::consts::SIGXFSZ, Arc::default())?;
        let ignored = ignored();
        for (number, _) in SIGNALS {
            // A signal that the caller has made this program ignore, as nohup does with SIGHUP, stays ignored.
            if ignored >> (number - 1) & 1 == 1 {
                continue;
            }
            // Registered in this order, so that the first signal only sets both flags, and is known when it interrupts something.
            flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&again))?;
            flag::register_usize(number, Arc::clone(&came), number.unsigned_abs() as usize)?;
            flag::register(number, Arc::clone(&again))?;
        }
        Ok(Self { came, again })
    }

    /// Returns an interrupt that the first signal requests.
    pub fn interrupt(&self) -> Interrupt {
        Interrupt::of(Arc::clone(&self.again))
    }

    /// Returns the signal that was received last, if there was one.
    pub fn taken(&self) -> Option<Signal> {
        let came = self.came.load(Ordering::SeqCst);
        SIGNALS
            .into_iter()
            .find(|(number, _)| number.unsigned_abs() as usize == came)
            .map(|(number, name)| Signal { number, name })
    }
}
