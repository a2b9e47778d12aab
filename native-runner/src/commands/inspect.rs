//! `tabtune inspect`: what is in files, and whether they are sound.

use super::Outcome;
use crate::args::InspectArgs;
use crate::error::{Result, RunError};
use crate::output::Output;

/// Prints one report per file. A refused file is an answer, not a failure of the command.
pub fn run(_args: &InspectArgs, _output: &Output) -> Result<Outcome> {
    Err(RunError::Usage("inspect is not built yet".into()))
}
