//! `tabtune inspect --plan`: the tensors that an import takes, and the bytes of one of them.

use std::path::Path;

use futures_lite::future::block_on;
use serde_json::json;
use tabtune::bundle::FileStream;
use tabtune::error::shown;
use tabtune::formats::Digest;
use tabtune::portable::{PlanReport, plan_files};
use tabtune::state::{NamePolicy, PortableModelBundleImportPlan};

use crate::args::{InspectArgs, NamesOf};
use crate::error::{Result, RunError};
use crate::files::{file_name, state_sources};
use crate::output::{Output, warning_line};
use crate::place::OneFile;
use crate::selection::request;

/// Prints the plan of each path, or reads the tensor that is asked for.
///
/// # Errors
/// `cli.usage` for a tensor of several paths, `plan.tensor.unknown`, `output.occupied`, and errors of opening, of the request and of reading.
pub fn run(args: &InspectArgs, output: &Output) -> Result<()> {
    let mut wanted = request(&args.request)?.unwrap_or_default();
    wanted.names = match args.names {
        NamesOf::Source => NamePolicy::Source,
        NamesOf::Hf => NamePolicy::Hf,
    };
    if args.tensor.is_some() && args.paths.len() > 1 {
        let rule = "--tensor reads from one path: give the folder, or one file of the model";
        return Err(RunError::Usage(rule.into()));
    }
    let place = args.to.as_deref().map(OneFile::new).transpose()?;
    for path in &args.paths {
        let plan = block_on(plan_files(&state_sources(path)?, wanted.clone()))?;
        match &args.tensor {
            Some(name) => tensor(&plan, name, place.as_ref(), output)?,
            None => {
                let report = PlanReport::of(&plan);
                let name = shown(&file_name(path));
                output.line(&json!({ "path": name, "plan": report }), || {
                    readable(path, &report)
                })?;
            }
        }
    }
    Ok(())
}

/// Reads the bytes of one tensor, and writes them to `place`, if one is given.
fn tensor(
    plan: &PortableModelBundleImportPlan,
    name: &str,
    place: Option<&OneFile>,
    output: &Output,
) -> Result<()> {
    let (tensor, bytes) = block_on(plan.materialize_tensor(name))?;
    let (len, sum) = (bytes.len(), Digest::of(&bytes));
    if let Some(place) = place {
        let mut stream = FileStream::new();
        stream.push_bytes("tensor", bytes.to_vec());
        place.write(&mut stream)?;
    }
    let (dtype, shape) = (shown(&tensor.dtype), &tensor.shape);
    output.line(
        &json!({ "tensor": name, "dtype": dtype, "shape": shape, "bytes": len, "sha256": sum }),
        || {
            format!(
                "{} {dtype} {shape:?}, {len} bytes, sha256 {sum}",
                shown(name)
            )
        },
    )
}

/// Formats a plan for people.
fn readable(path: &Path, report: &PlanReport) -> String {
    let bytes: u64 = report.entries.iter().map(|one| one.end - one.begin).sum();
    let count = report.entries.len();
    let mut lines = vec![format!(
        "{}: {count} tensors of {bytes} bytes, as {}, plan_digest={}",
        shown(&file_name(path)),
        report.source_format,
        report.plan_digest
    )];
    lines.extend(report.entries.iter().map(|one| {
        let (name, file, dtype) = (shown(&one.name), shown(&one.file), shown(&one.dtype));
        let (shape, begin, end) = (&one.shape, one.begin, one.end);
        format!("  {name} {dtype} {shape:?}, {file} {begin} to {end}")
    }));
    lines.extend(report.groups.iter().map(|group| {
        let (id, steps) = (shown(&group.group_id), group.applied_steps);
        format!("  group {id}: {} parameters, {steps} steps", group.members)
    }));
    let warnings = report.warnings.iter();
    lines.extend(warnings.map(|one| format!("  {}", warning_line(&one.message, one.code))));
    lines.join("\n")
}
