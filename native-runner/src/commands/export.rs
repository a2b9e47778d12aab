//! `tabtune export`: weights of a checkpoint for other programs. Nothing is computed, so no GPU is needed.

use tabtune::bundle::VerifyPolicy;
use tabtune::portable::checkpoint_source;

use super::{Outcome, outgoing};
use crate::args::{ExportArgs, ExportFormat};
use crate::error::Result;
use crate::files::{open_checkpoint, open_checkpoint_alone};
use crate::output::Output;

/// Writes the folder or the file and prints what was written.
pub fn run(args: &ExportArgs, output: &Output) -> Result<Outcome> {
    let options = outgoing::options(&args.output)?;
    let base = &args.output.base;
    let checkpoint = match args.output.format {
        // Merging looks at the base by itself.
        ExportFormat::Safetensors | ExportFormat::Gguf | ExportFormat::Json => open_checkpoint_alone(&args.checkpoint)?,
        ExportFormat::Peft if base.is_empty() => open_checkpoint_alone(&args.checkpoint)?,
        ExportFormat::Peft | ExportFormat::GgufAdapter => open_checkpoint(&args.checkpoint, base, VerifyPolicy::Full)?,
    };
    outgoing::write(&checkpoint_source(&checkpoint, "")?, &args.output, &options, output)?;
    Ok(Outcome::Good)
}
