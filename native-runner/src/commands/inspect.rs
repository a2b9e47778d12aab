//! `tabtune inspect`: what is in files, and whether they are sound.

use std::path::{Path, PathBuf};

use tabtune::bundle::{ByteSource, FileFormat, InspectReport, inspect};

use super::Outcome;
use crate::args::InspectArgs;
use crate::error::{Result, RunError};
use crate::files::{FileSource, file_name, files_of};
use crate::output::Output;

/// Prints one report per file. A refused file is an answer, not a failure of the command.
pub fn run(args: &InspectArgs, output: &Output) -> Result<Outcome> {
    let format = args.format.as_deref().map(format_of).transpose()?;
    for path in expand(&args.paths)? {
        let source = FileSource::open(&path)?;
        let siblings = if is_index(&path, format) { shards_beside(&path)? } else { Vec::new() };
        let siblings: Vec<&dyn ByteSource> = siblings.iter().map(|s| s as &dyn ByteSource).collect();
        let report = inspect(&source, format, &siblings, args.read);
        output.line(&report, || readable(&report))?;
    }
    Ok(Outcome::Good)
}

fn format_of(word: &str) -> Result<FileFormat> {
    let unknown = || RunError::Usage(format!("--as {word}: expected safetensors, gguf, index, peft or json"));
    FileFormat::from_word(word).ok_or_else(unknown)
}

fn is_index(path: &Path, format: Option<FileFormat>) -> bool {
    format.or_else(|| FileFormat::of_name(&file_name(path))) == Some(FileFormat::Index)
}

/// A folder stands for the files in it whose names tell their format.
fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(files_of(path)?.into_iter().filter(|p| FileFormat::of_name(&file_name(p)).is_some()));
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn shards_beside(index: &Path) -> Result<Vec<FileSource>> {
    let folder = index.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut shards = Vec::new();
    for path in files_of(folder)?.iter().filter(|p| file_name(p).ends_with(".safetensors")) {
        shards.push(FileSource::open(path)?);
    }
    Ok(shards)
}

fn readable(report: &InspectReport) -> String {
    let format = report.format.map_or_else(|| "unknown format".to_string(), |f| format!("{f:?}").to_lowercase());
    let mut lines = vec![match (&report.code, &report.message) {
        (Some(code), message) => format!("{}: {format}, refused: {} [{code}]", report.file, message.as_deref().unwrap_or("")),
        (None, _) => format!("{}: {format}, sound, {} tensors", report.file, report.tensors),
    }];
    lines.extend(report.warnings.iter().map(|w| format!("  warning {} {}", w.code, w.subject)));
    lines.extend(report.inventory.iter().map(|t| format!("  {} {} {:?}", t.name, t.dtype, t.shape)));
    lines.join("\n")
}
