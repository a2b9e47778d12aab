//! Files of data: read whole, unpacked, and of a folder its texts.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tabtune::data::DataFile;
use tabtune::error::Refusal;
use tabtune::word;

use crate::error::{Result, unreadable};
use crate::files::{file_name, read_file};

/// Names and contents of files.
#[derive(Debug, Default)]
pub struct DataFiles(Vec<(String, Vec<u8>)>);

impl DataFiles {
    /// Reads files, and the `.txt` and `.md` files of folders in the order of their names. Those of gzip are unpacked.
    pub fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut files = Vec::new();
        for path in paths {
            if path.is_dir() {
                let texts = texts_of(path)?;
                for text in &texts {
                    files.push((file_name(text), read_file(text)?));
                }
            } else {
                let name = file_name(path);
                let bytes = unpacked(&name, read_file(path)?)?;
                files.push((name, bytes));
            }
        }
        Ok(Self(files))
    }

    /// The files as the crate takes them.
    pub fn files(&self) -> Vec<DataFile<'_>> {
        self.0.iter().map(|(name, bytes)| DataFile { name, bytes }).collect()
    }

    /// These files and others.
    pub fn and<'a>(&'a self, others: &'a Self) -> Vec<DataFile<'a>> {
        [self.files(), others.files()].concat()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The texts of a folder, sorted by name.
fn texts_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|e| unreadable(folder.display(), e))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>();
    let is_text = |path: &PathBuf| path.is_file() && path.extension().is_some_and(|end| end == "txt" || end == "md");
    let mut texts: Vec<PathBuf> = paths.map_err(|e| unreadable(folder.display(), e))?.into_iter().filter(is_text).collect();
    texts.sort();
    if texts.is_empty() {
        return Err(unreadable(folder.display(), "expected .txt or .md files in the folder, found none").into());
    }
    Ok(texts)
}

/// The contents of a gzip file, and of any other file what it is.
fn unpacked(name: &str, bytes: Vec<u8>) -> Result<Vec<u8>> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut out = Vec::new();
    let refuse = |e: std::io::Error| Refusal::new(word!("data.gzip")).of(name).expected("a whole gzip file").found(e);
    MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut out).map_err(|e| tabtune::Error::from(refuse(e)))?;
    Ok(out)
}
