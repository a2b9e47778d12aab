//! Data files: the files of a folder, decompression, and storage for tokens that do not fit into memory.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use tabtune::config::DataSettings;
use tabtune::data::{DataReader, DataSource, DataWarning, Dataset, TokenStorage};
use tabtune::error::Refusal;
use tabtune::tokenizer::Tokenizer;
use tabtune::word;

use crate::error::{Result, unreadable, unwritable};
use crate::files::{check_kind, file_name, has_ending};

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
            all.files.extend(found.into_iter().map(|path| DataPath { name: file_name(&path), path }));
        }
        Ok(all)
    }

    /// Returns the files as data sources of the crate.
    pub fn files(&self) -> Vec<&dyn DataSource> {
        self.files.iter().map(|file| file as &dyn DataSource).collect()
    }

    /// Returns these files followed by others.
    pub fn and<'a>(&'a self, others: &'a Self) -> Vec<&'a dyn DataSource> {
        [self.files(), others.files()].concat()
    }

    /// Returns a warning about the folder entries that are not read, if there are any.
    pub fn passed_over(&self) -> Option<DataWarning> {
        DataWarning::passed_over(&self.passed_over)
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

/// Lists the text files of a folder, sorted by name. The names of the other entries are added to `passed_over`.
fn texts_of(folder: &Path, passed_over: &mut Vec<String>) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|e| unreadable(folder.display(), e))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
    let mut paths = paths.map_err(|e| unreadable(folder.display(), e))?;
    // Entries that begin with a dot are hidden from people.
    paths.retain(|path| !file_name(path).starts_with('.'));
    paths.sort();
    let (texts, others): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.into_iter().partition(|path| path.is_file() && has_ending(path, &["txt", "md"]));
    if texts.is_empty() {
        return Err(unreadable(folder.display(), "expected .txt or .md files in the folder, found none").into());
    }
    passed_over.extend(others.iter().map(|path| file_name(path)));
    Ok(texts)
}

impl DataSource for DataPath {
    fn name(&self) -> &str {
        &self.name
    }

    /// Opens the file; a gzip file is decompressed.
    fn open(&self) -> tabtune::Result<Box<dyn Read + '_>> {
        let failed = |e: io::Error| unreadable(self.path.display(), e);
        let mut file = File::open(&self.path).map_err(failed)?;
        let mut beginning = Vec::new();
        Read::by_ref(&mut file).take(2).read_to_end(&mut beginning).map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        if beginning == [0x1f, 0x8b] {
            return Ok(Box::new(Unpacked { inner: MultiGzDecoder::new(io::BufReader::new(file)), name: &self.name }));
        }
        Ok(Box::new(file))
    }
}

/// Reader of the decompressed contents of a gzip file.
struct Unpacked<'a> {
    inner: MultiGzDecoder<io::BufReader<File>>,
    name: &'a str,
}

impl Read for Unpacked<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buf).map_err(|error| {
            let refusal = Refusal::new(word!("data.gzip")).of(self.name).expected("a whole gzip file").found(error);
            io::Error::other(tabtune::Error::from(refusal))
        })
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
        let Some(file) = slot.as_mut() else { return Ok(0) };
        let offset = file.seek(SeekFrom::End(0)).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        Ok(offset)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> tabtune::Result<()> {
        let failed = |e: io::Error| unreadable(TEMPORARY, e);
        let mut slot = self.0.borrow_mut();
        let Some(file) = slot.as_mut() else { return Err(unreadable(TEMPORARY, "nothing was written")) };
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        file.read_exact(buf).map_err(failed)
    }
}
