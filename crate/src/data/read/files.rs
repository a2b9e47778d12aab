//! Data files with their forms, and files that are one text.

use super::form::{Found, find_form, hint_of};
use super::gzip::Trailing;
use super::json::ROW_BYTES;
use super::newlines::Newlines;
use super::source::DataSource;
use super::text::TextReader;
use crate::config::{DataSettings, Form};
use crate::error::{Error, Refusal, Result, word};

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
    settings.form.map_or_else(
        || hint_of(name) == Some(Form::Tokens),
        |form| form == Form::Tokens,
    )
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
            let refusal = Refusal::new(word!("data.form.contradicts"))
                .of(source.name())
                .expected("token ids in all files, or in none");
            return Err(Error::from(
                refusal.found("token ids together with texts or rows"),
            ));
        }
        Ok(Opened {
            source: *source,
            found: find_form(*source, settings)?,
        })
    };
    files.iter().map(open).collect()
}

/// Reads the text of a file that is one document.
pub(crate) fn whole_text(
    source: &dyn DataSource,
    partial: bool,
) -> Result<(String, Trailing, Newlines)> {
    let (mut text, (mut reader, newlines)) = (
        String::new(),
        TextReader::open(source, partial)?.with_newlines(),
    );
    while pass_on(&mut reader, &mut |piece| text.push_str(piece))? {
        if text.len() > ROW_BYTES {
            let refusal = Refusal::new(word!("data.row")).of(source.name());
            let refusal = refusal
                .expected("documents of at most 64 MiB in addition to rows")
                .found("more");
            return Err(refusal
                .hint("give texts without rows: they are one stream")
                .into());
        }
    }
    Ok((text, reader.trailing(), newlines))
}

/// Passes the next piece of a text to `take`. Returns false at the end.
pub(crate) fn pass_on(reader: &mut TextReader<'_>, take: &mut dyn FnMut(&str)) -> Result<bool> {
    let piece = reader.fill()?;
    take(piece);
    let taken = piece.len();
    reader.take(taken);
    Ok(taken > 0)
}
