//! A checkpoint in one file, as the browser exports it: `TABTUNE1`, the length of a JSON head (u64, little endian), the head, then the
//! bytes of the files one after another. The files are read in place, without a copy.

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use serde::Deserialize;
use tabtune::checkpoint::sha256;
use tabtune::error::word;
use tabtune::formats::ByteSource;

use crate::error::{Result, damaged};
use crate::files::FileSource;

const MAGIC: &[u8; 8] = b"TABTUNE1";
const FRONT_BYTES: u64 = 16;
/// Maximum size of the head in bytes. The head lists the chunks and holds a run's history.
const MAX_HEAD_BYTES: u64 = 256 << 20;
/// Maximum size of a chunk in bytes.
const CHUNK_BYTES: u64 = 8 << 20;
/// Newest format of the head that is understood.
const FORMAT: u64 = 1;

/// Part of the head that a resume needs.
#[derive(Deserialize)]
struct Head {
    format: u64,
    manifest: Listing,
    run: Option<Run>,
}

#[derive(Deserialize)]
struct Listing {
    files: Vec<Entry>,
}

#[derive(Deserialize)]
struct Run {
    data: Option<Body>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    #[serde(flatten)]
    body: Body,
}

#[derive(Deserialize)]
struct Body {
    bytes: u64,
    chunks: Vec<Chunk>,
}

#[derive(Deserialize)]
struct Chunk {
    bytes: u64,
    sha256: String,
}

/// A byte range of the container that is read as a file of its own.
struct Inner {
    name: String,
    whole: Rc<FileSource>,
    begin: u64,
    bytes: u64,
}

impl ByteSource for Inner {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> tabtune::Result<()> {
        let end = u64::try_from(buf.len())
            .ok()
            .and_then(|len| offset.checked_add(len));
        if end.is_none_or(|end| end > self.bytes) {
            return Err(crate::error::unreadable(
                &self.name,
                format!("bytes {offset} + {} of {}", buf.len(), self.bytes),
            ));
        }
        self.whole.read_at(self.begin + offset, buf)
    }
}

/// Opens the files in the container at `path`, after verifying each chunk.
///
/// # Errors
/// `checkpoint.container.*` for a damaged container, `checkpoint.chunk.hash`, `checkpoint.version`, `source.read`.
pub fn sources(path: &Path) -> Result<Vec<Rc<dyn ByteSource>>> {
    let whole = Rc::new(FileSource::open(path)?);
    let (head, begin) = head(&whole)?;
    check(&head)?;
    let bodies = || {
        head.manifest
            .files
            .iter()
            .map(|entry| &entry.body)
            .chain(head.run.iter().flat_map(|run| &run.data))
    };
    let expected = bodies().try_fold(begin, |end, body| end.checked_add(body.bytes));
    if expected != Some(whole.len()) {
        let expected = expected.map_or("no number".into(), |bytes| bytes.to_string());
        return Err(damaged(
            word!("checkpoint.container.length"),
            format!("expected {expected} bytes, found {}", whole.len()),
        ));
    }
    let mut sources: Vec<Rc<dyn ByteSource>> = Vec::new();
    let mut at = begin;
    for Entry { name, body } in &head.manifest.files {
        let inner = Inner {
            name: name.clone(),
            whole: whole.clone(),
            begin: at,
            bytes: body.bytes,
        };
        verify(&inner, &body.chunks)?;
        at += body.bytes;
        sources.push(Rc::new(inner));
    }
    Ok(sources)
}

/// Reads the head. Returns it with the offset of its end in the file.
fn head(whole: &FileSource) -> Result<(Head, u64)> {
    let mut front = [0; 16];
    let read = whole.len() >= FRONT_BYTES && whole.read_at(0, &mut front).is_ok();
    let (magic, length) = front.split_at(MAGIC.len());
    if !read || magic != MAGIC {
        return Err(damaged(
            word!("checkpoint.container.magic"),
            "its first bytes are not TABTUNE1",
        ));
    }
    let length = length
        .iter()
        .rev()
        .fold(0, |length, byte| length << 8 | u64::from(*byte));
    let room = whole.len() - FRONT_BYTES;
    let fits = usize::try_from(length)
        .ok()
        .filter(|_| length <= MAX_HEAD_BYTES.min(room));
    let fits = fits.ok_or_else(|| {
        damaged(
            word!("checkpoint.container.head"),
            format!("a head of {length} bytes in a file of {}", whole.len()),
        )
    })?;
    let mut bytes = vec![0; fits];
    whole.read_at(FRONT_BYTES, &mut bytes)?;
    let head: Head = serde_json::from_slice(&bytes)
        .map_err(|error| damaged(word!("checkpoint.container.head"), error))?;
    if head.format == 0 || head.format > FORMAT {
        return Err(tabtune::Error::CheckpointVersion {
            found: head.format,
            supported: FORMAT,
        }
        .into());
    }
    Ok((head, FRONT_BYTES + length))
}

/// Refuses file names that are paths or occur twice, and chunks of sizes that tabtune does not write.
fn check(head: &Head) -> Result<()> {
    let mut names = BTreeSet::new();
    for Entry { name, body } in &head.manifest.files {
        let drive = name.as_bytes().get(1) == Some(&b':');
        let path = name.is_empty()
            || name == "."
            || drive
            || name.contains(['/', '\\', '\0'])
            || name.contains("..")
            || Path::new(name).is_absolute();
        if path || !names.insert(name) {
            return Err(damaged(
                word!("checkpoint.container.name"),
                "a file name that is a path, or a duplicate",
            ));
        }
        let sum = body
            .chunks
            .iter()
            .try_fold(0u64, |sum, chunk| sum.checked_add(chunk.bytes));
        if sum != Some(body.bytes)
            || body
                .chunks
                .iter()
                .any(|chunk| chunk.bytes == 0 || chunk.bytes > CHUNK_BYTES)
        {
            return Err(damaged(
                word!("checkpoint.container.chunk"),
                format!("the chunks of {name} are not those of {} bytes", body.bytes),
            ));
        }
    }
    Ok(())
}

fn verify(file: &Inner, chunks: &[Chunk]) -> Result<()> {
    let (mut at, mut buffer) = (0, Vec::new());
    for (piece, chunk) in (0..).zip(chunks) {
        buffer.resize(
            usize::try_from(chunk.bytes).expect("a chunk fits into memory"),
            0,
        );
        file.read_at(at, &mut buffer)?;
        let found = sha256(&buffer);
        if found != chunk.sha256 {
            let (file, expected) = (file.name.clone(), chunk.sha256.clone());
            return Err(tabtune::Error::CheckpointHash {
                file,
                piece,
                expected,
                found,
            }
            .into());
        }
        at += chunk.bytes;
    }
    Ok(())
}
