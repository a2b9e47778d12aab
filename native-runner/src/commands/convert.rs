//! `tabtune convert`: a model from one format into another, without training and without a GPU.

use std::path::Path;
use std::rc::Rc;

use tabtune::bundle::{OpenOptions, open_bundle_with};
use tabtune::export::{ExportSource, Merging};

use super::{Outcome, outgoing};
use crate::args::{ConvertArgs, OutputArgs, RequestArgs};
use crate::error::Result;
use crate::files::{Wanted, model_sources, open_wanted};
use crate::output::Output;
use crate::selection::request;

/// Writes the folder or the file and prints what was written.
pub fn run(args: &ConvertArgs, output: &Output) -> Result<Outcome> {
    convert(&args.model, args.merge_adapter.as_deref(), &args.request, &args.output, output)
}

/// Converts `model`, with what is merged into it and selected of it.
pub fn convert(model: &Path, adapter: Option<&Path>, selected: &RequestArgs, to: &OutputArgs, output: &Output) -> Result<Outcome> {
    let (mut options, place) = outgoing::options(to)?;
    let headers = OpenOptions { headers_only: true, ..OpenOptions::default() };
    let merging = match adapter {
        Some(_) => Some(Merging::of(&open_bundle_with(model_sources(model)?, headers)?, &options)?),
        None => None,
    };
    let exact = merging.is_some_and(|merging| merging.exact);
    let bundle = Rc::new(open_wanted(model, Wanted { adapter, exact, request: request(selected)?, ..Wanted::default() })?);
    let source = ExportSource::of_bundle(&bundle)?.summed(&bundle)?;
    let mut base = outgoing::base(to)?;
    if let Some(merging) = merging {
        options.dtype = merging.dtype;
        if merging.patched && base.is_empty() {
            base = model_sources(model)?;
        }
    }
    outgoing::write(&source, base, &options, &place, output)?;
    Ok(Outcome::Good)
}
