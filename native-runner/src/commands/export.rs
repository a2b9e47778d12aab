//! `tabtune export`: weights of a checkpoint for other programs. Nothing is computed, so no GPU is needed.

use tabtune::portable::checkpoint_source;

use super::{Outcome, outgoing};
use crate::args::ExportArgs;
use crate::error::Result;
use crate::files::open_checkpoint;
use crate::output::Output;

/// Writes the folder or the file and prints what was written.
pub fn run(args: &ExportArgs, output: &Output) -> Result<Outcome> {
    let options = outgoing::options(&args.output)?;
    let checkpoint = open_checkpoint(&args.checkpoint, args.output.base.first().map(std::path::PathBuf::as_path))?;
    outgoing::write(&checkpoint_source(&checkpoint, "")?, &args.output, &options, output)?;
    Ok(Outcome::Good)
}
