//! Commands of `tabtune-dev`, the program next to this one.

use std::ffi::OsString;
use std::process::Command;

use super::Outcome;
use crate::error::{Result, RunError};

/// Runs a command of `tabtune-dev` with these arguments.
///
/// # Errors
/// `cli.usage` if that program is not next to this one.
pub fn run(command: &str, args: &[OsString], json: bool) -> Result<Outcome> {
    let name = format!("tabtune-dev{}", std::env::consts::EXE_SUFFIX);
    let absent = |reason: String| {
        RunError::Usage(format!(
            "{command}: expected the program {name} next to this one: {reason}. Build both: cargo build -p tabtune-native"
        ))
    };
    let program = std::env::current_exe()
        .map_err(|error| absent(error.to_string()))?
        .with_file_name(&name);
    let mut child = Command::new(&program);
    child.arg(command).args(args).args(json.then_some("--json"));
    let status = child.status().map_err(|error| absent(error.to_string()))?;
    Ok(match status.code() {
        Some(0) => Outcome::Good,
        code => Outcome::Status(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
    })
}
