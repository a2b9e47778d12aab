//! Recognises a file by its first bytes, where its name or its header promises something else.

use super::source::ByteSource;
use crate::error::{Error, Refusal, word};

/// Returns the kind of file that the first bytes show, for a file that failed its header check.
pub(crate) fn known_mark(source: &dyn ByteSource) -> Option<&'static str> {
    let mut first = [0u8; 64];
    let len = usize::try_from(source.len()).map_or(64, |len| len.min(64));
    source.read_at(0, &mut first[..len]).ok()?;
    let bytes = &first[..len];
    match bytes {
        [0x80, 2..=5, ..] => return Some("pickle"),
        [b'P', b'K', 3, 4, ..] => return Some("zip"),
        [0x1f, 0x8b, ..] => return Some("gzip"),
        [b'G', b'G', b'U', b'F', ..] => return Some("gguf"),
        [b'l' | b'f', b'm', b'g', b'g', ..] | [b't', b'j', b'g', b'g', ..] | [b'a', b'l', b'g', b'g', ..] => return Some("legacy-ggml"),
        _ => {}
    }
    if bytes.starts_with(b"version https://git-lfs") {
        return Some("git-lfs-pointer");
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    match text {
        [b'<', b'!' | b'?' | b'a'..=b'z' | b'A'..=b'Z', ..] => Some("html"),
        _ => None,
    }
}

/// Names the file, and turns a refusal of its header into `format.mismatch` if the first bytes show what the file really is.
pub(crate) fn or_mismatch(error: Error, source: &dyn ByteSource, own: &'static str) -> Error {
    error.in_file(source.name()).map_refusals(|refusal| {
        let header = refusal.code.contains(".header.") || refusal.code == word!("gguf.magic.invalid").text();
        let Some(mark) = known_mark(source).filter(|mark| header && *mark != own) else { return refusal };
        let hint = match mark {
            "pickle" | "zip" => "Python pickles are never loaded; save the model as safetensors where it was made",
            "git-lfs-pointer" => "this is a pointer; fetch the real file with git lfs pull",
            "html" => "this is a web page; download the file itself",
            "gzip" => "unpack the file first",
            "legacy-ggml" => "convert the file to GGUF",
            _ => "open the file as what it is",
        };
        Refusal::new(word!("format.mismatch")).of(source.name()).expected(own).found(mark).hint(hint)
    })
}
