//! Kinds of files that are not data, known by their first bytes, and encodings of texts that are not read.

use super::refused::refused;
use crate::error::{Refusal, word};

/// Advice about a file with rows that another program reads.
const SAVE_ROWS: &str = "save its rows as JSON lines or CSV";

/// Advice about a document of another program.
const SAVE_TEXT: &str = "save its text as a .txt file";
/// Advice about a file without any text.
const NO_TEXT: &str = "choose a file of text or rows";

/// First bytes of a file, its kind, and what to do with it.
const KINDS: [(&[u8], &str, &str); 18] = [
    (
        b"version https://git-lfs.github.com/spec/",
        "a pointer of Git LFS",
        "fetch the real file: git lfs pull",
    ),
    (b"%PDF-", "a PDF document", SAVE_TEXT),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "a document of Office (.doc, .xls or .ppt)",
        "save its text as a .txt file, or its rows as CSV",
    ),
    (b"\x89PNG\r\n", "a picture (PNG)", NO_TEXT),
    (b"\xff\xd8\xff", "a picture (JPEG)", NO_TEXT),
    (b"II*\0", "a picture (TIFF)", NO_TEXT),
    (b"MM\0*", "a picture (TIFF)", NO_TEXT),
    (b"OggS\0", "a recording (Ogg)", NO_TEXT),
    (b"fLaC\0", "a recording (FLAC)", NO_TEXT),
    (b"ID3\x03\0", "a recording (MP3)", NO_TEXT),
    (b"ID3\x04\0", "a recording (MP3)", NO_TEXT),
    (b"\x7fELF", "a program", NO_TEXT),
    (
        b"\x28\xb5\x2f\xfd",
        "a file packed by zstd",
        "unpack it: unzstd",
    ),
    (b"\xfd7zXZ\0", "a file packed by xz", "unpack it: unxz"),
    (
        b"BZh91AY&SY",
        "a file packed by bzip2",
        "unpack it: bunzip2",
    ),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "unpack it"),
    (b"SQLite format 3\0", "a SQLite database", SAVE_ROWS),
    (b"ARROW1\0\0", "an Arrow file", SAVE_ROWS),
];

/// Names in a zip archive that show its kind.
const ZIPPED: [(&[u8], &str, &str); 5] = [
    (b"word/", "a Word document (.docx)", SAVE_TEXT),
    (b"xl/", "an Excel workbook (.xlsx)", "save its rows as CSV"),
    (b"ppt/", "a PowerPoint presentation (.pptx)", SAVE_TEXT),
    (
        b"application/vnd.oasis.opendocument",
        "an OpenDocument file (.odt or .ods)",
        "save its text as a .txt file, or its rows as CSV",
    ),
    (b"application/epub+zip", "a book (.epub)", SAVE_TEXT),
];

/// First bytes of files whose kind follows a length, the kind and where it is: pictures, recordings and films.
const INNER: [(&[u8], usize, &[u8], &str); 3] = [
    (b"RIFF", 8, b"WEBPVP8", "a picture (WebP)"),
    (b"RIFF", 8, b"WAVEfmt ", "a recording (WAV)"),
    (b"\0\0\0", 4, b"ftyp", "a picture or a film (HEIC or MP4)"),
];

/// Bytes of a tar archive (POSIX.1-1988), and where they are.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// Returns the refusal of a file that is not data.
pub(super) fn other_kind(bytes: &[u8], name: &str) -> Option<Refusal> {
    let has = |at: usize, mark: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(mark));
    let known = || KINDS.into_iter().find(|(mark, ..)| has(0, mark));
    let inner = || {
        INNER
            .into_iter()
            .find(|(first, at, mark, _)| has(0, first) && has(*at, mark))
    };
    let (kind, hint) = if let Some((_, kind, hint)) = known() {
        (kind, hint)
    } else if let Some((.., kind)) = inner() {
        (kind, NO_TEXT)
    } else if has(0, b"PK\x03\x04") {
        zipped(bytes)
    } else if has(TAR.0, TAR.1) {
        ("a tar archive", "unpack it")
    } else {
        return None;
    };
    let refusal = refused(word!("data.kind"), "text, JSON, CSV or token ids", kind);
    Some(refusal.of(name).hint(hint))
}

/// Returns the kind of a zip archive, as documents of many programs are, and what to do with it.
fn zipped(bytes: &[u8]) -> (&'static str, &'static str) {
    let has = |name: &[u8]| bytes.windows(name.len()).any(|part| part == name);
    let plain: (&[u8], _, _) = (
        b"",
        "a zip archive",
        "unpack it, or save its rows as JSON lines or CSV",
    );
    let (_, kind, hint) = ZIPPED
        .into_iter()
        .find(|(name, ..)| has(name))
        .unwrap_or(plain);
    (kind, hint)
}

/// Returns the encoding that a text in none of those that are read seems to have: Cyrillic texts have long runs of bytes from 0xc0 on, texts of
/// western Europe have single ones.
pub(super) fn other_encoding(bytes: &[u8]) -> Option<&'static str> {
    const SEEN: usize = 16 << 10;
    let seen = bytes.get(..SEEN).unwrap_or(bytes);
    if seen.iter().any(|byte| *byte < b'\t') {
        return None;
    }
    let count = |low: u8| seen.iter().filter(|byte| **byte >= low).count();
    let runs = seen
        .split(|byte| *byte < 0x80)
        .filter(|run| !run.is_empty());
    let (runs, all, letters, small) = (runs.count(), count(0x80), count(0xc0), count(0xe0));
    if all == 0 || letters * 20 < all * 17 {
        return None;
    }
    Some(match (all >= runs * 2, small * 2 >= letters) {
        (true, true) => "WINDOWS-1251",
        (true, false) => "KOI8-R",
        (false, _) => "WINDOWS-1252",
    })
}
