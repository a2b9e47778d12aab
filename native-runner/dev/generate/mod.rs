//! `tabtune-dev generate`: writes the parts of TypeScript and the documents that repeat the Rust code.

mod codes;
mod documents;
mod exports;
mod keys;
mod records;
mod reports;
mod schema;
mod settings;
mod text;

use std::path::{Path, PathBuf};

use clap::Args;
use tabtune::Error;
use tabtune::config::TrainConfig;
use tabtune_native::commands::Outcome;
use tabtune_native::error::Result;
use tabtune_native::files::read_file;
use tabtune_native::output::Output;

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Root of the repository.
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Write nothing, and fail if a file would change.
    #[arg(long)]
    check: bool,
}

/// Head of a generated file of TypeScript.
const HEADER: &str = "// Made by npm run generate; not for editing.\n";
const GENERATED: &str = "web/src/protocol/generated";

/// Writes the generated files that differ from those of the code, and prints their names.
///
/// # Errors
/// `source.read` and `sink.write`.
pub fn run(args: &GenerateArgs, output: &Output) -> Result<Outcome> {
    let mut outcome = Outcome::Good;
    for (path, made) in files(&args.folder)? {
        let place = args.folder.join(&path);
        if read_file(&place).is_ok_and(|found| found == made.as_bytes()) {
            continue;
        }
        output.fragment(&format!("{path}\n"))?;
        if args.check {
            outcome = Outcome::Bad;
        } else {
            std::fs::write(&place, made).map_err(|error| Error::SinkWrite {
                name: path,
                reason: error.to_string(),
            })?;
        }
    }
    Ok(outcome)
}

/// Prints the schema of the settings of a run.
///
/// # Errors
/// `cli.stdout`.
pub fn schema(output: &Output) -> Result<Outcome> {
    output.fragment(&format!("{}\n", schema::given::<TrainConfig>()))?;
    Ok(Outcome::Good)
}

/// Returns the path and the text of every generated file.
fn files(root: &Path) -> Result<Vec<(String, String)>> {
    let settings = keys::settings();
    let sides = codes::Sides::of(root)?;
    let document = |path: &str| read_file(&root.join(path)).map(text::lossy);
    let in_generated = |name: &str, text: String| (format!("{GENERATED}/{name}"), text);
    let errors = documents::errors(&document("web/ERRORS.md")?);
    let keys = documents::settings(&document("crate/SETTINGS.md")?, &settings);
    let of_models =
        |path: &str| document(path).map(|text| (path.to_owned(), documents::models(&text)));
    Ok(vec![
        in_generated("codes.ts", codes::both(&sides)),
        in_generated("page-codes.ts", codes::page(&sides)),
        in_generated("worker-codes.ts", codes::worker(&sides, &settings)),
        in_generated("documents.ts", records::types()),
        in_generated("exports.ts", exports::formats()),
        in_generated("settings.ts", settings::interfaces(&settings)),
        in_generated("rules.ts", settings::rules(&settings)),
        in_generated("kinds.ts", settings::kinds(&settings)),
        in_generated("reports.ts", reports::parsers()),
        ("web/ERRORS.md".into(), errors),
        ("crate/SETTINGS.md".into(), keys),
        of_models("README.md")?,
        of_models("web/demo/index.html")?,
    ])
}
