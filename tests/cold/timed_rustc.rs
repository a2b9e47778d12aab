//! A wrapper of rustc (`RUSTC_WRAPPER`) that appends one line per crate to the file named by `COMPILE_LOG`: name, target, kind,
//! optimization level, seconds of wall and of CPU. `tests/cold/run.mjs` compiles the wrapper and reads the file.

use std::io::Write;
use std::process::{Command, exit};
use std::time::Instant;
use std::{env, fs};

/// Returns the CPU seconds of the processes that this one has waited for: fields 16 and 17 of `/proc/self/stat`, in hundredths of a second.
fn seconds_of_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>();
    ticks / 100.0
}

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let Some((program, args)) = words.split_first() else {
        eprintln!("timed_rustc: expected rustc and its arguments");
        exit(2);
    };
    let started = Instant::now();
    let status = Command::new(program).args(args).status();
    let value = |flag: &str| args.iter().position(|arg| arg == flag).and_then(|at| args.get(at + 1)).cloned();
    if let (Some(name), Some(log)) = (value("--crate-name"), env::var_os("COMPILE_LOG")) {
        let target = value("--target").unwrap_or_else(|| "native".into());
        let kind = if args.iter().any(|arg| arg == "--test") { "test".into() } else { value("--crate-type").unwrap_or_default() };
        let level = args.iter().find_map(|arg| arg.strip_prefix("opt-level=")).unwrap_or("0");
        let line = format!("{name}\t{target}\t{kind}\t{level}\t{:.2}\t{:.2}\n", started.elapsed().as_secs_f64(), seconds_of_children());
        let written = fs::OpenOptions::new().create(true).append(true).open(&log).and_then(|mut file| file.write_all(line.as_bytes()));
        if let Err(error) = written {
            eprintln!("timed_rustc: {}: {error}", log.display());
        }
    }
    match status {
        Ok(status) => exit(status.code().unwrap_or(1)),
        Err(error) => {
            eprintln!("timed_rustc: {program}: {error}");
            exit(1);
        }
    }
}
