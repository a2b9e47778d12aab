//! A logger that prints the libraries' warnings on stderr, because faults of shaders are only logged.

use std::io::Write;

use log::{Level, LevelFilter, Log, Metadata, Record};

struct Stderr;

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            // Other libraries' warnings are named by their module.
            let from = if record.target().starts_with("tabtune") {
                "warning"
            } else {
                record.target()
            };
            // eprintln! panics when stderr is closed.
            let _ = writeln!(std::io::stderr(), "{from}: {}", record.args());
        }
    }

    fn flush(&self) {}
}

/// Installs the logger. It must be installed before a device is opened.
pub fn install() {
    if log::set_logger(&Stderr).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}
