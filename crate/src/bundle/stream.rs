//! Files that do not exist yet: their names and sizes are known, and their bytes are read from the device or from other files, one piece at a
//! time.

use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use serde::Serialize;

use super::checksums::Checksums;
use crate::error::{Error, Result};
use crate::formats::Digest;
use crate::gpu::transfer::{PIECE_BYTES, read_parts};
use crate::state::receipt::ModelIoArtifactReceipt;
use crate::state::{ArtifactDigests, Conversion, EncodedReader, Tensor};

/// Characters of a SHA-256 in hex.
const DIGEST_LEN: usize = 64;

/// Name and size of a file of a stream ([example](crate)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileInfo {
    /// File name, without a path.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
}

impl FileInfo {
    /// Number of its pieces.
    fn pieces(&self) -> u64 {
        self.bytes.div_ceil(PIECE_BYTES as u64)
    }
}

/// A piece of one file: 8 MiB; the last piece of a file holds the rest ([example](crate)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Index into [`FileStream::files`].
    pub file: usize,
    /// At most 8 MiB of bytes.
    pub bytes: Vec<u8>,
}

/// A part of a file. Its bytes are read when they are needed.
pub(super) enum Segment {
    /// A few bytes in memory.
    Known(Vec<u8>),
    /// The bytes of a tensor.
    Tensor(Box<Tensor>),
    /// Number of bytes at the beginning of a file, and the function that writes them.
    Late(u64, Late),
}

/// Function that writes bytes that depend on what the stream returned before them; their number is always the same.
type Late = Rc<dyn Fn(&mut FileStream) -> Result<Vec<u8>>>;

impl Segment {
    /// Number of its bytes.
    fn len(&self) -> u64 {
        match self {
            Self::Known(bytes) => bytes.len() as u64,
            Self::Tensor(tensor) => tensor.len(),
            Self::Late(bytes, _) => *bytes,
        }
    }
}

/// Files whose bytes are returned piece by piece. Tensors are kept as handles, so a step that is taken meanwhile does not change what is
/// written ([example](crate)).
#[derive(Default)]
pub struct FileStream {
    pub(super) files: Vec<FileInfo>,
    pub(super) segments: VecDeque<(usize, Segment)>,
    /// Number of bytes of the first segment that were already returned.
    given: u64,
    /// Reader of the first segment, if its bytes are computed one after another.
    reader: Option<EncodedReader>,
    digests: Vec<String>,
    /// Checksums of the returned bytes, if a receipt was requested.
    pub(super) checksums: Option<Checksums>,
    /// True if weights with NaN or infinite values are refused, false if the receipt names them; `None` if they are the caller's matter.
    pub(super) finite: Option<bool>,
    /// Tensors whose type was changed, with the errors of the conversion.
    pub(super) conversions: Vec<Conversion>,
    /// Facts about the artifact that the receipt states in addition to its checksums.
    pub(super) known: ArtifactDigests,
    /// The receipt, when all files before it were returned.
    pub(super) receipt: Option<ModelIoArtifactReceipt>,
}

impl fmt::Debug for FileStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStream")
            .field("files", &self.files)
            .field("segments", &self.segments.len())
            .finish_non_exhaustive()
    }
}

impl FileStream {
    /// Creates an empty stream.
    #[doc(hidden)]
    pub fn new() -> Self {
        Self::default()
    }

    /// The files in the order in which their bytes are returned.
    pub fn files(&self) -> &[FileInfo] {
        &self.files
    }

    /// Renames the first file. It must be called before the receipt, which lists names, is written.
    pub(crate) fn rename_first(&mut self, name: &str) {
        if let Some(file) = self.files.first_mut() {
            name.clone_into(&mut file.name);
        }
    }

    /// Adds a file that consists of these segments, one after another.
    pub(super) fn push(&mut self, name: &str, segments: Vec<Segment>) {
        let index = self.files.len();
        self.files.push(FileInfo {
            name: name.to_string(),
            bytes: segments.iter().map(Segment::len).sum(),
        });
        let segments = segments.into_iter().filter(|segment| segment.len() > 0);
        self.segments
            .extend(segments.map(|segment| (index, segment)));
    }

    /// Adds a file of known bytes.
    #[doc(hidden)]
    pub fn push_bytes(&mut self, name: &str, bytes: Vec<u8>) {
        self.push(name, vec![Segment::Known(bytes)]);
    }

    /// Adds a file of `len` bytes, which `write` gives when all files before it were returned.
    pub(super) fn push_late(
        &mut self,
        name: &str,
        len: usize,
        write: impl Fn(&mut Self) -> Result<Vec<u8>> + 'static,
    ) {
        self.push(name, vec![Segment::Late(len as u64, Rc::new(write))]);
    }

    /// Adds the document that contains the SHA-256 of each piece of the files before it, in lower-case hex; `seal` writes it, with the same
    /// length whatever the digests are. The caller reports the digests with [`Self::hashed`].
    ///
    /// # Errors
    /// The errors of `seal`.
    #[doc(hidden)]
    pub fn push_sealed(
        &mut self,
        name: &str,
        seal: impl Fn(&[Vec<String>]) -> Result<Vec<u8>> + 'static,
    ) -> Result<()> {
        let file = self.files.len();
        let len = seal(&self.by_file(file))?.len();
        self.push_late(name, len, move |stream| {
            let before: u64 = stream.files[..file].iter().map(FileInfo::pieces).sum();
            let known = stream.digests.len();
            if (known as u64) < before {
                let name = &stream.files[file].name;
                let rule = format!("the SHA-256 of {before} pieces before {name}");
                return Err(Error::invalid("hashed", rule, known));
            }
            seal(&stream.by_file(file))
        });
        Ok(())
    }

    /// Takes the SHA-256 of the next piece in order, in lower-case hex, from the first piece on. A stream without a sealed document does not
    /// use it.
    ///
    /// # Errors
    /// `config.invalid` for a text that is no SHA-256 in lower-case hex.
    pub fn hashed(&mut self, sha256: &str) -> Result<()> {
        if Digest::from_hex(sha256).is_none() {
            return Err(Error::invalid(
                "hashed",
                "a SHA-256 in lower-case hex",
                sha256,
            ));
        }
        self.digests.push(sha256.to_string());
        Ok(())
    }

    /// Lists the digests of the pieces of each of the first `files` files, with placeholders for those that are not known yet.
    fn by_file(&self, files: usize) -> Vec<Vec<String>> {
        let unknown = std::iter::repeat("0".repeat(DIGEST_LEN));
        let mut digests = self.digests.iter().cloned().chain(unknown);
        let of_file = |file: &FileInfo| digests.by_ref().take(file.pieces() as usize).collect();
        self.files[..files].iter().map(of_file).collect()
    }

    /// Reads the next piece; `None` when every file is complete. A sealed document needs the digests of all pieces before it.
    ///
    /// # Errors
    /// `config.invalid` if such digests are absent, `export.*` for values that a type cannot hold, `tensor.non-finite` if refused, and errors
    /// of reading.
    pub async fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        let Some(&(file, _)) = self.segments.front() else {
            return Ok(None);
        };
        self.fill_in()?;
        let bytes = self.gather(file).await?;
        self.count(file, &bytes);
        self.settle().await?;
        Ok(Some(Chunk { file, bytes }))
    }

    /// Reads the bytes of the next piece, which belongs to the file `file`.
    async fn gather(&mut self, file: usize) -> Result<Vec<u8>> {
        // A piece consists of bytes and of parts of tensors; those that are written as they are stored are read from the device at once.
        let (mut layout, mut parts, mut len) = (Vec::new(), Vec::new(), 0);
        while len < PIECE_BYTES
            && let Some((index, segment)) = self.segments.front_mut()
            && *index == file
        {
            let left = segment.len() - self.given;
            let now = left.min((PIECE_BYTES - len) as u64) as usize;
            let range = self.given..self.given + now as u64;
            match segment {
                Segment::Known(bytes) => {
                    // The range is inside a vector, so the offset fits into `usize`.
                    let own = bytes[self.given as usize..][..now].to_vec();
                    layout.push((Some(own), now));
                }
                Segment::Tensor(tensor) => {
                    if self.given == 0 {
                        self.reader = tensor.reader();
                    }
                    let own = match (&mut self.reader, tensor.on_device()) {
                        (Some(reader), _) => Some(reader.take(now).await?),
                        (None, Some(flat)) => {
                            parts.extend(flat.parts(&range));
                            None
                        }
                        (None, None) => Some(tensor.read(range).await?),
                    };
                    layout.push((own, now));
                }
                Segment::Late(..) => {}
            }
            len += now;
            self.given += now as u64;
            if self.given == segment.len() {
                self.segments.pop_front();
                if let Some(reader) = self.reader.take() {
                    self.conversions.extend(reader.conversion());
                }
                self.given = 0;
            }
        }
        let read = read_parts(&parts).await?;
        if layout.iter().all(|(own, _)| own.is_none()) {
            return Ok(read);
        }
        let (mut read, mut bytes) = (read.as_slice(), Vec::with_capacity(len));
        for (own, now) in layout {
            match own {
                Some(own) => bytes.extend(own),
                None => {
                    let (next, rest) = read.split_at(now);
                    bytes.extend_from_slice(next);
                    read = rest;
                }
            }
        }
        Ok(bytes)
    }

    /// Writes the bytes that depend on those before them, if they come next.
    fn fill_in(&mut self) -> Result<()> {
        let Some((_, Segment::Late(len, write))) = self.segments.front() else {
            return Ok(());
        };
        let (len, write) = (*len, Rc::clone(write));
        let bytes = write(self)?;
        if bytes.len() as u64 != len {
            return Err(Error::invalid(
                "stream",
                format!("{len} bytes"),
                bytes.len(),
            ));
        }
        self.segments[0].1 = Segment::Known(bytes);
        Ok(())
    }
}
