//! The rows of a file of each form, with the line at which each begins.

use serde_json::{Map, Value};

use crate::config::Form;
use crate::error::shown;

/// A row, or why it cannot be read.
pub(super) type Row = Result<Map<String, Value>, String>;

/// Records that are looked at to tell a table from a text.
const RECORDS: usize = 20;
/// Maximum length of a column's name where a file's name does not speak of a table.
const NAME: usize = 64;

/// Gives each row of `text` to `take`, with the line at which it begins, from 1. What cannot be read is given as the row's fault; where the
/// rest of the file has no meaning after it, it is the last one.
pub(super) fn each_row(text: &str, form: Form, hint: Option<Form>, take: &mut dyn FnMut(usize, Row)) {
    match form {
        Form::Jsonl => {
            for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                take(index + 1, serde_json::from_str(line).map_err(|e| not_json(&e)).and_then(object));
            }
        }
        Form::Json => json_rows(text, take),
        Form::Csv | Form::Tsv => {
            let delimiter = if form == Form::Tsv { b'\t' } else { delimiter_of(text, hint.or(Some(form))).unwrap_or(b',') };
            table_rows(text, delimiter, take);
        }
        Form::Text | Form::Tokens => {}
    }
}

fn not_json(error: &serde_json::Error) -> String {
    format!("not JSON: {}", shown(&error.to_string()))
}

fn object(value: Value) -> Row {
    match value {
        Value::Object(fields) => Ok(fields),
        other => Err(format!("expected an object, found {}", shown(&other.to_string()))),
    }
}

/// The single object that a text is.
pub(super) fn as_whole(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str::<Value>(text).ok().and_then(|whole| object(whole).ok())
}

/// The one array of objects in an object that is no row itself.
pub(super) fn one_array(whole: &Map<String, Value>) -> Option<&Vec<Value>> {
    const ROWS: [&str; 8] = ["messages", "conversations", "prompt", "completion", "instruction", "text", "input_ids", "chosen"];
    if ROWS.iter().any(|key| whole.contains_key(*key)) {
        return None;
    }
    let mut arrays = whole.values().filter_map(Value::as_array).filter(|array| array.first().is_some_and(Value::is_object));
    let first = arrays.next()?;
    arrays.next().is_none().then_some(first)
}

/// Counts lines on the way through a text.
struct Lines<'a> {
    text: &'a str,
    seen: usize,
    line: usize,
}

impl Lines<'_> {
    fn at(&mut self, byte: usize) -> usize {
        let between = self.text.get(self.seen..byte).unwrap_or_default();
        (self.line, self.seen) = (self.line + between.bytes().filter(|b| *b == b'\n').count(), byte.max(self.seen));
        self.line
    }
}

/// The objects of an array, one by one, so that no tree of the whole is made.
fn json_rows(text: &str, take: &mut dyn FnMut(usize, Row)) {
    let mut lines = Lines { text, seen: 0, line: 1 };
    let blank = |at: usize| text.len() - text.get(at..).unwrap_or_default().trim_start().len();
    let mut at = blank(0);
    if text.as_bytes().get(at) != Some(&b'[') {
        match serde_json::from_str::<Value>(text).map_err(|e| not_json(&e)).and_then(object) {
            Ok(whole) => match one_array(&whole) {
                Some(rows) => rows.iter().for_each(|row| take(lines.at(at), object(row.clone()))),
                None => take(lines.at(at), Ok(whole)),
            },
            Err(fault) => take(lines.at(at), Err(fault)),
        }
        return;
    }
    at = blank(at + 1);
    if text.as_bytes().get(at) == Some(&b']') {
        at += 1;
    } else {
        loop {
            let line = lines.at(at);
            let mut values = serde_json::Deserializer::from_str(text.get(at..).unwrap_or_default()).into_iter::<Value>();
            match values.next() {
                Some(Ok(value)) => take(line, object(value)),
                Some(Err(fault)) => return take(line, Err(not_json(&fault))),
                None => return take(line, Err("expected an object, found the end of the file".to_owned())),
            }
            at = blank(at + values.byte_offset());
            match text.as_bytes().get(at) {
                Some(b',') => at = blank(at + 1),
                Some(b']') => break at += 1,
                _ => return take(lines.at(at), Err("expected a comma or the end of the array".to_owned())),
            }
        }
    }
    at = blank(at);
    if at < text.len() {
        take(lines.at(at), Err("expected nothing after the array".to_owned()));
    }
}

fn reader(text: &str, delimiter: u8) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(text.as_bytes())
}

/// What separates the fields of a table: as many fields in each of the first records as names in the first of them. Where the file's name
/// does not speak of a table, the names have to look like names.
pub(super) fn delimiter_of(text: &str, hint: Option<Form>) -> Option<u8> {
    let named = matches!(hint, Some(Form::Csv | Form::Tsv));
    let fields = |delimiter: u8| {
        let mut records = reader(text, delimiter).into_records().take(RECORDS);
        let names = records.next()?.ok()?;
        let is_name = |name: &str| {
            let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
            !name.is_empty() && name.len() <= NAME && name.trim() == name && name.chars().all(inside)
        };
        let distinct = names.iter().enumerate().all(|(at, name)| names.iter().take(at).all(|other| other != name));
        let rows: Vec<_> = records.collect::<Result<_, _>>().ok()?;
        let fits = rows.iter().all(|row| row.len() == names.len());
        let table = fits && !rows.is_empty() && distinct && names.len() >= 2 && names.iter().all(is_name);
        (table || (named && names.len() >= 2)).then_some(names.len())
    };
    let found = [b',', b'\t', b';'].into_iter().filter_map(|delimiter| Some((fields(delimiter)?, delimiter)));
    let most = found.max_by_key(|(fields, _)| *fields).map(|(_, delimiter)| delimiter);
    match hint {
        Some(Form::Csv) => most.or(Some(b',')),
        Some(Form::Tsv) => most.or(Some(b'\t')),
        _ => most,
    }
}

fn table_rows(text: &str, delimiter: u8, take: &mut dyn FnMut(usize, Row)) {
    let mut records = reader(text, delimiter).into_records();
    let names: Vec<String> = match records.next() {
        Some(Ok(names)) => names.iter().map(|name| name.trim().to_owned()).collect(),
        _ => return take(1, Err("expected a first line of names".to_owned())),
    };
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| names.iter().take(*at).any(|other| other == *name)) {
        return take(1, Err(format!("expected distinct names of columns, found {} twice", shown(twice.1))));
    }
    // Quotes that are written come in pairs; the last field of a text with one too many may be the rest of the file.
    let unclosed = text.bytes().filter(|byte| *byte == b'"').count() % 2 == 1;
    for record in records {
        let record = match record {
            Ok(record) => record,
            Err(fault) => return take(1, Err(shown(&fault.to_string()))),
        };
        let line = record.position().map_or(1, |position| position.line() as usize);
        let is_last =
            record.position().is_none_or(|position| text.len() - (position.byte() as usize) <= record.as_slice().len() + 4 * names.len());
        if unclosed && is_last && record.iter().next_back().is_some_and(|field| field.contains('\n')) {
            take(line, Err("a quote that is not closed".to_owned()));
        } else if record.len() == names.len() {
            take(line, Ok(names.iter().zip(&record).map(|(name, field)| (name.clone(), cell(field))).collect()));
        } else {
            take(line, Err(format!("expected {} fields as in the first line, found {}", names.len(), record.len())));
        }
    }
}

/// A field of a table: a text, but for lists and objects written in JSON, as messages are.
fn cell(field: &str) -> Value {
    let structured = field.starts_with("[{") || field.starts_with("[\"") || field.starts_with("{\"");
    let read = if structured { serde_json::from_str(field).ok() } else { None };
    read.unwrap_or_else(|| Value::from(field))
}
