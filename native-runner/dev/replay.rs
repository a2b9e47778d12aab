//! `tabtune-dev replay`: replays recorded trajectories through the real optimizers and schedules.

use futures_lite::future::block_on;
use serde_json::json;
use tabtune::replay::{ReplayReport, replay};

use crate::ReplayArgs;
use tabtune_native::commands::{Outcome, open_device};
use tabtune_native::error::{Result, RunError};
use tabtune_native::files::{file_name, files_of, read_file};
use tabtune_native::output::Output;

/// Prints one line per vector file and one of totals. A file that cannot be replayed counts as failed.
///
/// # Errors
/// `cli.usage` if the folder has no `.json` file, `source.read` if it cannot be listed, and errors of the device.
pub fn run(args: &ReplayArgs, output: &Output) -> Result<Outcome> {
    let files: Vec<_> = files_of(&args.folder)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    if files.is_empty() {
        return Err(RunError::Usage(format!(
            "{}: no vector file (.json) in this folder",
            args.folder.display()
        )));
    }
    let device = open_device(args.device)?;
    let (mut failed, mut skipped) = (0, 0);
    for path in &files {
        let name = file_name(path);
        match read_file(path).and_then(|bytes| block_on(replay(&name, &bytes, &device))) {
            Ok(report) => {
                failed += usize::from(!report.ok);
                skipped += usize::from(report.skipped.is_some());
                output.line(&report, || readable(&report))?;
            }
            Err(error) => {
                failed += 1;
                let line = json!({ "file": name, "ok": false, "code": error.code(), "message": error.to_string() });
                output.line(&line, || format!("FAIL {name}: {error}"))?;
            }
        }
    }
    let totals = json!({ "files": files.len(), "failed": failed, "skipped": skipped, "adapter": device.info().adapter });
    output.line(&totals, || {
        format!(
            "{} files, {failed} failed, {skipped} skipped, on {}",
            files.len(),
            device.info().adapter
        )
    })?;
    Ok(if failed == 0 {
        Outcome::Good
    } else {
        Outcome::Bad
    })
}

fn readable(report: &ReplayReport) -> String {
    let ReplayReport {
        file, kind, detail, ..
    } = report;
    match &report.skipped {
        Some(reason) => format!("skip {file}: {reason}"),
        None => format!(
            "{} {file}: {kind}, {detail}",
            if report.ok { "ok  " } else { "FAIL" }
        ),
    }
}
