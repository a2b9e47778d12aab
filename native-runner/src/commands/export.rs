//! `tabtune export`: weights of a checkpoint for other programs.

use serde_json::json;
use tabtune::bundle::ModelAssets;
use tabtune::export::safetensors_folder;

use super::{Outcome, load_model, open_device};
use crate::args::{DeviceName, ExportArgs, ExportFormat};
use crate::error::Result;
use crate::files::open_checkpoint;
use crate::output::Output;
use crate::writer::{check_place, write_folder};

/// Writes the folder and prints its files.
pub fn run(args: &ExportArgs, output: &Output) -> Result<Outcome> {
    let ExportFormat::Safetensors = args.format;
    check_place(&args.to, None)?;
    let checkpoint = open_checkpoint(&args.checkpoint)?;
    // Nothing is computed, so no GPU is needed.
    let model = load_model(checkpoint.bundle(), checkpoint.manifest().precision, &open_device(DeviceName::Cpu)?)?;
    let mut stream = safetensors_folder(&model, &ModelAssets::of_bundle(checkpoint.bundle()))?;
    let files: Vec<String> = write_folder(&args.to, None, &mut stream)?.iter().map(|path| path.display().to_string()).collect();
    output.line(&json!({ "files": files }), || files.join("\n"))?;
    Ok(Outcome::Good)
}
