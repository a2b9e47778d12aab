//! `tabtune export`: writes the weights of a checkpoint for other programs. Nothing is computed, so no GPU is needed.

use tabtune::export::ExportFormat;
use tabtune::portable::checkpoint_source;
use tabtune::state::VerifyPolicy;

use super::{Outcome, outgoing};
use crate::args::ExportArgs;
use crate::error::Result;
use crate::files::{open_checkpoint, open_checkpoint_alone};
use crate::output::Output;

/// Writes the folder or the file and prints the paths of the written files.
///
/// # Errors
/// `cli.usage`, `output.occupied`, `checkpoint.*`, and errors of writing.
pub fn run(args: &ExportArgs, output: &Output) -> Result<Outcome> {
    let (options, place) = outgoing::options(&args.output)?;
    let base = &args.output.base;
    let format = args.output.format;
    // Merging opens the base separately, and PEFT's folder does without it.
    let alone = !format.is_of_adapter() || format == ExportFormat::Peft && base.is_empty();
    let checkpoint = if alone {
        open_checkpoint_alone(&args.checkpoint)?
    } else {
        open_checkpoint(&args.checkpoint, base, VerifyPolicy::Full)?
    };
    let source = checkpoint_source(&checkpoint, "")?;
    outgoing::write(
        &source,
        outgoing::base(&args.output)?,
        &options,
        place,
        output,
    )?;
    Ok(Outcome::Good)
}
