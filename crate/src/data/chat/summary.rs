//! Summaries of data files without a tokenizer: the kinds of their rows, and their characters.

use std::collections::BTreeMap;

use serde_json::Map;

use super::content::read_row;
use super::texts::each_piece;
use crate::config::{DataSettings, Form};
use crate::data::read::{
    Contents, DataSource, DataWarning, FileSummary, ROWS_AT_ONCE, RowPlace, Rows, Seen, TextReader,
    find_form, has_tokens, pause, placed, unreadable,
};
use crate::error::{Refusal, Result, shown, word};
use crate::interrupt::Interrupt;

/// Maximum number of columns listed for a file.
const COLUMNS: usize = 50;

/// Summarizes each file without a tokenizer.
///
/// # Errors
/// `data.*` for files that cannot be read; `call.aborted` if the work was asked to end.
pub async fn summaries(
    files: &[&dyn DataSource],
    settings: &DataSettings,
    interrupt: &Interrupt,
) -> Result<Vec<FileSummary>> {
    let mut summaries = Vec::with_capacity(files.len());
    for file in files {
        summaries.push(summary(*file, settings, interrupt).await?);
    }
    Ok(summaries)
}

async fn summary(
    source: &dyn DataSource,
    settings: &DataSettings,
    interrupt: &Interrupt,
) -> Result<FileSummary> {
    let (name, mut shapes, mut columns) = (shown(source.name()), BTreeMap::new(), Vec::new());
    let trailing_bytes = |seen: &Seen| seen.warning(word!("data.gzip.trailing"), &name);
    if has_tokens(source.name(), settings) {
        let mut contents = Contents::open(source, settings.partial)?;
        let bytes = std::io::copy(&mut contents, &mut std::io::sink())
            .map_err(|error| unreadable(error, source.name()))?;
        let characters = bytes as usize / size_of::<u32>();
        let warnings = Vec::from_iter(trailing_bytes(&contents.trailing));
        return Ok(FileSummary {
            name,
            form: Form::Tokens,
            rows: None,
            shapes,
            columns,
            characters,
            warnings,
        });
    }
    let found = find_form(source, settings)?;
    let mut characters = 0;
    let mut reader = TextReader::open(source, settings.partial)?;
    let mut newlines = Seen::default();
    if found.form == Form::Text {
        (reader, newlines) = reader.with_newlines();
    }
    let trailing = each_piece(reader, source, interrupt, &mut |piece| {
        characters += piece.chars().count()
    })
    .await?;
    let (mut count, mut rows) = (0, Rows::open(source, &found, settings.partial)?);
    // One of those about rows for each code.
    let mut faults = Vec::new();
    loop {
        let next = rows.next()?;
        for (line, row, note) in rows.notes() {
            let place = RowPlace { file: 0, line, row };
            note.warning(place).count_in(&mut faults, false);
        }
        let Some((line, row)) = next else { break };
        count += 1;
        if count % ROWS_AT_ONCE == 0 {
            pause(Some(source), interrupt).await?;
        }
        for key in row.iter().flat_map(Map::keys) {
            if columns.len() < COLUMNS && !columns.contains(key) {
                columns.push(key.clone());
            }
        }
        let row = row.map_err(|fault| {
            Refusal::new(word!("data.row"))
                .expected("a row")
                .found_whole(fault)
                .into()
        });
        let read = row.and_then(|row| read_row(&row, settings.columns.as_ref(), true));
        let shape = match read {
            Ok(read) => read.content.name(),
            Err(error) => {
                let place = RowPlace {
                    file: 0,
                    line,
                    row: count,
                };
                let refusal = placed(error, source.name(), &place.of_fault(found.form));
                let warning = DataWarning {
                    code: refusal.code,
                    count: 1,
                    rows: vec![place],
                    message: refusal.to_string(),
                };
                warning.count_in(&mut faults, false);
                "faulty"
            }
        };
        *shapes.entry(shape).or_default() += 1;
    }
    let of_file = [
        found.other_name(&name, settings),
        rows.unread(),
        trailing_bytes(&trailing),
        newlines.warning(word!("data.newlines"), &name),
    ];
    let warnings = of_file.into_iter().flatten().chain(faults).collect();
    Ok(FileSummary {
        name,
        form: found.form,
        rows: (found.form != Form::Text).then_some(count),
        shapes,
        columns,
        characters,
        warnings,
    })
}
