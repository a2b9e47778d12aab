//! `tabtune convert`: converts a model to another format, without training and without a GPU.

use std::path::Path;
use std::rc::Rc;

use tabtune::export::ExportSource;

use super::{Outcome, outgoing};
use crate::args::{ConvertArgs, OutputArgs};
use crate::error::Result;
use crate::files::{Wanted, open_wanted};
use crate::output::Output;
use crate::selection::request;

/// Writes the folder or the file and prints the paths of the written files.
///
/// # Errors
/// Errors of [`convert`], and of the request's options.
pub fn run(args: &ConvertArgs, output: &Output) -> Result<Outcome> {
    let adapter = args.merge_adapter.as_deref();
    let wanted = Wanted {
        adapter,
        resize_vocabulary: args.resize_vocabulary,
        request: request(&args.request)?,
        ..Wanted::default()
    };
    convert(&args.model, wanted, &args.output, output)
}

/// Opens `model` with the options in `wanted` and writes it to `to`.
///
/// # Errors
/// `cli.usage`, `output.occupied`, and errors of reading, converting and writing.
pub fn convert(
    model: &Path,
    wanted: Wanted<'_>,
    to: &OutputArgs,
    output: &Output,
) -> Result<Outcome> {
    let (options, place) = outgoing::options(to)?;
    let bundle = Rc::new(open_wanted(model, wanted)?);
    let source = ExportSource::of_bundle(&bundle)?.summed(&bundle)?;
    outgoing::write(&source, outgoing::base(to)?, &options, place, output)?;
    Ok(Outcome::Good)
}
