//! `tabtune export`: writes the weights of a checkpoint for other programs. Nothing is computed, so no GPU is needed.

use tabtune::portable::checkpoint_source;
use tabtune::state::VerifyPolicy;

use super::{Outcome, outgoing};
use crate::args::{ExportArgs, ExportFormat};
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
    let checkpoint = match args.output.format {
        // Merging opens the base separately.
        ExportFormat::Safetensors | ExportFormat::Gguf | ExportFormat::Json => open_checkpoint_alone(&args.checkpoint)?,
        ExportFormat::Peft if base.is_empty() => open_checkpoint_alone(&args.checkpoint)?,
        ExportFormat::Peft | ExportFormat::GgufAdapter => open_checkpoint(&args.checkpoint, base, VerifyPolicy::Full)?,
    };
    let source = checkpoint_source(&checkpoint, "")?;
    outgoing::write(&source, outgoing::base(&args.output)?, &options, &place, output)?;
    Ok(Outcome::Good)
}
