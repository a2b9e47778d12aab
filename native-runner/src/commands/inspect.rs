//! `tabtune inspect`: what is in files, and whether they are sound.

use std::path::{Path, PathBuf};

use tabtune::bundle::{FileFormat, inspect};

use super::Outcome;
use crate::args::InspectArgs;
use crate::error::Result;
use crate::files::{FileSource, files_of};
use crate::output::Output;

/// Prints one report per file. A refused file is an answer, not a failure of the command.
pub fn run(args: &InspectArgs, output: &Output) -> Result<Outcome> {
    todo!()
}
