//! Reads data files: bytes → form → rows → records → examples, with an account of everything on the way.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::answers::conversation;
use super::example::{Encoded, Example, completion, document};
use super::form::{decoded, form_of, hint_of};
use super::report::{Account, FileReport, FileSummary, RowPlace};
use super::rows::{Row, each_row};
use super::shape::{Read, Record, read_row};
use crate::config::{DataSettings, Form, OnBadRow};
use crate::error::{Error, Refusal, Result, shown, word};
use crate::tokenizer::Tokenizer;

/// Maximum number of columns that are listed of a file.
const COLUMNS: usize = 50;

/// Maximum number of faulty rows that are reported.
const FAULTS: usize = 100;

/// A file of training data.
#[derive(Debug, Clone, Copy)]
pub struct DataFile<'a> {
    /// Its name, which is a hint of its form.
    pub name: &'a str,
    /// Its contents.
    pub bytes: &'a [u8],
}

/// What files contain.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// One stream of ids.
    Text(Vec<u32>),
    Examples(Vec<Example>),
}

/// A file that is read as text.
struct TextFile<'a> {
    name: &'a str,
    text: String,
    form: Form,
    hint: Option<Form>,
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
fn opened<'a>(files: &[DataFile<'a>], settings: &DataSettings) -> Result<Vec<TextFile<'a>>> {
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
    let first = text.trim_start().bytes().next();
    match given {
        Some(Form::Jsonl) if first != Some(b'{') => Some("jsonl: lines of JSON objects"),
        Some(Form::Json) if !matches!(first, Some(b'[' | b'{')) => Some("json: an array of objects, or an object"),
        _ => None,
    }
}

/// The texts of the files, for a vocabulary: all of a text, and what rows have to learn from.
pub(super) fn texts(files: &[DataFile<'_>], settings: &DataSettings) -> Result<String> {
    let mut texts = String::new();
    for file in opened(files, settings)? {
        if file.form == Form::Text {
            texts.push_str(&file.text);
            continue;
        }
        // Rows that cannot be read are reported when they are learned.
        each_row(&file.text, file.form, file.hint, &mut |_, row| match row
            .map(|row| read_row(&row, settings.columns.as_ref(), false).map(|read| read.record))
        {
            Ok(Ok(Record::Completion { prompt, completion })) => texts.extend([prompt, completion]),
            Ok(Ok(Record::Document(text))) => texts.push_str(&text),
            _ => {}
        });
    }
    Ok(texts)
}

/// Gives each row to `take`; of a file that is cut, all but the last.
fn each_whole_row(file: &TextFile<'_>, settings: &DataSettings, take: &mut dyn FnMut(usize, Row)) {
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

/// Reads the files. Texts alone are one stream; beside rows each of them is a document.
pub(super) fn read(files: &[DataFile<'_>], tokenizer: &Tokenizer, settings: &DataSettings, account: &mut Account) -> Result<Content> {
    let opened = opened(files, settings)?;
    let mut reading = Reading { tokenizer, settings, account, examples: Vec::new(), faults: Vec::new(), faulty: 0 };
    if opened.iter().all(|file| file.form == Form::Text) {
        return reading.stream(&opened);
    }
    for file in &opened {
        reading.file(file)?;
    }
    reading.finish()
}

struct Reading<'a> {
    tokenizer: &'a Tokenizer,
    settings: &'a DataSettings,
    account: &'a mut Account,
    examples: Vec<Example>,
    faults: Vec<Refusal>,
    faulty: usize,
}

impl Reading<'_> {
    /// Texts, one after the other. Where there are several, each is a document with an end of its own.
    fn stream(mut self, files: &[TextFile<'_>]) -> Result<Content> {
        let mut ids = Vec::new();
        for file in files {
            self.named(file);
            ids.extend(self.tokenizer.encode(&file.text)?);
            if files.len() > 1 {
                ids.extend(self.tokenizer.eos().first());
            }
            self.account.file(FileReport { name: shown(file.name), form: file.form, rows: None });
        }
        if files.len() > 1 && self.tokenizer.eos().is_empty() {
            self.account.end_unknown();
        }
        Ok(Content::Text(ids))
    }

    /// Notes a name that speaks of another form.
    fn named(&mut self, file: &TextFile<'_>) {
        if let Some(hint) = file.hint.filter(|hint| self.settings.form.is_none() && *hint != file.form) {
            let (name, form) = (shown(file.name), file.form.name());
            let message = format!("{name} has the form {form}, and is read as such; its name speaks of {}", hint.name());
            self.account.warn(word!("data.form"), None, message);
        }
    }

    fn file(&mut self, file: &TextFile<'_>) -> Result<()> {
        self.named(file);
        let index = self.account.files();
        let mut rows = 0;
        if file.form == Form::Text {
            rows = 1;
            self.row(
                RowPlace { file: index, line: 1 },
                file.name,
                Ok(Map::from_iter([("text".to_owned(), Value::from(file.text.as_str()))])),
            );
        }
        let settings = self.settings;
        each_whole_row(file, settings, &mut |line, row| {
            rows += 1;
            self.row(
                RowPlace { file: index, line },
                file.name,
                row.map_err(|fault| Refusal::new(word!("data.row")).expected(format!("a row of {}", file.form.name())).found(fault).into()),
            );
        });
        self.account.file(FileReport { name: shown(file.name), form: file.form, rows: Some(rows) });
        Ok(())
    }

    /// Reads a row, or notes its fault.
    fn row(&mut self, place: RowPlace, file: &str, row: Result<Map<String, Value>>) {
        let read = row.and_then(|row| {
            let read = read_row(&row, self.settings.columns.as_ref(), self.tokenizer.has_chat_template())?;
            let examples = self.examples_of(&read, place)?;
            Ok((row, read, examples))
        });
        match read {
            Ok((row, read, examples)) => {
                self.account.unread(row.iter().filter(|(key, value)| !value.is_null() && !read.used.contains(key)).map(|(key, _)| key));
                if read.alpaca {
                    let message = "the model has no chat template: instructions are written in the layout of Alpaca".to_owned();
                    self.account.warn(word!("data.layout"), Some(place), message);
                }
                let row = self.account.row(place);
                self.examples.extend(examples.into_iter().map(|example| Example { row, ..example }));
            }
            Err(error) => self.fault(place, file, error),
        }
    }

    fn fault(&mut self, place: RowPlace, file: &str, error: Error) {
        self.faulty += 1;
        let refusal = match error {
            Error::Refused(mut list) if list.len() == 1 => list.remove(0),
            Error::Template { reason } => {
                Refusal::new(word!("data.template")).expected("a chat that the model's template takes").hint(reason)
            }
            other => Refusal::new(word!("data.row")).expected("a row that can be tokenized").hint(other.to_string()),
        };
        let line = format!("line {}", place.line);
        let subject = refusal.subject.as_ref().map_or_else(|| line.clone(), |subject| format!("{line}, {subject}"));
        let refusal = refusal.of(file).subject(&subject);
        if self.settings.on_bad_row == OnBadRow::Skip {
            self.account.warn(
                word!("data.row.skipped"),
                Some(place),
                format!("rows were left out that cannot be used; the first: {refusal}"),
            );
        } else if self.faults.len() < FAULTS {
            self.faults.push(refusal);
        }
    }

    /// The examples of a record, with an account of what they are like.
    fn examples_of(&mut self, read: &Read, place: RowPlace) -> Result<Vec<Example>> {
        let (tokenizer, loss_on) = (self.tokenizer, self.settings.loss_on);
        let examples = match &read.record {
            Record::Chat(chat) => {
                let mut chat = chat.clone();
                chat.conversation.date = self.account.date(self.settings)?;
                let (examples, rule) = conversation(&chat, loss_on, tokenizer)?;
                self.account.chat(rule);
                self.account.turn_ends(&examples, tokenizer);
                examples
            }
            Record::Completion { prompt, completion: said } => vec![self.encoded(completion(prompt, said, loss_on, tokenizer)?, place)],
            Record::Document(text) => vec![self.encoded(document(text, tokenizer)?, place)],
            Record::Tokens { ids, counted } => {
                if let Some(id) = ids.iter().find(|id| **id as usize >= tokenizer.vocab_size()) {
                    let refusal = Refusal::new(word!("data.row")).expected(format!("ids below {}", tokenizer.vocab_size())).found(id);
                    return Err(refusal.into());
                }
                vec![Example::new(ids.clone(), counted.clone())]
            }
        };
        self.account.shape(&read.record);
        Ok(examples)
    }

    fn encoded(&mut self, encoded: Encoded, place: RowPlace) -> Example {
        let warnings = [
            (
                encoded.begin_written,
                word!("data.begin.written"),
                "the beginning of a text is written in rows: it is not put there a second time",
            ),
            (encoded.end_written, word!("data.end.written"), "the end of a text is written in rows: it is not put there a second time"),
            (
                encoded.crosses,
                word!("data.boundary"),
                "a token has the end of a prompt and the beginning of its completion: it is read, not learned",
            ),
        ];
        for (_, word, message) in warnings.into_iter().filter(|(holds, ..)| *holds) {
            self.account.warn(word, Some(place), message.to_owned());
        }
        if self.tokenizer.eos().is_empty() {
            self.account.end_unknown();
        }
        encoded.example
    }

    fn finish(mut self) -> Result<Content> {
        let beyond = self.faulty.saturating_sub(FAULTS);
        if let Some(last) = self.faults.last_mut().filter(|_| beyond > 0 && self.settings.on_bad_row == OnBadRow::Stop) {
            last.hint = Some(format!("{beyond} more rows cannot be used"));
        }
        if self.faults.is_empty() { Ok(Content::Examples(self.examples)) } else { Err(Error::Refused(self.faults)) }
    }
}
