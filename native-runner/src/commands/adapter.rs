//! `tabtune adapter`: operations on LoRA adapters of PEFT.

use std::fmt::Write as _;
use std::path::Path;

use futures_lite::future::block_on;
use tabtune::config::Names;
use tabtune::error::Warning;
use tabtune::interrupt::Interrupt;
use tabtune::portable::{ExtractOptions, ExtractReport, extract_adapter};

use super::{Outcome, convert, outgoing};
use crate::args::{AdapterAction, AdapterArgs, module_names};
use crate::error::{Result, RunError};
use crate::files::{Wanted, open_wanted};
use crate::output::{Output, warn};
use crate::place::Folder;
use crate::progress::Progress;

/// Merges an adapter into its base, or extracts one from two models.
///
/// # Errors
/// `cli.usage` for targets that cannot be used, `output.occupied`, and the errors of reading and writing models.
pub fn run(args: &AdapterArgs, output: &Output) -> Result<Outcome> {
    match &args.action {
        AdapterAction::Merge {
            model,
            adapter,
            resize_vocabulary,
            output: to,
        } => {
            let wanted = Wanted {
                adapter: Some(adapter),
                resize_vocabulary: *resize_vocabulary,
                ..Wanted::default()
            };
            convert::convert(model, wanted, to, output)
        }
        AdapterAction::Extract {
            model,
            base,
            rank,
            targets: names,
            to,
        } => {
            let wrong = |e: serde_json::Error| RunError::Usage(format!("--targets: {e}"));
            let targets: Names = serde_json::from_value(module_names(names)).map_err(wrong)?;
            extract(
                model,
                base,
                &ExtractOptions {
                    rank: *rank,
                    targets,
                },
                to,
                output,
            )
        }
    }
}

fn extract(
    model: &Path,
    base: &Path,
    options: &ExtractOptions,
    to: &Path,
    output: &Output,
) -> Result<Outcome> {
    let mut place = Folder::for_output(to)?;
    let (tuned, base) = (
        open_wanted(model, Wanted::default())?,
        open_wanted(base, Wanted::default())?,
    );
    let bar = Progress::new(100, 0, !output.json());
    let mut progress =
        |done: u64, total: u64| bar.step(done.saturating_mul(100) / total.max(1), "percent".into());
    let extracted = block_on(extract_adapter(
        &tuned,
        &base,
        options,
        &Interrupt::none(),
        &mut progress,
    ));
    bar.end();
    let mut extracted = extracted?;
    for warning in &extracted.warnings {
        warn(
            &Warning::new(warning.code, &warning.subject).message(),
            warning.code.text(),
        );
    }
    place.write(&mut extracted.stream)?;
    outgoing::warn_of_written(&extracted.stream);
    output.line(&extracted.report, || shown(&extracted.report))?;
    Ok(Outcome::Good)
}

/// Formats the report for people: the remaining error of each target, and the tensors without factors that differ.
fn shown(report: &ExtractReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for (name, tensor) in &report.tensors {
        let _ = writeln!(
            text,
            "{name}: {:.3e} of {:.3e} left",
            tensor.error, tensor.norm
        );
    }
    for (name, tensor) in report
        .uncovered
        .iter()
        .filter(|(_, tensor)| tensor.norm > 0.0)
    {
        let _ = writeln!(
            text,
            "{name}: no factors, {:.2} % of the squared difference",
            tensor.share * 100.0
        );
    }
    let _ = write!(
        text,
        "rank {}: the factors leave {:.3e} of the difference of their matrices",
        report.rank, report.error
    );
    text
}
