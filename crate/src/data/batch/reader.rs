//! Reads data files: bytes → form → rows → examples, with an account of everything on the way.

mod current_file;

use std::rc::Rc;

use self::current_file::Current;
use super::dataset::{Content, Dataset};
use super::hash::DataHash;
use super::split::none_kept;
use super::store::{ExampleStore, TokenStore};
use crate::config::{Columns, DataSettings, Form};
use crate::data::chat::{NO_END, RowEncoder};
use crate::data::read::{
    DataFile, DataSource, DataWarning, Fields, FileReport, Opened, RowPlace, TokenStorage,
    are_tokens, opened, pause, refused,
};
use crate::error::{Error, Result, shown, word};
use crate::interrupt::Interrupt;
use crate::tokenizer::Tokenizer;

/// Reads files piece by piece, so that other work can be done in between.
pub struct DataReader<'a> {
    encoder: RowEncoder<'a>,
    /// Files that remain, the last one first.
    files: Vec<Opened<'a>>,
    several: bool,
    current: Option<Current<'a>>,
    ids: TokenStore,
    store: ExampleStore,
    hash: DataHash,
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
        tokenizer: Result<&Tokenizer, E>,
        settings: &DataSettings,
    ) -> Result<Self, E> {
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
        let name = form.name();
        Self::read(
            &[&DataFile { name, bytes }],
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
        tokenizer: Result<&'a Tokenizer, E>,
        settings: &'a DataSettings,
        storage: Option<Rc<dyn TokenStorage>>,
    ) -> Result<Self, E> {
        let ids_alone = are_tokens(files, settings);
        let tokenizer = if ids_alone {
            tokenizer.ok()
        } else {
            Some(tokenizer?)
        };
        let encoder = RowEncoder::new(settings, tokenizer)?;
        let mut opened = if ids_alone {
            files.iter().map(|file| Opened::tokens(*file)).collect()
        } else {
            opened(files, settings)?
        };
        let stream = opened
            .iter()
            .all(|file| matches!(file.found.form, Form::Text | Form::Tokens));
        if let (true, Some(_), Some(file)) = (stream, &settings.columns, files.first()) {
            let expected = "rows, whose columns are named";
            let found = if ids_alone { "token ids" } else { "a text" };
            let refusal = refused(word!("data.columns"), expected, found)
                .of(file.name())
                .hint("leave the columns out, or say which form the rows have");
            return Err(Error::from(refusal).into());
        }
        opened.reverse();
        Ok(Self {
            encoder,
            files: opened,
            several: files.len() > 1,
            current: None,
            ids: TokenStore::new(storage.clone()),
            store: ExampleStore {
                tokens: TokenStore::new(storage),
                ..ExampleStore::default()
            },
            hash: DataHash::default(),
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
            let (name, account) = (shown(file.source.name()), &mut self.encoder.account);
            account.warn(trailing.warning(word!("data.gzip.trailing"), &name));
            account.warn(newlines.warning(word!("data.newlines"), &name));
            account.file(FileReport {
                name,
                form: file.found.form,
                rows: (!self.stream).then_some(rows),
            });
        }
        Ok(true)
    }

    /// Adds the examples of a row of a file with this name and form; a faulty one is kept for [`DataReader::finish`].
    fn add_row(
        &mut self,
        place: RowPlace,
        file: (&str, Form),
        row: Result<Fields>,
        columns: Option<&Columns>,
    ) -> Result<()> {
        if let Some((row, examples)) = self.encoder.row(place, file, row, columns)? {
            for example in &examples {
                self.hash.example(example);
                self.store.push(example, row)?;
            }
        }
        Ok(())
    }

    /// Lets other work run, and waits for what the next piece reads.
    ///
    /// # Errors
    /// [`Error::Aborted`] if the work was asked to end.
    #[doc(hidden)]
    pub async fn pause(&self, interrupt: &Interrupt) -> Result<()> {
        let source = self.current.as_ref().map(|current| current.file.source);
        pause(source, interrupt).await
    }

    /// Returns the data, after reading all that is left.
    ///
    /// # Errors
    /// `data.*` for rows that cannot be used: all are found, and the first hundred are listed with their lines.
    pub fn finish(mut self) -> Result<Dataset> {
        while self.advance()? {}
        let (settings, has_examples) = (self.encoder.settings, !self.store.examples.is_empty());
        let none_kept = none_kept(&self.store.examples, settings).filter(|_| !settings.partial);
        let warning =
            |reason: String| DataWarning::once(word!("data.validation.none"), ["", "", &reason]);
        self.encoder.account.warn(none_kept.map(warning));
        self.encoder.check(has_examples)?;
        if self.ids.len() == 0 && !has_examples && !settings.partial {
            let first = self.encoder.account.files.first();
            let found = if self.stream { "no text" } else { "no rows" };
            return Err(refused(word!("data.empty"), "text or rows", found)
                .of(first.map_or("", |file| &file.name))
                .into());
        }
        let RowEncoder {
            tokenizer,
            mut account,
            ..
        } = self.encoder;
        let ends = tokenizer.map_or(&[][..], Tokenizer::eos);
        let pad = tokenizer
            .and_then(|tokenizer| tokenizer.pad().or(ends.first().copied()))
            .unwrap_or(0);
        if self.several && self.stream && ends.is_empty() && tokenizer.is_some() {
            account.end_unknown = Some(NO_END);
        }
        if let Some(tokenizer) = tokenizer {
            account.ends(tokenizer);
        }
        if self.stream {
            account.warn(DataWarning::unused_settings(&settings.about_rows()));
        }
        self.ids.finish()?;
        self.store.tokens.finish()?;
        let content = match self.stream {
            true => Content::Text(self.ids),
            false => Content::Examples(self.store),
        };
        let dataset = Dataset::new(content, self.hash.finish(), settings, pad, account)?;
        Ok(dataset.with_document_ends(ends))
    }

    /// Warns about files in folders of texts that are not read, by their names.
    pub fn passed_over(&mut self, names: &[String]) {
        self.encoder.account.warn(DataWarning::passed_over(names));
    }
}
