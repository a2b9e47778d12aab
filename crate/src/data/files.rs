//! Data files without a tokenizer: their forms, their texts, and what kinds of rows they have.

use std::collections::BTreeMap;

use serde_json::Map;

use super::form::{decoded, form_of, hint_of};
use super::report::FileSummary;
use super::rows::{Row, each_row};
use super::shape::{Record, read_row};
use crate::config::{DataSettings, Form};
use crate::error::{Error, Refusal, Result, shown, word};

/// Maximum number of columns that are listed of a file.
const COLUMNS: usize = 50;

/// A file of training data.
#[derive(Debug, Clone, Copy)]
pub struct DataFile<'a> {
    /// Its name, which is a hint of its form.
    pub name: &'a str,
    /// Its contents.
    pub bytes: &'a [u8],
}

/// A file that is read as text.
pub(super) struct TextFile<'a> {
    pub name: &'a str,
    pub text: String,
    pub form: Form,
    pub hint: Option<Form>,
}

/// Whether a file has token ids, which need no tokenizer.
fn has_tokens(name: &str, settings: &DataSettings) -> bool {
    settings.form.map_or_else(|| hint_of(name) == Some(Form::Tokens), |form| form == Form::Tokens)
}

/// Tells whether all files are token ids.
pub(super) fn are_tokens(files: &[DataFile<'_>], settings: &DataSettings) -> bool {
    files.iter().all(|file| has_tokens(file.name, settings))
}

/// Decodes the files and finds their forms.
pub(super) fn opened<'a>(files: &[DataFile<'a>], settings: &DataSettings) -> Result<Vec<TextFile<'a>>> {
    let open = |file: &DataFile<'a>| {
        if has_tokens(file.name, settings) {
            let refusal = Refusal::new(word!("data.form.contradicts")).of(file.name).expected("token ids in all files, or in none");
            return Err(Error::from(refusal.found("token ids beside texts or rows")));
        }
        let (text, hint) = (decoded(file.bytes, file.name, settings.partial)?, hint_of(file.name));
        let form = settings.form.unwrap_or_else(|| form_of(&text, hint));
        if let Some(expected) = contradiction(&text, settings.form) {
            let refusal = Refusal::new(word!("data.form.contradicts")).of(file.name).expected(expected);
            let found = form_of(&text, None).name();
            return Err(refusal.found(found).hint("leave the form out, so that it is found by the contents").into());
        }
        Ok(TextFile { name: file.name, text, form, hint })
    };
    files.iter().map(open).collect()
}

/// The expected beginning of a text that does not begin as its given form.
fn contradiction(text: &str, given: Option<Form>) -> Option<&'static str> {
    let first = text.trim_start().bytes().next()?;
    match given {
        Some(Form::Jsonl) if first != b'{' => Some("jsonl: lines of JSON objects"),
        Some(Form::Json) if !matches!(first, b'[' | b'{') => Some("json: an array of objects, or an object"),
        _ => None,
    }
}

/// The texts of the files, for a vocabulary: all of a text, and what rows have to learn from.
pub(super) fn texts(files: &[DataFile<'_>], settings: &DataSettings) -> Result<String> {
    let (mut texts, mut fault) = (String::new(), None);
    for file in opened(files, settings)? {
        if file.form == Form::Text {
            texts.push_str(&file.text);
            continue;
        }
        // Rows that cannot be read are reported when they are learned, unless there are no others.
        each_row(&file.text, file.form, file.hint, &mut |line, row| {
            let row = row.map_err(|reason| Refusal::new(word!("data.row")).found(reason).into());
            match row.and_then(|row| read_row(&row, settings.columns.as_ref(), false)).map(|read| read.record) {
                Ok(Record::Completion { prompt, completion }) => texts.extend([prompt, completion]),
                Ok(Record::Document(text)) => texts.push_str(&text),
                Ok(Record::Chat(_) | Record::Tokens { .. }) => {
                    let refusal = Refusal::new(word!("data.template")).expected("texts, or prompts and completions");
                    let refusal = refusal.found("rows for a model with a tokenizer").hint("open a model, or give a tokenizer");
                    fault.get_or_insert((file.name, line, refusal.into()));
                }
                Err(error) => drop(fault.get_or_insert((file.name, line, error))),
            }
        });
    }
    match fault {
        Some((name, line, error)) if texts.is_empty() => Err(placed(error, name, line).into()),
        _ => Ok(texts),
    }
}

/// The fault of a row, with its file and line.
pub(super) fn placed(error: Error, file: &str, line: usize) -> Refusal {
    let refusal = match error {
        Error::Refused(mut list) if list.len() == 1 => list.remove(0),
        Error::Template { reason } => Refusal::new(word!("data.template")).expected("a chat that the model's template takes").hint(reason),
        other => Refusal::new(word!("data.row")).expected("a row that can be tokenized").hint(other.to_string()),
    };
    let line = format!("line {line}");
    let subject = refusal.subject.as_ref().map_or_else(|| line.clone(), |subject| format!("{line}, {subject}"));
    refusal.of(file).subject(&subject)
}

/// Gives each row to `take`; of a file that is cut, all but the last.
pub(super) fn each_whole_row(file: &TextFile<'_>, settings: &DataSettings, take: &mut dyn FnMut(usize, Row)) {
    if !settings.partial {
        return each_row(&file.text, file.form, file.hint, take);
    }
    let mut before: Option<(usize, Row)> = None;
    each_row(&file.text, file.form, file.hint, &mut |line, row| {
        if let Some((line, row)) = before.replace((line, row)) {
            take(line, row);
        }
    });
}

/// The files by themselves, without a tokenizer.
pub(super) fn summaries(files: &[DataFile<'_>], settings: &DataSettings) -> Result<Vec<FileSummary>> {
    let (ids, texts): (Vec<_>, Vec<_>) = files.iter().copied().partition(|file| has_tokens(file.name, settings));
    let of_ids = |file: &DataFile<'_>| FileSummary {
        name: shown(file.name),
        form: Form::Tokens,
        rows: None,
        shapes: BTreeMap::new(),
        columns: Vec::new(),
        characters: file.bytes.len() / size_of::<u32>(),
    };
    let mut summaries: Vec<FileSummary> = ids.iter().map(of_ids).collect();
    for file in opened(&texts, settings)? {
        let (mut rows, mut shapes, mut columns) = (0, BTreeMap::new(), Vec::new());
        each_whole_row(&file, settings, &mut |_, row| {
            rows += 1;
            let keys = row.as_ref().ok().into_iter().flat_map(Map::keys);
            let new: Vec<String> = keys.filter(|key| !columns.contains(*key)).cloned().collect();
            columns.extend(new.into_iter().take(COLUMNS - columns.len()));
            let read = row.ok().and_then(|row| read_row(&row, settings.columns.as_ref(), true).ok());
            *shapes.entry(read.map_or("faulty", |read| read.record.name())).or_default() += 1;
        });
        let (rows, characters) = ((file.form != Form::Text).then_some(rows), file.text.chars().count());
        summaries.push(FileSummary { name: shown(file.name), form: file.form, rows, shapes, columns, characters });
    }
    Ok(summaries)
}
