//! `tabtune inspect`: shows the contents of files and checks that they are sound.

use std::path::Path;
use std::rc::Rc;

use serde::Serialize;
use serde_json::json;
use tabtune::bundle::{FileFormat, InspectReport, inspect};
use tabtune::error::{Refusal, Warning, escaped, shown};
use tabtune::formats::ByteSource;
use tabtune::portable::{Inspection, ModelIoCompatibilityContract, SharedFiles, inspection};

use super::{Outcome, plan};
use crate::args::InspectArgs;
use crate::error::{Result, RunError};
use crate::files::{
    FileSource, boxed, file_name, files_of, has_ending, located, model_of, model_sources,
    open_listed,
};
use crate::output::{Output, warning_line, with_code};
use crate::selection::request;

/// Prints one report per file. A refused file is a result, not a failure of the command.
///
/// # Errors
/// `source.read` if a file cannot be opened, `cli.usage` for an unknown `--as`, and errors of the request's options.
pub fn run(args: &InspectArgs, output: &Output) -> Result<Outcome> {
    let format = args.format.as_deref().map(format_of).transpose()?;
    if args.plan {
        plan::run(args, output)?;
        return Ok(Outcome::Good);
    }
    if args.request.is_given() && !args.contract {
        return Err(RunError::Usage("options that select or rename tensors go with --contract or --plan, which take the files together".into()));
    }
    let paths = args.paths.iter().map(|path| located(path));
    let paths = paths.collect::<Result<Vec<_>>>()?;
    for source in paths
        .iter()
        .map(|path| open(path))
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .flatten()
    {
        let report = inspect(&source, format, || weights_beside(source.path()), args.read);
        output.line(&report, || readable(&report))?;
    }
    for path in paths.iter().filter(|_| args.contract) {
        let inspection = inspection(
            &shared(path)?,
            request(&args.request)?,
            args.merge_adapter.as_deref().map(shared).transpose()?,
        );
        output.line(
            &json!({ "path": shown(&file_name(path)), "inspection": inspection }),
            || described(path, &inspection),
        )?;
    }
    // With --contract the inspection says what the files form.
    for folder in paths.iter().filter(|path| path.is_dir() && !args.contract) {
        if files_of(folder)?.iter().any(|path| {
            matches!(file_name(path).as_str(), "config.json") || file_name(path).ends_with(".gguf")
        }) {
            let report = ModelReport::of(folder, args.read)?;
            output.line(&report, || report.readable())?;
        }
    }
    Ok(Outcome::Good)
}

/// Opens all files of a folder, so that those of other formats are refused by name, or one file with the other parts of its model.
fn shared(path: &Path) -> Result<SharedFiles> {
    let files = if path.is_dir() {
        boxed(open_listed(|| files_of(path))?)
    } else {
        model_sources(path)?
    };
    Ok(files)
}

/// Formats the inspection for people: the possible training and exports with their bytes, and the reasons against the others.
fn described(path: &Path, inspection: &Inspection) -> String {
    let mut lines = vec![format!(
        "{}: {}",
        shown(&file_name(path)),
        format!("{:?}", inspection.kind).to_lowercase()
    )];
    match &inspection.trainable.reason {
        Some(reason) => lines.push(format!("  cannot be trained: {}", escaped(reason))),
        None => lines.extend(inspection.trainable.options.iter().map(|o| {
            format!(
                "  trains with {} in {:?}: {} bytes",
                o.optimizer, o.precision, o.bytes
            )
        })),
    }
    for choice in &inspection.exports {
        let name = [
            Some(format!("{:?}", choice.format).to_lowercase()),
            choice.types.clone(),
        ];
        let name = name.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let bytes = choice
            .bytes
            .map_or_else(String::new, |bytes| format!(", {bytes} bytes"));
        let needs = choice
            .needs
            .map_or_else(String::new, |needs| format!(", needs the {needs}"));
        lines.push(match &choice.reason {
            Some(reason) => format!("  cannot become {name}: {}", escaped(reason)),
            None => format!("  can become {name}{bytes}{needs}"),
        });
    }
    lines.extend(
        inspection
            .warnings
            .iter()
            .map(|warning| format!("  {}", warning_line(&warning.message, warning.code))),
    );
    lines.extend(
        inspection
            .contract
            .iter()
            .flat_map(ModelIoCompatibilityContract::stable_signature_lines)
            .map(|line| format!("  {line}")),
    );
    lines.join("\n")
}

/// Verdict on a folder as one model.
#[derive(Serialize)]
struct ModelReport {
    model: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refusals: Vec<Refusal>,
    warnings: Vec<ModelWarning>,
}

#[derive(Serialize)]
struct ModelWarning {
    code: &'static str,
    subject: String,
    message: String,
}

impl ModelReport {
    fn of(folder: &Path, read: bool) -> Result<Self> {
        let mut report = Self {
            model: shown(&file_name(folder)),
            ok: true,
            code: None,
            message: None,
            refusals: Vec::new(),
            warnings: Vec::new(),
        };
        match model_of(folder, read)?.and_then(tabtune::model::open_model) {
            Ok(bundle) => {
                let told = |w: &Warning| ModelWarning {
                    code: w.code,
                    subject: w.subject.clone(),
                    message: w.message(),
                };
                report.warnings = bundle.warnings.iter().map(told).collect();
            }
            Err(error) => {
                (report.ok, report.code, report.message) =
                    (false, Some(error.code()), Some(error.to_string()));
                if let tabtune::Error::Refused(list) = error {
                    report.refusals = list;
                }
            }
        }
        Ok(report)
    }

    fn readable(&self) -> String {
        let mut lines = vec![match (&self.code, &self.message) {
            (Some(code), message) => format!(
                "refused as a model: {}",
                with_code(message.as_deref().unwrap_or_default(), code)
            ),
            (None, _) => format!("{}: opens as a model", self.model),
        }];
        lines.extend(
            self.warnings
                .iter()
                .map(|w| format!("  {}", warning_line(&w.message, w.code))),
        );
        lines.join("\n")
    }
}

fn format_of(word: &str) -> Result<FileFormat> {
    let unknown = || {
        RunError::Usage(format!(
            "--as {word}: expected safetensors, gguf, index, peft or json"
        ))
    };
    FileFormat::from_word(word).ok_or_else(unknown)
}

/// Opens a file, or the files of a folder whose names show their format.
fn open(path: &Path) -> Result<Vec<FileSource>> {
    if !path.is_dir() {
        return Ok(vec![FileSource::open(path)?]);
    }
    Ok(open_listed(|| {
        Ok(files_of(path)?
            .into_iter()
            .filter(|p| FileFormat::of_name(&file_name(p)).is_some())
            .collect())
    })?)
}

fn weights_beside(path: &Path) -> tabtune::Result<Vec<Rc<dyn ByteSource>>> {
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let ending = if has_ending(path, &["gguf"]) {
        "gguf"
    } else {
        "safetensors"
    };
    open_listed(|| {
        Ok(files_of(folder)?
            .into_iter()
            .filter(|p| has_ending(p, &[ending]))
            .collect())
    })
    .map(boxed)
}

fn readable(report: &InspectReport) -> String {
    let format = report.format.map_or_else(
        || "unknown format".to_string(),
        |f| format!("{f:?}").to_lowercase(),
    );
    let mut lines = vec![match (&report.code, &report.message) {
        (Some(code), message) => format!(
            "refused as {format}: {}",
            with_code(message.as_deref().unwrap_or_default(), code)
        ),
        (None, _) => format!(
            "{}: {format}, sound, {} tensors",
            report.file, report.tensors
        ),
    }];
    lines.extend(
        report
            .warnings
            .iter()
            .map(|w| format!("  {}", warning_line(&w.message(), w.code))),
    );
    lines.extend(
        report
            .inventory
            .iter()
            .map(|t| format!("  {} {} {:?}", shown(&t.name), shown(&t.dtype), t.shape)),
    );
    lines.join("\n")
}
