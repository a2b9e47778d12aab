//! Recognises a file by its first bytes, where its name or its header promises something else.

use std::fmt;

use super::source::ByteSource;
use crate::error::{Error, Refusal, shown, word};

/// Number of bytes at the start of a file in which marks are searched for; a longer file is no message of a hub.
const FIRST_BYTES: usize = 4096;

/// Number of bytes that show whether a text is written in two bytes per character.
const PAIRED_BYTES: usize = 8;

const FETCH_AGAIN: &str = "the download went wrong: fetch the file again";
const REFUSED_BY_HUB: &str = "the download went wrong: check the name of the file and your access to it, then fetch it again";
const SAVE_AS_UTF8: &str = "save the file as UTF-8 without a byte order mark";
const NO_PICKLES: &str =
    "Python pickles are never loaded; save the model as safetensors where it was made";

/// First words of the messages that hubs and web servers send in place of a file, in lower case.
const MESSAGES: [&str; 19] = [
    "{\"error\":",
    "access denied",
    "access to dataset ",
    "access to model ",
    "bad gateway",
    "entry not found",
    "error code: ",
    "forbidden",
    "gateway time",
    "internal server error",
    "invalid credentials",
    "invalid rev",
    "invalid username or password",
    "not found",
    "page not found",
    "repository not found",
    "service unavailable",
    "too many requests",
    "unauthorized",
];

/// First words of a page of HTML or XML, in lower case. A chat template or a list of merges may begin with another tag.
const PAGES: [&str; 5] = ["<!doctype", "<html", "<?xml", "<head>", "<error>"];

/// Kind of file that the first bytes show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Stable word in a refusal (crate/FORMATS.md, "Refusals").
    word: &'static str,
    /// Name of the kind in a sentence.
    name: &'static str,
    /// Suggestion for a user who has such a file in place of another.
    hint: &'static str,
}

impl Mark {
    /// Adds the word and the suggestion to the refusal of the file.
    pub(crate) fn describe(self, refusal: Refusal) -> Refusal {
        refusal
            .found(self.word)
            .hint(format!("this is {}: {}", self.name, self.hint))
    }
}

const fn mark(word: &'static str, name: &'static str, hint: &'static str) -> Mark {
    Mark { word, name, hint }
}

const PICKLE: Mark = mark("pickle", "a pickle of Python", NO_PICKLES);
const ZIP: Mark = mark(
    "zip",
    "a zip archive, as a pickle of PyTorch is",
    NO_PICKLES,
);
const GZIP: Mark = mark("gzip", "a gzip file", "unpack the file first");
const GGUF: Mark = mark("gguf", "a GGUF file", "open the file as what it is");
const LEGACY_GGML: Mark = mark(
    "legacy-ggml",
    "a file of the old ggml format",
    "convert the file to GGUF",
);
pub(crate) const GIT_LFS_POINTER: Mark = mark(
    "git-lfs-pointer",
    "a pointer of Git LFS",
    "fetch the real file with git lfs pull",
);
pub(crate) const HTML: Mark = mark(
    "html",
    "a page of HTML or XML",
    "the download went wrong: fetch the file itself, not the page that shows it",
);

/// Description of a file or a document that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Name of the thing that was found, in which text of the file is shortened and escaped.
    pub found: String,
    /// Suggestion for the user.
    pub hint: &'static str,
}

impl Flaw {
    pub(crate) fn new(found: impl Into<String>, hint: &'static str) -> Self {
        Self {
            found: found.into(),
            hint,
        }
    }

    /// Adds the description to the refusal of the file.
    pub(crate) fn describe(self, refusal: Refusal) -> Refusal {
        refusal.found(self.found).hint(self.hint)
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.found, self.hint)
    }
}

/// Kind of file that the first bytes show, for a file that failed its header check; `None` if they show none.
pub(crate) fn known_mark(source: &dyn ByteSource) -> Option<&'static str> {
    mark_of(&first_bytes(source, 64)?).map(|mark| mark.word)
}

/// Thing that the first bytes of a file show, if it is none of a model.
pub(crate) fn first_flaw(source: &dyn ByteSource) -> Option<Flaw> {
    foreign(&first_bytes(source, FIRST_BYTES)?).filter(|flaw| flaw.found != GGUF.name)
}

fn first_bytes(source: &dyn ByteSource, count: usize) -> Option<Vec<u8>> {
    let mut first = vec![0u8; usize::try_from(source.len()).map_or(count, |len| len.min(count))];
    source.read_at(0, &mut first).ok()?;
    Some(first)
}

/// Kind of file that these first bytes show; `None` for one that has no mark.
pub(crate) fn mark_of(bytes: &[u8]) -> Option<Mark> {
    match bytes {
        [0x80, 2..=5, ..] => return Some(PICKLE),
        [b'P', b'K', 3, 4, ..] => return Some(ZIP),
        [0x1f, 0x8b, ..] => return Some(GZIP),
        [b'G', b'G', b'U', b'F', ..] => return Some(GGUF),
        [b'l' | b'f', b'm', b'g', b'g', ..]
        | [b't', b'j', b'g', b'g', ..]
        | [b'a', b'l', b'g', b'g', ..] => return Some(LEGACY_GGML),
        _ => {}
    }
    if bytes.starts_with(b"version https://git-lfs") {
        return Some(GIT_LFS_POINTER);
    }
    match without_bom(bytes).trim_ascii_start() {
        [b'<', b'!' | b'?' | b'a'..=b'z' | b'A'..=b'Z', ..] => Some(HTML),
        _ => None,
    }
}

fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// True if the text begins with one of `words`, which are in lower case, apart from white space and the case of letters.
fn begins_with(bytes: &[u8], words: &[&str]) -> bool {
    let text = without_bom(bytes).trim_ascii_start();
    words.iter().any(|word| {
        text.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// True if the characters are pairs of bytes: the text begins with their mark, or every other byte is zero.
fn is_utf16(bytes: &[u8]) -> bool {
    let first = &bytes[..bytes.len().min(PAIRED_BYTES)];
    let every_other = |at: usize| first.iter().skip(at).step_by(2);
    let is_letter = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    let letters = |at: usize| every_other(at).all(is_letter);
    let zeros = |at: usize| every_other(at).all(|byte| *byte == 0);
    // The first bytes of weights are a number, which may be that of a mark: a character of ASCII follows the mark of a document.
    match first {
        [0xff, 0xfe]
        | [0xfe, 0xff]
        | [0xff, 0xfe, b'\t'..=b'~', 0, ..]
        | [0xfe, 0xff, 0, b'\t'..=b'~', ..] => true,
        _ => first.len() >= 4 && (letters(0) && zeros(1) || zeros(0) && letters(1)),
    }
}

/// True if lines of the text are the marks of a merge that Git left to its user.
fn is_conflict(bytes: &[u8]) -> bool {
    let line = |mark: &[u8]| {
        bytes
            .split(|byte| *byte == b'\n')
            .any(|line| line.starts_with(mark))
    };
    line(b"<<<<<<< ") && (line(b">>>>>>> ") || bytes.starts_with(b"<<<<<<< "))
}

/// Thing that lies in the place of a text document, be it JSON, a chat template or a list of merges; `None` if its bytes may be
/// that document.
pub fn foreign(bytes: &[u8]) -> Option<Flaw> {
    let named = |mark: Mark| Some(Flaw::new(mark.name, mark.hint));
    if bytes.trim_ascii().is_empty() {
        return Some(Flaw::new("an empty file", FETCH_AGAIN));
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return Some(Flaw::new(
            "nothing but zero bytes",
            "the file was never written in full: fetch it again",
        ));
    }
    if is_utf16(bytes) {
        return Some(Flaw::new("UTF-16", SAVE_AS_UTF8));
    }
    if let Some(mark) = mark_of(bytes).filter(|mark| *mark != HTML) {
        return named(mark);
    }
    if begins_with(bytes, &PAGES) {
        return named(HTML);
    }
    if bytes.len() <= FIRST_BYTES && is_message(bytes) {
        return Some(Flaw::new(quoted("the message", bytes), REFUSED_BY_HUB));
    }
    if is_conflict(bytes) {
        return Some(Flaw::new(
            "an unfinished merge of Git (<<<<<<<)",
            "settle the conflict, or fetch the file again",
        ));
    }
    (without_bom(bytes).len() < bytes.len())
        .then(|| Flaw::new("a byte order mark before the text", SAVE_AS_UTF8))
}

/// True for a message of a hub, which may have the number of its status before it.
fn is_message(bytes: &[u8]) -> bool {
    let text = without_bom(bytes).trim_ascii_start();
    let status = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let after = text[status..].trim_ascii_start();
    let after = after.strip_prefix(b":").unwrap_or(after);
    begins_with(if status == 3 { after } else { text }, &MESSAGES)
}

/// Appends to `what` the first words of a text.
pub(crate) fn quoted(what: &str, bytes: &[u8]) -> String {
    const WORDS: usize = 40;
    let text = String::from_utf8_lossy(without_bom(&bytes[..bytes.len().min(FIRST_BYTES)]));
    let line = text.trim().lines().next().unwrap_or_default();
    let words: String = line.chars().take(WORDS).collect();
    let more = if words.len() < line.len() { "…" } else { "" };
    format!("{what} \"{}{more}\"", shown(&words))
}

/// True if the bytes are those of a text: a header of weights has zero bytes.
fn is_text(bytes: &[u8]) -> bool {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The bytes may end within a character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    let is_odd = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    text.len() >= 8 && !text.chars().any(is_odd)
}

/// Names the file, and states in a refusal of its header what the file really is, if the first bytes show it: `format.mismatch` for a file
/// of another kind.
pub(crate) fn or_mismatch(error: Error, source: &dyn ByteSource, own: &'static str) -> Error {
    error.in_file(source.name()).map_refusals(|refusal| {
        let header =
            refusal.code.contains(".header.") || refusal.code == word!("gguf.magic.invalid").text();
        let Some(first) = first_bytes(source, FIRST_BYTES).filter(|_| header) else {
            return refusal;
        };
        let text = || is_text(&first).then(|| Flaw::new(quoted("the text", &first), FETCH_AGAIN));
        match mark_of(&first) {
            Some(mark) if mark.word == own => refusal,
            Some(mark) => mark.describe(
                Refusal::new(word!("format.mismatch"))
                    .of(source.name())
                    .expected(own),
            ),
            None => match foreign(&first).or_else(text) {
                Some(flaw) => flaw.describe(refusal),
                None => refusal,
            },
        }
    })
}
