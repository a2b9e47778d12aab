//! Writes the model card: the known facts about a model, in words. It contains only measured and given facts.

use std::fmt::{self, Write as _};

use serde_json::json;

use super::options::{ExportOptions, ModelCard};
use super::recipe::{LICENSE, origin};
use super::source::ExportSource;
use crate::formats::Digest;
use crate::state::{Base, Evaluation, EvaluationRecord, RECEIPT, TrainingRecord};

/// Writes the `README.md` of a folder. `changes` describes how its weights may differ from those that were evaluated.
pub(super) fn card(
    source: &ExportSource,
    options: &ExportOptions,
    changes: Option<String>,
) -> String {
    let mut out = String::new();
    write_card(&mut out, source, options, changes).expect("a text takes everything");
    out
}

fn write_card(
    out: &mut String,
    source: &ExportSource,
    options: &ExportOptions,
    changes: Option<String>,
) -> fmt::Result {
    let given = options.card.clone().unwrap_or_default();
    let base_name = source.base.as_ref().map(|base| base.name.as_str());
    let title = given
        .name
        .as_deref()
        .or(options.name.as_deref())
        .or(base_name.filter(|name| !name.is_empty()))
        .unwrap_or("Model");
    front_matter(out, &given, source)?;
    writeln!(out, "# {}\n", one_line(title))?;
    if let Some(text) = &given.text {
        writeln!(out, "{}\n", text.trim_end())?;
    }
    if let Some(base) = &source.base {
        describe_base(out, base)?;
    }
    if source.adapter_settings.is_none() && !source.adapter.is_empty() {
        writeln!(out, "An adapter was merged into it:\n")?;
        for file in &source.adapter {
            list_file(out, &file.name, file.bytes, &of_file(file.sha256))?;
        }
        writeln!(out)?;
    }
    let training = source.training.as_ref();
    describe_data(out, &given, training)?;
    if let Some(training) = training {
        describe_training(out, training, changes)?;
    }
    writeln!(out, "## Files\n")?;
    writeln!(
        out,
        "`{RECEIPT}` has the SHA-256 of every file of this folder but itself, and the digest of the weights. To compare them\n\
         with the files: `tabtune verify` and the path of the folder."
    )
}

/// Puts a text on one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Marks a name as code.
fn quoted(name: &str) -> String {
    format!("`{}`", one_line(name).replace('`', "'"))
}

fn front_matter(out: &mut String, given: &ModelCard, source: &ExportSource) -> fmt::Result {
    let origin = origin(source);
    let of_origin = |name: &str| {
        let values = origin.iter().filter(|(key, _)| key == name);
        values.filter_map(|(_, value)| value.text()).collect()
    };
    let mut entries: Vec<(&str, Vec<&str>)> = match &given.license {
        Some(license) => vec![("license", vec![license])],
        None => vec![
            ("license", of_origin(LICENSE)),
            ("license_name", of_origin("general.license.name")),
            ("license_link", of_origin("general.license.link")),
        ],
    };
    let base_model = given.base_model.iter().map(String::as_str);
    entries.push(("base_model", base_model.collect()));
    writeln!(out, "---")?;
    for (key, values) in entries {
        for value in values {
            // A JSON text is also a YAML text.
            writeln!(out, "{key}: {}", json!(one_line(value)))?;
        }
    }
    writeln!(out, "tags:\n- tabtune\n---\n")
}

fn describe_base(out: &mut String, base: &Base) -> fmt::Result {
    writeln!(out, "## Base\n")?;
    if !base.name.is_empty() {
        write!(out, "{}, ", quoted(&base.name))?;
    }
    writeln!(out, "{}:\n", base.format)?;
    for file in &base.files {
        let sum = match file.header_sha256 {
            Some(sum) if file.sha256.is_none() => format!(", SHA-256 of its header {sum}"),
            _ => of_file(file.sha256),
        };
        list_file(out, &file.name, file.bytes, &sum)?;
    }
    if !base.merged_adapter.is_empty() {
        writeln!(
            out,
            "\nAn adapter was merged into it before it was trained:\n"
        )?;
        for file in &base.merged_adapter {
            list_file(out, &file.name, file.bytes, &of_file(file.sha256))?;
        }
    }
    if base.verified.is_some() {
        writeln!(
            out,
            "\nThe last resume compared sizes and headers of these files alone."
        )?;
    }
    writeln!(out)
}

/// Lists a file by name, size and checksum.
fn list_file(out: &mut String, name: &str, bytes: u64, sum: &str) -> fmt::Result {
    writeln!(out, "- {}, {bytes} bytes{sum}", quoted(name))
}

/// Words for the checksum of a file, if it is known.
fn of_file(sum: Option<Digest>) -> String {
    sum.map_or_else(String::new, |sum| format!(", SHA-256 {sum}"))
}

fn describe_data(
    out: &mut String,
    given: &ModelCard,
    training: Option<&TrainingRecord>,
) -> fmt::Result {
    if given.data.is_none() && training.is_none() {
        return Ok(());
    }
    writeln!(out, "## Data\n")?;
    if let Some(text) = &given.data {
        writeln!(out, "{}\n", text.trim_end())?;
    }
    let Some(training) = training else {
        return Ok(());
    };
    let data = &training.data;
    if !data.name.is_empty() {
        write!(out, "{}: ", quoted(&data.name))?;
    }
    if let Some(tokens) = data.tokens {
        write!(out, "{tokens} tokens to train on, ")?;
    }
    writeln!(out, "SHA-256 of the tokens {}.\n", data.digest)?;
    match data.steps_before {
        Some(before) if training.completed_steps == before => writeln!(
            out,
            "No step was made with these data yet: all were made with others.\n"
        ),
        Some(before) => writeln!(out, "Other data were used in the first {before} steps.\n"),
        None => Ok(()),
    }
}

fn describe_training(
    out: &mut String,
    training: &TrainingRecord,
    changes: Option<String>,
) -> fmt::Result {
    writeln!(out, "## Training\n")?;
    writeln!(
        out,
        "{} steps, {} counted tokens.",
        training.completed_steps, training.tokens
    )?;
    if let Some(loss) = training.losses.last {
        writeln!(out, "Loss of the last step: {loss} nats for each token.")?;
    }
    if let Some(EvaluationRecord::Of(evaluation)) = training.losses.evaluation {
        let Evaluation {
            loss,
            step,
            data_digest,
        } = evaluation;
        let weights = match changes {
            Some(changes) => format!("measured before {changes}"),
            None => "of these weights".to_string(),
        };
        let data = match data_digest == training.data.digest {
            true => String::new(),
            false => format!(", on other data (SHA-256 {data_digest})"),
        };
        writeln!(
            out,
            "Loss of the evaluation after step {step}, {weights}{data}: {loss} nats for each token."
        )?;
    }
    let settings_of = match training.steps_before {
        Some(before) if before == training.completed_steps => {
            "Settings of the next step; those of the steps so far were others:".to_string()
        }
        Some(before) => {
            format!("Settings of the steps after step {before}, before which others applied:")
        }
        None => "Settings:".to_string(),
    };
    writeln!(
        out,
        "\n{settings_of}\n\n```json\n{:#}\n```\n",
        training.settings
    )
}
