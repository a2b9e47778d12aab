//! Writes the model card: the known facts about a model, in words. It contains only measured and given facts.

use std::fmt::Write as _;

use super::options::{ExportOptions, ModelCard};
use super::recipe::{LICENSE, origin};
use super::source::ExportSource;
use crate::error::{Error, Fault, Result};
use crate::formats::Digest;
use crate::state::{Base, Evaluation, EvaluationRecord, RECEIPT, TrainingRecord};

/// Writes the `README.md` of a folder. `changes` describes how its weights may differ from those that were evaluated.
pub(super) fn card(
    source: &ExportSource,
    options: &ExportOptions,
    changes: Option<String>,
) -> Result<String> {
    let given = options.card.clone().unwrap_or_default();
    let base_name = source
        .base
        .as_ref()
        .map(|base| base.name.as_str())
        .filter(|name| !name.is_empty());
    let title = given
        .name
        .as_deref()
        .or(options.name.as_deref())
        .or(base_name)
        .unwrap_or("Model");
    let mut out = front_matter(&given, source);
    line(&mut out, &format!("# {}\n", one_line(title)));
    if let Some(text) = &given.text {
        line(&mut out, &format!("{}\n", text.trim_end()));
    }
    if let Some(base) = &source.base {
        describe_base(&mut out, base);
    }
    if source.adapter_settings.is_none() && !source.adapter.is_empty() {
        line(&mut out, "An adapter was merged into it:\n");
        list_files(
            &mut out,
            source
                .adapter
                .iter()
                .map(|file| (file.name.as_str(), file.bytes, file.sha256)),
        );
        line(&mut out, "");
    }
    describe_data(&mut out, &given, source.training.as_ref());
    if let Some(training) = &source.training {
        describe_training(&mut out, training, changes)?;
    }
    line(&mut out, "## Files\n");
    line(
        &mut out,
        &format!(
            "`{RECEIPT}` has the SHA-256 of every file of this folder but itself, and the digest of the weights. To compare them"
        ),
    );
    line(
        &mut out,
        "with the files: `tabtune verify` and the path of the folder.",
    );
    Ok(out)
}

fn line(out: &mut String, text: &str) {
    // Writing to a text cannot fail.
    let _ = writeln!(out, "{text}");
}

/// Puts a text on one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn front_matter(given: &ModelCard, source: &ExportSource) -> String {
    let mut out = String::from("---\n");
    // A JSON text is also a YAML text.
    let mut add = |key: &str, value: &str| {
        line(
            &mut out,
            &format!("{key}: {}", serde_json::Value::from(one_line(value))),
        )
    };
    if let Some(license) = &given.license {
        add("license", license);
    } else {
        let origin = origin(source);
        for (key, of_gguf) in [
            ("license", LICENSE),
            ("license_name", "general.license.name"),
            ("license_link", "general.license.link"),
        ] {
            origin
                .iter()
                .filter(|(name, _)| name == of_gguf)
                .filter_map(|(_, value)| value.text())
                .for_each(|text| add(key, text));
        }
    }
    given
        .base_model
        .iter()
        .for_each(|name| add("base_model", name));
    out + "tags:\n- tabtune\n---\n\n"
}

fn describe_base(out: &mut String, base: &Base) {
    line(out, "## Base\n");
    let name = if base.name.is_empty() {
        String::new()
    } else {
        format!("`{}`, ", one_line(&base.name).replace('`', "'"))
    };
    line(out, &format!("{name}{}:\n", base.format));
    for file in &base.files {
        let sum = match (file.sha256, file.header_sha256) {
            (Some(sum), _) => format!(", SHA-256 {sum}"),
            (None, Some(sum)) => format!(", SHA-256 of its header {sum}"),
            (None, None) => String::new(),
        };
        line(
            out,
            &format!(
                "- `{}`, {} bytes{sum}",
                one_line(&file.name).replace('`', "'"),
                file.bytes
            ),
        );
    }
    if !base.merged_adapter.is_empty() {
        line(
            out,
            "\nAn adapter was merged into it before it was trained:\n",
        );
        list_files(
            out,
            base.merged_adapter
                .iter()
                .map(|file| (file.name.as_str(), file.bytes, file.sha256)),
        );
    }
    if base.verified.is_some() {
        line(
            out,
            "\nThe last resume compared sizes and headers of these files alone.",
        );
    }
    line(out, "");
}

/// Lists files by name, size and checksum.
fn list_files<'a>(out: &mut String, files: impl Iterator<Item = (&'a str, u64, Option<Digest>)>) {
    for (name, bytes, sum) in files {
        let sum = sum.map_or_else(String::new, |sum| format!(", SHA-256 {sum}"));
        line(
            out,
            &format!(
                "- `{}`, {bytes} bytes{sum}",
                one_line(name).replace('`', "'")
            ),
        );
    }
}

fn describe_data(out: &mut String, given: &ModelCard, training: Option<&TrainingRecord>) {
    if given.data.is_none() && training.is_none() {
        return;
    }
    line(out, "## Data\n");
    if let Some(text) = &given.data {
        line(out, &format!("{}\n", text.trim_end()));
    }
    if let Some(data) = training.map(|training| &training.data) {
        let name = if data.name.is_empty() {
            String::new()
        } else {
            format!("`{}`: ", one_line(&data.name).replace('`', "'"))
        };
        let tokens = data.tokens.map_or_else(String::new, |tokens| {
            format!("{tokens} tokens to train on, ")
        });
        line(
            out,
            &format!("{name}{tokens}SHA-256 of the tokens {}.\n", data.digest),
        );
        match data.steps_before {
            Some(before) if training.is_some_and(|training| training.completed_steps == before) => {
                line(
                    out,
                    "No step was made with these data yet: all were made with others.\n",
                );
            }
            Some(before) => line(
                out,
                &format!("Other data were used in the first {before} steps.\n"),
            ),
            None => {}
        }
    }
}

fn describe_training(
    out: &mut String,
    training: &TrainingRecord,
    changes: Option<String>,
) -> Result<()> {
    line(out, "## Training\n");
    line(
        out,
        &format!(
            "{} steps, {} counted tokens.",
            training.completed_steps, training.tokens
        ),
    );
    if let Some(loss) = training.losses.last {
        line(
            out,
            &format!("Loss of the last step: {loss} nats for each token."),
        );
    }
    if let Some(EvaluationRecord::Of(Evaluation {
        loss,
        step,
        data_digest,
    })) = training.losses.evaluation
    {
        let others = data_digest != training.data.digest;
        let data = if others {
            format!(", on other data (SHA-256 {data_digest})")
        } else {
            String::new()
        };
        let weights = changes.map_or_else(
            || "of these weights".to_string(),
            |changes| format!("measured before {changes}"),
        );
        line(
            out,
            &format!(
                "Loss of the evaluation after step {step}, {weights}{data}: {loss} nats for each token."
            ),
        );
    }
    let wrong = |error: serde_json::Error| {
        Error::InvalidConfig(vec![Fault::new("settings", "JSON", error)])
    };
    let settings_of = match training.steps_before {
        Some(before) if before == training.completed_steps => {
            "Settings of the next step; those of the steps so far were others:".to_string()
        }
        Some(before) => {
            format!("Settings of the steps after step {before}, before which others applied:")
        }
        None => "Settings:".to_string(),
    };
    line(out, &format!("\n{settings_of}"));
    let settings = serde_json::to_string_pretty(&training.settings).map_err(wrong)?;
    line(out, &format!("\n```json\n{settings}\n```\n"));
    Ok(())
}
