//! `tabtune verify`: recomputes the digests and figures that a receipt states.

use std::path::{Path, PathBuf};

use tabtune::bundle::{Verification, verify_files};
use tabtune::error::shown;
use tabtune::formats::ByteSource;
use tabtune::state::CheckResult;

use super::Outcome;
use crate::args::VerifyArgs;
use crate::error::Result;
use crate::files::{FileSource, file_name, files_of};
use crate::output::Output;

/// Prints every check. The exit status is 1 if one fails.
///
/// # Errors
/// `source.read`, and receipts that cannot be read.
pub fn run(args: &VerifyArgs, output: &Output) -> Result<Outcome> {
    let mut good = true;
    for files in by_receipt(args)? {
        let mut sources: Vec<Box<dyn ByteSource>> = Vec::new();
        for path in files {
            sources.push(Box::new(FileSource::open(&path)?));
        }
        let verification = verify_files(&sources, None)?;
        output.line(&verification, || readable(&verification))?;
        good &= verification.ok;
    }
    Ok(if good { Outcome::Good } else { Outcome::Bad })
}

fn readable(verification: &Verification) -> String {
    let word = |result: CheckResult| format!("{result:?}").to_lowercase();
    let mut lines: Vec<String> =
        verification.checks.iter().map(|check| format!("{:9} {}", word(check.result), shown(&check.name))).collect();
    lines.push(if verification.ok { "everything is as the receipt says".into() } else { "not as the receipt says".into() });
    lines.join("\n")
}

fn is_receipt(path: &Path) -> bool {
    file_name(path).ends_with("receipt.json")
}

/// Groups the files by receipt: a folder is replaced by its files, and a receipt alone is grouped with the files next to it.
fn by_receipt(args: &VerifyArgs) -> Result<Vec<Vec<PathBuf>>> {
    let (mut files, mut receipts) = (Vec::new(), Vec::new());
    let mut add = |path: PathBuf, alone: bool| match is_receipt(&path) {
        true if alone => {}
        true => receipts.push(path),
        false => files.push(path),
    };
    match args.paths.as_slice() {
        [receipt] if is_receipt(receipt) => {
            let folder = receipt.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            files_of(folder)?.into_iter().for_each(|path| add(path, true));
            receipts.push(receipt.clone());
        }
        paths => {
            for path in paths {
                let list = if path.is_dir() { files_of(path)? } else { vec![path.clone()] };
                list.into_iter().for_each(|path| add(path, false));
            }
        }
    }
    // The receipt of a single file is next to it.
    if let ([file], []) = (files.as_slice(), receipts.as_slice()) {
        let beside = file.with_file_name(format!("{}.receipt.json", file_name(file)));
        receipts.extend(beside.is_file().then_some(beside));
    }
    if receipts.is_empty() {
        return Ok(vec![files]);
    }
    Ok(receipts.into_iter().map(|receipt| [files.as_slice(), &[receipt]].concat()).collect())
}
