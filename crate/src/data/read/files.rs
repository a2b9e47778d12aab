//! Data files with their forms, and files that are one text.

use super::form::{Found, find_form, hint_of};
use super::refused::refused;
use super::row::ROW_BYTES;
use super::seen::Seen;
use super::source::DataSource;
use super::text::TextReader;
use crate::config::{DataSettings, Form};
use crate::error::{Result, word};

/// A file and its form.
#[derive(Clone, Copy)]
pub(crate) struct Opened<'a> {
    pub source: &'a dyn DataSource,
    pub found: Found,
}

impl<'a> Opened<'a> {
    /// Opens a file of token ids, which only its name identifies.
    pub fn tokens(source: &'a dyn DataSource) -> Self {
        Self {
            source,
            found: Found {
                form: Form::Tokens,
                hint: Some(Form::Tokens),
                delimiter: 0,
            },
        }
    }
}

/// Returns true if a file has token ids, which need no tokenizer.
pub(crate) fn has_tokens(name: &str, settings: &DataSettings) -> bool {
    settings.form.or_else(|| hint_of(name)) == Some(Form::Tokens)
}

/// Returns true if all files have token ids.
pub(crate) fn are_tokens(files: &[&dyn DataSource], settings: &DataSettings) -> bool {
    files.iter().all(|file| has_tokens(file.name(), settings))
}

/// Detects the forms of the files.
pub(crate) fn opened<'a>(
    files: &[&'a dyn DataSource],
    settings: &DataSettings,
) -> Result<Vec<Opened<'a>>> {
    let open = |source: &&'a dyn DataSource| {
        if has_tokens(source.name(), settings) {
            let (expected, found) = (
                "token ids in all files, or in none",
                "token ids together with texts or rows",
            );
            let refusal = refused(word!("data.form.contradicts"), expected, found);
            return Err(refusal.of(source.name()).into());
        }
        Ok(Opened {
            source: *source,
            found: find_form(*source, settings)?,
        })
    };
    files.iter().map(open).collect()
}

/// Reads the text of a file that is one document, and tells if other bytes follow a gzip file, and if the text has other line ends than LF.
pub(crate) fn whole_text(source: &dyn DataSource, partial: bool) -> Result<(String, Seen, Seen)> {
    let (mut reader, newlines) = TextReader::open(source, partial)?.with_newlines();
    let mut text = String::new();
    while reader.move_to(&mut text)? > 0 {
        if text.len() > ROW_BYTES {
            let expected = "documents of at most 64 MiB in addition to rows";
            let refusal = refused(word!("data.row"), expected, "more")
                .of(source.name())
                .hint("give texts without rows: they are one stream");
            return Err(refusal.into());
        }
    }
    Ok((text, reader.trailing(), newlines))
}
