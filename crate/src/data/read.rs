//! Reads data files: bytes → form → rows → records → examples, with an account of everything on the way.

use serde_json::{Map, Value};

use super::answers::conversation;
use super::example::{Encoded, Example, completion, document};
use super::files::{DataFile, TextFile, each_whole_row, opened, placed};
use super::report::{Account, FileReport, RowPlace};
use super::shape::{Read, Record, read_row};
use crate::config::{Columns, DataSettings, Form, OnBadRow};
use crate::error::{Error, Refusal, Result, shown, word};
use crate::tokenizer::Tokenizer;

/// Maximum number of faulty rows that are reported.
const FAULTS: usize = 100;

/// What files contain.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// One stream of ids.
    Text(Vec<u32>),
    Examples(Vec<Example>),
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
        if let (Some(_), Some(file)) = (&self.settings.columns, files.first()) {
            let refusal = Refusal::new(word!("data.columns")).of(file.name).expected("rows, whose columns are named");
            return Err(refusal.found("a text").hint("leave the columns out, or say which form the rows have").into());
        }
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
                None,
            );
        }
        let settings = self.settings;
        each_whole_row(file, settings, &mut |line, row| {
            rows += 1;
            self.row(
                RowPlace { file: index, line },
                file.name,
                row.map_err(|fault| Refusal::new(word!("data.row")).expected(format!("a row of {}", file.form.name())).found(fault).into()),
                settings.columns.as_ref(),
            );
        });
        self.account.file(FileReport { name: shown(file.name), form: file.form, rows: Some(rows) });
        Ok(())
    }

    /// Reads a row, or notes its fault.
    fn row(&mut self, place: RowPlace, file: &str, row: Result<Map<String, Value>>, columns: Option<&Columns>) {
        let read = row.and_then(|row| {
            let read = read_row(&row, columns, self.tokenizer.has_chat_template())?;
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
        let refusal = placed(error, file, place.line);
        if self.settings.on_bad_row == OnBadRow::Skip {
            self.account.warn(
                word!("data.row.skipped"),
                Some(place),
                format!("rows were left out that cannot be used; the first: {refusal}"),
            );
        }
        if self.faults.len() < FAULTS {
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
        if let Some(last) = self.faults.last_mut().filter(|_| beyond > 0) {
            last.hint = Some(format!("{beyond} more rows cannot be used"));
        }
        // Where nothing is left, the faults say why.
        let goes_on = self.settings.on_bad_row == OnBadRow::Skip && !self.examples.is_empty();
        if self.faults.is_empty() || goes_on { Ok(Content::Examples(self.examples)) } else { Err(Error::Refused(self.faults)) }
    }
}
