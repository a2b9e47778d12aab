//! Compares the bytes of a checkpoint's files with their lengths and digests. Offsets stay u64, because a browser's `usize` has 32 bits.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::formats::{ByteSource, Digest};

/// Number of bytes in a piece, except for the last one of a file.
const PIECE_BYTES: u64 = 8 << 20;

/// One file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRecord {
    /// File name.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of each piece of 8 MiB, the last one shorter, in lower-case hex.
    pub pieces: Vec<String>,
}

/// Number of pieces of a file of `bytes`.
pub(super) fn count_of(bytes: u64) -> u64 {
    bytes.div_ceil(PIECE_BYTES)
}

/// Offset and length of each piece of a file of `bytes`.
pub fn pieces_of(bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..count_of(bytes)).map(move |index| {
        (
            index * PIECE_BYTES,
            (bytes - index * PIECE_BYTES).min(PIECE_BYTES),
        )
    })
}

/// Computes the SHA-256 of `bytes` in the form of `checkpoint.json`.
pub fn sha256(bytes: &[u8]) -> String {
    Digest::of(bytes).to_string()
}

/// Refuses a file of another length.
pub(super) fn check_length(source: &dyn ByteSource, record: &FileRecord) -> Result<()> {
    if source.len() == record.bytes {
        return Ok(());
    }
    Err(Error::CheckpointLength {
        file: record.name.clone(),
        expected: record.bytes,
        found: source.len(),
    })
}

/// Refuses a file with other bytes; reads all of it, piece by piece.
pub(super) fn check_bytes(source: &dyn ByteSource, record: &FileRecord) -> Result<()> {
    let mut buffer = Vec::new();
    for ((piece, expected), (offset, len)) in (0..).zip(&record.pieces).zip(pieces_of(record.bytes))
    {
        buffer.resize(
            usize::try_from(len).expect("a piece fits into any memory"),
            0,
        );
        source.read_at(offset, &mut buffer)?;
        let found = sha256(&buffer);
        if *expected != found {
            return Err(Error::CheckpointHash {
                file: record.name.clone(),
                piece,
                expected: expected.clone(),
                found,
            });
        }
    }
    Ok(())
}
