//! `tabtune delta`: the exact difference of two models, bit for bit.

use std::path::Path;
use std::rc::Rc;

use futures_lite::future::block_on;
use serde_json::json;
use tabtune::error::shown;
use tabtune::formats::ByteSource;
use tabtune::portable::{DeltaFiles, DeltaUse, derive_delta, use_delta};

use super::Outcome;
use crate::args::{DeltaAction, DeltaArgs, DeltaUseArgs};
use crate::error::Result;
use crate::files::{FileSource, file_name, has_ending, state_sources};
use crate::output::Output;
use crate::place::{Folder, OneFile, Place};

/// Derives, applies or removes a difference, and writes its files.
///
/// # Errors
/// `output.occupied`, and errors of reading, of models that do not fit each other, and of writing.
pub fn run(args: &DeltaArgs, output: &Output) -> Result<Outcome> {
    match &args.action {
        DeltaAction::Derive {
            base,
            target,
            to,
            name,
        } => {
            let place = Place::File(OneFile::new(to)?);
            let (base, target) = (state_sources(base)?, state_sources(target)?);
            let file = file_name(to);
            let made = block_on(derive_delta(&base, &target, name, Some(&file)))?;
            write(place, made, output)
        }
        DeltaAction::Apply(args) => used(args, DeltaUse::Apply, output),
        DeltaAction::Remove(args) => used(args, DeltaUse::Remove, output),
    }
}

/// Writes a model with a difference added or subtracted.
fn used(args: &DeltaUseArgs, way: DeltaUse, output: &Output) -> Result<Outcome> {
    let DeltaUseArgs { model, delta, to } = args;
    let is_file = has_ending(to, &["safetensors", "gguf", "json"]);
    let place = if is_file {
        Place::File(OneFile::new(to)?)
    } else {
        Place::Folder(Folder::for_output(to)?)
    };
    let file = is_file.then(|| file_name(to));
    let made = block_on(use_delta(
        &state_sources(model)?,
        source(delta)?,
        way,
        file.as_deref(),
    ))?;
    write(place, made, output)
}

fn source(path: &Path) -> Result<Rc<dyn ByteSource>> {
    Ok(Rc::new(FileSource::open(path)?))
}

fn write(mut place: Place, made: DeltaFiles, output: &Output) -> Result<Outcome> {
    let DeltaFiles { report, mut stream } = made;
    let written = place.write(&mut stream)?;
    let files: Vec<String> = written
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    output.line(
        &json!({ "files": files, "delta": report, "receipt": stream.receipt() }),
        || {
            format!(
                "{}: {} tensors differ\n  base   {}\n  target {}\n{}",
                shown(&report.name),
                report.changed.len(),
                report.base_weights,
                report.target_weights,
                files.join("\n")
            )
        },
    )?;
    Ok(Outcome::Good)
}
