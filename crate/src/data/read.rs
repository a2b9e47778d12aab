//! Reads data files: bytes → form → rows → records → examples, with an account of everything on the way.

mod current_file;

use std::rc::Rc;

use self::current_file::Current;
use super::corpus::{Content, Dataset};
use super::files::{Opened, are_tokens, opened};
use super::records::{NO_END, Records};
use super::report::{Account, DataWarning, FileReport};
use super::source::{DataFile, DataSource, TokenStorage, pause};
use super::store::{ExampleStore, TokenStore};
use crate::config::{DataSettings, Form};
use crate::error::{Error, Refusal, Result, shown, word};
use crate::interrupt::Interrupt;
use crate::tokenizer::Tokenizer;

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
    pub fn from_bytes(
        bytes: &[u8],
        form: Form,
        tokenizer: &Tokenizer,
        validation_fraction: f64,
    ) -> Result<Self> {
        let settings = DataSettings {
            form: Some(form),
            validation_fraction,
            ..DataSettings::default()
        };
        Self::read(
            &[&DataFile {
                name: form.name(),
                bytes,
            }],
            Ok::<_, Error>(tokenizer),
            &settings,
        )
    }
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
        let tokenizer = if ids_alone {
            tokenizer.ok()
        } else {
            Some(tokenizer?)
        };
        // An invalid date is refused even if no template asks for it.
        Account::default().date(settings)?;
        let mut opened = if ids_alone {
            files.iter().map(|file| Opened::tokens(*file)).collect()
        } else {
            opened(files, settings)?
        };
        let stream = opened
            .iter()
            .all(|file| matches!(file.found.form, Form::Text | Form::Tokens));
        if let (true, Some(_), Some(file)) = (stream, &settings.columns, files.first()) {
            let found = if ids_alone { "token ids" } else { "a text" };
            let refusal = Refusal::new(word!("data.columns"))
                .of(file.name())
                .expected("rows, whose columns are named")
                .found(found);
            return Err(Error::from(
                refusal.hint("leave the columns out, or say which form the rows have"),
            )
            .into());
        }
        opened.reverse();
        let (ids, examples) = (
            TokenStore::new(storage.clone()),
            ExampleStore {
                tokens: TokenStore::new(storage),
                ..ExampleStore::default()
            },
        );
        let records = Records::new(settings, tokenizer, examples);
        Ok(Self {
            records,
            files: opened,
            several: files.len() > 1,
            current: None,
            ids,
            stream,
        })
    }

    /// Reads a piece. Returns false if nothing is left.
    ///
    /// # Errors
    /// Errors of the file and of the tokenizer. Faults of rows are kept for [`DataReader::finish`].
    pub fn advance(&mut self) -> Result<bool> {
        let Some(mut current) = self.current.take() else {
            let Some(file) = self.files.pop() else {
                return Ok(false);
            };
            self.current = Some(self.begin(file)?);
            return Ok(true);
        };
        if self.read_on(&mut current)? {
            self.current = Some(current);
        } else {
            let Current {
                file,
                rows,
                trailing,
                newlines,
                ..
            } = current;
            let (name, rows) = (shown(file.source.name()), (!self.stream).then_some(rows));
            self.records
                .account
                .warn_once(word!("data.gzip.trailing"), trailing.warning(&name));
            self.records
                .account
                .warn_once(word!("data.newlines"), newlines.warning(&name));
            self.records.account.file(FileReport {
                name,
                form: file.found.form,
                rows,
            });
        }
        Ok(true)
    }

    /// Lets other work run, and waits for what the next piece reads.
    ///
    /// # Errors
    /// [`Error::Aborted`] if the work was asked to end.
    #[doc(hidden)]
    pub async fn pause(&self, interrupt: &Interrupt) -> Result<()> {
        pause(
            self.current.as_ref().map(|current| current.file.source),
            interrupt,
        )
        .await
    }

    /// Returns the data, after reading all that is left.
    ///
    /// # Errors
    /// `data.*` for rows that cannot be used: all are found, and the first hundred are listed with their lines.
    pub fn finish(mut self) -> Result<Dataset> {
        while self.advance()? {}
        self.records.check()?;
        if self.ids.len() == 0
            && self.records.examples.entries.is_empty()
            && !self.records.settings.partial
        {
            let files = self.records.account.file_reports();
            let first = files
                .first()
                .map_or_else(String::new, |file| file.name.clone());
            let found = if self.stream { "no text" } else { "no rows" };
            return Err(Refusal::new(word!("data.empty"))
                .of(&first)
                .expected("text or rows")
                .found(found)
                .into());
        }
        let Records {
            settings,
            tokenizer,
            mut account,
            hash,
            mut examples,
            ..
        } = self.records;
        let ends = tokenizer.map_or(&[][..], Tokenizer::eos);
        let pad = tokenizer
            .and_then(|tokenizer| tokenizer.pad().or(ends.first().copied()))
            .unwrap_or(0);
        if self.several && self.stream && ends.is_empty() && tokenizer.is_some() {
            account.end_unknown(NO_END);
        }
        if let Some(tokenizer) = tokenizer {
            account.ends(tokenizer);
        }
        if let Some(warning) =
            DataWarning::unused_settings(&settings.about_rows()).filter(|_| self.stream)
        {
            account.warn(word!("data.settings.unused"), None, warning.message);
        }
        self.ids.finish()?;
        examples.tokens.finish()?;
        let content = if self.stream {
            Content::Text(self.ids)
        } else {
            Content::Examples(examples)
        };
        Ok(Dataset::new(content, hash.finish(), settings, pad, account)?.with_document_ends(ends))
    }

    /// Warns about files in folders of texts that are not read, by their names.
    pub fn passed_over(&mut self, names: &[String]) {
        if let Some(warning) = DataWarning::passed_over(names) {
            self.records
                .account
                .warn(word!("data.folder"), None, warning.message);
        }
    }
}
