//! Data files: the files of a folder, and storage for tokens that do not fit into memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Map, Value};
use tabtune::config::DataSettings;
use tabtune::data::{DataReader, DataSource, DataWarning, Dataset, TokenStorage};
use tabtune::error::escaped;
use tabtune::tokenizer::Tokenizer;
use tabtune::train::Notice;
use tabtune::word;

use crate::error::{Result, RunError, unreadable, unwritable};
use crate::files::{check_kind, file_name, has_ending};

/// Settings of rows that a text has no use for, and of which no other warning tells: they have values in every run.
const OF_ROWS: [&str; 2] = ["chat_date", "packing"];

/// Returns the warning about options for rows, if the data are a text.
pub fn unused_on(dataset: &Dataset, options: &Map<String, Value>) -> Option<Notice> {
    let keys: Vec<&str> = OF_ROWS
        .into_iter()
        .filter(|key| !dataset.has_examples() && options.contains_key(*key))
        .collect();
    (!keys.is_empty())
        .then(|| Notice::filled(word!("data.settings.unused"), ["", "", &keys.join(", ")]))
}

/// Data files, each of which is opened when it is read.
#[derive(Debug, Default)]
pub struct DataFiles {
    files: Vec<DataPath>,
    /// Names of the folder entries that are not read.
    passed_over: Vec<String>,
}

#[derive(Debug)]
struct DataPath {
    name: String,
    path: PathBuf,
}

impl DataFiles {
    /// Collects the files and, for each folder, its `.txt` and `.md` files in the order of their names.
    ///
    /// # Errors
    /// `source.read` for a folder that cannot be listed or has no such file, and for a pipe, a socket or a device.
    pub fn of(paths: &[PathBuf]) -> Result<Self> {
        let mut all = Self::default();
        for path in paths {
            let found = if path.is_dir() {
                texts_of(path, &mut all.passed_over)?
            } else {
                check_kind(path)?;
                vec![path.clone()]
            };
            all.files.extend(found.into_iter().map(|path| DataPath {
                name: file_name(&path),
                path,
            }));
        }
        all.tell_apart();
        Ok(all)
    }

    /// Names files of one name by their paths.
    fn tell_apart(&mut self) {
        let mut counts = BTreeMap::<String, usize>::new();
        for file in &self.files {
            *counts.entry(file.name.clone()).or_default() += 1;
        }
        for file in self
            .files
            .iter_mut()
            .filter(|file| counts.get(&file.name).is_some_and(|count| *count > 1))
        {
            file.name = file.path.display().to_string();
        }
    }

    /// Returns the files as data sources of the crate.
    pub fn files(&self) -> Vec<&dyn DataSource> {
        self.files
            .iter()
            .map(|file| file as &dyn DataSource)
            .collect()
    }

    /// Returns these files followed by others.
    pub fn and<'a>(&'a self, others: &'a Self) -> Vec<&'a dyn DataSource> {
        [self.files(), others.files()].concat()
    }

    /// Returns a warning about the folder entries that are not read, if there are any.
    pub fn passed_over(&self) -> Option<DataWarning> {
        DataWarning::passed_over(&self.passed_over)
    }

    /// Returns the number of bytes of the files, as far as it is known.
    pub fn bytes(&self) -> u64 {
        let size = |file: &DataPath| file.path.metadata().map_or(0, |found| found.len());
        self.files.iter().map(size).sum()
    }

    /// Returns true if there are no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Reads the data. Tokens that do not fit into memory are kept in a temporary file.
    ///
    /// # Errors
    /// `source.read`, `sink.write` for the temporary file, and the refusals of the crate's [`DataReader`].
    pub fn read(&self, tokenizer: Result<&Tokenizer>, settings: &DataSettings) -> Result<Dataset> {
        let storage: Rc<dyn TokenStorage> = Rc::new(TemporaryFile::default());
        let files = self.files();
        let mut reader = DataReader::open(&files, tokenizer, settings, Some(storage))?;
        reader.passed_over(&self.passed_over);
        Ok(reader.finish()?)
    }
}

/// Reads the training data and, if there are any, separate data for evaluation.
///
/// # Errors
/// A usage error if a share of the training data is to be evaluated too; otherwise as for [`DataFiles::read`].
pub fn read_both(
    training: &DataFiles,
    validation: &DataFiles,
    tokenizer: Result<&Tokenizer>,
    settings: &DataSettings,
) -> Result<Dataset> {
    if validation.is_empty() {
        return training.read(tokenizer, settings);
    }
    if settings.validation_fraction > 0.0 {
        return Err(RunError::Usage(
            "--validation-data: expected no share of --data for evaluation (--validation-fraction)"
                .into(),
        ));
    }
    let tokenizer = tokenizer.ok();
    let absent = || RunError::Usage("--validation-data: expected a model with a tokenizer".into());
    let dataset = training.read(tokenizer.ok_or_else(absent), settings)?;
    Ok(dataset.with_validation(validation.read(tokenizer.ok_or_else(absent), settings)?))
}

/// Lists the text files of a folder that are not empty, sorted by name. The names of the other entries are added to `passed_over`.
fn texts_of(folder: &Path, passed_over: &mut Vec<String>) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|e| unreadable(folder.display(), e))?;
    let paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>();
    let mut paths = paths.map_err(|e| unreadable(folder.display(), e))?;
    // Entries that begin with a dot are hidden from people.
    paths.retain(|path| !file_name(path).starts_with('.'));
    paths.sort();
    let has_text = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|found| found.is_file() && found.len() > 0)
    };
    let (texts, others): (Vec<PathBuf>, Vec<PathBuf>) = paths
        .into_iter()
        .partition(|path| has_text(path) && has_ending(path, &["txt", "md"]));
    let others = others.iter().map(|path| file_name(path));
    if texts.is_empty() {
        let found = listed(&others.collect::<Vec<_>>());
        let reason = format!(
            "expected .txt or .md files in the folder, found {found}; name files of other forms one by one"
        );
        return Err(unreadable(folder.display(), reason).into());
    }
    passed_over.extend(others);
    Ok(texts)
}

/// Lists the first names of the entries of a folder.
fn listed(names: &[String]) -> String {
    const NAMED: usize = 5;
    let first: Vec<String> = names.iter().take(NAMED).map(|name| escaped(name)).collect();
    match names.len() {
        0 => "none".to_owned(),
        all if all > NAMED => format!("{} and {} more", first.join(", "), all - NAMED),
        _ => first.join(", "),
    }
}

impl DataSource for DataPath {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self) -> tabtune::Result<Box<dyn Read + '_>> {
        Ok(Box::new(
            File::open(&self.path).map_err(|e| unreadable(self.path.display(), e))?,
        ))
    }
}

/// A file without a name, which disappears when the run ends. It is created on first use, in the folder for temporary files (`TMPDIR`).
#[derive(Debug, Default)]
struct TemporaryFile(RefCell<Option<File>>);

const TEMPORARY: &str = "the temporary file of tokens";

impl TokenStorage for TemporaryFile {
    fn append(&self, bytes: &[u8]) -> tabtune::Result<u64> {
        let failed = |e: io::Error| unwritable(TEMPORARY, e);
        let mut slot = self.0.borrow_mut();
        if slot.is_none() {
            *slot = Some(tempfile::tempfile().map_err(failed)?);
        }
        let Some(file) = slot.as_mut() else {
            return Ok(0);
        };
        let offset = file.seek(SeekFrom::End(0)).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        Ok(offset)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> tabtune::Result<()> {
        let failed = |e: io::Error| unreadable(TEMPORARY, e);
        let mut slot = self.0.borrow_mut();
        let Some(file) = slot.as_mut() else {
            return Err(unreadable(TEMPORARY, "nothing was written"));
        };
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        file.read_exact(buf).map_err(failed)
    }
}
