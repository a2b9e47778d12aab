//! `tabtune export`: weights of a checkpoint for other programs.

use serde_json::json;
use tabtune::bundle::{ByteSource, Identity, ModelAssets};
use tabtune::export::{ExportOptions, ExportSource, GgufTypes, Weights, export_folder, export_gguf};

use super::{Outcome, load_model, open_device};
use crate::args::{DeviceName, ExportArgs, ExportFormat};
use crate::error::{Result, RunError};
use crate::files::{FileSource, file_name, open_checkpoint};
use crate::output::Output;
use crate::wait::wait;
use crate::writer::{check_file, check_place, write_file, write_folder};

/// Writes the folder or the file and prints what was written.
pub fn run(args: &ExportArgs, output: &Output) -> Result<Outcome> {
    let gguf = args.format == ExportFormat::Gguf;
    if !gguf && (args.types.is_some() || !args.base.is_empty()) {
        return Err(RunError::Usage("--type and --base go with --format gguf".into()));
    }
    // What cannot be written is refused before the checkpoint is read.
    args.types.as_deref().map(GgufTypes::from_word).transpose()?;
    let place = if gguf { check_file(&args.to) } else { check_place(&args.to, None) };
    place?;
    let checkpoint = open_checkpoint(&args.checkpoint)?;
    let manifest = checkpoint.manifest();
    // Nothing is computed, so no GPU is needed.
    let model = load_model(checkpoint.bundle(), manifest.precision, &open_device(DeviceName::Cpu)?)?;
    let assets = ModelAssets::of_bundle(checkpoint.bundle());
    let identity = Identity {
        model_family: manifest.model.model_type.clone(),
        revision: String::new(),
        checkpoint_family: "tabtune.train".into(),
        checkpoint_ref: Some(format!("step-{}", manifest.progress.completed_steps)),
    };
    let source = ExportSource {
        weights: Weights::of_model(&model),
        warnings: assets.warnings.clone(),
        assets,
        base: manifest.base.clone(),
        training: None,
        identity,
        groups: Vec::new(),
        state: Vec::new(),
    };
    let written = if gguf {
        let name = file_name(&args.to);
        let name = name.strip_suffix(".gguf").unwrap_or(&name).to_string();
        let options = ExportOptions { name: Some(name), types: args.types.clone(), ..ExportOptions::default() };
        let mut base: Vec<Box<dyn ByteSource>> = Vec::new();
        for path in &args.base {
            base.push(Box::new(FileSource::open(path)?));
        }
        write_file(&args.to, &mut wait(export_gguf(&source, base, &options))?)?;
        vec![args.to.clone()]
    } else {
        write_folder(&args.to, None, &mut export_folder(&source, &ExportOptions::default())?)?
    };
    let files: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    output.line(&json!({ "files": files }), || files.join("\n"))?;
    Ok(Outcome::Good)
}
