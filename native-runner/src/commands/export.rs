//! `tabtune export`: weights of a checkpoint for other programs.

use serde_json::json;
use tabtune::bundle::{ByteSource, ModelAssets};
use tabtune::checkpoint::{Base, Checkpoint};
use tabtune::export::{GgufBase, GgufTypes, gguf_patch, gguf_recipe, safetensors_folder};
use tabtune::model::Model;

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
    let types = GgufTypes::from_word(args.types.as_deref().unwrap_or("as-base"))?;
    let place = if gguf { check_file(&args.to) } else { check_place(&args.to, None) };
    place?;
    let checkpoint = open_checkpoint(&args.checkpoint)?;
    // Nothing is computed, so no GPU is needed.
    let model = load_model(checkpoint.bundle(), checkpoint.manifest().precision, &open_device(DeviceName::Cpu)?)?;
    let written = if gguf {
        write_gguf(args, &checkpoint, &model, types)?;
        vec![args.to.clone()]
    } else {
        let mut stream = safetensors_folder(&model, &ModelAssets::of_bundle(checkpoint.bundle()))?;
        write_folder(&args.to, None, &mut stream)?
    };
    let files: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    output.line(&json!({ "files": files }), || files.join("\n"))?;
    Ok(Outcome::Good)
}

fn write_gguf(args: &ExportArgs, checkpoint: &Checkpoint, model: &Model, types: GgufTypes) -> Result<()> {
    let name = file_name(&args.to);
    let name = name.strip_suffix(".gguf").unwrap_or(&name);
    let bundle = checkpoint.bundle();
    let mut stream = if args.base.is_empty() {
        if bundle.tokenizer_refused().is_some() {
            bundle.need_tokenizer()?;
        }
        gguf_recipe(model, bundle.tokenizer.as_ref(), name, types)?
    } else {
        let mut files: Vec<Box<dyn ByteSource>> = Vec::new();
        for path in &args.base {
            files.push(Box::new(FileSource::open(path)?));
        }
        let recorded_bytes = checkpoint.manifest().base.as_ref().and_then(Base::gguf_bytes);
        wait(gguf_patch(model, GgufBase { files, recorded_bytes }, name, types))?
    };
    write_file(&args.to, &mut stream)
}
