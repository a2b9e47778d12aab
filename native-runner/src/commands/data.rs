//! `tabtune data`: shows how data would be learned, before anything is trained.

use std::io::IsTerminal;

use serde::Serialize;
use serde_json::json;
use tabtune::config::{Beginning, Choices};
use tabtune::data::{DataReport, FileReport, FileSummary, Loader, Preview, summaries};
use tabtune::error::escaped;
use tabtune::interrupt::Interrupt;

use super::{Outcome, tokenizer_of};
use crate::args::DataCommandArgs;
use crate::data::{DataFiles, read_both};
use crate::error::Result;
use crate::files::{Wanted, chat_template, open_wanted};
use crate::output::{Output, warning_line};
use crate::settings;
use crate::waits::block_on;

/// Width of the longest bar of the histogram, in characters.
const BAR: usize = 40;

/// Report on the data, with the first examples.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    report: DataReport,
    preview: Vec<Preview>,
}

/// Prints a report on the data. Without a model only its forms and rows are known.
///
/// # Errors
/// Errors of the settings, of reading the data, and of the model and its tokenizer.
pub fn run(args: &DataCommandArgs, output: &Output) -> Result<Outcome> {
    let given = settings::given(&args.settings)?;
    let config = settings::resolve(given.clone(), None)?;
    let files = DataFiles::of(&args.data)?;
    let Some(path) = &args.model else {
        for file in block_on(summaries(
            &files.files(),
            &config.data_settings(),
            &Interrupt::none(),
        ))? {
            output.line(&file, || summary(&file))?;
        }
        if let Some(warning) = files.passed_over() {
            output.line(&json!({ "warning": warning }), || {
                warning_line(&warning.message, warning.code)
            })?;
        }
        return Ok(Outcome::Good);
    };
    let wanted = Wanted {
        unread: true,
        chat_template: chat_template(args.chat_template.as_deref())?,
        ..Wanted::default()
    };
    let bundle = open_wanted(path, wanted)?;
    let tokenizer = tokenizer_of(&bundle, path)?;
    let config = settings::dated(config, Some(tokenizer));
    let validation = DataFiles::of(&args.validation_data)?;
    let beginning = Beginning {
        model: &bundle.config,
        fresh: false,
        chooses: false,
        evaluates_apart: !validation.is_empty(),
    };
    let (config, mut choices) = Choices::begin(config, &given, beginning)?;
    let settings = choices.data_settings(&config);
    let dataset = read_both(&files, &validation, Ok(tokenizer), &settings)?;
    dataset.check_vocabulary(bundle.config.vocab_size)?;
    let config = config.settled_for(&dataset, &mut choices)?;
    let loader = Loader::for_run(&dataset, &config)?;
    let preview = dataset.preview(&config, tokenizer, args.show)?;
    let shown = Shown {
        report: dataset.report(&config, &loader),
        preview,
    };
    let evaluated = if dataset.evaluates_examples() {
        "examples"
    } else {
        "tokens"
    };
    output.line(&shown, || text(&shown, evaluated))?;
    Ok(Outcome::Good)
}

/// Formats a count with its noun in the singular or plural.
fn many(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

fn summary(file: &FileSummary) -> String {
    let FileSummary {
        name,
        form,
        rows,
        shapes,
        columns,
        characters,
        warnings,
    } = file;
    let rows = rows.map_or_else(String::new, |rows| format!(", {}", many(rows, "row")));
    let shapes: Vec<String> = shapes
        .iter()
        .map(|(shape, count)| format!("{count} {shape}"))
        .collect();
    let shapes = if shapes.is_empty() {
        String::new()
    } else {
        format!(" ({})", shapes.join(", "))
    };
    let column = |name: &String| {
        if name.is_empty() {
            "\"\"".to_owned()
        } else {
            escaped(name)
        }
    };
    let columns: Vec<String> = columns.iter().map(column).collect();
    let columns = if columns.is_empty() {
        String::new()
    } else {
        format!(", columns {}", columns.join(", "))
    };
    let warnings: String = warnings
        .iter()
        .map(|warning| {
            format!(
                "\n{}",
                warning_line(&escaped(&warning.message), warning.code)
            )
        })
        .collect();
    format!(
        "{name}: {}{rows}{shapes}{columns}, {characters} characters{warnings}",
        form.name()
    )
}

fn text(shown: &Shown, evaluated: &str) -> String {
    let Shown { report, preview } = shown;
    let mut lines = Vec::new();
    for file in &report.files {
        let rows = file
            .rows
            .map_or_else(String::new, |rows| format!(", {}", many(rows, "row")));
        lines.push(format!("{}: {}{rows}", file.name, file.form.name()));
    }
    let counts = |counts: &std::collections::BTreeMap<&str, usize>| {
        counts
            .iter()
            .map(|(name, count)| format!("{count} {name}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    if !report.shapes.is_empty() {
        lines.push(format!("rows: {}", counts(&report.shapes)));
    }
    if !report.rules.is_empty() {
        lines.push(format!("learned by: {}", counts(&report.rules)));
    }
    let tokens = report.tokens;
    let share = 100.0 * tokens.learned as f64 / tokens.total.max(1) as f64;
    let examples = if report.examples > 0 {
        format!("{}, ", many(report.examples, "example"))
    } else {
        String::new()
    };
    lines.push(format!(
        "training: {examples}{} tokens, {} of them learned ({share:.1} %)",
        tokens.total, tokens.learned
    ));
    if report.validation > 0 {
        lines.push(format!("evaluation: {} {evaluated}", report.validation));
    }
    if let Some(lengths) = &report.lengths {
        lines.push(format!(
            "tokens of an example: {} to {}, half up to {}, 95 % up to {}",
            lengths.min, lengths.max, lengths.p50, lengths.p95
        ));
        let most = lengths.histogram.iter().copied().max().unwrap_or(1).max(1);
        for (index, count) in lengths
            .histogram
            .iter()
            .enumerate()
            .skip_while(|(_, count)| **count == 0)
        {
            let bar = "█".repeat((count * BAR).div_ceil(most));
            lines.push(format!(
                "{:>8} {bar} {count}",
                index * lengths.histogram_step
            ));
        }
    }
    lines.push(format!(
        "seq_len {}: {} an epoch, {:.0} % of their positions filled, {}",
        report.seq_len,
        many(report.windows, "sequence"),
        100.0 * report.packed_fraction,
        many(report.steps_per_epoch as usize, "step")
    ));
    if !report.end.is_empty() {
        lines.push(format!(
            "ends: {}",
            report
                .end
                .iter()
                .map(|end| escaped(end))
                .collect::<Vec<_>>()
                .join(" ")
        ));
    }
    for warning in &report.warnings {
        lines.push(warning_line(
            &escaped(&warning.sentence(&report.files)),
            warning.code,
        ));
    }
    lines.push(format!("digest: {}", report.digest));
    let colours = std::io::stdout().is_terminal();
    lines.extend(
        preview
            .iter()
            .map(|example| example_text(example, &report.files, colours)),
    );
    lines.join("\n")
}

/// Formats an example. Learned text is between double angle brackets, and green in a terminal.
fn example_text(example: &Preview, files: &[FileReport], colours: bool) -> String {
    let place = example
        .row
        .and_then(|row| Some(row.in_form(files.get(row.file)?.form)));
    let head = place.map_or_else(
        || "the beginning".to_string(),
        |(word, number)| format!("{word} {number}"),
    );
    let mut text = format!("\n── {head} (⟦learned⟧)\n");
    for segment in &example.segments {
        // Line ends are kept; characters that a terminal would act on are escaped.
        let said = segment
            .text
            .split('\n')
            .map(|line| escaped(line).to_string())
            .collect::<Vec<_>>()
            .join("\n");
        text += &match (segment.learned, colours) {
            (true, true) => format!("\u{1b}[32m⟦{said}⟧\u{1b}[0m"),
            (true, false) => format!("⟦{said}⟧"),
            _ => said,
        };
    }
    text
}
