//! `tabtune delta`: the exact difference of two models, bit for bit.

use std::path::Path;
use std::rc::Rc;

use futures_lite::future::block_on;
use serde_json::json;
use tabtune::bundle::FileStream;
use tabtune::formats::ByteSource;
use tabtune::portable::{ModelAdapterDelta, ModelMetadata, PortableModelBundle, open_safetensors};
use tabtune::state::{PortableModelImportRequest, PortableModelStateDict};

use super::Outcome;
use crate::args::{DeltaAction, DeltaArgs, DeltaUse};
use crate::error::Result;
use crate::files::{FileSource, file_name, files_of, has_ending};
use crate::output::Output;
use crate::place::OneFile;

/// Derives, applies or removes a difference, and writes one safetensors file.
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
            let place = OneFile::new(to)?;
            let delta = block_on(state(base)?.derive_adapter_delta(&state(target)?, name))?;
            write(&place, delta.export_as(&file_name(to))?, output)
        }
        DeltaAction::Apply(DeltaUse { model, delta, to }) => {
            let place = OneFile::new(to)?;
            changed(
                to,
                &place,
                &block_on(state(model)?.apply_adapter_delta(&open(delta)?, false))?,
                output,
            )
        }
        DeltaAction::Remove(DeltaUse { model, delta, to }) => {
            let place = OneFile::new(to)?;
            changed(
                to,
                &place,
                &block_on(state(model)?.remove_adapter_delta(&open(delta)?, false))?,
                output,
            )
        }
    }
}

fn source(path: &Path) -> Result<Rc<dyn ByteSource>> {
    Ok(Rc::new(FileSource::open(path)?))
}

fn open(path: &Path) -> Result<ModelAdapterDelta> {
    Ok(ModelAdapterDelta::open(source(path)?)?)
}

/// Opens the weights of a safetensors file, or of all such files in a folder.
fn state(path: &Path) -> Result<PortableModelStateDict> {
    let paths = if path.is_dir() {
        files_of(path)?
    } else {
        vec![path.to_path_buf()]
    };
    let weights = paths
        .iter()
        .filter(|path| has_ending(path, &["safetensors"]));
    let sources = weights
        .map(|path| source(path))
        .collect::<Result<Vec<_>>>()?;
    Ok(
        block_on(open_safetensors(sources)?.import(&PortableModelImportRequest::default()))?
            .state_dict,
    )
}

fn changed(
    to: &Path,
    place: &OneFile,
    state: &PortableModelStateDict,
    output: &Output,
) -> Result<Outcome> {
    let bundle = PortableModelBundle {
        state_dict: state.clone(),
        metadata: ModelMetadata::default(),
    };
    write(
        place,
        block_on(bundle.export_safetensors_as(&file_name(to)))?,
        output,
    )
}

fn write(place: &OneFile, mut stream: FileStream, output: &Output) -> Result<Outcome> {
    let written = place.write(&mut stream)?;
    let files: Vec<String> = written
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    output.line(&json!({ "files": files }), || files.join("\n"))?;
    Ok(Outcome::Good)
}
