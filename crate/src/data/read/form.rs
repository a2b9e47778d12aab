//! Detects the form of a data file from its bytes; its name is a hint.

use serde_json::Value;

use super::array::Array;
use super::json::{Outline, outline, value};
use super::refused::refused;
use super::report::DataWarning;
use super::row::Fields;
use super::source::DataSource;
use super::table::repeated;
use super::table_rows::{first_rows, is_separator};
use super::text::TextReader;
use crate::config::{DataSettings, Form};
use crate::error::{Result, word};

/// Beginnings of pages, in letters of any case.
const MARKUP: [&str; 3] = ["<!doctype html", "<html", "<?xml"];
/// Number of bytes at the beginning of a file from which its form is detected.
const HEAD_BYTES: usize = 1 << 20;
/// Number of complete lines that are examined to tell JSON lines from a text.
const LINES: usize = 20;
/// Number of rows that are examined to tell a table from a text.
const ROWS: usize = 20;
/// Maximum length in bytes of a column's name, if the file's name does not indicate a table.
const NAME: usize = 64;

/// Returns the form that the extension of a name indicates, ignoring a query and the extension of a packed file.
pub(crate) fn hint_of(name: &str) -> Option<Form> {
    let name = name
        .split(['?', '#'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    Some(match name.rsplit_once('.')?.1 {
        "jsonl" | "ndjson" => Form::Jsonl,
        "json" => Form::Json,
        "csv" => Form::Csv,
        "tsv" => Form::Tsv,
        "tokens" => Form::Tokens,
        "txt" | "md" | "text" => Form::Text,
        _ => return None,
    })
}

/// The form of a file, and what was found along with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub form: Form,
    /// Form that its name indicates.
    pub hint: Option<Form>,
    /// Byte that separates the fields of a table.
    pub delimiter: u8,
}

impl Found {
    /// The warning about a file whose name indicates another form, unless the form was given.
    pub fn other_name(&self, name: &str, settings: &DataSettings) -> Option<DataWarning> {
        let other = |hint: &Form| settings.form.is_none() && *hint != self.form;
        let values = [name, self.form.name(), self.hint.filter(other)?.name()];
        Some(DataWarning::once(word!("data.form"), values))
    }
}

/// The beginning of a text.
struct Head {
    text: String,
    /// True if it is the whole text.
    whole: bool,
}

/// Detects the form of a file, or checks the form that is given.
///
/// # Errors
/// `data.empty`, `data.form.contradicts`, `data.kind` for a page of HTML under a name of rows, and those of the file and of its encoding.
pub(crate) fn find_form(source: &dyn DataSource, settings: &DataSettings) -> Result<Found> {
    let (head, hint) = (Head::of(source, settings.partial)?, hint_of(source.name()));
    if head.whole && head.text.trim().is_empty() {
        let refusal = refused(word!("data.empty"), "text or rows", "white space alone");
        return Err(refusal.of(source.name()).into());
    }
    if settings.form.is_none() && hint.is_some_and(|hint| hint != Form::Text) && head.is_page() {
        let (expected, found) = ("rows, by its name", "a page of HTML or XML");
        let refusal = refused(word!("data.kind"), expected, found).of(source.name());
        return Err(refusal.hint("if the file was downloaded, fetch it again; the form text learns the page as it is").into());
    }
    let found = form_of(source, &head, settings.form.or(hint), settings.partial)?;
    // Every file can be learned as a text.
    let form = settings.form.unwrap_or(found);
    if form != found && form != Form::Text {
        let code = word!("data.form.contradicts");
        let refusal = refused(code, described(form), found.name()).of(source.name());
        let hint = if settings.form_kept {
            "this is the form in the checkpoint; for data of another one give their form, and allow the change by the override form"
        } else {
            "leave the form out, so that it is found by the contents"
        };
        return Err(refusal.hint(hint).into());
    }
    let delimiter = match form {
        Form::Tsv => b'\t',
        Form::Csv => head
            .delimiter(settings.form.or(hint).or(Some(form)))
            .unwrap_or(b','),
        _ => 0,
    };
    Ok(Found {
        form,
        hint,
        delimiter,
    })
}

/// Describes the form for a message.
fn described(form: Form) -> &'static str {
    match form {
        Form::Jsonl => "jsonl: lines of JSON objects",
        Form::Json => "json: an array of objects, or an object",
        Form::Csv => "csv: fields between commas, first their names",
        Form::Tsv => "tsv: fields between tabs, first their names",
        Form::Text | Form::Tokens => form.name(),
    }
}

/// Detects the form from the contents; a broken file has the form that its name indicates.
fn form_of(
    source: &dyn DataSource,
    head: &Head,
    hint: Option<Form>,
    partial: bool,
) -> Result<Form> {
    let start = head.text.trim_start();
    if start.starts_with('{') {
        let found = outline(&mut TextReader::open(source, partial)?)?;
        return Ok(match found {
            Some(Outline::Array { whole, .. }) if whole || partial => Form::Json,
            Some(Outline::Row) if head.lines().count() > 1 || hint != Some(Form::Jsonl) => {
                Form::Json
            }
            _ if head.of_objects(hint) => Form::Jsonl,
            // The first row is longer than the examined part.
            _ if !head.whole && head.lines().count() == 1 && first_is_object(source, partial)? => {
                Form::Jsonl
            }
            Some(Outline::Array { .. }) => Form::Json,
            None if hint == Some(Form::Json) && head.has_lines_of_objects() => Form::Jsonl,
            _ if hint == Some(Form::Json) => Form::Json,
            _ => Form::Text,
        });
    }
    if let Some(inside) = start.strip_prefix('[') {
        let is_rows = inside.trim_start().starts_with('{') && head.is_array_of_rows()?;
        if is_rows || hint == Some(Form::Json) {
            return Ok(Form::Json);
        }
    }
    // A first line that is not an object is a fault of its row.
    if hint == Some(Form::Jsonl) && head.of_objects(hint) {
        return Ok(Form::Jsonl);
    }
    Ok(match head.delimiter(hint) {
        Some(b'\t') => Form::Tsv,
        Some(_) => Form::Csv,
        None => Form::Text,
    })
}

fn first_is_object(source: &dyn DataSource, partial: bool) -> Result<bool> {
    let mut reader = TextReader::open(source, partial)?;
    reader.skip_blank()?;
    let first = value(&mut reader)?;
    Ok(first.is_some_and(|text| serde_json::from_str::<Fields>(&text).is_ok()))
}

impl Head {
    fn of(source: &dyn DataSource, partial: bool) -> Result<Self> {
        let mut reader = TextReader::open(source, partial)?;
        let mut text = String::new();
        while text.len() < HEAD_BYTES && reader.move_to(&mut text)? > 0 {}
        let whole = reader.fill()?.is_empty() && !partial;
        Ok(Self { text, whole })
    }

    /// Returns the lines that are not blank.
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().filter(|line| !line.trim().is_empty())
    }

    /// Tells a page of HTML or XML, which servers send in place of a file that they do not have.
    fn is_page(&self) -> bool {
        let start = self.text.trim_start().as_bytes();
        let begins = |mark: &str| {
            start
                .get(..mark.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(mark.as_bytes()))
        };
        MARKUP.into_iter().any(begins)
    }

    /// Detects JSON lines: most of the first lines are objects, so that a faulty one among them is reported as such. If the name indicates
    /// them, it suffices that one line begins like an object.
    fn of_objects(&self, hint: Option<Form>) -> bool {
        let is_object =
            |line: &&str| matches!(serde_json::from_str::<Value>(line), Ok(Value::Object(_)));
        if hint == Some(Form::Jsonl) {
            let mut first = self.lines().take(LINES);
            return first.any(|line| line.trim_start().starts_with('{'));
        }
        let complete = self.lines().count().min(LINES)
            - usize::from(!self.whole && self.lines().count() <= LINES);
        2 * self.lines().take(complete).filter(is_object).count() > complete
    }

    /// Detects objects without the brackets of a list, in a file whose name indicates one: another one begins in a line after the first, or
    /// most of the first lines are, or would be, an object each.
    fn has_lines_of_objects(&self) -> bool {
        let mut objects = serde_json::Deserializer::from_str(&self.text).into_iter::<Fields>();
        if let Some(Ok(_)) = objects.next() {
            let after = self.text.get(objects.byte_offset()..).unwrap_or_default();
            return after.split_once('{').is_some_and(|(between, _)| {
                between.contains('\n') && between.replace(',', "").trim().is_empty()
            });
        }
        let lines = || self.lines().take(LINES).map(str::trim);
        let is_object =
            |line: &&str| line.starts_with('{') && line.trim_end_matches(',').ends_with('}');
        let objects = lines().filter(is_object).count();
        objects > 1 && 2 * objects > lines().count()
    }

    /// Detects an array of objects: most of the first elements are, so that a faulty one among them is reported as such.
    fn is_array_of_rows(&self) -> Result<bool> {
        let mut array = Array::new(TextReader::of_text(self.text.clone()), false, true);
        let (mut rows, mut all) = (0, 0);
        while all < LINES
            && let Some((_, row)) = array.next()?
        {
            (rows, all) = (rows + usize::from(row.is_ok()), all + 1);
        }
        // The first row may be longer than the examined part.
        Ok(2 * rows > all || all == 1 && !self.whole)
    }

    /// Finds the byte that separates the fields of a table: each of the first rows has as many fields as the first row has names. If
    /// the file's name does not indicate a table, the names have to look like names.
    fn delimiter(&self, hint: Option<Form>) -> Option<u8> {
        let named = matches!(hint, Some(Form::Csv | Form::Tsv));
        let fields = |delimiter: u8| {
            let mut rows = first_rows(&self.text, delimiter, self.whole, ROWS).into_iter();
            let first = rows.next()?.ok()?;
            let names = if is_separator(&first) {
                rows.next()?.ok()?
            } else {
                first
            };
            let is_name = |name: &str| {
                let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
                !name.is_empty()
                    && name.len() <= NAME
                    && name.trim() == name
                    && name.chars().all(inside)
            };
            let mut rows: Vec<_> = rows.collect::<Result<_, _>>().ok()?;
            if !self.whole && rows.len() + 1 < ROWS {
                // The last row may be incomplete.
                rows.pop();
            }
            let fits = !rows.is_empty()
                && repeated(&names).is_none()
                && names.len() >= 2
                && rows.iter().all(|row| row.len() == names.len());
            let table = fits && (named || names.iter().all(|name| is_name(name)));
            (table || (named && names.len() >= 2)).then_some((table, names.len()))
        };
        let own = match hint {
            Some(Form::Csv) => Some(b','),
            Some(Form::Tsv) => Some(b'\t'),
            _ => None,
        };
        // If the rows fit no separator, they are faults under the one that the name indicates.
        let found = [b',', b'\t', b';'].into_iter().filter_map(|delimiter| {
            let (fits, count) = fields(delimiter)?;
            Some((fits, !fits && own == Some(delimiter), count, delimiter))
        });
        found
            .max_by_key(|(fits, own, count, _)| (*fits, *own, *count))
            .map(|(.., delimiter)| delimiter)
            .or(own)
    }
}
