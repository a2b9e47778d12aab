//! The signals that ask a run to end: the first is kept until the step is whole, a second ends the process at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

#[cfg(unix)]
const SIGNALS: [(i32, &str); 3] = [(SIGINT, "SIGINT"), (SIGTERM, "SIGTERM"), (signal_hook::consts::SIGHUP, "SIGHUP")];
#[cfg(not(unix))]
const SIGNALS: [(i32, &str); 2] = [(SIGINT, "SIGINT"), (SIGTERM, "SIGTERM")];

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    number: i32,
    /// Its name.
    pub name: &'static str,
}

impl Signal {
    /// The exit status by which shells know it.
    pub fn status(self) -> u8 {
        u8::try_from(128 + self.number).unwrap_or(1)
    }
}

/// The signals that this process ignores, a bit each from 1 on, as Linux tells; elsewhere none are known.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Listens for signals from its creation to the end of the process.
pub struct Signals(Arc<AtomicUsize>);

impl Signals {
    /// Listens from now on.
    pub fn listen() -> io::Result<Self> {
        let (came, again) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let ignored = ignored();
        for (number, _) in SIGNALS {
            // What the caller has this program ignore, as nohup does of SIGHUP, stays ignored.
            if ignored >> (number - 1) & 1 == 1 {
                continue;
            }
            // In this order the first signal only sets both.
            flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&again))?;
            flag::register(number, Arc::clone(&again))?;
            flag::register_usize(number, Arc::clone(&came), number.unsigned_abs() as usize)?;
        }
        Ok(Self(came))
    }

    /// The signal that came last, if one did.
    pub fn taken(&self) -> Option<Signal> {
        let came = self.0.load(Ordering::SeqCst);
        SIGNALS.into_iter().find(|(number, _)| number.unsigned_abs() as usize == came).map(|(number, name)| Signal { number, name })
    }
}
