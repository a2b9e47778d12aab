//! `tabtune verify`: recomputes the digests and figures that a receipt states.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::Serialize;
use tabtune::bundle::{Verification, verify_with_inputs};
use tabtune::error::shown;
use tabtune::formats::ByteSource;
use tabtune::state::CheckResult;

use super::Outcome;
use crate::args::VerifyArgs;
use crate::error::Result;
use crate::files::{FileSource, file_name, files_of, model_files_of, receipt_of};
use crate::output::Output;

/// Files that are verified together.
struct Set {
    /// Path of the receipt, or of the folder or file that has none.
    path: PathBuf,
    /// Files that the receipt may list as written, the receipt among them.
    own: Vec<PathBuf>,
    /// Files that the receipt may list as read.
    inputs: Vec<PathBuf>,
}

/// Result of one verification, with the path that it is about.
#[derive(Serialize)]
struct Verified<'a> {
    path: String,
    #[serde(flatten)]
    verification: &'a Verification,
}

/// Prints every check. The exit status is 1 if one fails. Each folder is verified by itself: files of other paths can be its inputs, but never
/// files that its receipt lists as written. A file that was named and that no receipt lists fails too.
///
/// # Errors
/// `source.read`, and receipts that cannot be read.
pub fn run(args: &VerifyArgs, output: &Output) -> Result<Outcome> {
    let (folders, given): (Vec<&PathBuf>, Vec<&PathBuf>) =
        args.paths.iter().partition(|path| path.is_dir());
    let mut known = BTreeSet::new();
    let given = given
        .into_iter()
        .filter(|path| known.insert(*path))
        .cloned();
    let (receipts, files): (Vec<PathBuf>, Vec<PathBuf>) = given.partition(|path| is_receipt(path));
    let mut sets = Vec::new();
    for folder in folders {
        sets.extend(of_folder(folder, &files)?);
    }
    for receipt in &receipts {
        sets.push(of_receipt(receipt, &receipts, &files)?);
    }
    for (file, receipt) in files
        .iter()
        .filter_map(|file| Some((file, receipt_of(file)?)))
    {
        if !receipts.contains(&receipt) {
            sets.push(Set {
                own: vec![file.clone(), receipt.clone()],
                path: receipt,
                inputs: Vec::new(),
            });
        }
    }
    let several = sets.len() > 1;
    let (mut good, mut listed) = (true, BTreeSet::new());
    for set in sets {
        good &= verified(set, several, &mut listed, output)?;
    }
    for file in files.into_iter().filter(|file| !listed.contains(file)) {
        good &= verified(
            Set {
                path: file.clone(),
                own: vec![file],
                inputs: Vec::new(),
            },
            true,
            &mut BTreeSet::new(),
            output,
        )?;
    }
    Ok(if good { Outcome::Good } else { Outcome::Bad })
}

/// Verifies one set and prints its checks, below its path if it is `titled`. Adds the files that the receipt lists to `listed`; returns true
/// if no check failed.
fn verified(
    set: Set,
    titled: bool,
    listed: &mut BTreeSet<PathBuf>,
    output: &Output,
) -> Result<bool> {
    let Set { path, own, inputs } = set;
    let count = own.len();
    let paths = [own, inputs].concat();
    let mut sources: Vec<Rc<dyn ByteSource>> = Vec::new();
    for path in &paths {
        sources.push(Rc::new(FileSource::open(path)?));
    }
    let (verification, taken) = verify_with_inputs(&sources, count)?;
    let path = path.display().to_string();
    output.line(
        &Verified {
            path: path.clone(),
            verification: &verification,
        },
        || {
            let title = if titled {
                format!("{}:\n", shown(&path))
            } else {
                String::new()
            };
            title + &readable(&verification)
        },
    )?;
    listed.extend(
        paths
            .into_iter()
            .zip(taken)
            .filter_map(|(path, taken)| taken.then_some(path)),
    );
    Ok(verification.ok)
}

fn readable(verification: &Verification) -> String {
    let word = |result: CheckResult| format!("{result:?}").to_lowercase();
    let mut lines: Vec<String> = verification
        .checks
        .iter()
        .map(|check| format!("{:9} {}", word(check.result), shown(&check.name)))
        .collect();
    lines.push(if verification.ok {
        "everything is as the receipt says".into()
    } else {
        "not as the receipt says".into()
    });
    lines.join("\n")
}

fn is_receipt(path: &Path) -> bool {
    file_name(path).ends_with(".receipt.json")
}

/// Returns the folder that a file is in, by one path for each folder.
fn folder_of(path: &Path) -> PathBuf {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    folder
        .canonicalize()
        .unwrap_or_else(|_| folder.to_path_buf())
}

/// Returns the files of a folder with each of its receipts, or by themselves if there is none.
fn of_folder(folder: &Path, inputs: &[PathBuf]) -> Result<Vec<Set>> {
    let (receipts, files): (Vec<PathBuf>, Vec<PathBuf>) = model_files_of(folder)?
        .into_iter()
        .partition(|path| is_receipt(path));
    if receipts.is_empty() {
        return Ok(vec![Set {
            path: folder.to_path_buf(),
            own: files,
            inputs: Vec::new(),
        }]);
    }
    let with = |receipt: PathBuf| Set {
        own: [files.as_slice(), std::slice::from_ref(&receipt)].concat(),
        path: receipt,
        inputs: inputs.to_vec(),
    };
    Ok(receipts.into_iter().map(with).collect())
}

/// Returns a receipt with its files among those that were given: those next to it, or else those without a receipt of their own. Without
/// such files it is verified with all files of its folder.
fn of_receipt(receipt: &Path, receipts: &[PathBuf], files: &[PathBuf]) -> Result<Set> {
    let home = folder_of(receipt);
    let of_other = |file: &PathBuf| receipt_of(file).is_some_and(|own| own != receipt);
    let (near, far): (Vec<PathBuf>, Vec<PathBuf>) = files
        .iter()
        .filter(|file| !of_other(file))
        .cloned()
        .partition(|file| folder_of(file) == home);
    let free: Vec<PathBuf> = far
        .into_iter()
        .filter(|file| {
            !receipts
                .iter()
                .any(|receipt| folder_of(receipt) == folder_of(file))
        })
        .collect();
    let (mut own, inputs) = match (near.is_empty(), free.is_empty()) {
        (false, _) => (near, free),
        (true, false) => (free, Vec::new()),
        (true, true) => (
            files_of(&home)?
                .into_iter()
                .filter(|path| !is_receipt(path))
                .collect(),
            Vec::new(),
        ),
    };
    own.push(receipt.to_path_buf());
    Ok(Set {
        path: receipt.to_path_buf(),
        own,
        inputs,
    })
}
