//! `tabtune convert`: converts a model to another format, without training and without a GPU.

use std::path::Path;
use std::rc::Rc;

use futures_lite::future::block_on;
use tabtune::export::ExportSource;
use tabtune::portable::{SharedFiles, is_bare_state, open_state};

use super::{Outcome, outgoing};
use crate::args::{ConvertArgs, OutputArgs};
use crate::error::Result;
use crate::files::{Wanted, open_wanted, state_sources};
use crate::output::{Output, warn};
use crate::selection::request;

/// Writes the folder or the file and prints the paths of the written files.
///
/// # Errors
/// Errors of [`convert`], and of the request's options.
pub fn run(args: &ConvertArgs, output: &Output) -> Result<Outcome> {
    let adapter = args.merge_adapter.as_deref();
    let sources = state_sources(&args.model)?;
    if adapter.is_none() && is_bare_state(&sources) {
        return convert_state(&sources, args, output);
    }
    let wanted = Wanted {
        adapter,
        resize_vocabulary: args.resize_vocabulary,
        request: request(&args.request)?,
        ..Wanted::default()
    };
    convert(&args.model, wanted, &args.output, output)
}

/// Writes the part of a state that the options select: it has no configuration, so it is no model.
fn convert_state(sources: &SharedFiles, args: &ConvertArgs, output: &Output) -> Result<Outcome> {
    let (options, place) = outgoing::options(&args.output)?;
    let request = request(&args.request)?.unwrap_or_default();
    let opened = open_state(sources, request.names)?;
    let imported = block_on(opened.import(&request))?;
    for warning in &imported.warnings {
        warn(&warning.message(), warning.code);
    }
    let stream = block_on(imported.bundle.export(&options))?;
    outgoing::write_stream(stream, place, output)?;
    Ok(Outcome::Good)
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
