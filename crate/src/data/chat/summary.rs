//! Summaries of data files without a tokenizer: the kinds of their rows, and their characters.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Map;

use super::content::{RowContent, read_row};
use crate::config::{DataSettings, Form};
use crate::data::read::{
    Contents, DataSource, DataWarning, FileSummary, NAMED_ROWS, Newlines, Opened, ROWS_AT_ONCE,
    RowPlace, Rows, TextReader, Trailing, find_form, has_tokens, opened, pass_on, pause, placed,
    unreadable,
};
use crate::error::{Refusal, Result, Word, shown, word};
use crate::interrupt::Interrupt;

/// Maximum number of columns listed for a file.
const COLUMNS: usize = 50;

/// Passes the text of `reader` to `take`, piece by piece.
async fn each_piece(
    mut reader: TextReader<'_>,
    source: &dyn DataSource,
    interrupt: &Interrupt,
    take: &mut dyn FnMut(&str),
) -> Result<Trailing> {
    while pass_on(&mut reader, take)? {
        pause(Some(source), interrupt).await?;
    }
    Ok(reader.trailing())
}

/// Returns each distinct character that the files teach, for a vocabulary: those of whole texts, and those of the learned or read texts of
/// rows.
pub(crate) async fn characters(
    files: &[&dyn DataSource],
    settings: &DataSettings,
    interrupt: &Interrupt,
) -> Result<String> {
    let (mut characters, mut fault) = (BTreeSet::new(), None);
    for Opened { source, found } in opened(files, settings)? {
        if found.form == Form::Text {
            let (reader, _) = TextReader::open(source, settings.partial)?.with_newlines();
            each_piece(reader, source, interrupt, &mut |piece| {
                characters.extend(piece.chars())
            })
            .await?;
            continue;
        }
        // Rows that cannot be read are reported when they are learned, unless there are no others.
        let mut rows = Rows::open(source, &found, settings.partial)?;
        let mut number = 0;
        while let Some((line, row)) = rows.next()? {
            number += 1;
            if number % ROWS_AT_ONCE == 0 {
                pause(Some(source), interrupt).await?;
            }
            let place = RowPlace {
                file: 0,
                line,
                row: number,
            }
            .of_fault(found.form);
            let row =
                row.map_err(|reason| Refusal::new(word!("data.row")).found_whole(reason).into());
            match row
                .and_then(|row| read_row(&row, settings.columns.as_ref(), false))
                .map(|read| read.content)
            {
                Ok(RowContent::Completion { prompt, completion }) => {
                    characters.extend(prompt.chars().chain(completion.chars()))
                }
                Ok(RowContent::Document(text)) => characters.extend(text.chars()),
                Ok(RowContent::Chat(_) | RowContent::Tokens { .. }) => {
                    let refusal = Refusal::new(word!("data.template"))
                        .expected("rows of text, or of prompt and completion");
                    let refusal = refusal
                        .found("a chat or token ids, which need a tokenizer")
                        .hint("open a model, or give a tokenizer");
                    fault.get_or_insert((source.name(), place, refusal.into()));
                }
                Err(error) => drop(fault.get_or_insert((source.name(), place, error))),
            }
        }
    }
    match fault {
        Some((name, place, error)) if characters.is_empty() => {
            Err(placed(error, name, &place).into())
        }
        _ => Ok(characters.into_iter().collect()),
    }
}

/// Summarizes each file without a tokenizer.
pub(crate) async fn summaries(
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

/// Warnings about rows that cannot be read, or are read in spite of a fault, one for each code.
#[derive(Default)]
struct Faults(Vec<DataWarning>);

impl Faults {
    fn add(&mut self, code: &'static str, place: RowPlace, message: String) {
        match self.0.iter_mut().find(|warning| warning.code == code) {
            Some(warning) => {
                warning.count += 1;
                warning
                    .rows
                    .extend((warning.rows.len() < NAMED_ROWS).then_some(place));
            }
            None => {
                self.0.push(DataWarning {
                    code,
                    count: 1,
                    rows: vec![place],
                    message,
                });
            }
        }
    }
}

async fn summary(
    source: &dyn DataSource,
    settings: &DataSettings,
    interrupt: &Interrupt,
) -> Result<FileSummary> {
    let (name, mut shapes, mut columns) = (shown(source.name()), BTreeMap::new(), Vec::new());
    let warning = |word: Word, message: Option<String>| {
        message.map(|message| DataWarning::once(word, message))
    };
    if has_tokens(source.name(), settings) {
        let mut contents = Contents::open(source, settings.partial)?;
        let bytes = std::io::copy(&mut contents, &mut std::io::sink())
            .map_err(|error| unreadable(error, source.name()))?;
        let characters = bytes as usize / size_of::<u32>();
        let warnings = Vec::from_iter(warning(
            word!("data.gzip.trailing"),
            contents.trailing().warning(&name),
        ));
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
    let mut newlines = Newlines::default();
    if found.form == Form::Text {
        (reader, newlines) = reader.with_newlines();
    }
    let trailing = each_piece(reader, source, interrupt, &mut |piece| {
        characters += piece.chars().count()
    })
    .await?;
    let (mut count, mut rows) = (0, Rows::open(source, &found, settings.partial)?);
    let mut faults = Faults::default();
    loop {
        let next = rows.next()?;
        for (line, row, note) in rows.notes() {
            let (word, message) = note.warning();
            faults.add(word.text(), RowPlace { file: 0, line, row }, message);
        }
        let Some((line, row)) = next else { break };
        count += 1;
        if count % ROWS_AT_ONCE == 0 {
            pause(Some(source), interrupt).await?;
        }
        let keys = row.as_ref().ok().into_iter().flat_map(Map::keys);
        let new: Vec<String> = keys
            .filter(|key| !columns.contains(*key))
            .cloned()
            .collect();
        columns.extend(new.into_iter().take(COLUMNS - columns.len()));
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
                faults.add(refusal.code, place, refusal.to_string());
                "faulty"
            }
        };
        *shapes.entry(shape).or_default() += 1;
    }
    let of_file = [
        warning(word!("data.form"), found.other_name(&name, settings)),
        warning(word!("data.columns.unused"), rows.unread()),
        warning(word!("data.gzip.trailing"), trailing.warning(&name)),
        warning(word!("data.newlines"), newlines.warning(&name)),
    ];
    let warnings = of_file.into_iter().flatten().chain(faults.0).collect();
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
