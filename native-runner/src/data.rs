//! Files of data: those of a folder, unpacked, and a place for tokens that are too many for memory.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use tabtune::config::DataSettings;
use tabtune::data::{DataReader, DataSource, Dataset, TokenStorage};
use tabtune::error::Refusal;
use tabtune::tokenizer::Tokenizer;
use tabtune::word;

use crate::error::{Result, unreadable, unwritable};
use crate::files::{file_name, has_ending};

/// Files, each of which is opened when it is read.
#[derive(Debug, Default)]
pub struct DataFiles(Vec<DataPath>);

#[derive(Debug)]
struct DataPath {
    name: String,
    path: PathBuf,
}

impl DataFiles {
    /// The files, and of folders their `.txt` and `.md` files in the order of their names.
    pub fn of(paths: &[PathBuf]) -> Result<Self> {
        let mut files = Vec::new();
        for path in paths {
            let found = if path.is_dir() { texts_of(path)? } else { vec![path.clone()] };
            files.extend(found.into_iter().map(|path| DataPath { name: file_name(&path), path }));
        }
        Ok(Self(files))
    }

    /// The files as the crate takes them.
    pub fn files(&self) -> Vec<&dyn DataSource> {
        self.0.iter().map(|file| file as &dyn DataSource).collect()
    }

    /// These files and others.
    pub fn and<'a>(&'a self, others: &'a Self) -> Vec<&'a dyn DataSource> {
        [self.files(), others.files()].concat()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the data. Tokens that are too many for memory are in a temporary file meanwhile.
    pub fn read(&self, tokenizer: Result<&Tokenizer>, settings: &DataSettings) -> Result<Dataset> {
        let storage: Rc<dyn TokenStorage> = Rc::new(TemporaryFile::default());
        Ok(DataReader::open(&self.files(), tokenizer, settings, Some(storage))?.finish()?)
    }
}

/// The texts of a folder, sorted by name.
fn texts_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|e| unreadable(folder.display(), e))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
    // Files that begin with a dot are not shown to people.
    let is_text = |path: &PathBuf| path.is_file() && has_ending(path, &["txt", "md"]) && !file_name(path).starts_with('.');
    let mut texts: Vec<PathBuf> = paths.map_err(|e| unreadable(folder.display(), e))?.into_iter().filter(is_text).collect();
    texts.sort();
    if texts.is_empty() {
        return Err(unreadable(folder.display(), "expected .txt or .md files in the folder, found none").into());
    }
    Ok(texts)
}

impl DataSource for DataPath {
    fn name(&self) -> &str {
        &self.name
    }

    /// Opens the file; one of gzip is unpacked.
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

/// The contents of a gzip file.
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

/// A file without a name, which goes when the run ends. It is made in the folder for temporary files (`TMPDIR`) when it is needed.
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
