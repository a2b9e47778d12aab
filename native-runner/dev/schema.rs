//! `tabtune-dev schema`: settings, reports, error codes and export formats as JSON, for `npm run generate`.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};
use tabtune::config::TrainConfig;
use tabtune::error::{CODES, Class, SENTENCES};
use tabtune::export::ExportFormat;
use tabtune::generate::score::{Score, ScoreConfig};
use tabtune::generate::{GenerateConfig, GeneratedToken};
use tabtune::gpu::profile::ProfileReport;
use tabtune::measure::GpuReport;
use tabtune::train::{EvalReport, Notice, StepReport};

use tabtune_native::commands::Outcome;
use tabtune_native::error::Result;
use tabtune_native::output::Output;

/// Prints one JSON document.
///
/// # Errors
/// `cli.stdout`.
pub fn run(output: &Output) -> Result<Outcome> {
    let whole = serde_json::to_string_pretty(&document())
        .expect("the schema is JSON without special numbers");
    output.fragment(&(whole + "\n"))?;
    Ok(Outcome::Good)
}

fn document() -> Value {
    let row = |(code, (sentence, hint)): (&tabtune::error::Code, &(&str, &str))| json!({ "word": code.word, "class": code.class.text(), "raiser": code.raiser.text(), "sentence": sentence, "hint": hint });
    let format = |format: ExportFormat| json!({ "word": format, "about": format.about(), "ending": format.ending(), "adapter": format.is_of_adapter(), "options": format.own_options() });
    json!({
        "exports": ExportFormat::ALL.map(format),
        "classes": Class::ALL.iter().map(|class| class.text()).collect::<Vec<_>>(),
        "codes": CODES.iter().zip(SENTENCES).map(row).collect::<Vec<_>>(),
        "settings": { "run": given::<TrainConfig>(), "sample": given::<GenerateConfig>(), "score": given::<ScoreConfig>() },
        "reports": {
            "step": reported::<StepReport>(),
            "evaluation": reported::<EvalReport>(),
            "warning": reported::<Notice>(),
            "token": reported::<GeneratedToken>(),
            "score": reported::<Score>(),
            "profile": reported::<ProfileReport>(),
            "gpu": reported::<GpuReport>(),
        },
    })
}

/// Returns the JSON schema of a type that is read.
fn given<T: JsonSchema>() -> Value {
    SchemaSettings::default()
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

/// Returns the JSON schema of a type that is written.
fn reported<T: JsonSchema>() -> Value {
    SchemaSettings::default()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}
