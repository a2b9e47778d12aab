//! Unpacks data files: gzip files of one member or several (RFC 1952, section 2.2).

use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read};

use flate2::bufread::GzDecoder;

use super::refused::refused;
use super::seen::Seen;
use super::source::{DataSource, unreadable};
use crate::error::{Error, Result, word};

/// First bytes of a gzip member.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Number of bytes that are read at once: in a browser each read makes a Blob, which takes kilobytes until it is collected.
const BUFFER: usize = 1 << 20;

/// A file whose first bytes were looked at.
type File<'a> = BufReader<Chain<Cursor<Vec<u8>>, Box<dyn Read + 'a>>>;

/// The contents of a file, unpacked if it is a gzip file. As in gzip(1), zeros after its end are padding, and other bytes there are left
/// out.
pub(crate) struct Contents<'a> {
    pub name: &'a str,
    /// True if the file is the beginning of a longer one, which may end within a member or a character.
    pub partial: bool,
    state: State<'a>,
    /// True if a gzip file has other bytes after its end.
    pub trailing: Seen,
}

enum State<'a> {
    Plain(File<'a>),
    Member(Box<GzDecoder<File<'a>>>),
    Ended,
}

impl<'a> Contents<'a> {
    /// Opens a file. The error of a damaged member comes when it is read.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn open(source: &'a dyn DataSource, partial: bool) -> Result<Self> {
        let (name, mut inner, mut first) = (source.name(), source.open()?, Vec::new());
        (&mut inner)
            .take(MAGIC.len() as u64)
            .read_to_end(&mut first)
            .map_err(|error| unreadable(error, name))?;
        let packed = first == MAGIC;
        let file = BufReader::with_capacity(BUFFER, Cursor::new(first).chain(inner));
        let state = if packed {
            State::Member(Box::new(GzDecoder::new(file)))
        } else {
            State::Plain(file)
        };
        Ok(Self {
            name,
            partial,
            state,
            ..Self::empty()
        })
    }

    /// The contents of a file that is empty.
    pub fn empty() -> Self {
        Self {
            name: "",
            partial: false,
            state: State::Ended,
            trailing: Seen::default(),
        }
    }

    /// The fault of a damaged file; another error of reading one is passed on.
    fn fault(&self, error: io::Error) -> io::Error {
        match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::InvalidInput | ErrorKind::InvalidData => {
                let refusal = refused(word!("data.gzip"), "a whole gzip file", error)
                    .of(self.name)
                    .hint("pack it again, or give it unpacked");
                io::Error::other(Error::from(refusal))
            }
            _ => error,
        }
    }

    /// Begins the next member of a file, if there is one.
    fn next_member(&mut self, mut file: File<'a>) -> io::Result<()> {
        match after_padding(&mut file)? {
            Some(first) if first == MAGIC[0] => {
                self.state = State::Member(Box::new(GzDecoder::new(file)))
            }
            Some(_) => self.trailing.mark(),
            None => {}
        }
        Ok(())
    }
}

/// Skips the zeros with which tapes and block devices fill up a file, and returns the byte after them; `None` at the end.
fn after_padding(file: &mut impl BufRead) -> io::Result<Option<u8>> {
    loop {
        let bytes = file.fill_buf()?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let next = bytes.get(zeros).copied();
        file.consume(zeros);
        if next.is_some() || zeros == 0 {
            return Ok(next);
        }
    }
}

impl Read for Contents<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let member = match &mut self.state {
                State::Plain(file) => return file.read(buf),
                State::Ended => return Ok(0),
                State::Member(member) => member,
            };
            match member.read(buf) {
                Ok(0) if !buf.is_empty() => {
                    if let State::Member(member) = std::mem::replace(&mut self.state, State::Ended)
                    {
                        self.next_member(member.into_inner())?;
                    }
                }
                Err(error) if self.partial && error.kind() == ErrorKind::UnexpectedEof => {
                    self.state = State::Ended
                }
                Err(error) => return Err(self.fault(error)),
                read => return read,
            }
        }
    }
}
