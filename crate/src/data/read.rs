//! Reads data files: bytes → form → rows → records → examples, with an account of everything on the way.

use std::io::Read;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::corpus::{Content, Dataset};
use super::files::{Opened, are_tokens, opened, whole_text};
use super::gzip::{Contents, Trailing};
use super::newlines::Newlines;
use super::place::RowPlace;
use super::records::{NO_END, Records};
use super::report::{Account, DataWarning, FileReport};
use super::rows::{ROWS_AT_ONCE, Rows};
use super::source::{DataFile, DataSource, TokenStorage, pause, unreadable};
use super::store::{ExampleStore, TokenStore, check_ids};
use super::text::TextReader;
use crate::config::{DataSettings, Form};
use crate::error::{Error, Refusal, Result, shown, word};
use crate::interrupt::Interrupt;
use crate::tokenizer::Tokenizer;

/// Number of bytes of token ids that are read in one go.
const BYTES_AT_ONCE: u64 = 1 << 20;

/// Reads files piece by piece, so that other work can be done in between.
pub struct DataReader<'a> {
    records: Records<'a>,
    /// Files that remain, the last one first.
    files: Vec<Opened<'a>>,
    several: bool,
    current: Option<Current<'a>>,
    ids: TokenStore,
    /// True if all files are texts, or token ids: one stream of ids.
    stream: bool,
}

impl Dataset {
    /// Reads files by the settings of a run, all at once and into memory.
    ///
    /// # Errors
    /// `data.*`, each with its file. All rows that cannot be used are found, and the first hundred are listed with their lines.
    pub fn read<E: From<Error>>(
        files: &[&dyn DataSource],
        tokenizer: std::result::Result<&Tokenizer, E>,
        settings: &DataSettings,
    ) -> std::result::Result<Self, E> {
        Ok(DataReader::open(files, tokenizer, settings, None)?.finish()?)
    }

    /// Reads one file of the given form. The share `validation_fraction` (0 ≤ f < 1) of its tokens or rows is kept for evaluation.
    ///
    /// # Errors
    /// As for [`Dataset::read`].
    pub fn from_bytes(bytes: &[u8], form: Form, tokenizer: &Tokenizer, validation_fraction: f64) -> Result<Self> {
        let settings = DataSettings { form: Some(form), validation_fraction, ..DataSettings::default() };
        Self::read(&[&DataFile { name: form.name(), bytes }], Ok::<_, Error>(tokenizer), &settings)
    }
}

/// The file that is being read.
struct Current<'a> {
    file: Opened<'a>,
    rows: usize,
    kind: Kind<'a>,
    trailing: Trailing,
    newlines: Newlines,
}

enum Kind<'a> {
    Text {
        reader: TextReader<'a>,
        pending: String,
        /// Length in bytes that `pending` must reach before encoding is tried again: a text that cannot be cut must not be encoded anew
        /// with each piece.
        enough: usize,
    },
    Ids {
        reader: Contents<'a>,
        pending: Vec<u8>,
        offset: usize,
    },
    Rows(Rows<'a>),
    /// A text file among files of rows.
    Document,
}

impl<'a> DataReader<'a> {
    /// Opens files. Token ids need no tokenizer; for other forms the error of a missing tokenizer is returned. Tokens that do not fit into
    /// memory go to `storage`, if there is one.
    ///
    /// # Errors
    /// `data.*` for files whose form is not the given one, or cannot be detected.
    pub fn open<E: From<Error>>(
        files: &[&'a dyn DataSource],
        tokenizer: std::result::Result<&'a Tokenizer, E>,
        settings: &'a DataSettings,
        storage: Option<Rc<dyn TokenStorage>>,
    ) -> std::result::Result<Self, E> {
        let ids_alone = are_tokens(files, settings);
        let tokenizer = if ids_alone { tokenizer.ok() } else { Some(tokenizer?) };
        // An invalid date is refused even if no template asks for it.
        Account::default().date(settings)?;
        let mut opened = if ids_alone { files.iter().map(|file| Opened::tokens(*file)).collect() } else { opened(files, settings)? };
        let stream = opened.iter().all(|file| matches!(file.found.form, Form::Text | Form::Tokens));
        if let (true, Some(_), Some(file)) = (stream, &settings.columns, files.first()) {
            let found = if ids_alone { "token ids" } else { "a text" };
            let refusal = Refusal::new(word!("data.columns")).of(file.name()).expected("rows, whose columns are named").found(found);
            return Err(Error::from(refusal.hint("leave the columns out, or say which form the rows have")).into());
        }
        opened.reverse();
        let (ids, examples) =
            (TokenStore::new(storage.clone()), ExampleStore { tokens: TokenStore::new(storage), ..ExampleStore::default() });
        let records = Records::new(settings, tokenizer, examples);
        Ok(Self { records, files: opened, several: files.len() > 1, current: None, ids, stream })
    }

    /// Reads a piece. Returns false if nothing is left.
    ///
    /// # Errors
    /// Errors of the file and of the tokenizer. Faults of rows are kept for [`DataReader::finish`].
    pub fn advance(&mut self) -> Result<bool> {
        let Some(mut current) = self.current.take() else {
            let Some(file) = self.files.pop() else { return Ok(false) };
            self.current = Some(self.begin(file)?);
            return Ok(true);
        };
        if self.read_on(&mut current)? {
            self.current = Some(current);
        } else {
            let Current { file, rows, trailing, newlines, .. } = current;
            let (name, rows) = (shown(file.source.name()), (!self.stream).then_some(rows));
            self.records.account.warn_once(word!("data.gzip.trailing"), trailing.warning(&name));
            self.records.account.warn_once(word!("data.newlines"), newlines.warning(&name));
            self.records.account.file(FileReport { name, form: file.found.form, rows });
        }
        Ok(true)
    }

    /// Lets other work run, and waits for what the next piece reads.
    ///
    /// # Errors
    /// [`Error::Aborted`] if the work was asked to end.
    #[doc(hidden)]
    pub async fn pause(&self, interrupt: &Interrupt) -> Result<()> {
        pause(self.current.as_ref().map(|current| current.file.source), interrupt).await
    }

    /// Returns the data, after reading all that is left.
    ///
    /// # Errors
    /// `data.*` for rows that cannot be used: all are found, and the first hundred are listed with their lines.
    pub fn finish(mut self) -> Result<Dataset> {
        while self.advance()? {}
        self.records.check()?;
        if self.ids.len() == 0 && self.records.examples.entries.is_empty() && !self.records.settings.partial {
            let files = self.records.account.file_reports();
            let first = files.first().map_or_else(String::new, |file| file.name.clone());
            let found = if self.stream { "no text" } else { "no rows" };
            return Err(Refusal::new(word!("data.empty")).of(&first).expected("text or rows").found(found).into());
        }
        let Records { settings, tokenizer, mut account, hash, mut examples, .. } = self.records;
        let ends = tokenizer.map_or(&[][..], Tokenizer::eos);
        let pad = tokenizer.and_then(|tokenizer| tokenizer.pad().or(ends.first().copied())).unwrap_or(0);
        if self.several && self.stream && ends.is_empty() && tokenizer.is_some() {
            account.end_unknown(NO_END);
        }
        if let Some(tokenizer) = tokenizer {
            account.ends(tokenizer);
        }
        if let Some(warning) = DataWarning::unused_settings(&settings.about_rows()).filter(|_| self.stream) {
            account.warn(word!("data.settings.unused"), None, warning.message);
        }
        self.ids.finish()?;
        examples.tokens.finish()?;
        let content = if self.stream { Content::Text(self.ids) } else { Content::Examples(examples) };
        Ok(Dataset::new(content, hash.finish(), settings, pad, account)?.with_document_ends(ends))
    }

    fn begin(&mut self, file: Opened<'a>) -> Result<Current<'a>> {
        // A name may indicate another form.
        let message = file.found.other_name(&shown(file.source.name()), self.records.settings);
        self.records.account.warn_once(word!("data.form"), message);
        let partial = self.records.settings.partial;
        let mut newlines = Newlines::default();
        let (trailing, kind) = match file.found.form {
            Form::Tokens => {
                let reader = Contents::open(file.source, partial)?;
                (reader.trailing(), Kind::Ids { reader, pending: Vec::new(), offset: 0 })
            }
            Form::Text if self.stream => {
                let (reader, found) = TextReader::open(file.source, partial)?.with_newlines();
                newlines = found;
                (reader.trailing(), Kind::Text { reader, pending: String::new(), enough: 0 })
            }
            Form::Text => (Trailing::default(), Kind::Document),
            _ => {
                let rows = Rows::open(file.source, &file.found, partial)?;
                self.records.account.warn_once(word!("data.columns.unused"), rows.unread());
                (rows.trailing(), Kind::Rows(rows))
            }
        };
        Ok(Current { file, rows: 0, kind, trailing, newlines })
    }

    /// Warns about files in folders of texts that are not read, by their names.
    pub fn passed_over(&mut self, names: &[String]) {
        if let Some(warning) = DataWarning::passed_over(names) {
            self.records.account.warn(word!("data.folder"), None, warning.message);
        }
    }

    /// Reads a part of a file. Returns false if nothing of it is left.
    fn read_on(&mut self, current: &mut Current<'a>) -> Result<bool> {
        let name = current.file.source.name();
        let place = |line: usize, row: usize, account: &Account| RowPlace { file: account.files(), line, row };
        let form = current.file.found.form;
        match &mut current.kind {
            Kind::Text { reader, pending, enough } => self.text(reader, pending, enough),
            Kind::Ids { reader, pending, offset } => {
                let read = reader.take(BYTES_AT_ONCE).read_to_end(pending).map_err(|error| unreadable(error, name))?;
                self.token_ids(pending, offset, read == 0).map_err(|error| match error {
                    Error::DataTokens { reason } => Error::DataTokens { reason: format!("{name}: {reason}") },
                    other => other,
                })
            }
            Kind::Document => {
                current.rows = 1;
                let text = whole_text(current.file.source, self.records.settings.partial);
                let row = text.map(|(text, trailing, newlines)| {
                    (current.trailing, current.newlines) = (trailing, newlines);
                    Map::from_iter([("text".to_owned(), Value::from(text))])
                });
                let place = place(1, 1, &self.records.account);
                self.records.row(place, (name, form), row, None)?;
                Ok(false)
            }
            Kind::Rows(rows) => {
                for _ in 0..ROWS_AT_ONCE {
                    let next = rows.next()?;
                    for (line, row, note) in rows.notes() {
                        self.records.note(place(line, row, &self.records.account), (name, form), &note);
                    }
                    let Some((line, row)) = next else { return Ok(false) };
                    current.rows += 1;
                    let expected = || format!("a row of {}", form.name());
                    let row = row.map_err(|fault| Refusal::new(word!("data.row")).expected(expected()).found_whole(fault).into());
                    let place = place(line, current.rows, &self.records.account);
                    self.records.row(place, (name, form), row, self.records.settings.columns.as_ref())?;
                }
                Ok(true)
            }
        }
    }

    /// Encodes a piece of a text. If there are several texts, each is a document that ends with an end token.
    fn text(&mut self, reader: &mut TextReader<'_>, pending: &mut String, enough: &mut usize) -> Result<bool> {
        let Some(tokenizer) = self.records.tokenizer else { return Ok(false) };
        let more = reader.fill()?;
        let last = more.is_empty();
        pending.push_str(more);
        let taken = more.len();
        reader.take(taken);
        if !last && pending.len() < *enough {
            return Ok(true);
        }
        let (ids, used) = tokenizer.encode_part(pending, last)?;
        self.records.account.texts.add(&tokenizer.stream_findings(pending.get(..used).unwrap_or_default(), &ids)?, None);
        *enough = if used == 0 { 2 * pending.len() } else { 0 };
        pending.drain(..used);
        self.add_ids(&ids)?;
        if last && self.several {
            self.add_ids(tokenizer.eos().get(..1).unwrap_or_default())?;
        }
        Ok(!last)
    }

    fn add_ids(&mut self, ids: &[u32]) -> Result<()> {
        self.records.hash.ids(ids);
        self.ids.extend(ids.iter().copied())
    }

    /// Takes the complete ids of `pending`, u32 little endian.
    fn token_ids(&mut self, pending: &mut Vec<u8>, offset: &mut usize, last: bool) -> Result<bool> {
        let (words, rest) = pending.as_chunks::<4>();
        if last && !rest.is_empty() {
            let bytes = *offset * size_of::<u32>() + pending.len();
            let reason = format!("expected ids of 4 bytes, u32 little endian, found {bytes} bytes");
            return Err(Error::DataTokens { reason });
        }
        let ids: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        check_ids(&ids, *offset)?;
        *offset += ids.len();
        pending.drain(..size_of_val(ids.as_slice()));
        self.add_ids(&ids)?;
        Ok(!last)
    }
}
