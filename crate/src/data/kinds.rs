//! Kinds of files that are not data, known by their first bytes.

use crate::error::{Refusal, word};

/// Advice about a file with rows that another program reads.
const SAVE_ROWS: &str = "save its rows as JSON lines or CSV";

/// First bytes of a file, its kind, and what to do with it.
const KINDS: [(&[u8], &str, &str); 9] = [
    (b"version https://git-lfs.github.com/spec/", "a pointer of Git LFS", "fetch the real file: git lfs pull"),
    (b"PK\x03\x04", "a zip archive, as .zip, .xlsx and .docx files are", "unpack it, or save its rows as JSON lines or CSV"),
    (b"%PDF-", "a PDF document", "save its text as a .txt file"),
    (b"\x28\xb5\x2f\xfd", "a file packed by zstd", "unpack it: unzstd"),
    (b"\xfd7zXZ\0", "a file packed by xz", "unpack it: unxz"),
    (b"BZh91AY&SY", "a file packed by bzip2", "unpack it: bunzip2"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "unpack it"),
    (b"SQLite format 3\0", "a SQLite database", SAVE_ROWS),
    (b"ARROW1\0\0", "an Arrow file", SAVE_ROWS),
];

/// Bytes of a tar archive (POSIX.1-1988), and where they are.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// Returns the refusal of a file that is not data.
pub(super) fn other_kind(bytes: &[u8], name: &str) -> Option<Refusal> {
    let (at, mark) = TAR;
    let is_tar = bytes.get(at..).is_some_and(|bytes| bytes.starts_with(mark));
    let known = KINDS.iter().find(|(mark, ..)| bytes.starts_with(mark)).map(|(_, kind, hint)| (*kind, *hint));
    let (kind, hint) = known.or(is_tar.then_some(("a tar archive", "unpack it")))?;
    Some(Refusal::new(word!("data.kind")).of(name).expected("text, JSON, CSV or token ids").found(kind).hint(hint))
}
