//! `tabtune verify`: recomputes what a receipt states.

use std::path::PathBuf;

use tabtune::bundle::{ByteSource, CheckResult, Verification, verify_files};
use tabtune::error::shown;

use super::Outcome;
use crate::args::VerifyArgs;
use crate::error::Result;
use crate::files::{FileSource, file_name, files_of};
use crate::output::Output;

/// Prints every check; exit status 1 if one fails.
pub fn run(args: &VerifyArgs, output: &Output) -> Result<Outcome> {
    let mut sources: Vec<Box<dyn ByteSource>> = Vec::new();
    for path in expand(&args.paths)? {
        sources.push(Box::new(FileSource::open(&path)?));
    }
    let verification = verify_files(&sources, None)?;
    output.line(&verification, || readable(&verification))?;
    Ok(if verification.ok { Outcome::Good } else { Outcome::Bad })
}

fn readable(verification: &Verification) -> String {
    let word = |result: CheckResult| format!("{result:?}").to_lowercase();
    let mut lines: Vec<String> =
        verification.checks.iter().map(|check| format!("{:9} {}", word(check.result), shown(&check.name))).collect();
    lines.push(if verification.ok { "everything is as the receipt says".into() } else { "not as the receipt says".into() });
    lines.join("\n")
}

/// A folder stands for its files, a receipt for the files beside it.
fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let alone = paths.len() == 1 && file_name(path).ends_with("receipt.json");
        match path.parent().filter(|_| alone) {
            Some(folder) => files.extend(files_of(if folder.as_os_str().is_empty() { ".".as_ref() } else { folder })?),
            None if path.is_dir() => files.extend(files_of(path)?),
            None => files.push(path.clone()),
        }
    }
    Ok(files)
}
